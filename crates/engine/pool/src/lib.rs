//! The buffer pool of the embedded engine.
