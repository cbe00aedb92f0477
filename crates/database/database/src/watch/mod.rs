//! What watching a target shows: rates between samples of it, and stalls with their causes.
//!
//! Purpose: samples of a target in the order of their time become [`WatchSample`]s, and in the end
//! a document. Invariants: pure; no rate is below zero, across restarts and counters that are reset
//! too; what a target does not report stays absent. It queries no target and shows nothing.
//!
//! [`WatchSample`]: iostrata_run::WatchSample

mod moment;
mod record;
mod samples;
mod stalls;
mod totals;

pub use moment::{OnHost, TimedSample};
pub use record::WatchRecord;
pub use samples::{Watch, WatchStep};
pub use totals::Totals;
