//! What a server was asked and said, and what it means.
//!
//! Invariant: pure. Each flavour and version has what it has; a metric that is off is absent,
//! although it reads 0, and so is a number that is none.

use std::collections::HashMap;

use iostrata_target::TargetSample;

use super::limits::age_limits;
use super::monitor_text::MonitorText;
use crate::flavour::ServerVersion;

/// Numbers by name.
pub(crate) type Numbers = HashMap<String, u64>;

/// The status that is asked for; each flavour gives what it has.
pub(crate) const STATUS: &[&str] = &[
    "Innodb_checkpoint_age",
    "Innodb_checkpoint_max_age",
    "Innodb_lsn_current",
    "Innodb_lsn_flushed",
    "Innodb_redo_log_current_lsn",
    "Innodb_redo_log_checkpoint_lsn",
    "Innodb_redo_log_flushed_to_disk_lsn",
    "Innodb_redo_log_capacity_resized",
    "Innodb_log_waits",
    "Innodb_buffer_pool_wait_free",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_buffer_pool_pages_flushed",
    "Innodb_buffer_pool_pages_LRU_flushed",
    LRU_FLUSHED,
    "Innodb_buffer_pool_pages_total",
    "Innodb_history_list_length",
    "Innodb_data_pending_reads",
    "Innodb_data_pending_writes",
    "Innodb_data_pending_fsyncs",
    "Innodb_os_log_pending_fsyncs",
    "Innodb_row_lock_current_waits",
    "Innodb_page_size",
    "Com_commit",
    "Com_rollback",
    "Com_xa_commit",
    "Com_xa_rollback",
    "Handler_commit",
    "Threads_running",
    "Uptime",
];

/// The variables that are asked for, where a server has them.
pub(crate) const VARIABLES: &[&str] = &[
    "innodb_max_purge_lag",
    "innodb_max_purge_lag_delay",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_thread_concurrency",
    EVENT_SCHEDULER,
];
/// Where it is on, its thread counts as running all the time.
pub(crate) const EVENT_SCHEDULER: &str = "event_scheduler";

/// Metrics of which the first that is on is taken, and the status that tells the same.
pub(crate) struct MetricSource {
    /// By the names of versions.
    pub(crate) names: &'static [&'static str],
    /// The status that tells it already.
    pub(crate) status: &'static [&'static str],
    /// What is missing without it.
    pub(crate) field: &'static str,
}

/// MariaDB writes it in small letters, Percona Server does not.
const LRU_FLUSHED: &str = "Innodb_buffer_pool_pages_lru_flushed";
const HISTORY: &str = "trx_rseg_history_len";
const LRU: &[&str] = &["buffer_LRU_batch_flush_total_pages", "buffer_LRU_batch_total_pages"];

/// Every metric.
pub(crate) const METRICS: &[MetricSource] = &[
    MetricSource {
        names: &["log_lsn_checkpoint_age"],
        status: &["Innodb_checkpoint_age", "Innodb_redo_log_checkpoint_lsn"],
        field: "checkpoint_age_bytes",
    },
    MetricSource {
        names: &["log_lsn_current"],
        status: &["Innodb_lsn_current", "Innodb_redo_log_current_lsn"],
        field: "redo_bytes_per_s",
    },
    MetricSource {
        names: &["log_lsn_last_flush"],
        status: &["Innodb_lsn_flushed", "Innodb_redo_log_flushed_to_disk_lsn"],
        field: "durable redo",
    },
    MetricSource {
        names: &["log_max_modified_age_sync"],
        status: &["Innodb_checkpoint_max_age"],
        field: "checkpoint_age_limit_bytes",
    },
    MetricSource { names: &["log_max_modified_age_async"], status: &[], field: "" },
    MetricSource {
        names: &[HISTORY],
        status: &["Innodb_history_list_length"],
        field: "history_list_length",
    },
    MetricSource {
        names: &["buffer_flush_adaptive_total_pages"],
        status: &[],
        field: "flush_adaptive_pages_per_s",
    },
    MetricSource {
        names: LRU,
        status: &[LRU_FLUSHED, "Innodb_buffer_pool_pages_LRU_flushed"],
        field: "flush_lru_pages_per_s",
    },
    MetricSource {
        names: &["buffer_flush_background_total_pages"],
        status: &[],
        field: "flush_background_pages_per_s",
    },
    MetricSource {
        names: &["buffer_flush_sync_total_pages"],
        status: &[],
        field: "flush_sync_pages_per_s",
    },
    MetricSource { names: &["buffer_flush_sync"], status: &[], field: "furious_flushes" },
    MetricSource { names: &["log_on_file_space_waits"], status: &[], field: "" },
];

/// What a server said in one round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) status: Numbers,
    pub(crate) variables: Numbers,
    /// Those that are on.
    pub(crate) metrics: Numbers,
    /// Where it was asked.
    pub(crate) text: MonitorText,
}

impl Told {
    pub(crate) fn status(&self, name: &str) -> Option<u64> {
        self.status.get(name).copied()
    }

    pub(crate) fn variable(&self, name: &str) -> Option<u64> {
        self.variables.get(name).copied()
    }

    pub(crate) fn metric(&self, name: &str) -> Option<u64> {
        self.metrics.get(name).copied()
    }

    /// Whether the checkpoint age is told by nothing but the text.
    pub(crate) fn needs_text(&self) -> bool {
        self.age().is_none()
    }

    fn age(&self) -> Option<u64> {
        let status = |name: &str| self.status(&format!("Innodb_{name}"));
        let between = || {
            let checkpoint = status("redo_log_checkpoint_lsn")?;
            // The checkpoint may be read after the end.
            Some(status("redo_log_current_lsn")?.saturating_sub(checkpoint))
        };
        status("checkpoint_age").or_else(between).or(self.metric("log_lsn_checkpoint_age"))
    }

    /// What clients ended by a statement.
    pub(crate) fn ended(&self) -> Option<u64> {
        let ended = self.status("Com_commit")? + self.status("Com_rollback")?;
        let xa = ["Com_xa_commit", "Com_xa_rollback"].map(|name| self.status(name).unwrap_or(0));
        Some(ended + xa.iter().sum::<u64>())
    }

    /// Without the sampler's own, which asks, and the event scheduler.
    fn sessions_running(&self) -> Option<u64> {
        let scheduler = self.variable(EVENT_SCHEDULER).unwrap_or(0);
        Some(self.status("Threads_running")?.saturating_sub(1 + scheduler))
    }

    /// The history beyond which writers are held back. A delay of 0 leaves the limit without
    /// effect.
    fn history_limit(&self) -> Option<u64> {
        let held = self.variable("innodb_max_purge_lag_delay").unwrap_or(0) > 0;
        self.variable("innodb_max_purge_lag").filter(|limit| held && *limit > 0)
    }

    /// The sample that it comes to, without what only the sampler knows.
    pub(crate) fn sample(&self, version: &ServerVersion) -> TargetSample {
        let innodb = |name: &str| self.status(&format!("Innodb_{name}"));
        let (limits, text) = (age_limits(self, version), &self.text);
        let in_text = || Some(text.lsn?.saturating_sub(text.checkpoint_lsn?));
        let syncs = innodb("data_pending_fsyncs");
        let lru = || LRU.iter().find_map(|name| self.metric(name));
        let lru_status =
            self.status(LRU_FLUSHED).or_else(|| innodb("buffer_pool_pages_LRU_flushed"));
        TargetSample {
            checkpoint_age_bytes: self.age().or_else(in_text),
            checkpoint_age_limit_bytes: limits.limit,
            checkpoint_age_async_bytes: limits.flush_all,
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
            furious_flushes: self.metric("buffer_flush_sync"),
            pool_pages: innodb("buffer_pool_pages_total"),
            history_list_length: innodb("history_list_length")
                .or(self.metric(HISTORY))
                .or(text.history),
            history_list_limit: self.history_limit(),
            pending_reads: innodb("data_pending_reads"),
            pending_writes: innodb("data_pending_writes"),
            pending_syncs: syncs.map(|data| data + innodb("os_log_pending_fsyncs").unwrap_or(0)),
            row_locks_waiting: innodb("row_lock_current_waits"),
            sessions_running: self.sessions_running(),
            ..TargetSample::default()
        }
    }
}

#[cfg(test)]
mod tests;
