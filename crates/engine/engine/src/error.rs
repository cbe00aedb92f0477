//! What can go wrong for the user of an engine.
//!
//! Invariant: errors are plain data, so that one failure reaches everybody who waited for it.

use std::sync::Arc;

use iostrata_io::disk::DiskError;
use iostrata_knobs::SettingError;
use iostrata_page::{PageNo, RowTooLarge};
use iostrata_pool::PoolError;
use iostrata_redo::RedoError;
use iostrata_store::StoreError;
use thiserror::Error;

/// Why a call on the engine failed.
#[derive(Clone, Debug, Error)]
pub enum EngineError {
    /// An earlier failure left unknown what is durable, or an invariant is broken: nothing is
    /// written any more. Everything acknowledged is found again when the engine is opened anew.
    #[error("the engine has stopped writing because of a failure: {cause}; open it again")]
    Poisoned {
        /// The first failure.
        cause: Arc<EngineError>,
    },
    /// The disk is full. What was there before is untouched.
    #[error("no space for more pages: {cause}; free some space and try again")]
    NoSpace {
        /// What the disk said.
        cause: StoreError,
    },
    /// A key of no bytes.
    #[error("a key needs at least one byte")]
    KeyEmpty,
    /// A key or row beyond the limits of the page size.
    #[error(transparent)]
    RowTooLarge(RowTooLarge),
    /// More changes than one frame of redo may hold.
    #[error(
        "the batch needs {bytes} bytes of redo; one batch may have at most {limit} (a share of \
         redo_log_capacity): split the batch or raise the capacity"
    )]
    BatchTooLarge {
        /// What the batch needs.
        bytes: usize,
        /// What is possible, in bytes.
        limit: usize,
    },
    /// A batch over more leaves than may be held at once.
    #[error(
        "the batch changes more than {limit} pages; one batch may hold a quarter of the pool: \
         split the batch or raise buffer_pool_size"
    )]
    BatchTooWide {
        /// What is possible, in pages.
        limit: usize,
    },
    /// A page that cannot be what it should be.
    #[error("page {page} is damaged: {problem}")]
    Corrupt {
        /// Its number.
        page: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// An invariant of the engine does not hold: a bug.
    #[error("the engine broke one of its own rules: {what}")]
    Broken {
        /// Which.
        what: String,
    },
    /// No table of that name.
    #[error("there is no table {name:?}")]
    NoTable {
        /// The name.
        name: String,
    },
    /// A table of that name is there.
    #[error("there is a table {name:?} already")]
    TableExists {
        /// The name.
        name: String,
    },
    /// Every number that a table can have was used.
    #[error(
        "2^32 tables have been made here and no number is left: numbers are never used again; copy \
         the tables into a new directory"
    )]
    TooManyTables,
    /// A handle on a table that was dropped since.
    #[error("the table was dropped: its handle is of no use any more")]
    TableDropped,
    /// A name that cannot be kept.
    #[error("{name:?} is no name for a table: use 1 to {limit} bytes")]
    TableName {
        /// The name.
        name: String,
        /// Longest name, in bytes.
        limit: usize,
    },
    /// A bulk load into a table that has rows.
    #[error("table {name:?} is not empty: a bulk load fills empty tables only")]
    NotEmpty {
        /// The table.
        name: String,
    },
    /// Rows of a bulk load out of order.
    #[error("row {row} of the bulk load has a key that is not above the one before it")]
    NotSorted {
        /// Its number, from 0.
        row: u64,
    },
    /// Another process has the directory, or this one has it open already.
    #[error("{0}")]
    Locked(DiskError),
    /// A directory that holds something else.
    #[error(
        "{directory} holds {found:?}, which is not iostrata's, and no engine: choose an empty \
         directory"
    )]
    NotOurs {
        /// The directory.
        directory: String,
        /// A file in it.
        found: String,
    },
    /// Data of another version.
    #[error("the data are of format {found}, this program knows {known}")]
    Format {
        /// What the data say.
        found: String,
        /// What is known.
        known: u32,
    },
    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,
    /// A setting.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The redo log.
    #[error(transparent)]
    Redo(#[from] RedoError),
    /// Data and doublewrite files.
    #[error(transparent)]
    Store(StoreError),
    /// The buffer pool.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A thread or file of the system.
    #[error("cannot {doing}: {problem}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// The system's answer.
        problem: String,
    },
}

impl EngineError {
    /// A page that is not what it should be.
    pub(crate) fn corrupt(page: PageNo, problem: impl Into<String>) -> Self {
        Self::Corrupt { page: page.0, problem: problem.into() }
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoSpace { .. } => Self::NoSpace { cause: error },
            error => Self::Store(error),
        }
    }
}
