//! The promise of a commit.
//!
//! Invariant: a ticket is settled once the redo up to its LSN is durable, not before; the levels 0
//! and 2 of `flush_log_at_trx_commit` settle as early as they are defined to. A ticket keeps the
//! level of its commit, and it and its clones are counted once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use iostrata_innodb::{Counter, FlushLogAt, Lsn};

use crate::error::EngineError;
use crate::storage::Storage;

/// A commit that is ordered, not yet durable. Clones are the same commit.
///
/// An engine with threads settles it soon, even if no thread waits. Without them
/// ([`Background::Manual`](crate::Background::Manual)), and when the last handle of the engine was
/// dropped, the caller has to wait.
#[derive(Clone, Debug)]
#[must_use = "a commit is durable only once its ticket is settled"]
pub struct Ticket(Arc<Promise>);

#[derive(Debug)]
struct Promise {
    storage: Arc<Storage>,
    end: Lsn,
    level: FlushLogAt,
    is_counted: AtomicBool,
}

impl Ticket {
    /// The promise of a commit that was just appended; requests what its level needs.
    pub(crate) fn new(storage: Arc<Storage>, end: Lsn, level: FlushLogAt) -> Self {
        match level {
            FlushLogAt::Commit => storage.redo.request_durable(end),
            FlushLogAt::Written => storage.redo.request_written(end),
            FlushLogAt::Timeout => {}
        }
        Self(Arc::new(Promise { storage, end, level, is_counted: AtomicBool::new(false) }))
    }

    /// Returns once the commit survives a crash (or as early as its level allows).
    ///
    /// # Errors
    /// The log failed: whether the commit is durable is unknown, and the engine is poisoned.
    pub fn wait(&self) -> Result<(), EngineError> {
        let Promise { storage, end, level, .. } = &*self.0;
        let settled = storage.counts.sampled(Counter::CpuNsCommit, || match level {
            FlushLogAt::Commit => storage.redo.make_durable(*end),
            FlushLogAt::Written => storage.redo.make_written(*end),
            FlushLogAt::Timeout => Ok(()),
        });
        settled?;
        // Something else may have failed.
        storage.poison.check()?;
        self.0.count();
        Ok(())
    }

    /// Whether [`Ticket::wait`] would return at once. It does not block; when it returns false, try
    /// again later.
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub fn try_wait(&self) -> Result<bool, EngineError> {
        let is_settled = self.is_settled();
        // What was written before a sync that failed may be lost.
        self.0.storage.poison.check()?;
        if is_settled {
            self.0.count();
        }
        Ok(is_settled)
    }

    /// Whether it survives a crash already, or is as far as its level requires. It neither counts
    /// the commit as acknowledged nor reports whether the log failed: [`Ticket::try_wait`] does.
    pub fn is_settled(&self) -> bool {
        let redo = &self.0.storage.redo;
        let is_settled = match self.0.level {
            FlushLogAt::Commit => redo.durable() >= self.0.end,
            FlushLogAt::Written => redo.written() >= self.0.end,
            FlushLogAt::Timeout => true,
        };
        if !is_settled {
            // The caller does not wait, so it never leads.
            redo.hasten_requests();
        }
        is_settled
    }

    /// Whether it survives a crash already.
    pub fn is_durable(&self) -> bool {
        self.0.storage.redo.durable() >= self.0.end
    }

    /// What settles it.
    pub fn level(&self) -> FlushLogAt {
        self.0.level
    }

    /// The end of its frame in the redo log.
    pub fn lsn(&self) -> u64 {
        self.0.end.0
    }
}

impl Promise {
    /// Counts that the commit was acknowledged.
    fn count(&self) {
        if !self.is_counted.swap(true, Relaxed) {
            self.storage.counts.add(Counter::CommitsDurable, 1);
        }
    }
}

/// Tickets: who settles them, at which level, their error when the log fails, how they count.
#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use iostrata_io::disk::MemDisk;
    use iostrata_io::disk::memory::{CallKind, Fault};

    use crate::tests::small;
    use crate::{Background, Counter, Disks, Engine, EngineError, FlushLogAt, Table, Ticket};

    fn open(disk: &MemDisk, background: Background) -> (Engine, Table) {
        let engine = Engine::open_on(Disks::one(disk.clone()), small(), background).unwrap();
        let table = engine.open_table("t").unwrap();
        (engine, table)
    }

    fn put(engine: &Engine, table: &Table, row: u8, level: FlushLogAt) -> Ticket {
        let mut batch = engine.batch();
        batch.put(table, &[row], b"value").unwrap();
        batch.flush_log_at(level);
        batch.commit_async().unwrap()
    }

    /// Polls until the ticket is settled or failed; fails when neither ever comes.
    fn asked(ticket: &Ticket) -> Result<(), EngineError> {
        let end = Instant::now() + Duration::from_secs(30);
        while !ticket.try_wait()? {
            assert!(Instant::now() < end, "it is never settled");
            std::thread::yield_now();
        }
        Ok(())
    }

    #[test]
    fn tickets_settle_without_a_waiter() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), small()).unwrap();
        let table = engine.open_table("t").unwrap();
        let before = engine.counters()[Counter::CommitsDurable];
        let tickets: Vec<Ticket> =
            (0..200).map(|row| put(&engine, &table, row, FlushLogAt::Commit)).collect();
        tickets.iter().for_each(|ticket| asked(ticket).unwrap());
        assert!(tickets.iter().all(|ticket| ticket.is_durable() && ticket.is_settled()));
        // Each is counted once, however often it is polled, and its clones with it.
        for ticket in &tickets {
            ticket.wait().unwrap();
            assert!(ticket.clone().try_wait().unwrap());
        }
        assert_eq!(engine.counters()[Counter::CommitsDurable] - before, 200);
        // This one is not even polled.
        let last = put(&engine, &table, 0, FlushLogAt::Commit);
        let end = Instant::now() + Duration::from_secs(30);
        while !last.is_durable() {
            assert!(Instant::now() < end, "it is never settled");
            std::thread::sleep(Duration::from_millis(1));
        }
        engine.close().unwrap();
    }

    #[test]
    fn a_sync_that_fails_reaches_who_asks_and_poisons() {
        let disk = MemDisk::new();
        let (engine, table) = open(&disk, Background::Threads);
        let fails = Arc::new(AtomicBool::new(true));
        let failing = Arc::clone(&fails);
        disk.before_each(move |call| {
            let is_sync = call.kind == CallKind::Sync && failing.load(Ordering::Relaxed);
            if is_sync { Fault::Errno(5) } else { Fault::None }
        });
        let before = engine.counters()[Counter::CommitsDurable];
        let ticket = put(&engine, &table, 1, FlushLogAt::Commit);
        let written = put(&engine, &table, 2, FlushLogAt::Written);
        asked(&ticket).unwrap_err();
        // What was only written may be lost with what the sync did not bring to the disk.
        written.try_wait().unwrap_err();
        fails.store(false, Ordering::Relaxed);
        // It stays so, also when the disk works again.
        ticket.try_wait().unwrap_err();
        ticket.wait().unwrap_err();
        assert!(!ticket.is_settled());
        let mut batch = engine.batch();
        batch.put(&table, b"k", b"v").unwrap();
        let refused = batch.commit_async();
        assert!(matches!(refused, Err(EngineError::Poisoned { .. })), "{refused:?}");
        assert_eq!(engine.counters()[Counter::CommitsDurable], before);
    }

    #[test]
    fn without_threads_a_ticket_waits_for_who_waits() {
        let disk = MemDisk::new();
        let (engine, table) = open(&disk, Background::Manual);
        let calls = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&calls);
        disk.before_each(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            Fault::None
        });
        let first = put(&engine, &table, 1, FlushLogAt::Commit);
        let second = put(&engine, &table, 2, FlushLogAt::Commit);
        for _ in 0..100 {
            assert!(!first.try_wait().unwrap() && !second.is_settled());
        }
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        second.wait().unwrap();
        assert!(first.try_wait().unwrap());
    }

    #[test]
    fn each_commit_has_its_level() {
        let (engine, table) = open(&MemDisk::new(), Background::Manual);
        let work = || {
            let counters = engine.counters();
            (counters[Counter::LogWrites], counters[Counter::OsLogFsyncs])
        };
        let (writes, syncs) = work();
        let lazy = put(&engine, &table, 1, FlushLogAt::Timeout);
        assert!(lazy.is_settled() && lazy.try_wait().unwrap());
        assert_eq!(work(), (writes, syncs));
        let written = put(&engine, &table, 2, FlushLogAt::Written);
        assert!(!written.is_settled() && !written.try_wait().unwrap());
        written.wait().unwrap();
        assert!(written.is_settled() && !written.is_durable());
        assert_eq!(work(), (writes + 1, syncs));
        // A ticket keeps the level of its commit.
        engine.set("flush_log_at_trx_commit", "0").unwrap();
        let durable = put(&engine, &table, 3, FlushLogAt::Commit);
        assert_eq!(durable.level(), FlushLogAt::Commit);
        assert!(!durable.is_settled());
        durable.wait().unwrap();
        assert!(durable.is_durable());
        let mut batch = engine.batch();
        batch.put(&table, b"k", b"v").unwrap();
        let by_setting = batch.commit_async().unwrap();
        engine.set("flush_log_at_trx_commit", "1").unwrap();
        assert_eq!(by_setting.level(), FlushLogAt::Timeout);
        assert!(by_setting.try_wait().unwrap() && !by_setting.is_durable());
    }

    #[test]
    fn a_requested_write_is_done_without_a_waiter() {
        let (engine, table) = open(&MemDisk::new(), Background::Threads);
        for row in 0..50 {
            let ticket = put(&engine, &table, row, FlushLogAt::Written);
            asked(&ticket).unwrap();
        }
        engine.close().unwrap();
    }
}
