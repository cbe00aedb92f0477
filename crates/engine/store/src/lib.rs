//! Data files and doublewrite of the embedded engine.
