//! A study as text.

mod evidence;
pub(crate) mod markdown;
mod matrix;
mod response;
pub(crate) mod terminal;
