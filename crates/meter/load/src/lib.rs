//! The measuring loop: what is asked of storage, when, and how long it took.
//!
//! Purpose: run one or more workloads at the same time in one window of time and give back counts,
//! histograms and slices. Invariants: the loop allocates nothing, takes no lock, formats nothing
//! and reads the clock at most twice per request, three times where requests are noted in detail;
//! every API, the null one included, goes through the same loop. Transactions have a loop of their
//! own and everything else in common with it. It knows no database, looks at no device counters and
//! prints nothing.

mod arrivals;
mod clock;
mod controller;
mod detail;
mod error;
mod extras;
mod failure;
mod figures;
mod flush_schedule;
mod generator;
mod in_flight;
mod inherited;
mod job;
mod load;
mod log_replay;
#[cfg(test)]
mod loop_tests;
mod observer;
mod outcome;
mod pauses;
mod permutation;
mod process;
mod recorder;
mod region;
mod segment;
mod shared_stats;
mod shown;
mod span;
mod steady;
mod tally;
mod transactions;
mod usage;
mod varied;
#[cfg(test)]
mod varied_loop_tests;
mod verification;
mod window;
mod worker;
mod zipf;

pub use arrivals::Arrivals;
pub use clock::{Clock, ClockFacts, MonotonicClock, Ticks, TscClock, VirtualClock, clock_facts};
pub use detail::{CloneDetail, RequestDetail, StreamDetail};
pub use error::LoadError;
pub use failure::{FailedRequest, LoadFailure};
pub use figures::WindowFigures;
pub use generator::{Generator, Request};
pub use job::{StreamPlan, open_mode};
pub use load::{IoLoad, Load};
pub use observer::{Interim, NoObserver, Surroundings, WindowObserver};
pub use outcome::WindowOutcome;
pub use permutation::Permutation;
pub use process::{WORKER_COMMAND, worker_main};
pub use steady::SteadyRates;
pub use tally::Tally;
pub use transactions::{
    Ended, FailedTransaction, LiveFigures, Planned, Ran, Reach, SessionError, Settled,
    TransactionCost, TransactionLoad, TransactionSource, TransactionWorker, Turn,
};
pub use usage::ThreadUse;
pub use verification::CONTENT_ERRNO;
pub use window::measure;
pub use zipf::Zipf;
