//! A simulated queue as text.

pub(crate) mod markdown;
pub(crate) mod terminal;
