//! The control file: what its newest slot says, and writing the next.

use iostrata_io::disk::{Aligned, DiskError};

use crate::redo::RedoSync;
use crate::redo::control::Control;
use crate::redo::file::OpenFile;
use crate::redo::make::sync_unless_none;

/// The control file and what its newest slot says.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) file: OpenFile,
    pub(crate) newest: Control,
    pub(crate) block: Aligned,
    /// From which LSN on which number seals the frames, the oldest first.
    pub(crate) incarnations: Vec<(u64, u64)>,
}

impl Ledger {
    /// Forgets the numbers of frames before `lsn`; gives that of the frame at it.
    pub(crate) fn incarnation_at(&mut self, lsn: u64) -> u64 {
        let older = self.incarnations.iter().take_while(|(from, _)| *from <= lsn).count();
        self.incarnations.drain(..older.saturating_sub(1));
        self.incarnations.first().map_or(self.newest.incarnation, |(_, number)| *number)
    }

    /// Writes the next slot, durably.
    pub(crate) fn write(&mut self, mut next: Control, sync: RedoSync) -> Result<(), DiskError> {
        next.sequence = self.newest.sequence + 1;
        next.encode(&mut self.block);
        self.file.write(next.slot_at(), &self.block, sync)?;
        if sync != RedoSync::WriteThrough {
            sync_unless_none(&self.file, sync)?;
        }
        self.newest = next;
        Ok(())
    }
}
