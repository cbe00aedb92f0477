//! Why a window could not be measured.

use std::io;

use iostrata_io::{IoError, OpenError};

/// Why a window could not be measured at all. Failed requests are not errors: they end the window
/// and are counted in its outcome.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A worker could not open the files.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A worker's file API could not be started, or failed.
    #[error(transparent)]
    Api(#[from] IoError),
    /// The memory that workers share could not be had.
    #[error(
        "cannot share memory between workers: {0}; free some memory or use fewer --numjobs or --threads"
    )]
    SharedStats(io::Error),
    /// A worker thread or process could not be started.
    #[error(
        "cannot start worker {worker} of {workers}: {source}; use fewer --numjobs or --threads"
    )]
    Spawn {
        /// Which.
        worker: u32,
        /// Of how many.
        workers: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A worker could not open its sessions.
    #[error("cannot open sessions {first} to {last}: {source}")]
    Sessions {
        /// The first of them, from 1.
        first: u32,
        /// The last of them.
        last: u32,
        /// The target's error, with the fix, if any.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A worker process ended without an answer.
    #[error("worker process {worker} ended without an answer: {why}")]
    WorkerLost {
        /// Which.
        worker: u32,
        /// Its last words.
        why: String,
    },
    /// A worker panicked: a bug.
    #[error("worker {worker} panicked: {why}")]
    WorkerPanicked {
        /// Which.
        worker: u32,
        /// Its message.
        why: String,
    },
}
