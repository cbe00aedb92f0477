//! Two directories on one recorded disk, so that one order covers both.
//!
//! Names of a half begin with its letter. A `sync_dir` of one half covers the other, too: a little
//! kinder than two real directories.

use std::sync::Arc;

use iostrata_io::SyncKind;
use iostrata_io::disk::{
    Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName,
};

/// One of the directories.
pub struct Half {
    disk: Arc<dyn Disk>,
    letter: char,
}

impl Half {
    pub fn new(disk: Arc<dyn Disk>, letter: char) -> Arc<Self> {
        Arc::new(Self { disk, letter })
    }

    fn named(&self, name: &FileName) -> Result<FileName, DiskError> {
        FileName::new(format!("{}.{name}", self.letter))
    }
}

impl Disk for Half {
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        self.disk.open(&self.named(name)?, mode)
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
        self.disk.sync(file, kind)
    }

    fn batch(&self) -> Box<dyn Batch> {
        self.disk.batch()
    }

    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError> {
        self.disk.set_len(file, len)
    }

    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError> {
        self.disk.rename(&self.named(from)?, &self.named(to)?)
    }

    fn remove(&self, name: &FileName) -> Result<(), DiskError> {
        self.disk.remove(&self.named(name)?)
    }

    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        let beginning = format!("{}.", self.letter);
        let all = self.disk.list()?;
        let own = all.iter().filter_map(|name| name.as_str().strip_prefix(&beginning));
        own.map(FileName::new).collect()
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        self.disk.sync_dir()
    }
}
