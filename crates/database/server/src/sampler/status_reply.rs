//! A server's replies to one round of queries.
//!
//! Invariant: pure. Each flavour and version has what it has; a metric that is off is absent,
//! although it reads 0, and so is an invalid number.

use std::collections::HashMap;

use iostrata_database::target::OldestTransaction;

use super::file_event::FileEvent;
use super::monitor_text::MonitorText;
use super::replication::Replication;

/// Numbers by name.
pub(crate) type Numbers = HashMap<String, u64>;

/// The variables that are queried, where a server has them.
pub(crate) const VARIABLES: &[&str] = &[
    "innodb_max_purge_lag",
    "innodb_max_purge_lag_delay",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_thread_concurrency",
    "performance_schema",
    "max_connections",
    EVENT_SCHEDULER,
];
/// Where it is on, its thread counts as running all the time.
pub(crate) const EVENT_SCHEDULER: &str = "event_scheduler";

pub(crate) const HISTORY: &str = "trx_rseg_history_len";
/// Batches of pages that were written because redo was about to run out.
pub(crate) const SYNC_BATCHES: &str = "buffer_flush_sync";
/// Commits with old row versions.
pub(crate) const KEPT_COMMITS: &str = "trx_commits_insert_update";
/// Commits that wrote or locked, that read in a transaction, and that read outside of any.
pub(crate) const COMMITS: [&str; 3] = ["trx_rw_commits", "trx_ro_commits", "trx_nl_ro_commits"];

/// A server's reply in one round.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusReply {
    /// Its time after its status, in seconds since 1970.
    pub(crate) now_s: Option<u64>,
    /// When it was queried, in microseconds since 1970, where the sample may stand for later ones.
    pub(crate) taken_us: Option<u64>,
    /// How long reading both took, rounded up to seconds.
    pub(crate) took_s: u64,
    pub(crate) status: Numbers,
    pub(crate) variables: Numbers,
    /// Those that are on.
    pub(crate) metrics: Numbers,
    /// Where it was read.
    pub(crate) text: MonitorText,
    /// Where the server is a replica.
    pub(crate) replication: Replication,
    /// Where it may be queried.
    pub(crate) oldest_transaction: Option<OldestTransaction>,
    /// Transactions that performance_schema counted, where it does.
    pub(crate) transaction_events: Option<u64>,
    /// What performance_schema counted of files, where it was queried this time.
    pub(crate) file_events: Option<Vec<FileEvent>>,
    /// Whether this user may not read that.
    pub(crate) are_files_refused: bool,
}

impl StatusReply {
    pub(crate) fn status(&self, name: &str) -> Option<u64> {
        self.status.get(name).copied()
    }

    pub(crate) fn variable(&self, name: &str) -> Option<u64> {
        self.variables.get(name).copied()
    }

    pub(crate) fn metric(&self, name: &str) -> Option<u64> {
        self.metrics.get(name).copied()
    }

    /// Whether only the text has the checkpoint age.
    pub(crate) fn needs_text(&self) -> bool {
        self.age().is_none()
    }

    pub(crate) fn age(&self) -> Option<u64> {
        let status = |name: &str| self.status(&format!("Innodb_{name}"));
        let between = || {
            let checkpoint = status("redo_log_checkpoint_lsn")?;
            // The checkpoint may be read after the end.
            Some(status("redo_log_current_lsn")?.saturating_sub(checkpoint))
        };
        status("checkpoint_age").or_else(between).or(self.metric("log_lsn_checkpoint_age"))
    }

    /// The sum of Com_ counters; nothing where the server lacks the first.
    pub(crate) fn statements(&self, kinds: &[&str]) -> Option<u64> {
        let count = |kind: &&str| self.status(&format!("Com_{kind}"));
        count(kinds.first()?)?;
        Some(kinds.iter().filter_map(count).sum())
    }

    /// What clients ended by a statement.
    pub(crate) fn ended(&self) -> Option<u64> {
        let ended = self.status("Com_commit")? + self.status("Com_rollback")?;
        let xa = ["Com_xa_commit", "Com_xa_rollback"].map(|name| self.status(name).unwrap_or(0));
        Some(ended + xa.iter().sum::<u64>())
    }

    /// Transactions that InnoDB ended, while its counters are on.
    pub(crate) fn transaction_commits(&self) -> Option<u64> {
        COMMITS.iter().map(|name| self.metric(name)).sum()
    }

    /// Commits of which old row versions are kept until they are purged.
    pub(crate) fn kept_commits(&self) -> Option<u64> {
        self.metric(KEPT_COMMITS)
    }

    /// The length of the history, rather at the moment of the metrics.
    pub(crate) fn history_beside_metrics(&self) -> Option<u64> {
        self.metric(HISTORY).or(self.status("Innodb_history_list_length"))
    }

    pub(crate) fn furious_batches(&self) -> Option<u64> {
        self.metric(SYNC_BATCHES)
    }

    /// Without the sampler's own, which runs this query, and the event scheduler.
    pub(crate) fn sessions_running(&self) -> Option<u64> {
        let scheduler = self.variable(EVENT_SCHEDULER).unwrap_or(0);
        Some(self.status("Threads_running")?.saturating_sub(1 + scheduler))
    }

    /// The history beyond which writers are held back. A delay of 0 leaves the limit without
    /// effect.
    pub(crate) fn history_limit(&self) -> Option<u64> {
        let held = self.variable("innodb_max_purge_lag_delay").unwrap_or(0) > 0;
        self.variable("innodb_max_purge_lag").filter(|limit| held && *limit > 0)
    }
}
