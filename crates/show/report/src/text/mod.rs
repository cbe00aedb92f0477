//! The report as text: Markdown to share, and the short verdict for a terminal.

pub(crate) mod markdown;
pub(crate) mod terminal;
