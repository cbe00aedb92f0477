//! The promise of a commit.
//!
//! Invariant: a ticket is settled once the redo up to its LSN is durable, not before; what
//! `flush_log_at_trx_commit` 0 and 2 settle earlier is what their names say.

use std::sync::Arc;

use iostrata_page::Lsn;
use iostrata_settings::{Counter, FlushLogAt};

use crate::error::EngineError;
use crate::storage::Storage;

/// A commit that is ordered, not yet durable.
#[derive(Clone, Debug)]
#[must_use = "a commit is durable only once its ticket was waited for"]
pub struct Ticket {
    storage: Arc<Storage>,
    end: Lsn,
    /// What it waits for, if not what the settings say.
    level: Option<FlushLogAt>,
}

impl Ticket {
    pub(crate) fn new(storage: Arc<Storage>, end: Lsn) -> Self {
        Self::with_level(storage, end, None)
    }

    pub(crate) fn with_level(storage: Arc<Storage>, end: Lsn, level: Option<FlushLogAt>) -> Self {
        Self { storage, end, level }
    }

    /// Returns once the commit survives a crash (or as early as `flush_log_at_trx_commit` allows).
    ///
    /// # Errors
    /// The log failed: whether the commit is durable is unknown, and the engine is poisoned.
    pub fn wait(&self) -> Result<(), EngineError> {
        let redo = &self.storage.redo;
        let settled = self.storage.counts.sampled(Counter::CpuNsCommit, || {
            match self.level.unwrap_or_else(|| self.storage.hot.flush_log_at_commit()) {
                FlushLogAt::Commit => redo.make_durable(self.end),
                FlushLogAt::Written => redo.make_written(self.end),
                FlushLogAt::Timeout => Ok(()),
            }
        });
        settled.map_err(|error| self.storage.poison.keep(error))?;
        self.storage.poison.check()?;
        self.storage.counts.acknowledged();
        Ok(())
    }

    /// Whether it survives a crash already.
    pub fn is_durable(&self) -> bool {
        self.storage.redo.durable() >= self.end
    }

    /// The end of its frame in the redo log.
    pub fn lsn(&self) -> u64 {
        self.end.0
    }
}
