//! The measuring loop: what is requested of storage, when, and how long it took.
//!
//! Purpose: run one or more workloads at the same time in one window of time and give back counts,
//! histograms and slices. Invariants: the loop allocates nothing, takes no lock, formats nothing
//! and reads the clock at most twice per request, three times where requests are noted in detail;
//! every API, the null one included, goes through the same loop. Transactions have a loop of their
//! own and everything else in common with it. It does not depend on a database, reads no device
//! counters and prints nothing.

mod arrivals;
mod clock;
mod controller;
mod detail;
mod error;
mod extras;
mod figures;
mod flush_schedule;
mod generator;
mod job;
mod load;
mod log_replay;
#[cfg(test)]
mod loop_tests;
mod outcome;
mod pauses;
mod rate_watch;
mod recorder;
mod region;
mod request_log;
mod segment;
mod shared_stats;
mod steady;
mod tally;
mod transactions;
mod usage;
mod varied;
mod verification;
mod window;
mod worker;

pub use arrivals::Arrivals;
pub use clock::{Clock, ClockFacts, MonotonicClock, Ticks, TscClock, VirtualClock, clock_facts};
pub use controller::{Interim, NoObserver, Surroundings, WindowObserver};
pub use detail::{CloneDetail, RequestDetail, StreamDetail};
pub use error::LoadError;
pub use figures::WindowFigures;
pub use generator::{Generator, Permutation, Request, Zipf};
pub use job::{StreamPlan, WORKER_COMMAND, open_mode, worker_main};
pub use load::{IoLoad, Load};
pub use outcome::{FailedRequest, LoadFailure, WindowOutcome};
pub use rate_watch::MissedRate;
pub use steady::SteadyRates;
pub use tally::Tally;
pub use transactions::{
    FailedTransaction, LiveFigures, NextTransaction, Ran, Reach, SessionError, Settlement,
    TransactionCost, TransactionEnd, TransactionLoad, TransactionSource, TransactionWorker, Turn,
};
pub use usage::ThreadUse;
pub use verification::CONTENT_ERRNO;
pub use window::measure;
