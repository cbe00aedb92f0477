//! Decides what the embedded engine flushes, and when.
//!
//! Purpose: a policy sees one sample of the engine and answers with one action; it also says what
//! a committing thread does at a given checkpoint age. Invariant: pure; the same samples give the
//! same actions. It writes no page, waits for nothing and reads no clock: the engine's cleaner
//! does.
//!
//! How a cleaner uses it: take a sample, call `next`, publish `admit`, do the action, and begin
//! again. A thread that is told to wait wakes the cleaner.

mod action;
mod admit;
mod ages;
mod average;
mod batch_cost;
mod configured;
mod depth;
pub mod history;
mod ladder;
mod limits;
mod outlook;
mod page_rate;
mod purge_delay;
mod redo_rate;
mod redo_sync;
mod sample;
mod steady;
mod write_limit;

pub use action::{
    Action, BATCH_PAGES, Cause, DelayedRate, Finished, FlushPolicy, Round, WritePace, batch_share,
    batches_at_once,
};
pub use admit::{ADMIT_WORDS, Admit, AdmitRule, RedoPace, UserWork};
pub use ages::Ages;
pub use average::Average;
pub use batch_cost::BatchCost;
pub use configured::policy;
pub use depth::Depth;
pub use ladder::Ladder;
pub use limits::{AgeLimits, RESERVE_BYTES_MAX};
pub use outlook::{Bound, Outlook};
pub use purge_delay::Lag;
pub use redo_rate::RedoRate;
pub use sample::{FlushSample, FlushSettings, LanesUse, STALLED_REDO_WRITE, frames_of_user};
pub use steady::DrainRate;
pub use steady::FrameDemand;
pub use steady::Steady;
