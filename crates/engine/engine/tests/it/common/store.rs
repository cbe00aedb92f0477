//! What a store under test can do. The engine is one; the toy, which proves the proof, another.

use std::sync::Arc;

use iostrata_io::disk::Disk;

use crate::common::model::Tables;
use crate::common::plan::Op;

/// The beginning of every error about damaged data on disk.
pub const DAMAGE: &str = "damage: ";

/// A store on a disk. Errors are text: what is tested by kind is tested apart.
pub trait Store: Send + Sync + Sized {
    /// How to open it.
    type How: Clone + Send + Sync;
    /// A commit that is not durable yet.
    type Ticket: Send;

    /// Creates it on an empty disk; recovers after a crash.
    fn open(disk: Arc<dyn Disk>, how: &Self::How) -> Result<Self, String>;
    /// Durable when it returns.
    fn create_table(&self, name: &str) -> Result<(), String>;
    /// Durable when it returns.
    fn drop_table(&self, name: &str) -> Result<(), String>;
    /// Applies and orders a batch; returns for how many of the changes, from the first, that holds.
    fn commit(&self, ops: &[Op]) -> Result<(Self::Ticket, usize), String>;
    /// Its place in the order of commits.
    fn place(ticket: &Self::Ticket) -> u64;
    /// Durable when it returns.
    fn wait(&self, ticket: Self::Ticket) -> Result<(), String>;
    /// A step of the background.
    fn step(&self, now_us: u64) -> Result<(), String>;
    fn checkpoint(&self) -> Result<(), String>;
    fn set(&self, name: &str, value: &str) -> Result<(), String>;
    /// Reads a table from one end to the other; the number of rows.
    fn scan(&self, table: &str, is_backward: bool) -> Result<usize, String>;
    /// The digest of everything, by scans that check the order.
    fn digest(&self) -> Result<u64, String>;
    fn contents(&self) -> Result<Tables, String>;
    /// Checks every structure.
    fn check(&self) -> Result<(), String>;
    /// Lets the background do what is left from before the opening, and finds nothing left, and
    /// the same contents.
    fn settle(&self) -> Result<(), String> {
        Ok(())
    }
    fn close(self) -> Result<(), String>;
}
