//! Two points beside each other as text.

mod rows;

pub(crate) mod markdown;
pub(crate) mod terminal;
