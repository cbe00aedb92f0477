//! An embedded storage engine: ordered tables of bytes, atomic durable batches, InnoDB's settings.
//!
//! Purpose: a library for programs that need tables which survive crashes, and for people who want
//! to see every step of a database's I/O path and change every setting of it.
//! Invariant: a batch is applied as a whole or not at all; one whose commit returned survives any
//! crash; after a failed write of redo or a failed sync the engine refuses to go on. It contains no
//! workload and prints nothing.
#![doc = include_str!("../README.md")]

// Below the engine, each alone; public for tests, examples and fuzzers.
#[doc(hidden)]
pub mod lock;
#[doc(hidden)]
pub mod page;
#[doc(hidden)]
pub mod pool;
#[doc(hidden)]
pub mod redo;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod version;

mod admission;
mod batch;
mod catalogue;
mod check;
mod cleaner;
mod commit;
#[cfg(test)]
mod concurrency_tests;
mod counts;
mod cursor;
mod engine;
mod error;
mod flusher;
#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod index_tests;
mod lanes;
#[cfg(test)]
mod layer_tests;
mod mtr;
mod open;
mod options;
mod pages;
mod parts;
mod purge;
mod read;
mod recovery;
mod reentry;
mod safeguards;
mod scan;
mod settings_file;
mod status;
mod storage;
mod sync;
mod table;
mod table_index;
#[cfg(test)]
mod tests;
mod ticket;
mod transaction;
mod tree;
mod write_set;

pub use batch::Batch;
pub use check::{CheckReport, Problem, TableReport};
pub use cursor::{KeyRange, Row};
pub use disk::Disk;
pub use engine::Engine;
pub use error::{EngineError, Failure, OpenError, RequestError, TableError, TransactionError};
pub use iostrata_innodb::{
    Counter, CounterRow, Counters, FlushLogAt, SettingError, Settings, StatusPage,
};
pub use options::OpenOptions;
pub use page::RowTooLarge;
pub use parts::Background;
pub use recovery::{Phase, Progress, RecoveryReport};
#[cfg(feature = "testing")]
pub use safeguards::Safeguard;
pub use scan::{Cursor, OwnedRow, Range};
pub use status::{STATUS_FILE, read_status};
pub use storage::Disks;
pub use table::{ReadView, Table};
pub use table_index::{Extract, Index, IndexCursor, IndexDefinition, IndexRow};
pub use ticket::Ticket;
pub use transaction::{Isolation, Savepoint, Transaction, TransactionOptions};
pub use tree::descend::Direction;

/// The disk that an engine stands on: the trait, the types of its calls, and two that obey it.
///
/// An engine needs no more of a system than a [`Disk`]: named files that are read, written and
/// synced. [`RealDisk`] is a directory, [`MemDisk`] is memory, for tests and for data that may go
/// with the process. Another one is written by implementing [`Disk`] and [`Batch`]; what they
/// promise is documented at each call. `examples/own_disk.rs` is one.
pub mod disk {
    pub use iostrata_io::SyncKind;
    pub use iostrata_io::disk::{
        Aligned, Batch, BatchCompletion, BatchGrant, BatchKind, Disk, DiskError, Durability, Facts,
        FileId, FileMode, FileName, InTurn, MemDisk, RealDisk, RealOptions, WriteThrough, memory,
    };
}
