//! Disks over another one: one that alters some calls and hands on the rest, and one that lets so
//! many requests pass per second and no more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::SyncKind;
use crate::disk::{
    Aligned, Batch, BatchCompletion, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName,
};

/// What a test alters of a disk. An implementation is a [`Disk`]; a call that is not written out
/// goes to the disk below as it is.
#[allow(missing_docs, clippy::missing_errors_doc)]
pub trait ForwardDisk: Send + Sync {
    /// The disk below.
    fn below(&self) -> &dyn Disk;

    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        self.below().open(name, mode)
    }
    fn close(&self, file: FileId) {
        self.below().close(file);
    }
    fn facts(&self, file: FileId) -> Facts {
        self.below().facts(file)
    }
    fn free_bytes(&self) -> Option<u64> {
        self.below().free_bytes()
    }
    fn len(&self, file: FileId) -> Result<u64, DiskError> {
        self.below().len(file)
    }
    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        self.below().read(file, at, into)
    }
    fn write(&self, file: FileId, at: u64, from: &Aligned, d: Durability) -> Result<(), DiskError> {
        self.below().write(file, at, from, d)
    }
    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError> {
        self.below().sync(file, kind)
    }
    fn batch(&self) -> Box<dyn Batch> {
        self.below().batch()
    }
    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError> {
        self.below().set_len(file, len)
    }
    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError> {
        self.below().rename(from, to)
    }
    fn remove(&self, name: &FileName) -> Result<(), DiskError> {
        self.below().remove(name)
    }
    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        self.below().list()
    }
    fn sync_dir(&self) -> Result<(), DiskError> {
        self.below().sync_dir()
    }
}

impl<T: ForwardDisk> Disk for T {
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        ForwardDisk::open(self, name, mode)
    }
    fn close(&self, file: FileId) {
        ForwardDisk::close(self, file);
    }
    fn facts(&self, file: FileId) -> Facts {
        ForwardDisk::facts(self, file)
    }
    fn free_bytes(&self) -> Option<u64> {
        ForwardDisk::free_bytes(self)
    }
    fn len(&self, file: FileId) -> Result<u64, DiskError> {
        ForwardDisk::len(self, file)
    }
    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        ForwardDisk::read(self, file, at, into)
    }
    fn write(&self, file: FileId, at: u64, from: &Aligned, d: Durability) -> Result<(), DiskError> {
        ForwardDisk::write(self, file, at, from, d)
    }
    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError> {
        ForwardDisk::sync(self, file, kind)
    }
    fn batch(&self) -> Box<dyn Batch> {
        ForwardDisk::batch(self)
    }
    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError> {
        ForwardDisk::set_len(self, file, len)
    }
    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError> {
        ForwardDisk::rename(self, from, to)
    }
    fn remove(&self, name: &FileName) -> Result<(), DiskError> {
        ForwardDisk::remove(self, name)
    }
    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        ForwardDisk::list(self)
    }
    fn sync_dir(&self) -> Result<(), DiskError> {
        ForwardDisk::sync_dir(self)
    }
}

// A disk that lets so many requests pass per second and no more, as a limit of a volume does.
//
// Invariant: reads and writes each pass in the order in which they were submitted; a batch is
// submitted whole, so a request behind it waits for all of it. A large request counts as several.
// It holds requests back in real time: a test with it lasts as long as its load.

/// Bytes that count as one request at most.
const REQUEST_BYTES_MAX: usize = 256 << 10;

/// When the next request of one direction may pass.
#[derive(Debug)]
struct Turnstile {
    gap: Duration,
    free: Mutex<Instant>,
}

impl Turnstile {
    fn new(iops: u32) -> Arc<Self> {
        let gap = Duration::from_secs(1) / iops.max(1);
        Arc::new(Self { gap, free: Mutex::new(Instant::now()) })
    }

    /// When a request of so many bytes that is submitted now has passed.
    fn pass(&self, bytes: usize) -> Instant {
        let count = bytes.div_ceil(REQUEST_BYTES_MAX).max(1) as u32;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let first = (*free).max(Instant::now());
        *free = first + self.gap * count;
        first + self.gap * (count - 1)
    }
}

fn wait_until(moment: Instant) {
    std::thread::sleep(moment.saturating_duration_since(Instant::now()));
}

/// A disk behind a limit. Clones share it.
#[derive(Clone)]
pub struct PacedDisk {
    below: Arc<dyn Disk>,
    reads: Arc<Turnstile>,
    writes: Arc<Turnstile>,
}

impl PacedDisk {
    /// At most so many reads and so many writes per second.
    pub fn new(below: Arc<dyn Disk>, iops: u32) -> Self {
        Self { below, reads: Turnstile::new(iops), writes: Turnstile::new(iops) }
    }
}

impl ForwardDisk for PacedDisk {
    fn below(&self) -> &dyn Disk {
        &*self.below
    }

    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        wait_until(self.reads.pass(into.len()));
        self.below.read(file, at, into)
    }

    fn write(&self, file: FileId, at: u64, from: &Aligned, d: Durability) -> Result<(), DiskError> {
        wait_until(self.writes.pass(from.len()));
        self.below.write(file, at, from, d)
    }

    fn batch(&self) -> Box<dyn Batch> {
        let (below, disk) = (self.below.batch(), self.clone());
        Box::new(PacedBatch { below, disk, taken: Vec::new(), passed: HashMap::new() })
    }
}

struct PacedBatch {
    below: Box<dyn Batch>,
    disk: PacedDisk,
    /// Tags of what was taken and not submitted, their bytes, and whether they are writes.
    taken: Vec<(u64, usize, bool)>,
    /// When what was submitted has passed.
    passed: HashMap<u64, Instant>,
}

impl Batch for PacedBatch {
    fn read(&mut self, file: FileId, at: u64, into: Aligned, tag: u64) {
        self.taken.push((tag, into.len(), false));
        self.below.read(file, at, into, tag);
    }

    fn write(&mut self, file: FileId, at: u64, from: Aligned, d: Durability, tag: u64) {
        self.taken.push((tag, from.len(), true));
        self.below.write(file, at, from, d, tag);
    }

    fn submit(&mut self) {
        for (tag, bytes, is_write) in self.taken.drain(..) {
            let turnstile = if is_write { &self.disk.writes } else { &self.disk.reads };
            self.passed.insert(tag, turnstile.pass(bytes));
        }
        self.below.submit();
    }

    fn in_flight(&self) -> usize {
        self.below.in_flight()
    }

    fn complete(&mut self, min: usize, done: &mut dyn FnMut(BatchCompletion)) {
        let passed = &mut self.passed;
        self.below.complete(min, &mut |finished| {
            if let Some(moment) = passed.remove(&finished.tag) {
                wait_until(moment);
            }
            done(finished);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_pass_than_the_rate_allows() {
        let turnstile = Turnstile::new(1000);
        let begun = Instant::now();
        for _ in 0..100 {
            turnstile.pass(4096);
        }
        let last = turnstile.pass(REQUEST_BYTES_MAX + 1);
        assert!(last - begun >= Duration::from_millis(101), "{:?}", last - begun);
    }
}
