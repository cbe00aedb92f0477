//! Making durable what an opening found.
//!
//! Invariant: what the last process left may be in the page cache alone, and where one of its syncs
//! failed the system takes that for written and no later sync writes it. So nothing that was found
//! is built upon, freed or used again before it has been written once more and synced: names, the
//! log from where it was last known to be durable, the control slot. Memory is bounded.

use std::sync::atomic::Ordering;

use iostrata_innodb::Counter;
use iostrata_io::disk::DiskError;

use crate::error::EngineError;
use crate::redo::RedoSync;
use crate::redo::file::Writer;
use crate::redo::layout::HEADER_BLOCK_BYTES;
use crate::redo::make::{CHUNK_BYTES, sync_unless_none, write_header};
use crate::redo::redo::{Redo, lock};
use crate::redo::segments::Segment;

impl Redo {
    /// Makes the names, the log up to its end, the spare segments and the newest control slot
    /// durable, in this order.
    pub(crate) fn settle_found(&self, end: u64) -> Result<(), EngineError> {
        let newest = lock(&self.ledger).newest;
        let from = newest.checkpoint.max(newest.durable);
        {
            let mut writer = lock(&self.writer);
            if writer.sync != RedoSync::None {
                let synced = self.disk.sync_dir();
                synced.map_err(|cause| self.fail("sync the directory of the redo log", cause))?;
            }
            let mut rewritten = self.rewrite(&mut writer, from, end);
            // A log that was closed clean and not opened since has durable segments alone.
            if !newest.clean || newest.opened {
                rewritten = rewritten.and_then(|()| self.rewrite_spares(&writer));
            }
            rewritten.map_err(|cause| self.fail("make the redo log durable again", cause))?;
        }
        self.written.store(end, Ordering::Release);
        self.lsn.store(end, Ordering::Release);
        self.durable.store(end, Ordering::Release);
        self.confirm_ledger()
    }

    /// Writes the log from `from` to `end` where it lies already, with the headers of its segments,
    /// and syncs it.
    fn rewrite(&self, writer: &mut Writer, from: u64, end: u64) -> Result<(), DiskError> {
        let from = from / writer.block_bytes * writer.block_bytes;
        let chain: Vec<_> = lock(&self.segments).chain.iter().cloned().collect();
        for segment in chain.iter().filter(|segment| segment.header.end() > from) {
            write_header(&segment.file, &segment.header, RedoSync::Fsync)?;
            self.counts.add(Counter::LogWrites, 1);
            self.counts.add(Counter::OsLogWritten, HEADER_BLOCK_BYTES as u64);
            let result = self.rewrite_segment(writer, segment, from, end);
            let whole = writer.other.allocated();
            writer.other.set_len(whole);
            result?;
            sync_unless_none(&segment.file, writer.sync)?;
            self.counts.add(Counter::OsLogFsyncs, 1);
        }
        Ok(())
    }

    /// Writes the headers of the spare segments again. One that is only in the page cache would
    /// be lost with the power while what is written behind it next is kept: then the segment would
    /// look damaged.
    fn rewrite_spares(&self, writer: &Writer) -> Result<(), DiskError> {
        let spare: Vec<_> = lock(&self.segments).spare.iter().cloned().collect();
        for segment in spare {
            write_header(&segment.file, &segment.header, RedoSync::Fsync)?;
            sync_unless_none(&segment.file, writer.sync)?;
            self.counts.add(Counter::LogWrites, 1);
            self.counts.add(Counter::OsLogWritten, HEADER_BLOCK_BYTES as u64);
            self.counts.add(Counter::OsLogFsyncs, 1);
        }
        Ok(())
    }

    /// The block of the end is filled with zeros, as when it was written.
    fn rewrite_segment(
        &self,
        writer: &mut Writer,
        segment: &Segment,
        from: u64,
        end: u64,
    ) -> Result<(), DiskError> {
        let padded_end = end.next_multiple_of(writer.block_bytes).min(segment.header.end());
        let mut lsn = from.max(segment.header.first);
        while lsn < padded_end {
            let most = CHUNK_BYTES.min(writer.other.allocated() as u64);
            let some = (padded_end - lsn).min(most);
            let place = segment.place(lsn);
            writer.other.set_len(some as usize);
            place.file.read(place.at, &mut writer.other)?;
            let used = end.saturating_sub(lsn).min(some);
            writer.other[used as usize..].fill(0);
            place.file.write(place.at, &writer.other, RedoSync::Fsync)?;
            self.counts.add(Counter::LogWrites, 1);
            self.counts.add(Counter::OsLogWritten, some);
            lsn += some;
        }
        Ok(())
    }
}
