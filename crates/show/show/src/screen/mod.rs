//! Watched targets as a full-screen view of a terminal.
//!
//! Purpose: samples come in, a screen shows them: checkpoint age and its limits, flushing by kind,
//! purge, I/O, the device, and every stall with its cause. [`run`] owns the terminal while it
//! lasts; state and drawing below it are pure, and take samples and keys instead of clocks and
//! terminals.
//! Invariants: a value that a target does not report is drawn as `n/a` or as a gap, never as 0.
//! What matters is shown in words or by reverse video, so that a screen without colours shows the
//! same. The terminal is as it was after every way out, panics included. It queries no target: the
//! caller provides the samples.

mod course;
mod draw;
mod look;
#[cfg(any(test, feature = "testing"))]
pub mod made_up;
mod run;
mod view;

pub use draw::short_name;
pub use look::Look;
pub use run::{Ending, ScreenError, restore, run};

#[cfg(test)]
mod tests;
