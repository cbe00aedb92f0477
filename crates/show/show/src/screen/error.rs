//! Why a screen could not be shown.

use std::io;

use thiserror::Error;

/// Why a screen could not be shown, or ended early.
#[derive(Debug, Error)]
pub enum ScreenError {
    /// Standard output is a file or a pipe.
    #[error("standard output is no terminal; --json-lines prints a line per sample instead")]
    NoTerminal,
    /// The terminal cannot move its cursor.
    #[error("the terminal is \"{name}\" and shows lines only; set TERM, or use --json-lines")]
    Plain {
        /// What `TERM` says.
        name: String,
    },
    /// The terminal went away, or refused.
    #[error("cannot {action} the terminal: {source}")]
    Terminal {
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Another thread of the program panicked, and the terminal was given back to its message.
    #[error("a broken invariant stopped the program while the screen was shown")]
    Panicked,
}
