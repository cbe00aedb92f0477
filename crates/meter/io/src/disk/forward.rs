//! A disk over another one that alters some calls and hands on the rest.

use crate::SyncKind;
use crate::disk::{Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName};

/// What a test alters of a disk. Whoever has it is a [`Disk`]; a call that is not written out goes
/// to the disk below as it is.
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
