//! The promise of a commit.
//!
//! Invariant: a ticket is settled once the redo up to its LSN is durable, not before; what
//! `flush_log_at_trx_commit` 0 and 2 settle earlier is what their names say.

use std::sync::Arc;

use iostrata_knobs::{Counter, FlushLogAt};
use iostrata_page::Lsn;

use crate::core::Core;
use crate::error::EngineError;

/// A commit that is ordered, not yet durable.
#[derive(Clone, Debug)]
#[must_use = "a commit is durable only once its ticket was waited for"]
pub struct Ticket {
    core: Arc<Core>,
    end: Lsn,
}

impl Ticket {
    pub(crate) fn new(core: Arc<Core>, end: Lsn) -> Self {
        Self { core, end }
    }

    /// Returns once the commit survives a crash (or as early as `flush_log_at_trx_commit` allows).
    ///
    /// # Errors
    /// The log failed: whether the commit is durable is unknown, and the engine is poisoned.
    pub fn wait(&self) -> Result<(), EngineError> {
        let redo = &self.core.redo;
        let settled = self.core.counts.sampled(Counter::CpuNsCommit, || {
            match self.core.live.flush_log_at_commit() {
                FlushLogAt::Commit => redo.make_durable(self.end),
                FlushLogAt::Written => redo.make_written(self.end),
                FlushLogAt::Timeout => Ok(()),
            }
        });
        settled.map_err(|error| self.core.poison.keep(error))?;
        self.core.poison.check()?;
        self.core.counts.acknowledged();
        Ok(())
    }

    /// Whether it survives a crash already.
    pub fn is_durable(&self) -> bool {
        self.core.redo.durable() >= self.end
    }

    /// The end of its frame in the redo log.
    pub fn lsn(&self) -> u64 {
        self.end.0
    }
}
