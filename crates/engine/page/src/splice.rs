//! Many rows at once.
