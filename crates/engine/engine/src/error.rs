//! What can go wrong in an engine, from the files up, and the first failure after which nothing
//! may be written.
//!
//! Invariant: errors are grouped by what to do about them; an error can be cloned, so that one
//! failure reaches every waiter. The first failure is kept for good where it happens: a writer
//! checks for it first, and again before acknowledging.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use iostrata_innodb::{PageNo, SettingError};
use iostrata_io::disk::DiskError;

use crate::page::RowTooLarge;

/// Why a call on the engine failed, by what can be done about it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The caller requested something impossible; nothing was changed.
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
        /// The error of the disk.
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
    /// written any more. Everything acknowledged is found again when the engine is reopened.
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
        /// The requested value.
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

/// Why a directory cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the directory, or this one has it open already.
    #[error("{0}")]
    Locked(Failure),
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
    /// A file that the data need is missing or damaged.
    #[error("{0}")]
    Damaged(Failure),
    /// A disk without the room that a new engine takes; nothing is left of it.
    #[error(
        "no space for a new engine: it needs {needed_bytes} bytes and {free_bytes} are free; free \
         some, or choose a smaller redo_log_capacity and autoextend_increment"
    )]
    NoRoom {
        /// Bytes of its files.
        needed_bytes: u64,
        /// Bytes that the disk can take.
        free_bytes: u64,
    },
    /// Redo of another engine than the data.
    #[error(
        "the redo log is that of another engine: it is of {redo:#018x}, the data are of \
         {data:#018x}; put the redo-* files of this engine back"
    )]
    OtherRedo {
        /// The engine that the data are of.
        data: u64,
        /// The engine that the redo is of.
        redo: u64,
    },
    /// Data of another version.
    #[error("the data are of format {found}, this program reads {known}")]
    Format {
        /// The format of the data.
        found: String,
        /// What is known.
        known: u32,
    },
}

/// What stops a transaction, or one call of it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionError {
    /// It waits for a lock of a transaction that waits for it. It was rolled back.
    #[error(
        "deadlock: transaction {transaction} wants the row with the key {} in table {table:?}, \
         which transaction {holder} has locked, and that one waits for it; transaction \
         {transaction} was rolled back: begin it again",
        key.escape_ascii()
    )]
    Deadlock {
        /// Which.
        transaction: u64,
        /// The transaction that holds the lock.
        holder: u64,
        /// The table of the row.
        table: String,
        /// The row's key.
        key: Vec<u8>,
    },
    /// A row lock was not released in time. The transaction is as it was before the call.
    #[error(
        "transaction {transaction} waited {} ms for the row with the key {} in table {table:?}, \
         which transaction {holder} has locked; try again, or raise lock_wait_timeout",
        waited.as_millis(),
        key.escape_ascii()
    )]
    LockTimeout {
        /// Which.
        transaction: u64,
        /// The transaction that holds the lock.
        holder: u64,
        /// How long it waited.
        waited: Duration,
        /// The table of the row.
        table: String,
        /// The row's key.
        key: Vec<u8>,
    },
    /// At level snapshot: another transaction has changed the row since this one began. It was
    /// rolled back.
    #[error(
        "conflict: the row with the key {} in table {table:?} was changed after transaction \
         {transaction} took its snapshot; it was rolled back: begin it again",
        key.escape_ascii()
    )]
    Conflict {
        /// Which.
        transaction: u64,
        /// The table of the row.
        table: String,
        /// The row's key.
        key: Vec<u8>,
    },
    /// An insert of a key that is there. The transaction is as it was before the call.
    #[error("table {table:?} has a row with the key {} already", key.escape_ascii())]
    Exists {
        /// Which.
        transaction: u64,
        /// The table.
        table: String,
        /// The key.
        key: Vec<u8>,
    },
    /// A write or a locking read of a transaction that only reads.
    #[error("transaction {transaction} is read-only: begin one that may write")]
    ReadOnly {
        /// Which.
        transaction: u64,
    },
    /// A plain read through an index that was made after the transaction took its snapshot: the
    /// index has no entries for what the snapshot shows. The transaction is as it was before the
    /// call.
    #[error(
        "index {index:?} was made after the snapshot of transaction {transaction} was taken, and \
         cannot show what the snapshot shows; begin a new transaction or open a new read view"
    )]
    DefinitionChanged {
        /// Which.
        transaction: u64,
        /// Table and index.
        index: String,
    },
    /// A call on a transaction that was rolled back after a deadlock or conflict.
    #[error("transaction {transaction} is over: it was rolled back; begin it again")]
    Finished {
        /// Which.
        transaction: u64,
    },
    /// A savepoint of another transaction, or one behind a savepoint that was gone back to.
    #[error("transaction {transaction} has no such savepoint")]
    NoSavepoint {
        /// Which.
        transaction: u64,
    },
    /// More than one frame of redo, or more leaves than a quarter of the pool. From a write: the
    /// transaction is as it was before the call. From a commit: it was rolled back; nothing of it
    /// was applied.
    #[error(
        "transaction {transaction} is too large: one may have at most {limit} {unit}; commit more \
         often or raise {setting}"
    )]
    TooLarge {
        /// Which.
        transaction: u64,
        /// What is possible.
        limit: usize,
        /// Bytes of redo, or pages.
        unit: &'static str,
        /// What limits it.
        setting: &'static str,
    },
}

/// What failed, in the words of what failed.
#[derive(Clone)]
pub struct Failure(Arc<dyn Error + Send + Sync>);

impl Failure {
    /// Wraps an error.
    pub fn new(cause: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(cause))
    }

    fn text(text: String) -> Self {
        Self::new(Text(text))
    }

    /// The error itself. [`EngineError::disk_error`] returns the error of a disk, whatever the call
    /// was.
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Text(String);

/// A failed call of the system, and its purpose.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing}: {problem}")]
struct CallError {
    doing: &'static str,
    problem: String,
    /// Where a disk was called.
    disk: Option<DiskError>,
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

    /// The error of the disk, where that is what failed.
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

    /// A file without which nothing can be opened.
    pub(crate) fn damaged(problem: String) -> Self {
        Self::Open(OpenError::Damaged(Failure::text(problem)))
    }

    /// A disk without room; nothing was changed.
    pub(crate) fn full(problem: String) -> Self {
        Self::NoSpace { cause: Failure::text(problem) }
    }

    /// A setting that does not go with the files or the machine.
    pub(crate) fn range(name: &'static str, value: u64, range: impl Into<String>) -> Self {
        Self::Request(RequestError::SettingRange { name, value, range: range.into() })
    }

    /// The system refused a thread or a file.
    pub(crate) fn system(doing: &'static str, problem: impl ToString) -> Self {
        Self::Io(Failure::new(CallError { doing, problem: problem.to_string(), disk: None }))
    }

    /// A call of a disk failed.
    pub(crate) fn disk(doing: &'static str) -> impl Fn(DiskError) -> Self {
        move |error| {
            let problem = error.to_string();
            Self::Io(Failure::new(CallError { doing, problem, disk: Some(error) }))
        }
    }
}

fn of_disk(failure: &Failure) -> Option<&DiskError> {
    let call = || failure.cause().downcast_ref::<CallError>()?.disk.as_ref();
    failure.cause().downcast_ref().or_else(call)
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

/// The first failure, if there was one.
#[derive(Debug, Default)]
pub struct Poison {
    first: OnceLock<Arc<EngineError>>,
}

impl Poison {
    /// Whether there was one.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.first.get().is_some()
    }

    /// Fails if there was one.
    #[inline]
    pub fn check(&self) -> Result<(), EngineError> {
        match self.first.get() {
            None => Ok(()),
            Some(cause) => Err(EngineError::Poisoned { cause: Arc::clone(cause) }),
        }
    }

    /// Keeps a failure, if it is the first, and gives it back.
    pub fn keep(&self, error: impl Into<EngineError>) -> EngineError {
        let error = error.into();
        if !matches!(error, EngineError::Poisoned { .. }) {
            let _kept_before = self.first.set(Arc::new(error.clone()));
        }
        error
    }

    /// Watches over work that must not end in the middle: a panic in it poisons.
    pub fn alarm(&self, what: &'static str) -> Alarm<'_> {
        Alarm { poison: self, what }
    }

    /// An invariant does not hold.
    #[cold]
    pub fn broken(&self, what: String) -> EngineError {
        self.keep(EngineError::Broken { what })
    }
}

/// Poisons the engine when the thread that holds it panics: others would wait for ever for what it
/// had begun.
pub struct Alarm<'p> {
    poison: &'p Poison,
    what: &'static str,
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _kept = self.poison.broken(format!("{} ended by a panic", self.what));
        }
    }
}
