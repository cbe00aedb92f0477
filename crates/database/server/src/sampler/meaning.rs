//! What a server said, as a sample of any target.
//!
//! Invariant: pure. What it did not say is absent.

use iostrata_target::TargetSample;

use super::limits::age_limits;
use super::told::{HISTORY, LRU, LRU_FLUSHED, Told};
use crate::flavour::ServerVersion;

impl Told {
    /// The sample that it comes to, without what rests on earlier ones.
    pub(crate) fn sample(&self, version: &ServerVersion) -> TargetSample {
        let innodb = |name: &str| self.status(&format!("Innodb_{name}"));
        let (limits, text) = (age_limits(self, version), &self.text);
        let in_text = || Some(text.lsn?.saturating_sub(text.checkpoint_lsn?));
        let lru = || LRU.iter().find_map(|name| self.metric(name));
        let lru_status =
            self.status(LRU_FLUSHED).or_else(|| innodb("buffer_pool_pages_LRU_flushed"));
        TargetSample {
            checkpoint_age_bytes: self.age().or_else(in_text),
            checkpoint_age_limit_bytes: limits.limit,
            checkpoint_age_async_bytes: limits.flush_all,
            checkpoint_age_sync_bytes: limits.flush_first,
            redo_capacity_bytes: limits.capacity,
            redo_end_bytes: innodb("lsn_current")
                .or_else(|| innodb("redo_log_current_lsn"))
                .or(self.metric("log_lsn_current"))
                .or(text.lsn),
            redo_durable_bytes: innodb("lsn_flushed")
                .or_else(|| innodb("redo_log_flushed_to_disk_lsn"))
                .or(self.metric("log_lsn_last_flush"))
                .or(text.flushed_lsn),
            redo_waits: self.metric("log_on_file_space_waits"),
            log_buffer_waits: innodb("log_waits"),
            free_page_waits: innodb("buffer_pool_wait_free"),
            dirty_pages: innodb("buffer_pool_pages_dirty"),
            pages_flushed: innodb("buffer_pool_pages_flushed"),
            pages_flushed_adaptive: self.metric("buffer_flush_adaptive_total_pages"),
            pages_flushed_lru: lru_status.or_else(lru),
            pages_flushed_background: self.metric("buffer_flush_background_total_pages"),
            pages_flushed_for_redo: self.metric("buffer_flush_sync_total_pages"),
            pool_pages: innodb("buffer_pool_pages_total"),
            history_list_length: innodb("history_list_length")
                .or(self.metric(HISTORY))
                .or(text.history),
            history_list_limit: self.history_limit(),
            pending_reads: innodb("data_pending_reads"),
            pending_writes: innodb("data_pending_writes"),
            // MySQL counts those of the redo here too, and once more by themselves.
            pending_syncs: innodb("data_pending_fsyncs"),
            row_locks_waiting: innodb("row_lock_current_waits"),
            sessions_running: self.sessions_running(),
            oldest_transaction: self.oldest_transaction,
            files: self.files(),
            ..TargetSample::default()
        }
    }
}

#[cfg(test)]
mod tests;
