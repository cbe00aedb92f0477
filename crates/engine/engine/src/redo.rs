//! The redo log of the embedded engine.
//!
//! Purpose: a stream of frames, each a mini-transaction's records, that survives a crash up to
//! where it was made durable; its buffer, its segment files, group commit, checkpoints, and the
//! scan after a crash.
//! Invariant: what the scan yields is a prefix of what was appended, and holds everything that
//! `make_durable` promised; a frame left behind the end by a crash never becomes valid again; after
//! a failed write or sync nothing succeeds.
//! It knows no page and no record: a frame's body is bytes.

mod checkpoint;
mod control;
mod create;
mod file;
mod frame;
mod group_commit;
pub mod layout;
mod open;
mod scan;
mod segments;
mod serve;
mod write;

pub use file::{RedoSettings, RedoSync};
pub use scan::{Frame, Scan};
pub(crate) use segments::not_found;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use iostrata_innodb::Lsn;
use iostrata_innodb::flush::AgeLimits;
use iostrata_io::disk::{Disk, DiskError};

use self::control::Ledger;
use self::file::Writer;
use self::frame::Fill;
use self::group_commit::GroupCommit;
use self::layout::BLOCK_BYTES_MAX;
use self::segments::Segments;
use self::serve::Requests;
use crate::counts::Counts;
use crate::error::{EngineError, Poison};
use crate::sync::locked;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub start: Lsn,
    /// Behind its last byte; durable up to here means that the frame is.
    pub end: Lsn,
}

/// The log. Share it by `Arc`; every call may come from any thread.
///
/// Locks are taken in the order of the fields.
pub struct Redo {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) changing: Mutex<()>,
    /// Held while a checkpoint is written.
    pub(crate) ledger: Mutex<Ledger>,
    /// Held while the buffer is written out.
    pub(crate) writer: Mutex<Writer>,
    /// Held for moments, never across I/O.
    pub(crate) segments: Mutex<Segments>,
    /// Held for moments, never across I/O.
    pub(crate) fill: Mutex<Fill>,
    pub(crate) group: GroupCommit,
    pub(crate) requests: Requests,
    pub(crate) lsn: AtomicU64,
    /// What the buffer holds begins here.
    pub(crate) buffered_from: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) durable: AtomicU64,
    pub(crate) checkpoint: AtomicU64,
    /// Behind the last byte that can be appended before the next checkpoint.
    pub(crate) room_end: AtomicU64,
    /// What the limits of the age are made of.
    pub(crate) room_bytes: AtomicU64,
    pub(crate) buffer_bytes: usize,
    pub counts: Arc<Counts>,
    pub poison: Arc<Poison>,
}

impl fmt::Debug for Redo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Redo(lsn {}, durable {})", self.lsn(), self.durable())
    }
}

impl Redo {
    /// Longest body that `append` takes, in bytes.
    pub fn body_bytes_max(&self) -> usize {
        self.frame_bytes_max() - layout::frame::OVERHEAD_BYTES
    }

    /// Behind the newest frame.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.lsn.load(Ordering::Acquire))
    }

    /// Everything before it was given to the disk.
    pub fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    /// Everything before it survives a crash.
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// The newest durable checkpoint.
    pub fn checkpoint_lsn(&self) -> Lsn {
        Lsn(self.checkpoint.load(Ordering::Acquire))
    }

    /// Frames of records that were appended.
    pub fn appended(&self) -> u64 {
        locked(&self.fill).requests
    }

    /// The steps of the age at the present capacity.
    pub fn limits(&self) -> AgeLimits {
        AgeLimits::of(self.room_bytes.load(Ordering::Acquire))
    }

    pub(crate) fn frame_bytes_max(&self) -> usize {
        let reserve = self.limits().reserve_bytes();
        let buffer = self.buffer_bytes - BLOCK_BYTES_MAX as usize;
        buffer.min(layout::frame::BYTES_MAX).min(usize::try_from(reserve).unwrap_or(usize::MAX))
    }

    /// Keeps a failure of the disk: nothing succeeds after it.
    pub(crate) fn fail(&self, doing: &'static str, cause: DiskError) -> EngineError {
        self.poison.keep(EngineError::disk(doing)(cause))
    }
}
