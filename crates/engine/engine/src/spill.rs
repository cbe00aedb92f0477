//! The file that old row versions go to when there are too many for memory.
//!
//! Invariant: it means nothing after a restart, so it is never synced, and an opening removes it.

use std::io;
use std::sync::{Arc, OnceLock};

use iostrata_io::disk::{Aligned, Disk, DiskError, Durability, FileId, FileMode};

use crate::error::EngineError;
use crate::settings_file::name;
use crate::version::SpillFile;

const SPILL_NAME: &str = "engine.versions";

/// Slots of equal size in a file of the data's disk, which is made when the first one is written.
pub(crate) struct DiskSpill {
    disk: Arc<dyn Disk>,
    file: OnceLock<FileId>,
    slot_bytes: u64,
}

impl DiskSpill {
    pub fn new(disk: Arc<dyn Disk>, slot_bytes: usize) -> Result<Self, EngineError> {
        match disk.remove(&name(SPILL_NAME)) {
            Ok(()) | Err(DiskError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { disk, file: OnceLock::new(), slot_bytes: slot_bytes as u64 })
    }

    fn file(&self) -> io::Result<FileId> {
        if let Some(file) = self.file.get() {
            return Ok(*file);
        }
        let opened =
            self.disk.open(&name(SPILL_NAME), FileMode::Create).map_err(io::Error::other)?;
        let file = *self.file.get_or_init(|| opened);
        if file != opened {
            self.disk.close(opened);
        }
        Ok(file)
    }
}

impl SpillFile for DiskSpill {
    fn write(&self, slot: u64, bytes: &[u8]) -> io::Result<()> {
        let file = self.file()?;
        let block = self.disk.facts(file).block_bytes as usize;
        let mut whole = Aligned::zeroed(bytes.len().next_multiple_of(block));
        whole[..bytes.len()].copy_from_slice(bytes);
        let at = slot * self.slot_bytes;
        self.disk.write(file, at, &whole, Durability::Volatile).map_err(io::Error::other)
    }

    fn read(&self, slot: u64, at: usize, into: &mut [u8]) -> io::Result<()> {
        let file = self.file()?;
        let block = self.disk.facts(file).block_bytes as usize;
        let first = at / block * block;
        let end = (at + into.len()).next_multiple_of(block);
        let mut whole = Aligned::zeroed(end - first);
        let place = slot * self.slot_bytes + first as u64;
        self.disk.read(file, place, &mut whole).map_err(io::Error::other)?;
        into.copy_from_slice(&whole[at - first..][..into.len()]);
        Ok(())
    }
}

impl Drop for DiskSpill {
    fn drop(&mut self) {
        if let Some(file) = self.file.get() {
            self.disk.close(*file);
            let _found_at_the_next_opening = self.disk.remove(&name(SPILL_NAME));
        }
    }
}
