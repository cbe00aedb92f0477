//! Making the log durable: one thread for all that wait.
//!
//! Invariant: `durable` covers only what was written before a sync that succeeded began; after a
//! failure it never moves again.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use iostrata_innodb::{Counter, Lsn, flush::STALLED_REDO_WRITE};
use iostrata_io::SyncKind;
use iostrata_io::disk::DiskError;

use crate::error::EngineError;
use crate::redo::RedoSync;
use crate::redo::group_commit::Outcome;
use crate::redo::redo::{Redo, lock};

impl Redo {
    /// From now on whoever syncs for others waits so long for them at least, where syncs are dear
    /// and commits come in groups; not at all for as long as it is worth it.
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

    /// Leads for all; `entered` as `GroupCommit::leave` says.
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
            let mut writer = lock(&self.writer);
            self.write_all(&mut writer)?;
            let files = std::mem::take(&mut writer.unsynced);
            (self.written.load(Ordering::Relaxed), files, writer.sync)
        };
        // Others may append, and even write, from here on: what they write is not counted.
        for file in &files {
            let kind = match sync {
                RedoSync::None => continue,
                RedoSync::Fsync => SyncKind::Fsync,
                // Also for what was written before the log was told to write through.
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
