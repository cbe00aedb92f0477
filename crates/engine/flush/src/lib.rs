//! Decides what the embedded engine flushes, and when.
