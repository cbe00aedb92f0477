//! A disk that does something of the test's around each sync.

use std::sync::Arc;

use iostrata_io::SyncKind;
use iostrata_io::disk::{
    Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName,
};

type Hook = Box<dyn Fn() + Send + Sync>;

/// A disk with something before and after each sync.
pub struct Hooked {
    pub disk: Arc<dyn Disk>,
    pub before_sync: Hook,
    pub after_sync: Hook,
}

impl Disk for Hooked {
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        self.disk.open(name, mode)
    }
    fn close(&self, file: FileId) {
        self.disk.close(file);
    }
    fn facts(&self, file: FileId) -> Facts {
        self.disk.facts(file)
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
        (self.before_sync)();
        let result = self.disk.sync(file, kind);
        (self.after_sync)();
        result
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
