//! The disk that an engine stands on: the trait, the types of its calls, and two that obey it.
//!
//! An engine needs no more of a system than a [`Disk`]: named files that are read, written and
//! synced. [`RealDisk`] is a directory, [`MemDisk`] is memory, for tests and for data that may go
//! with the process. Another one is written by implementing [`Disk`] and [`Batch`]; what they
//! promise, each call says. `examples/own_disk.rs` is one.

pub use iostrata_io::SyncKind;
pub use iostrata_io::disk::{
    Aligned, Batch, BatchGranted, BatchKind, Disk, DiskError, Durability, Facts, FileId, FileMode,
    FileName, Finished, InTurn, MemDisk, RealDisk, RealOptions, WriteThrough, memory,
};
