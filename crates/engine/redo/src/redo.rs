//! The log as others see it.

use std::sync::Arc;

use iostrata_io::disk::Disk;
use iostrata_page::Lsn;

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
#[derive(Debug)]
pub struct Redo {}

impl Redo {
    /// Makes a log that begins at `start`; a half-made one is completed.
    ///
    /// # Errors
    /// [`RedoError::Exists`], [`RedoError::NoSpace`], [`RedoError::Setting`], the disk's.
    pub fn create(disk: Arc<dyn Disk>, s: &RedoSettings, start: Lsn) -> Result<(), RedoError> {
        let _ = (disk, s, start);
        unimplemented!()
    }

    /// Whether there is a log: a control file that was made completely.
    ///
    /// # Errors
    /// The disk's.
    pub fn exists(disk: &Arc<dyn Disk>) -> Result<bool, RedoError> {
        let _ = disk;
        unimplemented!()
    }

    /// Opens the log for reading; `start` makes it ready for appends.
    ///
    /// # Errors
    /// [`RedoError::NotFound`], [`RedoError::Version`], [`RedoError::Setting`], the disk's.
    pub fn open(disk: Arc<dyn Disk>, s: RedoSettings) -> Result<(Self, Scan), RedoError> {
        let _ = (disk, s);
        unimplemented!()
    }

    /// Ends recovery: seals off whatever lies behind the end of the log, durably, and gives the
    /// LSN from which appends go on. What the scan has not read yet is read and passed over.
    ///
    /// # Errors
    /// As [`Scan::next`], and the disk's.
    pub fn start(&self, scan: Scan) -> Result<Lsn, RedoError> {
        let _ = scan;
        unimplemented!()
    }

    /// Appends a frame of records (without the kind byte). Waits for I/O only when the buffer is
    /// full.
    ///
    /// # Panics
    /// Before `start`; when the body is empty or longer than `body_bytes_max`; when the log would
    /// overrun its checkpoint.
    pub fn append(&self, body: &[u8]) -> Appended {
        let _ = body;
        unimplemented!()
    }

    /// Longest body that `append` takes, in bytes.
    pub fn body_bytes_max(&self) -> usize {
        unimplemented!()
    }

    /// Behind the newest frame.
    pub fn lsn(&self) -> Lsn {
        unimplemented!()
    }

    /// Everything before it was given to the disk.
    pub fn written(&self) -> Lsn {
        unimplemented!()
    }

    /// Everything before it survives a crash.
    pub fn durable(&self) -> Lsn {
        unimplemented!()
    }

    /// The newest durable checkpoint.
    pub fn checkpoint_lsn(&self) -> Lsn {
        unimplemented!()
    }

    /// Returns when everything before `upto` survives a crash. One of many callers at once works
    /// for all.
    ///
    /// # Errors
    /// [`RedoError::Failed`] with the first cause.
    pub fn make_durable(&self, upto: Lsn) -> Result<(), RedoError> {
        let _ = upto;
        unimplemented!()
    }

    /// Returns when everything before `upto` was given to the disk.
    ///
    /// # Errors
    /// [`RedoError::Failed`] with the first cause.
    pub fn make_written(&self, upto: Lsn) -> Result<(), RedoError> {
        let _ = upto;
        unimplemented!()
    }

    /// Whether the buffer should be written out before a frame of so many bytes is appended.
    pub fn wants_room(&self, bytes: usize) -> bool {
        let _ = bytes;
        unimplemented!()
    }

    /// Writes the buffer out when `wants_room`. Call it before the first latch.
    ///
    /// # Errors
    /// [`RedoError::Failed`] with the first cause.
    pub fn wait_room(&self, bytes: usize) -> Result<(), RedoError> {
        let _ = bytes;
        unimplemented!()
    }

    /// Records that nothing before `lsn` is needed any more; durable when it returns. An older
    /// LSN than the last changes nothing. `lsn` must be a border of frames; `clean` says that no
    /// records follow it.
    ///
    /// # Errors
    /// [`RedoError::Failed`] with the first cause.
    pub fn take_checkpoint(&self, lsn: Lsn, clean: bool) -> Result<(), RedoError> {
        let _ = (lsn, clean);
        unimplemented!()
    }

    /// The steps of the age at the present capacity.
    pub fn limits(&self) -> AgeLimits {
        unimplemented!()
    }

    /// Changes the capacity while the log is used. Growing makes the new segments first; shrinking
    /// lowers the limits at once and removes segments as checkpoints free them.
    ///
    /// # Errors
    /// [`RedoError::NoSpace`], [`RedoError::Setting`] and [`RedoError::Disk`] change nothing.
    pub fn set_capacity(&self, bytes: u64) -> Result<(), RedoError> {
        let _ = bytes;
        unimplemented!()
    }

    /// Changes how written redo becomes durable, from the next write on.
    pub fn set_sync(&self, sync: RedoSync) {
        let _ = sync;
        unimplemented!()
    }

    /// Counts since the log was opened.
    pub fn counters(&self) -> RedoCounters {
        unimplemented!()
    }

    /// The first cause after a failed write or sync.
    pub fn poisoned(&self) -> Option<RedoError> {
        unimplemented!()
    }
}
