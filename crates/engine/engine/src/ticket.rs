//! The promise of a commit.
//!
//! Invariant: a ticket is settled once the redo up to its LSN is durable, not before; what the
//! levels 0 and 2 of `flush_log_at_trx_commit` settle earlier is what their names say. A ticket
//! keeps the level of its commit, and it and its clones are counted once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use iostrata_innodb::{Counter, FlushLogAt, Lsn};

use crate::error::EngineError;
use crate::storage::Storage;

/// A commit that is ordered, not yet durable. Clones are the same commit.
///
/// An engine with threads settles it soon, whether or not somebody waits. Without them
/// ([`Background::Manual`](crate::Background::Manual)), and when the last handle of the engine was
/// dropped, somebody has to wait.
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
    /// The promise of a commit that was just appended; asks for what its level needs.
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

    /// Whether [`Ticket::wait`] would return at once. It does not block; when the answer is no,
    /// ask again later.
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

    /// Whether it survives a crash already, or is as far as its level asks for. It neither counts
    /// the commit as acknowledged nor says whether the log failed: [`Ticket::try_wait`] does.
    pub fn is_settled(&self) -> bool {
        let redo = &self.0.storage.redo;
        let is_settled = match self.0.level {
            FlushLogAt::Commit => redo.durable() >= self.0.end,
            FlushLogAt::Written => redo.written() >= self.0.end,
            FlushLogAt::Timeout => true,
        };
        if !is_settled {
            // Who asks does not wait, so nobody leads for him.
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
