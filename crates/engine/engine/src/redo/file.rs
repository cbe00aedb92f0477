//! An open file of the log, and what the thread that writes the log has.
//!
//! Invariant: it is closed when its last holder lets go, so nobody can use a closed one.

use std::fmt;
use std::sync::Arc;

use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Disk, DiskError, Durability, FileId, FileMode, FileName};

use crate::redo::RedoSync;

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
    /// The buffer that is not being filled.
    pub(crate) other: Aligned,
    pub(crate) block_bytes: u64,
    pub(crate) sync: RedoSync,
    /// Files with writes that no sync covers yet.
    pub(crate) unsynced: Vec<Arc<OpenFile>>,
}

impl Writer {
    /// A file was written into.
    pub(crate) fn wrote(&mut self, file: &Arc<OpenFile>) {
        let is_synced = matches!(self.sync, RedoSync::WriteThrough | RedoSync::None);
        if !is_synced && !self.unsynced.iter().any(|other| Arc::ptr_eq(other, file)) {
            self.unsynced.push(Arc::clone(file));
        }
    }
}
