//! Two directories on one recorded disk, so that one order covers both.
//!
//! Names of a half begin with its letter. A `sync_dir` of one half covers the other, too: a little
//! kinder than two real directories.

use std::sync::Arc;

use iostrata_io::disk::{Disk, DiskError, FileId, FileMode, FileName, ForwardDisk};

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

impl ForwardDisk for Half {
    fn below(&self) -> &dyn Disk {
        &*self.disk
    }

    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        self.disk.open(&self.named(name)?, mode)
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
}
