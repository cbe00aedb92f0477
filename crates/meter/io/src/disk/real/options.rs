//! How a real disk does what it is asked.
//!
//! Invariant: no option changes what a call promises, only how it is kept and what it costs.

use crate::Refused;

/// How a write that is to survive a crash is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteThrough {
    /// By RWF_DSYNC on this one write.
    #[default]
    PerWrite,
    /// By O_DSYNC on the file: every write of this disk is durable when it returns, also those that
    /// did not ask for it.
    OpenFlag,
}

/// What keeps the requests of a batch in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BatchKind {
    /// One after another by pread and pwrite, when they are waited for.
    Sync,
    /// io_submit. Asynchronous for direct I/O only: a buffered request is carried out whole while
    /// it is submitted.
    Libaio,
    /// io_uring.
    #[default]
    IoUring,
}

/// What a real disk is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealOptions {
    /// Direct I/O, file by file, where the file system takes it.
    pub direct: bool,
    /// How write-through writes are made durable.
    pub write_through: WriteThrough,
    /// What batches are made of; the next lower kind where the kernel does not grant it.
    pub batch: BatchKind,
    /// Requests that one batch keeps in flight at most, 1 to [`MOST_DEPTH`]; more wait their turn.
    pub depth: u32,
    /// Ask the kernel not to tear writes (RWF_ATOMIC) that it can take that way: direct, of a
    /// length that is a power of two within the limits of the file, at a multiple of that length.
    /// `Facts::atomic_write_bytes` is 0 without it.
    pub atomic: bool,
}

/// The most requests that one batch keeps in flight.
pub const MOST_DEPTH: u32 = 4096;

impl Default for RealOptions {
    /// Direct, io_uring, 64 in flight.
    fn default() -> Self {
        Self {
            direct: true,
            write_through: WriteThrough::default(),
            batch: BatchKind::default(),
            depth: 64,
            atomic: false,
        }
    }
}

/// What the batches of a disk are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchGranted {
    /// The kind; for [`BatchKind::Sync`] the depth says nothing.
    pub kind: BatchKind,
    /// Requests in flight at most.
    pub depth: u32,
    /// What was asked for and not granted, and why.
    pub refused: Vec<Refused>,
}
