//! Slotted pages and redo records of the embedded engine.
