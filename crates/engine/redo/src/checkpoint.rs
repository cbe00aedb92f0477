//! Checkpoints, and what they set free.
//!
//! Invariant: a segment is free only when a durable checkpoint lies behind its last byte. The
//! checkpoint never goes back.

use std::sync::atomic::Ordering;

use iostrata_io::disk::{Aligned, DiskError};

use crate::control::Control;
use crate::counters::add;
use crate::file::OpenFile;
use crate::make::{remove, sync_unless_none};
use crate::redo::{Redo, lock};
use crate::{RedoError, RedoSync};

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
    fn incarnation_at(&mut self, lsn: u64) -> u64 {
        let older = self.incarnations.iter().take_while(|(from, _)| *from <= lsn).count();
        self.incarnations.drain(..older.saturating_sub(1));
        self.incarnations.first().map_or(self.newest.incarnation, |(_, number)| *number)
    }

    /// Writes the next slot, durably.
    fn write(&mut self, mut next: Control, sync: RedoSync) -> Result<(), DiskError> {
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

impl Redo {
    pub(crate) fn checkpoint_at(&self, lsn: u64, clean: bool) -> Result<(), RedoError> {
        assert!(lsn <= self.lsn().0, "a checkpoint at {lsn} lies beyond the log");
        self.settle(lsn)?;
        let mut ledger = lock(&self.ledger);
        let newest = ledger.newest;
        if lsn < newest.checkpoint || (lsn, clean) == (newest.checkpoint, newest.clean) {
            return self.check();
        }
        self.write_ledger(&mut ledger, lsn, clean)?;
        drop(ledger);
        self.free_segments();
        Ok(())
    }

    /// Writes down the checkpoint and the present geometry.
    pub(crate) fn write_ledger(
        &self,
        ledger: &mut Ledger,
        lsn: u64,
        clean: bool,
    ) -> Result<(), RedoError> {
        self.check()?;
        let (sync, block_bytes) = {
            let writer = lock(&self.writer);
            (writer.sync, writer.block_bytes as u32)
        };
        // Without syncs nothing is known to be durable.
        let durable = if sync == RedoSync::None { lsn } else { self.durable().0 };
        let next = Control {
            checkpoint: lsn,
            incarnation: ledger.incarnation_at(lsn),
            durable,
            geometry: lock(&self.segments).plan.geometry,
            block_bytes,
            clean,
            ..ledger.newest
        };
        let written = ledger.write(next, sync);
        written.map_err(|cause| self.fail("write the control file", cause))?;
        if !matches!(sync, RedoSync::WriteThrough | RedoSync::None) {
            add(&self.counts.fsyncs, 1);
        }
        self.checkpoint.store(lsn, Ordering::Release);
        Ok(())
    }

    /// Frees what lies before the checkpoint, and removes what has no use any more.
    pub(crate) fn free_segments(&self) {
        let surplus = {
            let mut segments = lock(&self.segments);
            segments.free_before(self.checkpoint.load(Ordering::Acquire));
            self.shed(&mut segments);
            std::mem::take(&mut segments.surplus)
        };
        if !surplus.is_empty() {
            let left = remove(&self.disk, surplus);
            lock(&self.segments).surplus.extend(left);
        }
    }
}
