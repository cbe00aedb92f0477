//! Counters of all modules in one table, and the page that other processes read.
//!
//! Invariant: a counter is filled from the one module that counts it; the status file holds one
//! page, written in one call, that a reader believes only if it is whole.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use iostrata_innodb::{Counter, Counters, STATUS_BYTES, StatusFault, StatusPage};

use crate::error::EngineError;
use crate::storage::Storage;
use crate::sync::locked;

/// The file of the status page.
pub const STATUS_FILE: &str = "engine.status";
/// Tries of a reader that meets a page half written.
const READ_TRIES: usize = 100;

/// All counters of an engine.
pub(crate) fn counters(storage: &Storage) -> Counters {
    let mut all = storage.counts.read();
    fill_pool(storage, &mut all);
    fill_redo(storage, &mut all);
    fill_transactions(storage, &mut all);
    fill_policy(storage, &mut all);
    all[Counter::Uptime] = storage.opened.elapsed().as_secs();
    all
}

fn fill_pool(storage: &Storage, all: &mut Counters) {
    let dirty = storage.pool.dirty.pages() as u64;
    for (counter, value) in [
        (Counter::BufferPoolReadRequests, storage.pool.requests.sum()),
        (Counter::BufferPoolPagesTotal, storage.pool.frames.len() as u64),
        (Counter::BufferPoolPagesFree, storage.pool.queues.free() as u64),
        (Counter::BufferPoolPagesData, storage.pool.resident() as u64),
        (Counter::BufferPoolPagesDirty, dirty),
        (Counter::BufferPoolBytesDirty, dirty * storage.page_size.bytes() as u64),
    ] {
        all[counter] = value;
    }
}

fn fill_redo(storage: &Storage, all: &mut Counters) {
    let limits = storage.redo.limits();
    let (lsn, checkpoint) = (storage.redo.lsn(), storage.redo.checkpoint_lsn());
    let wait_age = locked(&storage.signal.policy).wait_age.unwrap_or(limits.max_age);
    for (counter, value) in [
        (Counter::LogWriteRequests, storage.redo.appended()),
        (Counter::LsnCurrent, lsn.0),
        (Counter::LsnFlushed, storage.redo.durable().0),
        (Counter::LsnLastCheckpoint, checkpoint.0),
        (Counter::LsnOldest, storage.pool.dirty.oldest().unwrap_or(lsn).min(lsn).0),
        (Counter::CheckpointAge, lsn.since(checkpoint)),
        (Counter::CheckpointMaxAge, limits.max_age.min(wait_age)),
        (Counter::LogMaxModifiedAgeAsync, limits.async_age),
        (Counter::LogMaxModifiedAgeSync, limits.sync_age),
    ] {
        all[counter] = value;
    }
}

fn fill_policy(storage: &Storage, all: &mut Counters) {
    let outlook = locked(&storage.signal.policy).outlook;
    all[Counter::PolicyPagesPerS] = outlook.pages_per_s;
    all[Counter::PolicyRaisedPagesPerS] = outlook.raised_pages_per_s;
    all[Counter::PolicyBound] = outlook.bound as u64;
}

fn fill_transactions(storage: &Storage, all: &mut Counters) {
    let (versions, locks) = (storage.versions.stats(), storage.locks.stats());
    for (counter, value) in [
        (Counter::HistoryListLength, versions.history),
        (Counter::VersionsKept, versions.kept),
        (Counter::VersionBytesMemory, versions.memory_bytes),
        (Counter::VersionBytesSpilled, versions.spilled_bytes),
        (Counter::TrxPurged, versions.purged),
        (Counter::Snapshots, versions.snapshots),
        (Counter::RowLocks, locks.held),
        (Counter::RowLockWaits, locks.waits),
        (Counter::RowLockTimeNs, locks.wait_ns),
        (Counter::RowLockTimeMaxNs, locks.wait_ns_max),
        (Counter::RowLockCurrentWaits, locks.waiting),
        (Counter::LockDeadlocks, locks.deadlocks),
        (Counter::LockTimeouts, locks.timeouts),
    ] {
        all[counter] = value;
    }
    if let Some(oldest) = versions.oldest {
        all[Counter::OldestSnapshotAge] = oldest.since.elapsed().as_secs();
        all[Counter::OldestSnapshotTrx] = oldest.transaction;
        all[Counter::OldestSnapshotVersions] = oldest.versions;
    }
}

/// Writes the status page.
#[derive(Debug)]
pub(crate) struct Publisher {
    file: File,
    sequence: AtomicU64,
}

impl Publisher {
    /// Makes the file.
    pub fn new(directory: &Path) -> Result<Self, EngineError> {
        let path = directory.join(STATUS_FILE);
        let opened = File::options().write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|error| EngineError::system("make engine.status", error))?;
        Ok(Self { file, sequence: AtomicU64::new(1) })
    }

    /// Publishes the counters. A full disk leaves the last page: nothing depends on it.
    pub fn publish(&self, storage: &Storage) {
        let sequence = self.sequence.fetch_add(1, Relaxed);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let page = StatusPage {
            sequence,
            process_id: std::process::id(),
            unix_us: since.as_micros() as u64,
            counters: counters(storage),
        };
        let mut bytes = [0; STATUS_BYTES];
        page.encode(&mut bytes);
        let _last_page_stays = self.file.write_all_at(&bytes, 0);
    }
}

/// Reads the status page that the engine of a directory published last, from any process.
///
/// # Errors
/// No engine has published there, or the page is none of this version.
pub fn read_status(directory: impl AsRef<Path>) -> Result<StatusPage, EngineError> {
    let path = directory.as_ref().join(STATUS_FILE);
    let failed = |problem: String| {
        EngineError::system("read the engine's status", format!("{}: {problem}", path.display()))
    };
    let mut fault = StatusFault::Magic;
    for _try in 0..READ_TRIES {
        let bytes = std::fs::read(&path).map_err(|error| failed(error.to_string()))?;
        match StatusPage::decode(&bytes) {
            Ok(page) => return Ok(page),
            Err(found) => fault = found,
        }
        if fault != StatusFault::Torn {
            break;
        }
        std::thread::yield_now();
    }
    Err(failed(fault.to_string()))
}
