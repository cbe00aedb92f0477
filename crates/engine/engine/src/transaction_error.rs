//! Why a transaction cannot go on.

use std::time::Duration;

/// What stops a transaction, or one call of it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionError {
    /// It waits for a lock of somebody who waits for it. It was rolled back.
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
