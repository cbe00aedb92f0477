//! A study as text.

mod evidence;
pub(crate) mod markdown;
mod matrix;
pub(crate) mod terminal;
