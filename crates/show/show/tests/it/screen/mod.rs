//! The screen on a real terminal.

mod terminal;
