//! A disk with other facts, or one that takes its time.

use std::sync::Mutex;
use std::time::Duration;

use iostrata_io::SyncKind;
use iostrata_io::disk::{
    Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName,
};

pub struct Altered<D> {
    disk: D,
    /// Writes of up to so many bytes are not torn in the first data file.
    atomic_bytes: u32,
    sync_takes: Duration,
    first: Mutex<Option<FileId>>,
}

impl<D: Disk> Altered<D> {
    pub fn atomic(disk: D, atomic_bytes: u32) -> Self {
        Self { disk, atomic_bytes, sync_takes: Duration::ZERO, first: Mutex::new(None) }
    }

    /// Syncs take a while, so that other threads get somewhere meanwhile.
    pub fn slow(disk: D) -> Self {
        Self { sync_takes: Duration::from_micros(200), ..Self::atomic(disk, 0) }
    }
}

impl<D: Disk> Disk for Altered<D> {
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        let file = self.disk.open(name, mode)?;
        if name.as_str() == "data-00" {
            *self.first.lock().unwrap() = Some(file);
        }
        Ok(file)
    }
    fn close(&self, file: FileId) {
        self.disk.close(file);
    }
    fn facts(&self, file: FileId) -> Facts {
        let is_first = *self.first.lock().unwrap() == Some(file);
        let atomic_write_bytes = if is_first { self.atomic_bytes } else { 0 };
        Facts { atomic_write_bytes, ..self.disk.facts(file) }
    }
    fn len(&self, file: FileId) -> Result<u64, DiskError> {
        self.disk.len(file)
    }
    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        self.disk.read(file, at, into)
    }
    fn write(&self, file: FileId, at: u64, from: &Aligned, d: Durability) -> Result<(), DiskError> {
        self.disk.write(file, at, from, d)
    }
    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError> {
        std::thread::sleep(self.sync_takes);
        self.disk.sync(file, kind)
    }
    fn batch(&self) -> Box<dyn Batch> {
        self.disk.batch()
    }
    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError> {
        self.disk.set_len(file, len)
    }
    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &FileName) -> Result<(), DiskError> {
        self.disk.remove(name)
    }
    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        self.disk.list()
    }
    fn sync_dir(&self) -> Result<(), DiskError> {
        self.disk.sync_dir()
    }
}
