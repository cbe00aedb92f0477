//! What an engine must be able to do to take orders: transactions over several tables.
//!
//! Invariant: [`OrderThread::settle`] counts a transaction only when it is on the device as far as
//! the engine can report.

use super::rows::RowKey;
use crate::error::PeerError;

/// Why an operation of a transaction did not go well.
#[derive(Debug)]
pub enum RowError {
    /// Another transaction was in the way: begin anew.
    Conflict,
    /// The engine refused.
    Failed(PeerError),
    /// A row that must be there is not.
    Missing(RowKey),
}

impl From<PeerError> for RowError {
    fn from(error: PeerError) -> Self {
        Self::Failed(error)
    }
}

/// The rows as one transaction sees and changes them. Its writes are protected against lost
/// updates; its plain reads come from a snapshot or from what is committed, as the engine has it.
pub trait Rows {
    /// Shows the value of a key; false when there is no such row.
    ///
    /// # Errors
    /// See [`RowError`], here and below.
    fn get(&mut self, key: &RowKey, seen: &mut dyn FnMut(&[u8])) -> Result<bool, RowError>;

    /// Puts a row that is not there.
    ///
    /// # Errors
    /// See [`RowError`].
    fn insert(&mut self, key: &RowKey, value: &[u8]) -> Result<(), RowError>;

    /// Changes the value of a row; false when there is no such row.
    ///
    /// # Errors
    /// See [`RowError`].
    fn modify(
        &mut self,
        key: &RowKey,
        change: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<bool, RowError>;

    /// Deletes a row; false when there is no such row.
    ///
    /// # Errors
    /// See [`RowError`].
    fn delete(&mut self, key: &RowKey) -> Result<bool, RowError>;
}

/// [`Rows::modify`] of an engine that has none: reads a row, changes it and puts it back. `value`
/// is memory that is used again.
///
/// # Errors
/// See [`RowError`].
pub fn read_and_put(
    rows: &mut dyn Rows,
    value: &mut Vec<u8>,
    key: &RowKey,
    change: &mut dyn FnMut(&mut Vec<u8>),
) -> Result<bool, RowError> {
    value.clear();
    let found = rows.get(key, &mut |found| value.extend_from_slice(found))?;
    if found {
        change(value);
        rows.insert(key, value)?;
    }
    Ok(found)
}

/// What a transaction does with its rows.
pub type Body<'b> = dyn FnMut(&mut dyn Rows) -> Result<(), RowError> + 'b;

/// Transactions of one thread.
pub trait OrderThread {
    /// Runs `body` in one transaction and commits it.
    ///
    /// # Errors
    /// [`RowError::Conflict`]: nothing was changed, it may be run again; what the engine said.
    fn transact(&mut self, body: &mut Body<'_>) -> Result<(), RowError>;

    /// Waits until at most so many commits of this thread are not settled; how many were settled
    /// since the last call.
    ///
    /// # Errors
    /// When the engine refuses.
    fn settle(&mut self, unsettled: usize) -> Result<u64, PeerError>;
}

/// What an engine counts itself; differences mean something, but for the history.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineCounts {
    /// Processor time of applying, in nanoseconds.
    pub rows_ns: u64,
    /// Of making commits durable.
    pub commit_ns: u64,
    /// Of writing pages back.
    pub cleaner_ns: u64,
    /// Of purge.
    pub purge_ns: u64,
    /// Bytes of redo.
    pub redo_bytes: u64,
    /// Syncs of the redo.
    pub syncs: u64,
    /// Commits whose old versions are kept, now.
    pub history: u64,
}

/// An open store with the tables of the orders.
pub trait OrderStore: Send + Sync {
    /// Loads all rows in the order of the keys into the empty store, durably.
    ///
    /// # Errors
    /// When the engine refuses.
    fn load(&self, scale: super::rows::Scale) -> Result<(), PeerError>;

    /// What the calling thread uses.
    ///
    /// # Errors
    /// When the engine refuses.
    fn thread(&self) -> Result<Box<dyn OrderThread + '_>, PeerError>;

    /// What the engine counts, if it does.
    fn counts(&self) -> Option<EngineCounts> {
        None
    }

    /// Ends cleanly.
    ///
    /// # Errors
    /// When the engine refuses.
    fn close(self: Box<Self>) -> Result<(), PeerError>;
}
