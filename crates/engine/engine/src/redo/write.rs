//! Filling the buffer, writing it out and making it durable: one thread for all that wait.
//!
//! Invariant: one thread writes at a time, in LSN order and whole blocks; a segment's header is
//! written before anything in it, and both are synced together. After a failed write nothing more
//! is written. `durable` covers only what was written before a sync that succeeded began; after a
//! failure it never moves again.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use iostrata_innodb::flush::STALLED_REDO_WRITE;
use iostrata_innodb::{Counter, Lsn};
use iostrata_io::SyncKind;
use iostrata_io::disk::DiskError;

use crate::error::EngineError;
use crate::redo::frame::{LogRange, body_crc};
use crate::redo::group_commit::Outcome;
use crate::redo::layout::{HEADER_BLOCK_BYTES, frame};
use crate::redo::open::write_header;
use crate::redo::segments::SegmentRange;
use crate::redo::{FrameRange, Redo, RedoSync, Writer};
use crate::sync::locked;

impl Redo {
    /// Appends a frame of records (without the kind byte). Waits for I/O only when the buffer is
    /// full.
    ///
    /// # Panics
    /// Before `start`; when the body is empty or longer than `body_bytes_max`; when the log would
    /// overrun its checkpoint.
    pub fn append(&self, body: &[u8]) -> FrameRange {
        let bytes = frame::OVERHEAD_BYTES + body.len();
        assert!(bytes <= self.frame_bytes_max(), "{} bytes are too long a body", body.len());
        let body_crc = body_crc(frame::RECORDS, body);
        loop {
            let mut fill = locked(&self.fill);
            assert!(fill.is_started, "the redo log takes nothing before it is started");
            let end = fill.end + bytes as u64;
            let room_end = self.room_end.load(Ordering::Acquire);
            assert!(end <= room_end, "redo up to {end} overruns its checkpoint at {room_end}");
            if fill.has_room(bytes) {
                let start = fill.push(body_crc, frame::RECORDS, body);
                fill.requests += 1;
                self.lsn.store(end, Ordering::Release);
                return FrameRange { start: Lsn(start), end: Lsn(end) };
            }
            let upto = fill.end;
            if self.poison.is_set() {
                fill.discard();
                continue;
            }
            drop(fill);
            self.counts.add(Counter::LogWaits, 1);
            // A failure is kept; nothing that is appended after it is ever acknowledged.
            let _ = self.make_written(Lsn(upto));
        }
    }

    /// Whether the buffer should be written out before a frame of so many bytes is appended. It
    /// takes no lock: what is appended meanwhile would change the answer as well.
    fn wants_room(&self, bytes: usize) -> bool {
        let from = self.buffered_from.load(Ordering::Relaxed);
        let used = self.lsn.load(Ordering::Relaxed).saturating_sub(from) as usize;
        used + frame::OVERHEAD_BYTES + bytes > self.buffer_bytes / 2
    }

    /// Writes the buffer out when it is too full for a frame of so many bytes to be appended at
    /// once. Call it before the first latch.
    pub fn wait_room(&self, bytes: usize) -> Result<(), EngineError> {
        if self.wants_room(bytes) { self.make_written(self.lsn()) } else { self.poison.check() }
    }

    /// Returns when everything before `upto` was given to the disk; waits for a write under way.
    pub fn make_written(&self, Lsn(upto): Lsn) -> Result<(), EngineError> {
        // What was written before a failed sync may be lost, so it counts for nothing.
        self.poison.check()?;
        if self.written.load(Ordering::Acquire) >= upto {
            return Ok(());
        }
        let mut writer = locked(&self.writer);
        if self.written.load(Ordering::Acquire) >= upto {
            return Ok(());
        }
        self.write_all(&mut writer)
    }

    pub(crate) fn write_all(&self, writer: &mut Writer) -> Result<(), EngineError> {
        self.poison.check()?;
        let taken = {
            let mut fill = locked(&self.fill);
            if fill.end == self.written.load(Ordering::Relaxed) {
                return Ok(());
            }
            let taken = fill.swap(&mut writer.other, writer.block_bytes);
            self.buffered_from.store(fill.base, Ordering::Relaxed);
            taken
        };
        self.write_taken(writer, taken).map_err(|cause| self.fail("write the redo log", cause))?;
        self.written.store(taken.end, Ordering::Release);
        Ok(())
    }

    fn write_taken(&self, writer: &mut Writer, taken: LogRange) -> Result<(), DiskError> {
        let padded_end = taken.end.next_multiple_of(writer.block_bytes);
        let (used, mut left) = ((taken.end - taken.base) as usize, padded_end - taken.base);
        writer.other[used..left as usize].fill(0);
        self.counts.add(Counter::LogPadded, padded_end - taken.end);
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
            self.counts.add(Counter::LogWrites, 1);
            self.counts.add(Counter::OsLogWritten, some);
            (lsn, left) = (lsn + some, left - some);
            // A write is of a whole buffer: what goes to the next segment moves to its beginning.
            writer.other.copy_within(some as usize..(some + left) as usize, 0);
        }
        Ok(())
    }

    /// Where `lsn` is written, in a new segment if need be.
    fn place(&self, writer: &mut Writer, lsn: u64) -> Result<SegmentRange, DiskError> {
        if let Some(place) = locked(&self.segments).place(lsn) {
            return Ok(place);
        }
        let next = locked(&self.segments).take_spare();
        let Some(next) = next else { panic!("no segment is free for LSN {lsn}") };
        // Its file is synced with what is written into it next.
        write_header(&next.file, &next.header, writer.sync)?;
        self.counts.add(Counter::LogWrites, 1);
        self.counts.add(Counter::OsLogWritten, HEADER_BLOCK_BYTES as u64);
        let place = next.place(lsn);
        locked(&self.segments).join();
        Ok(place)
    }
}

impl Redo {
    /// From now on the leader of a group commit waits at least this long for others, if syncs are
    /// slow and commits come in groups.
    pub fn gather_commits_for(&self, least: Duration) {
        self.group.set_least(least);
    }

    /// Returns when everything before `upto` survives a crash. One of many callers at once works
    /// for all.
    pub fn make_durable(&self, Lsn(upto): Lsn) -> Result<(), EngineError> {
        loop {
            if self.durable.load(Ordering::Acquire) >= upto {
                return Ok(());
            }
            self.poison.check()?;
            let settled = || self.durable.load(Ordering::Acquire) >= upto || self.poison.is_set();
            if self.group.enter(upto, settled) == Outcome::Lead {
                self.group.gather();
                self.lead_and_leave(1)?;
            }
        }
    }

    /// Leads for all; `entered` as for `GroupCommit::leave`.
    pub(crate) fn lead_and_leave(&self, entered: u64) -> Result<(), EngineError> {
        let start = Instant::now();
        let led = self.lead();
        let took = start.elapsed();
        self.counts.add(Counter::LogFlushes, 1);
        self.counts.add(Counter::LogFlushTimeNs, took.as_nanos() as u64);
        self.counts.add(Counter::LogFlushesStalled, u64::from(took >= STALLED_REDO_WRITE));
        self.group.learn(took);
        let upto = if led.is_ok() { self.durable.load(Ordering::Relaxed) } else { u64::MAX };
        self.group.leave(upto, entered);
        led
    }

    /// Writes and syncs everything appended so far.
    fn lead(&self) -> Result<(), EngineError> {
        let (end, files, sync) = {
            let mut writer = locked(&self.writer);
            self.write_all(&mut writer)?;
            let files = std::mem::take(&mut writer.unsynced);
            (self.written.load(Ordering::Relaxed), files, writer.sync)
        };
        // Others may append, and even write, from here on: what they write is not counted.
        for file in &files {
            let kind = match sync {
                RedoSync::None => continue,
                RedoSync::Fsync => SyncKind::Fsync,
                // Also for what was written before the log began to write through.
                RedoSync::Fdatasync | RedoSync::WriteThrough => SyncKind::Fdatasync,
            };
            file.sync(kind).map_err(|cause: DiskError| self.fail("sync the redo log", cause))?;
            self.counts.add(Counter::OsLogFsyncs, 1);
        }
        self.poison.check()?;
        self.durable.store(end, Ordering::Release);
        Ok(())
    }
}
