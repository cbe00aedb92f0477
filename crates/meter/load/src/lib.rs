//! The measuring loop: what is asked of storage, when, and how long it took.
//!
//! Purpose: run one or more workloads at the same time in one window of time and give back counts,
//! histograms and slices. Invariants: the loop allocates nothing, takes no lock, formats nothing
//! and reads the clock at most twice per request; every API, the null one included, goes through
//! the same loop. It knows no database, looks at no device counters and prints nothing.

mod arrivals;
mod board;
mod books;
mod clock;
mod error;
mod extras;
mod failure;
mod figures;
mod flush_turns;
mod generator;
mod inherited;
mod job;
#[cfg(test)]
mod loop_tests;
mod outcome;
mod pauses;
mod permutation;
mod process;
mod random;
mod recorder;
mod region;
mod segment;
mod span;
mod usage;
mod varied;
#[cfg(test)]
mod varied_loop_tests;
mod window;
mod wire;
mod worker;
mod zipf;

pub use arrivals::Arrivals;
pub use board::{SliceTally, Tally, kind_index};
pub use clock::{Clock, ClockFacts, MonotonicClock, Ticks, TscClock, VirtualClock, clock_facts};
pub use error::LoadError;
pub use failure::{FailedRequest, Failure};
pub use figures::{Histograms, WindowFigures};
pub use generator::{Generator, Request};
pub use job::open_mode;
pub use outcome::{Outcome, StreamOutcome};
pub use permutation::Permutation;
pub use process::{WORKER_COMMAND, worker_main};
pub use random::Random;
pub use segment::{KindLatency, Segment};
pub use usage::ThreadCpu;
pub use window::{NoObserver, StreamPlan, Surroundings, WindowObserver, measure};
