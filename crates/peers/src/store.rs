//! What every engine must be able to do here, and nothing more.
//!
//! Invariant: [`Writer::commit`] returns only when the rows are on the device as far as the engine
//! can tell; rows of one call become visible together or not at all.
//! Readers may hold a snapshot, and they are not used while rows are written.

use std::ops::ControlFlow;

use crate::error::PeerError;
use crate::keys::Row;

/// How a store is opened; equal for all engines of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Memory for pages or blocks, write buffers of log-structured trees included, in bytes.
    pub cache_bytes: u64,
    /// Threads that will commit at once.
    pub writers: usize,
    /// Keep the page cache out where the engine can, so that `cache_bytes` is all it has.
    pub is_direct: bool,
}

/// An open store with one table of rows.
pub trait Store: Send + Sync {
    /// The engine's own version.
    fn version(&self) -> String;

    /// Loads ascending rows into the empty table, durably, by the fastest way the engine has, and
    /// leaves the table in its best order.
    ///
    /// # Errors
    /// When the engine refuses.
    fn load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), PeerError>;

    /// A writer of the calling thread.
    ///
    /// # Errors
    /// When the engine refuses.
    fn writer(&self) -> Result<Box<dyn Writer + '_>, PeerError>;

    /// A reader of the calling thread, seeing at least what was committed before.
    ///
    /// # Errors
    /// When the engine refuses.
    fn reader(&self) -> Result<Box<dyn Reader + '_>, PeerError>;

    /// Ends cleanly.
    ///
    /// # Errors
    /// When the engine refuses.
    fn close(self: Box<Self>) -> Result<(), PeerError>;
}

/// Commits of one thread.
pub trait Writer {
    /// Puts the rows, atomically; durable when it returns.
    ///
    /// # Errors
    /// When the engine refuses.
    fn commit(&mut self, rows: &[Row]) -> Result<(), PeerError>;
}

/// Sees one row of a scan: key, value.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Reads of one thread.
pub trait Reader {
    /// Shows the value of a key; false when there is no such row.
    ///
    /// # Errors
    /// When the engine refuses.
    fn get(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool, PeerError>;

    /// Visits all rows in the order of the keys, until told to break.
    ///
    /// # Errors
    /// When the engine refuses.
    fn scan(&mut self, visit: &mut Visit<'_>) -> Result<(), PeerError>;
}
