//! Settings of the trace instance, which others carry out.

use std::io;

/// One file of the trace instance and what is to be written into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The file, below the instance's directory.
    pub file: String,
    /// What to write. The file must be opened with truncation, as `std::fs::write` does: that is
    /// what clears `trace`.
    pub value: String,
}

/// Carries a setting out. Called only within `start` and `stop`.
pub type Switch<'a> = dyn FnMut(&Setting) -> io::Result<()> + 'a;

impl Setting {
    fn new(file: impl Into<String>, value: impl Into<String>) -> Self {
        Self { file: file.into(), value: value.into() }
    }

    /// Recording begins.
    pub(crate) fn on() -> Self {
        Self::new("tracing_on", "1")
    }

    /// Recording ends.
    pub(crate) fn off() -> Self {
        Self::new("tracing_on", "0")
    }

    /// What was recorded is forgotten.
    pub(crate) fn clear() -> Self {
        Self::new("trace", "0")
    }

    /// Only events that the expression holds for are recorded.
    pub(crate) fn filter(event_directory: &str, expression: String) -> Self {
        Self::new(format!("{event_directory}/filter"), expression)
    }
}
