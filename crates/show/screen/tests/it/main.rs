//! The screen on a real terminal.

#![allow(clippy::unwrap_used)]

mod terminal;
