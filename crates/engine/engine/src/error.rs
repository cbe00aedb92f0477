//! What can go wrong for the user of an engine.
//!
//! Invariant: errors can be cloned, so that one failure reaches everybody who waited for it; what a
//! layer below said comes into the group that tells what to do about it.

use std::sync::Arc;

use iostrata_innodb::{PageNo, SettingError};
use iostrata_io::disk::DiskError;

pub use crate::open_error::OpenError;
use crate::page::RowTooLarge;
use crate::pool::{Failure, PoolError};
use crate::redo::RedoError;
use crate::redo::layout::FORMAT_VERSION;
use crate::store::{ReadError, StoreError};
use crate::transaction_error::TransactionError;

/// Why a call on the engine failed, by what can be done about it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The caller asked for something that cannot be; nothing was changed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A table is not as the caller thinks; nothing was changed.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A transaction cannot go on, or not so. What others did is untouched.
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    /// The directory is not one that can be opened; nothing was changed.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The disk is full. What was there before is untouched.
    #[error("the disk is full: {cause}")]
    NoSpace {
        /// What the disk said.
        cause: Failure,
    },
    /// A disk, a file or a thread of the system failed.
    #[error(transparent)]
    Io(Failure),
    /// A page that cannot be what it should be.
    #[error("page {page} is damaged: {problem}")]
    Corrupt {
        /// Its number.
        page: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// An earlier failure left unknown what is durable, or an invariant is broken: nothing is
    /// written any more. Everything acknowledged is found again when the engine is opened anew.
    #[error("the engine has stopped writing because of a failure: {cause}; open it again")]
    Poisoned {
        /// The first failure.
        cause: Arc<EngineError>,
    },
    /// An invariant of the engine does not hold: a bug.
    #[error("the engine broke one of its own rules: {what}")]
    Broken {
        /// Which.
        what: String,
    },
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A key of no bytes.
    #[error("a key needs at least one byte")]
    KeyEmpty,
    /// A key or row beyond the limits of the page size.
    #[error(transparent)]
    RowTooLarge(#[from] RowTooLarge),
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
    /// A condition of a batch does not hold; nothing of the batch was applied.
    #[error(
        "the row with the key {} in table {table:?} is not as the batch expects it; read it again \
         and decide anew",
        key.escape_ascii()
    )]
    NotAsExpected {
        /// The table.
        table: String,
        /// The key.
        key: Vec<u8>,
    },
    /// Rows of a bulk load out of order.
    #[error("row {row} of the bulk load has a key that is not above the one before it")]
    NotSorted {
        /// Its number, from 0.
        row: u64,
    },
    /// A setting that cannot be so, or not with this data.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A setting that does not go with the device, or with the files as they are.
    #[error("{name} = {value} is not possible: use {range}")]
    SettingRange {
        /// The setting.
        name: &'static str,
        /// What was asked for.
        value: u64,
        /// What is possible.
        range: String,
    },
    /// Every frame of the pool is in use.
    #[error(
        "no frame of the pool became free: {pinned} of {frames} are in use, {dirty} are dirty; let \
         fewer threads work at once or raise buffer_pool_size"
    )]
    PoolExhausted {
        /// Frames of the pool.
        frames: usize,
        /// Frames in use.
        pinned: usize,
        /// Frames dirty or being written.
        dirty: usize,
    },
    /// A call from within an index function of the same engine.
    #[error(
        "an index function called its own engine, which waits for that function: let it go by the \
         row alone"
    )]
    WithinIndexFunction,
    /// A call from within the function of a `get_with`.
    #[error(
        "the function of a get_with called an engine, whose page it may hold: copy what is needed \
         out of the row and make the call after it"
    )]
    WithinGet,
    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,
}

/// What is wrong with a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// No table of that name.
    #[error("there is no table {name:?}")]
    NotFound {
        /// The name.
        name: String,
    },
    /// A table of that name is there.
    #[error("there is a table {name:?} already")]
    Exists {
        /// The name.
        name: String,
    },
    /// A handle on a table that was dropped since.
    #[error("the table was dropped: its handle is of no use any more")]
    Dropped,
    /// A name that cannot be kept.
    #[error("{name:?} is no name for a table: use 1 to {limit} bytes")]
    Name {
        /// The name.
        name: String,
        /// Longest name, in bytes.
        limit: usize,
    },
    /// Every number that a table can have was used.
    #[error(
        "2^32 tables have been made here and no number is left: numbers are never used again; copy \
         the tables into a new directory"
    )]
    TooMany,
    /// A write to a table with an index whose function is not known.
    #[error(
        "the table of index {index:?} cannot be written: name the index's function when the engine \
         is opened (OpenOptions::index)"
    )]
    IndexUnknown {
        /// Table and index.
        index: String,
    },
    /// A handle on a table that has got an index since.
    #[error(
        "table {name:?} has got an index since its handle was opened, which writes through the \
         handle would miss: open the table again (Engine::table)"
    )]
    IndexMade {
        /// The table.
        name: String,
    },
    /// A row whose entry in an index would be longer than a key may be.
    #[error(
        "the entry of the row in index {index:?} would have {bytes} bytes, secondary key and row key \
         together; an entry may have {limit}: shorten the secondary key"
    )]
    IndexKeyTooLong {
        /// Table and index.
        index: String,
        /// What the entry needs.
        bytes: usize,
        /// Longest entry.
        limit: usize,
    },
    /// An index that is not one of this engine, or not of the table it was named with.
    #[error(
        "index {index:?} is of another engine or of another table: take it from a table of this \
         engine (Table::index)"
    )]
    IndexNotFound {
        /// Table and index.
        index: String,
    },
    /// An index whose entries were made by a function of another version.
    #[error(
        "index {index:?} was made by version {kept} of its function and is named with version \
         {given}: name it with the function of version {kept}, or have it made anew \
         (IndexDefinition::rebuild)"
    )]
    IndexVersion {
        /// Table and index.
        index: String,
        /// The version that is kept with the index.
        kept: u32,
        /// The version that it is named with.
        given: u32,
    },
    /// An index that is named twice at opening.
    #[error("index {index:?} is named twice: name each index of a table once")]
    IndexTwice {
        /// Table and index.
        index: String,
    },
    /// A bulk load into a table that has rows.
    #[error("table {name:?} is not empty: a bulk load fills empty tables only")]
    NotEmpty {
        /// The table.
        name: String,
    },
}

/// A thread or file of the system.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing}: {problem}")]
struct SystemError {
    doing: &'static str,
    problem: String,
}

impl EngineError {
    /// Whether the disk had no room left, also where the engine has stopped writing for it.
    pub fn is_full(&self) -> bool {
        match self {
            Self::NoSpace { .. } | Self::Open(OpenError::NoRoom { .. }) => true,
            Self::Poisoned { cause } => cause.is_full(),
            _ => self.disk_error().is_some_and(DiskError::is_full),
        }
    }

    /// What the disk said, where that is what failed, whichever layer passed it on.
    ///
    /// ```
    /// use iostrata_engine::disk::{DiskError, MemDisk, memory::Fault};
    /// # use iostrata_engine::{Background, Disks, Engine, EngineError, Settings};
    /// let disk = MemDisk::new();
    /// let engine = Engine::open_on(
    ///     Disks::one(disk.clone()),
    ///     Settings::default(),
    ///     Background::Manual,
    /// )?;
    /// let table = engine.create_table("t")?;
    /// disk.before_each(|_call| Fault::Errno(5));
    /// let mut batch = engine.batch();
    /// batch.put(&table, b"k", b"v")?;
    /// let failed = batch.commit().unwrap_err();
    /// assert!(matches!(failed.disk_error(), Some(DiskError::System { .. })), "{failed}");
    /// # Ok::<(), EngineError>(())
    /// ```
    pub fn disk_error(&self) -> Option<&DiskError> {
        match self {
            Self::NoSpace { cause } | Self::Io(cause) => of_disk(cause),
            Self::Open(OpenError::Locked(cause) | OpenError::Damaged(cause)) => of_disk(cause),
            Self::Poisoned { cause } => cause.disk_error(),
            _ => None,
        }
    }

    /// A page that is not what it should be.
    pub(crate) fn corrupt(page: PageNo, problem: impl Into<String>) -> Self {
        Self::Corrupt { page: page.0, problem: problem.into() }
    }

    /// The system refused a thread or a file.
    pub(crate) fn system(doing: &'static str, problem: impl ToString) -> Self {
        Self::Io(Failure::new(SystemError { doing, problem: problem.to_string() }))
    }
}

/// What the disk said, whichever layer passed it on.
fn of_disk(failure: &Failure) -> Option<&DiskError> {
    fn of_store(error: &StoreError) -> Option<&DiskError> {
        match error {
            StoreError::Disk(error) => Some(error),
            StoreError::Poisoned { cause } => of_store(cause),
            _ => None,
        }
    }
    let cause = failure.cause();
    match cause.downcast_ref() {
        Some(RedoError::Failed { cause, .. } | RedoError::Disk { cause, .. }) => Some(cause),
        _ => cause.downcast_ref().or_else(|| of_store(cause.downcast_ref()?)),
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoSpace { .. } => Self::NoSpace { cause: Failure::new(error) },
            StoreError::NotAStore { .. } => OpenError::Damaged(Failure::new(error)).into(),
            StoreError::Setting { name, value, max } => {
                let range = format!("1 to {max}");
                RequestError::SettingRange { name, value: value.into(), range }.into()
            }
            StoreError::Mismatch { name, found, wanted, .. } => {
                let (found, kept) = (wanted.to_string(), found.to_string());
                SettingError::Fixed { name, found, kept }.into()
            }
            StoreError::BeyondEnd { .. } | StoreError::NotRepaired => {
                Self::Broken { what: error.to_string() }
            }
            StoreError::Disk(_) | StoreError::Poisoned { .. } => Self::Io(Failure::new(error)),
        }
    }
}

impl From<RedoError> for EngineError {
    fn from(error: RedoError) -> Self {
        match error {
            RedoError::NoSpace { .. } => Self::NoSpace { cause: Failure::new(error) },
            RedoError::Setting { name, value, range } => {
                let range = range.to_owned();
                RequestError::SettingRange { name, value, range }.into()
            }
            RedoError::Version { found, known, .. } => {
                OpenError::Format { found: found.to_string(), known }.into()
            }
            RedoError::UnknownFrame { .. } => {
                let found = format!("a later one ({error})");
                OpenError::Format { found, known: FORMAT_VERSION }.into()
            }
            RedoError::Exists
            | RedoError::NotFound { .. }
            | RedoError::Truncated { .. }
            | RedoError::Damaged { .. }
            | RedoError::NoSegment { .. }
            | RedoError::Full { .. } => OpenError::Damaged(Failure::new(error)).into(),
            RedoError::Failed { .. } | RedoError::Disk { .. } => Self::Io(Failure::new(error)),
        }
    }
}

impl From<PoolError> for EngineError {
    fn from(error: PoolError) -> Self {
        match &error {
            PoolError::Read { page, cause } => {
                let cause = cause.cause();
                if let Some(refused) = cause.downcast_ref::<RequestError>() {
                    return refused.clone().into();
                }
                match cause.downcast_ref::<ReadError>() {
                    Some(
                        ReadError::Zero { .. }
                        | ReadError::Torn { .. }
                        | ReadError::BeyondEnd { .. },
                    ) => Self::corrupt(*page, cause.to_string()),
                    Some(ReadError::Disk(_)) | None => Self::Io(Failure::new(error)),
                }
            }
            PoolError::Memory { bytes, .. } => {
                let range = "less than the memory of this machine".to_owned();
                let (name, value) = ("buffer_pool_size", *bytes);
                RequestError::SettingRange { name, value, range }.into()
            }
            PoolError::NoSuchPage { page, .. } => Self::corrupt(*page, error.to_string()),
            PoolError::PoolExhausted { frames, pinned, dirty, .. } => {
                let (frames, pinned, dirty) = (*frames, *pinned, *dirty);
                RequestError::PoolExhausted { frames, pinned, dirty }.into()
            }
        }
    }
}

impl From<DiskError> for EngineError {
    fn from(error: DiskError) -> Self {
        Self::Io(Failure::new(error))
    }
}

impl From<SettingError> for EngineError {
    fn from(error: SettingError) -> Self {
        Self::Request(RequestError::Setting(error))
    }
}
