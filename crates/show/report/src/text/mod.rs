//! The report as text: Markdown to share, and the short verdict for a terminal.

pub(crate) mod diff;
pub(crate) mod fio;
pub(crate) mod io;
pub(crate) mod markdown;
pub(crate) mod markdown_probe;
mod paper;
pub(crate) mod simulate;
pub(crate) mod study;
pub(crate) mod terminal;
mod verdict;
