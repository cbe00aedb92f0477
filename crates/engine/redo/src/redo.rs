//! The log as others see it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use iostrata_io::disk::{Disk, DiskError};
use iostrata_page::Lsn;

use crate::checkpoint::Ledger;
use crate::counters::{Counts, add};
use crate::create::{create, read_control};
use crate::fill::Fill;
use crate::frame::body_crc;
use crate::layout::{BLOCK_BYTES_MAX, frame};
use crate::open::open;
use crate::segments::Segments;
use crate::turn::Turn;
use crate::write::Writer;
use crate::{AgeLimits, RedoCounters, RedoError, RedoSettings, RedoSync, Scan};

/// Where an appended frame lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its first byte.
    pub start: Lsn,
    /// Behind its last byte; durable up to here means that the frame is.
    pub end: Lsn,
}

/// The log. Share it by `Arc`; every call may come from any thread.
///
/// Locks are taken in the order of the fields.
pub struct Redo {
    pub(crate) disk: Arc<dyn Disk>,
    /// Held while the capacity changes.
    pub(crate) changing: Mutex<()>,
    /// Held while a checkpoint is written.
    pub(crate) ledger: Mutex<Ledger>,
    /// Held while the buffer is written out.
    pub(crate) writer: Mutex<Writer>,
    /// Held for moments, never across I/O.
    pub(crate) segments: Mutex<Segments>,
    /// Held for moments, never across I/O.
    pub(crate) fill: Mutex<Fill>,
    pub(crate) turn: Turn,
    pub(crate) lsn: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) durable: AtomicU64,
    pub(crate) checkpoint: AtomicU64,
    /// Behind the last byte that can be appended before the next checkpoint.
    pub(crate) room_end: AtomicU64,
    /// What the limits of the age are made of.
    pub(crate) room_bytes: AtomicU64,
    pub(crate) buffer_bytes: usize,
    pub(crate) failed: OnceLock<RedoError>,
    pub(crate) counts: Counts,
}

impl fmt::Debug for Redo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Redo(lsn {}, durable {})", self.lsn(), self.durable())
    }
}

/// Takes a lock. A panic while it was held left consistent data: every change behind these locks
/// is made of steps that cannot panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Redo {
    /// Makes a log that begins at `start`; a half-made one is completed.
    ///
    /// # Errors
    /// [`RedoError::Exists`], [`RedoError::NoSpace`], [`RedoError::Setting`], the disk's.
    pub fn create(disk: Arc<dyn Disk>, s: &RedoSettings, start: Lsn) -> Result<(), RedoError> {
        create(&disk, s, start)
    }

    /// Whether there is a log: a control file that was made completely.
    ///
    /// # Errors
    /// The disk's.
    pub fn exists(disk: &Arc<dyn Disk>) -> Result<bool, RedoError> {
        Ok(read_control(disk)?.is_some())
    }

    /// Opens the log for reading; `start` makes it ready for appends.
    ///
    /// # Errors
    /// [`RedoError::NotFound`], [`RedoError::Damaged`], [`RedoError::Version`],
    /// [`RedoError::Setting`], the disk's.
    pub fn open(disk: Arc<dyn Disk>, s: RedoSettings) -> Result<(Self, Scan), RedoError> {
        open(&disk, &s)
    }

    /// Ends recovery: seals off whatever lies behind the end of the log, durably, and gives the
    /// LSN from which appends go on. What the scan has not read yet is read and passed over.
    ///
    /// # Errors
    /// As [`Scan::next`], and the disk's.
    pub fn start(&self, scan: Scan) -> Result<Lsn, RedoError> {
        self.begin(scan)
    }

    /// Appends a frame of records (without the kind byte). Waits for I/O only when the buffer is
    /// full.
    ///
    /// # Panics
    /// Before `start`; when the body is empty or longer than `body_bytes_max`; when the log would
    /// overrun its checkpoint.
    pub fn append(&self, body: &[u8]) -> Appended {
        let bytes = frame::OVERHEAD_BYTES + body.len();
        assert!(bytes <= self.frame_bytes_max(), "{} bytes are too long a body", body.len());
        let body_crc = body_crc(frame::RECORDS, body);
        loop {
            let mut fill = lock(&self.fill);
            assert!(fill.is_started, "the redo log takes nothing before it is started");
            let end = fill.end + bytes as u64;
            let room_end = self.room_end.load(Ordering::Acquire);
            assert!(end <= room_end, "redo up to {end} overruns its checkpoint at {room_end}");
            if fill.has_room(bytes) {
                let start = fill.push(body_crc, frame::RECORDS, body);
                fill.requests += 1;
                self.lsn.store(end, Ordering::Release);
                return Appended { start: Lsn(start), end: Lsn(end) };
            }
            let upto = fill.end;
            if self.is_failed() {
                fill.discard();
                continue;
            }
            drop(fill);
            add(&self.counts.waits, 1);
            // A failure is kept; nothing that is appended after it is ever acknowledged.
            let _ = self.write_out(upto);
        }
    }

    /// Longest body that `append` takes, in bytes.
    pub fn body_bytes_max(&self) -> usize {
        self.frame_bytes_max() - frame::OVERHEAD_BYTES
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

    /// Returns when everything before `upto` survives a crash. One of many callers at once works
    /// for all.
    ///
    /// # Errors
    /// [`RedoError::Failed`] with the first cause.
    pub fn make_durable(&self, upto: Lsn) -> Result<(), RedoError> {
        self.settle(upto.0)
    }

    /// Returns when everything before `upto` was given to the disk.
    ///
    /// # Errors
    /// [`RedoError::Failed`] with the first cause.
    pub fn make_written(&self, upto: Lsn) -> Result<(), RedoError> {
        self.write_out(upto.0)
    }

    /// Whether the buffer should be written out before a frame of so many bytes is appended.
    pub fn wants_room(&self, bytes: usize) -> bool {
        let used = lock(&self.fill).used_bytes();
        used + frame::OVERHEAD_BYTES + bytes > self.buffer_bytes / 2
    }

    /// Writes the buffer out when `wants_room`. Call it before the first latch.
    ///
    /// # Errors
    /// [`RedoError::Failed`] with the first cause.
    pub fn wait_room(&self, bytes: usize) -> Result<(), RedoError> {
        if self.wants_room(bytes) { self.write_out(self.lsn().0) } else { self.check() }
    }

    /// Records that nothing before `lsn` is needed any more; durable when it returns. An older
    /// LSN than the last changes nothing. `lsn` must be a border of frames; `clean` says that no
    /// records follow it.
    ///
    /// # Errors
    /// [`RedoError::Failed`] with the first cause.
    pub fn take_checkpoint(&self, lsn: Lsn, clean: bool) -> Result<(), RedoError> {
        self.checkpoint_at(lsn.0, clean)
    }

    /// The steps of the age at the present capacity.
    pub fn limits(&self) -> AgeLimits {
        self.age_limits()
    }

    /// Changes the capacity while the log is used. Growing makes the new segments first; shrinking
    /// lowers the limits at once and removes segments as checkpoints free them.
    ///
    /// # Errors
    /// [`RedoError::NoSpace`], [`RedoError::Setting`] and [`RedoError::Disk`] change nothing.
    pub fn set_capacity(&self, bytes: u64) -> Result<(), RedoError> {
        self.resize(bytes)
    }

    /// Changes how written redo becomes durable, from the next write on.
    pub fn set_sync(&self, sync: RedoSync) {
        lock(&self.writer).sync = sync;
    }

    /// Counts since the log was opened.
    pub fn counters(&self) -> RedoCounters {
        self.counts.read(lock(&self.fill).requests)
    }

    /// The first cause after a failed write or sync.
    pub fn poisoned(&self) -> Option<RedoError> {
        self.failed.get().cloned()
    }

    fn frame_bytes_max(&self) -> usize {
        let reserve = self.age_limits().reserve_bytes();
        let buffer = self.buffer_bytes - BLOCK_BYTES_MAX as usize;
        buffer.min(frame::BYTES_MAX).min(usize::try_from(reserve).unwrap_or(usize::MAX))
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    pub(crate) fn check(&self) -> Result<(), RedoError> {
        self.failed.get().map_or(Ok(()), |cause| Err(cause.clone()))
    }

    /// Keeps the first cause, and gives it.
    pub(crate) fn fail(&self, doing: &'static str, cause: DiskError) -> RedoError {
        self.failed.get_or_init(|| RedoError::Failed { doing, cause }).clone()
    }
}
