//! An open file of the log, what the thread that writes the log has, and the settings of the log.
//!
//! Invariant: a file is closed when its last holder lets go, so nobody can use a closed one. The
//! settings have no defaults here: those are the engine's.

use std::fmt;
use std::sync::Arc;

use iostrata_innodb::{Settings, SyncRule};
use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Disk, DiskError, Durability, FileId, FileMode, FileName};

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
    pub(crate) other: Aligned,
    pub(crate) block_bytes: u64,
    pub(crate) sync: RedoSync,
    /// Files with writes that no sync covers yet.
    pub(crate) unsynced: Vec<Arc<OpenFile>>,
}

impl Writer {
    pub(crate) fn wrote(&mut self, file: &Arc<OpenFile>) {
        let is_synced = matches!(self.sync, RedoSync::WriteThrough | RedoSync::None);
        if !is_synced && !self.unsynced.iter().any(|other| Arc::ptr_eq(other, file)) {
            self.unsynced.push(Arc::clone(file));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedoSync {
    Fsync,
    Fdatasync,
    /// Each write is durable when it returns; nothing is synced.
    WriteThrough,
    /// Nothing is durable. For tests, and for `flush_method` nosync.
    None,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedoSettings {
    /// Bytes that the segment files take together, at least 65536.
    pub capacity_bytes: u64,
    /// Bytes of each of the two buffers; at least 65536 are taken.
    pub log_buffer_bytes: u64,
    /// Block of writes, in bytes: a power of two from 512 to 16384. Every write is whole blocks.
    pub write_ahead_bytes: u32,
    pub sync: RedoSync,
}

impl RedoSettings {
    /// What checked settings of an engine say of its log.
    pub fn of(settings: &Settings) -> Self {
        let plan = settings.flush_plan().redo;
        let sync = match (plan.write_through, plan.sync, settings.use_fdatasync) {
            (true, ..) => RedoSync::WriteThrough,
            (false, SyncRule::GrowthOnly, _) => RedoSync::None,
            (false, _, true) => RedoSync::Fdatasync,
            (false, _, false) => RedoSync::Fsync,
        };
        Self {
            capacity_bytes: settings.redo_log_capacity,
            log_buffer_bytes: settings.log_buffer_size,
            write_ahead_bytes: settings.log_write_ahead_size,
            sync,
        }
    }
}

pub(crate) fn sync_unless_none(file: &OpenFile, sync: RedoSync) -> Result<(), DiskError> {
    if sync == RedoSync::None { Ok(()) } else { file.sync(SyncKind::Fsync) }
}
