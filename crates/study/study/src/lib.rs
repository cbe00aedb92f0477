//! Plans of points and the runner that measures them.
//!
//! Purpose: turn a point into a replicate with its evidence, and a plan into a run directory.
//! Invariant: whatever is compared is measured interleaved; every finished replicate is stored
//! before the next one starts. It draws no conclusion: `diagnose` does.

mod error;
pub mod factorial;
mod file_sets;
mod meter;
mod pipeline;
pub mod probe;
mod sampling;
mod transactions;

pub use error::StudyError;
pub use file_sets::{FileRole, FileSetCache, WantedFiles, extent_verdicts, fill_of};
pub use meter::{Measurement, Meter, Watcher};
pub use pipeline::{Listener, Pipeline, RunOutcome};
pub use sampling::{SamplePace, Sampling};
pub use transactions::{
    TransactionFacts, response_percentile_us, transaction_document, transaction_point,
    transaction_stalls, transactions_per_s,
};
