//! The redo log of the embedded engine.
//!
//! Purpose: a stream of frames, each a mini-transaction's records, that survives a crash up to
//! where it was made durable; its buffer, its segment files, group commit, checkpoints, and the
//! scan after a crash.
//! Invariant: what the scan yields is a prefix of what was appended, and holds everything that
//! `make_durable` promised; a frame left behind the end by a crash never becomes valid again; after
//! a failed write or sync nothing succeeds. It is independent of pages and records: a frame's body
//! is bytes. An open file is closed when its last holder lets go, so a closed one is never used.
//! The settings have no defaults here: those are the engine's.

mod checkpoint;
mod control;
mod frame;
mod group_commit;
pub mod layout;
mod open;
mod segments;
mod write;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use iostrata_innodb::flush::AgeLimits;
use iostrata_innodb::{Lsn, Settings, SyncRule};
use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Disk, DiskError, Durability, FileId, FileMode, FileName};

pub use frame::{Frame, Scan};
pub(crate) use segments::not_found;

use crate::counts::Counts;
use crate::error::{EngineError, Poison};
use crate::sync::locked;
use control::Ledger;
use frame::Fill;
use group_commit::{GroupCommit, Requests};
use layout::BLOCK_BYTES_MAX;
use segments::Segments;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRange {
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

pub(crate) struct OpenFile {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) name: FileName,
    id: FileId,
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "OpenFile({})", self.name)
    }
}

impl OpenFile {
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        name: FileName,
        mode: FileMode,
    ) -> Result<Self, DiskError> {
        let id = disk.open(&name, mode)?;
        Ok(Self { disk: Arc::clone(disk), name, id })
    }

    pub(crate) fn len(&self) -> Result<u64, DiskError> {
        self.disk.len(self.id)
    }

    pub(crate) fn block_bytes(&self) -> u32 {
        self.disk.facts(self.id).block_bytes
    }

    pub(crate) fn read(&self, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        self.disk.read(self.id, at, into)
    }

    pub(crate) fn write(&self, at: u64, from: &Aligned, sync: RedoSync) -> Result<(), DiskError> {
        let durability = match sync {
            RedoSync::WriteThrough => Durability::WriteThrough,
            _ => Durability::Volatile,
        };
        self.disk.write(self.id, at, from, durability)
    }

    pub(crate) fn sync(&self, kind: SyncKind) -> Result<(), DiskError> {
        self.disk.sync(self.id, kind)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.disk.close(self.id);
    }
}

/// What the writing thread alone has.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) other: Aligned,
    pub(crate) block_bytes: u64,
    pub(crate) sync: RedoSync,
    /// Files with writes that no sync covers yet.
    pub(crate) unsynced: Vec<Arc<OpenFile>>,
}

impl Writer {
    pub(crate) fn wrote(&mut self, file: &Arc<OpenFile>) {
        let is_synced = matches!(self.sync, RedoSync::WriteThrough | RedoSync::None);
        if !is_synced && !self.unsynced.iter().any(|other| Arc::ptr_eq(other, file)) {
            self.unsynced.push(Arc::clone(file));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedoSync {
    Fsync,
    Fdatasync,
    /// Each write is durable when it returns; nothing is synced.
    WriteThrough,
    /// Nothing is durable. For tests, and for `flush_method` nosync.
    None,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedoSettings {
    /// Bytes that the segment files take together, at least 65536.
    pub capacity_bytes: u64,
    /// Bytes of each of the two buffers; at least 65536 are taken.
    pub log_buffer_bytes: u64,
    /// Block of writes, in bytes: a power of two from 512 to 16384. Every write is whole blocks.
    pub write_ahead_bytes: u32,
    pub sync: RedoSync,
}

impl RedoSettings {
    /// The options of the log, from checked settings of an engine.
    pub fn of(settings: &Settings) -> Self {
        let plan = settings.flush_plan().redo;
        let sync = match (plan.write_through, plan.sync, settings.use_fdatasync) {
            (true, ..) => RedoSync::WriteThrough,
            (false, SyncRule::GrowthOnly, _) => RedoSync::None,
            (false, _, true) => RedoSync::Fdatasync,
            (false, _, false) => RedoSync::Fsync,
        };
        Self {
            capacity_bytes: settings.redo_log_capacity,
            log_buffer_bytes: settings.log_buffer_size,
            write_ahead_bytes: settings.log_write_ahead_size,
            sync,
        }
    }
}

pub(crate) fn sync_unless_none(file: &OpenFile, sync: RedoSync) -> Result<(), DiskError> {
    if sync == RedoSync::None { Ok(()) } else { file.sync(SyncKind::Fsync) }
}
