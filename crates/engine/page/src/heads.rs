//! Heads.
