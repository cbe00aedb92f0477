//! What is seen.
//!
//! Purpose: [`report`] shows what a run measured as HTML, Markdown and terminal text, [`screen`]
//! watched targets as a full-screen view of a terminal, [`metrics`] the same as metrics of
//! Prometheus. Invariants: nothing is computed here but how it looks; what a target does not report
//! is never shown as 0. The three know nothing of each other; `screen` is a feature, on by default,
//! so that a report needs no library for terminals.

pub mod metrics;
pub mod report;
#[cfg(feature = "screen")]
pub mod screen;
