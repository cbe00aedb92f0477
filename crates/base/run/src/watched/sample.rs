//! The state of a target at one moment.
//!
//! Invariant: counters and gauges only, no rates. What a target does not report is absent, never 0.
//! Fields that count from the start of the target are marked; they go back when it is restarted.

use super::files::FileTable;
use super::session_waits::SessionWaits;

/// The state of a target at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetSample {
    /// When the target started, in seconds since 1970, off by a second or two:
    /// [`TargetSample::was_restarted_since`] compares.
    pub started_s: Option<u64>,
    /// When the target took the sample, in microseconds since 1970, where that is not now.
    pub taken_us: Option<u64>,
    /// Redo that recovery would read.
    pub checkpoint_age_bytes: Option<u64>,
    /// The max checkpoint age: writers wait there for a checkpoint.
    pub checkpoint_age_limit_bytes: Option<u64>,
    /// The checkpoint age from which pages are flushed as fast as possible.
    pub checkpoint_age_async_bytes: Option<u64>,
    /// The checkpoint age from which flushing takes precedence over everything else.
    pub checkpoint_age_sync_bytes: Option<u64>,
    /// Size of the redo.
    pub redo_capacity_bytes: Option<u64>,
    /// End of the redo, in bytes.
    pub redo_end_bytes: Option<u64>,
    /// End of the redo that is durable.
    pub redo_durable_bytes: Option<u64>,
    /// Times that redo was written and synced, counted from the start.
    pub redo_flushes: Option<u64>,
    /// Time that this took, in microseconds.
    pub redo_flush_us: Option<u64>,
    /// Times that a writer waited for a checkpoint, counted from the start.
    pub redo_waits: Option<u64>,
    /// Times that a writer waited for room in the log buffer, counted from the start.
    pub log_buffer_waits: Option<u64>,
    /// Times that a page waited for a free frame, counted from the start.
    pub free_page_waits: Option<u64>,
    /// Pages of the pool that are newer than on disk.
    pub dirty_pages: Option<u64>,
    /// Pages written since the start, for whatever reason.
    pub pages_flushed: Option<u64>,
    /// Those of them that were written ahead, so that redo does not run out.
    pub pages_flushed_adaptive: Option<u64>,
    /// Those of them that were written to free their frames.
    pub pages_flushed_lru: Option<u64>,
    /// Those of them that were written because nothing else was to be done.
    pub pages_flushed_background: Option<u64>,
    /// Those of them that were written because redo was about to run out.
    pub pages_flushed_for_redo: Option<u64>,
    /// Furious flushes since the start.
    pub furious_flushes: Option<u64>,
    /// Pages of the pool.
    pub pool_pages: Option<u64>,
    /// Commits whose old row versions are not purged yet.
    pub history_list_length: Option<u64>,
    /// The history beyond which writers are held back; absent where they never are.
    pub history_list_limit: Option<u64>,
    /// Commits whose old row versions were purged, counted from the start.
    pub purged: Option<u64>,
    /// Reads of files in flight.
    pub pending_reads: Option<u64>,
    /// Writes of files in flight.
    pub pending_writes: Option<u64>,
    /// Syncs of files in flight.
    pub pending_syncs: Option<u64>,
    /// Transactions that ended since the start, by commit or rollback.
    pub transactions: Option<u64>,
    /// Row locks that are waited for.
    pub row_locks_waiting: Option<u64>,
    /// Sessions that wait for an answer, without the sampler's own.
    pub sessions_running: Option<u64>,
    /// The transaction that is open for the longest time.
    pub oldest_transaction: Option<OldestTransaction>,
    /// Sessions that are connected.
    pub connections: Option<u64>,
    /// How many it accepts.
    pub connections_limit: Option<u64>,
    /// Connections refused because the limit was reached, counted from the start.
    pub connections_refused: Option<u64>,
    /// Time that writers were held back for other members of the cluster, in nanoseconds, counted
    /// from the start.
    pub flow_control_paused_ns: Option<u64>,
    /// SELECT statements, counted from the start as the three below.
    pub selects: Option<u64>,
    /// INSERT, REPLACE and LOAD DATA statements.
    pub inserts: Option<u64>,
    /// UPDATE statements.
    pub updates: Option<u64>,
    /// DELETE statements.
    pub deletes: Option<u64>,
    /// Pages that were requested, counted from the start.
    pub pool_requests: Option<u64>,
    /// Those of them that had to be read.
    pub pool_reads: Option<u64>,
    /// Internal temporary tables that were made on disk, counted from the start.
    pub temporary_tables_on_disk: Option<u64>,
    /// Deadlocks of row locks, counted from the start.
    pub deadlocks: Option<u64>,
    /// Commits that went to the binlog, counted from the start.
    pub binlog_commits: Option<u64>,
    /// Groups in which they did.
    pub binlog_groups: Option<u64>,
    /// How far replication is behind its source, in seconds. Absent where there is none, and where
    /// it does not run.
    pub replica_lag_s: Option<u64>,
    /// Transactions of the source that were applied, counted by their GTIDs.
    pub replica_transactions: Option<u64>,
    /// Commits that wait for a replica to acknowledge them.
    pub semi_sync_waiting: Option<u64>,
    /// What sessions wait for. Queried only while it stalls.
    pub session_waits: Option<SessionWaits>,
    /// What it did with its files. Absent too where it was not queried this time.
    pub files: Option<FileTable>,
}

/// The transaction that is open for the longest time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OldestTransaction {
    /// For how long, in seconds; 0 where none is open.
    pub age_s: u64,
    /// How the target names it: by the connection of a server, by the transaction of an engine.
    /// Absent where none is open, and of one that no connection holds.
    pub id: Option<u64>,
}

/// Starts that lie so close are the same: they come from two clocks, in whole seconds.
const SAME_START_S: u64 = 2;

impl TargetSample {
    /// Whether the target was started between this sample and an earlier one.
    pub fn was_restarted_since(&self, before: &Self) -> bool {
        let starts = before.started_s.zip(self.started_s);
        starts.is_some_and(|(before, now)| before.abs_diff(now) > SAME_START_S)
    }

    /// Reads, writes and syncs of files in flight.
    pub fn pending_ios(&self) -> Option<u64> {
        Some(self.pending_reads? + self.pending_writes? + self.pending_syncs.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_another_beyond_what_two_clocks_differ_by() {
        let at = |started_s| TargetSample { started_s, ..TargetSample::default() };
        for (before, now, is_another) in [
            (Some(1_000), Some(1_002), false),
            (Some(1_002), Some(1_000), false),
            (Some(1_000), Some(1_003), true),
            (None, Some(1_003), false),
            (Some(1_000), None, false),
        ] {
            assert_eq!(at(now).was_restarted_since(&at(before)), is_another, "{before:?} {now:?}");
        }
    }
}
