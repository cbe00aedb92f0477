//! Plans of points and the runner that measures them.
//!
//! Purpose: turn a point into a replicate with its evidence, and a plan into a run directory.
//! Invariant: whatever is compared is measured interleaved; every finished replicate is stored
//! before the next one starts. It draws no conclusion: `diagnose` does.

mod error;
mod extents;
pub mod factorial;
mod file_sets;
mod meter;
mod pipeline;
pub mod probe;
mod sampling;
mod transactions;
mod use_watch;

pub use error::StudyError;
pub use extents::extent_verdicts;
pub use file_sets::{FileRole, FileSetCache, WantedFiles, fill_of};
pub use meter::{Measurement, Meter, Watcher};
pub use pipeline::{Listener, Pipeline, RunOutcome};
pub use sampling::{SamplePace, Sampling};
pub use transactions::{
    TransactionFacts, response_percentile_us, transaction_document, transaction_point,
    transaction_stalls, transactions_per_s,
};
