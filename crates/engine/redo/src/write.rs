//! Writing the buffer out.
//!
//! Invariant: one thread writes at a time, in LSN order and whole blocks; a segment's header is
//! written before anything in it, and both are synced together. After a failed write nothing more
//! is written.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use iostrata_io::disk::{Aligned, DiskError};

use crate::counters::add;
use crate::file::OpenFile;
use crate::fill::Taken;
use crate::layout::HEADER_BLOCK_BYTES;
use crate::make::write_header;
use crate::redo::{Redo, lock};
use crate::segments::Place;
use crate::{RedoError, RedoSync};

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
    fn wrote(&mut self, file: &Arc<OpenFile>) {
        let is_synced = matches!(self.sync, RedoSync::WriteThrough | RedoSync::None);
        if !is_synced && !self.unsynced.iter().any(|other| Arc::ptr_eq(other, file)) {
            self.unsynced.push(Arc::clone(file));
        }
    }
}

impl Redo {
    /// Writes out what is in the buffer unless `upto` is written; waits for who writes already.
    pub(crate) fn write_out(&self, upto: u64) -> Result<(), RedoError> {
        // What was written before a failed sync may be lost, so it counts for nothing.
        self.check()?;
        if self.written.load(Ordering::Acquire) >= upto {
            return Ok(());
        }
        let mut writer = lock(&self.writer);
        if self.written.load(Ordering::Acquire) >= upto {
            return Ok(());
        }
        self.write_all(&mut writer)
    }

    /// Writes out everything appended so far.
    pub(crate) fn write_all(&self, writer: &mut Writer) -> Result<(), RedoError> {
        self.check()?;
        let taken = {
            let mut fill = lock(&self.fill);
            if fill.end == self.written.load(Ordering::Relaxed) {
                return Ok(());
            }
            fill.swap(&mut writer.other, writer.block_bytes)
        };
        self.write_taken(writer, taken).map_err(|cause| self.fail("write", cause))?;
        self.written.store(taken.end, Ordering::Release);
        Ok(())
    }

    fn write_taken(&self, writer: &mut Writer, taken: Taken) -> Result<(), DiskError> {
        let padded_end = taken.end.next_multiple_of(writer.block_bytes);
        let (used, mut left) = ((taken.end - taken.base) as usize, padded_end - taken.base);
        writer.other[used..left as usize].fill(0);
        add(&self.counts.padded, padded_end - taken.end);
        let mut lsn = taken.base;
        while left > 0 {
            let place = self.place(writer, lsn)?;
            let some = left.min(place.left);
            writer.other.set_len(some as usize);
            let written = place.file.write(place.at, &writer.other, writer.sync);
            let whole = writer.other.allocated();
            writer.other.set_len(whole);
            written?;
            writer.wrote(&place.file);
            add(&self.counts.writes, 1);
            add(&self.counts.written, some);
            (lsn, left) = (lsn + some, left - some);
            // A write is of a whole buffer: what goes to the next segment moves to its beginning.
            writer.other.copy_within(some as usize..(some + left) as usize, 0);
        }
        Ok(())
    }

    /// Where `lsn` is written, in a new segment if need be.
    fn place(&self, writer: &mut Writer, lsn: u64) -> Result<Place, DiskError> {
        if let Some(place) = lock(&self.segments).place(lsn) {
            return Ok(place);
        }
        let next = lock(&self.segments).take_spare();
        let Some(next) = next else { panic!("no segment is free for LSN {lsn}") };
        // Its file is synced with what is written into it next.
        write_header(&next.file, &next.header, writer.sync)?;
        add(&self.counts.writes, 1);
        add(&self.counts.written, HEADER_BLOCK_BYTES as u64);
        let place = next.place(lsn);
        lock(&self.segments).join();
        Ok(place)
    }
}
