//! The redo log of the embedded engine.
