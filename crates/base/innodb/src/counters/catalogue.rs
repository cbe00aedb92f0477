//! The table of counters. The enum, its names and the status page's order come from it.

use super::CounterRow;
use super::unit::{
    CounterKind::{Counter as Total, Gauge},
    CounterOrigin::{Metrics, Ours, Status},
    CounterUnit::{Bytes, Events, Lsn, Nanoseconds, Pages, Rows, Seconds},
};

/// Rows of the form `Variant "name" unit kind origin "sentence";` as the enum and its catalogue.
macro_rules! counters {
    ($($variant:ident $name:literal $unit:ident $kind:ident $origin:ident $doc:literal;)+) => {
        /// A counter of the engine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Counter {
            $(#[doc = $doc] $variant,)+
        }

        /// Every counter, in the order of the enum and of the status page.
        pub const COUNTERS: &[CounterRow] = &[$(CounterRow {
            counter: Counter::$variant,
            name: $name,
            unit: $unit,
            kind: $kind,
            origin: $origin,
            doc: $doc,
        },)+];
    };
}

counters! {
    BufferPoolPagesTotal "buffer_pool_pages_total" Pages Gauge Status "Frames of the pool.";
    BufferPoolPagesFree "buffer_pool_pages_free" Pages Gauge Status "Frames that hold no page.";
    BufferPoolPagesData "buffer_pool_pages_data" Pages Gauge Status "Frames that hold a page, clean or dirty.";
    BufferPoolPagesDirty "buffer_pool_pages_dirty" Pages Gauge Status "Pages in the pool that are newer than on disk.";
    BufferPoolBytesDirty "buffer_pool_bytes_dirty" Bytes Gauge Status "Bytes of the dirty pages.";
    BufferPoolReadRequests "buffer_pool_read_requests" Events Total Status "Pages asked for.";
    BufferPoolReads "buffer_pool_reads" Events Total Status "Pages asked for that were not in the pool and had to be read.";
    BufferPoolWriteRequests "buffer_pool_write_requests" Events Total Status "Records applied to pages in the pool.";
    BufferPoolWaitFree "buffer_pool_wait_free" Events Total Status "Times that a page waited because no frame was free.";
    BufferPoolPagesFlushed "buffer_pool_pages_flushed" Pages Total Status "Dirty pages written, for whatever reason.";
    BufferPoolPagesMadeYoung "buffer_pool_pages_made_young" Pages Total Status "Pages moved to the young part because they were used again.";
    BufferPoolReadAhead "buffer_pool_read_ahead" Pages Total Status "Pages read ahead.";
    BufferPoolReadAheadEvicted "buffer_pool_read_ahead_evicted" Pages Total Status "Pages read ahead and dropped before they were used.";
    BufferPoolPagesEvicted "buffer_LRU_batch_evict_total_pages" Pages Total Metrics "Clean pages dropped to free their frames.";
    DataReads "data_reads" Events Total Status "Reads of data files.";
    DataWrites "data_writes" Events Total Status "Writes of data and doublewrite files.";
    DataRead "data_read" Bytes Total Status "Bytes read from data files.";
    DataWritten "data_written" Bytes Total Status "Bytes written to data and doublewrite files.";
    DataFsyncs "data_fsyncs" Events Total Status "Syncs of data and doublewrite files.";
    DataPendingReads "data_pending_reads" Events Gauge Status "Reads of data files in flight.";
    DataPendingWrites "data_pending_writes" Events Gauge Status "Writes of data files in flight.";
    DblwrWrites "dblwr_writes" Events Total Status "Doublewrite batches.";
    DblwrPagesWritten "dblwr_pages_written" Pages Total Status "Pages written to the doublewrite files.";
    OsLogWritten "os_log_written" Bytes Total Status "Bytes written to redo files, with the padding of blocks.";
    OsLogFsyncs "os_log_fsyncs" Events Total Status "Syncs of redo files, and writes that are durable by themselves.";
    LogWrites "log_writes" Events Total Status "Writes of redo files.";
    LogWriteRequests "log_write_requests" Events Total Status "Frames appended to the redo.";
    LogFlushes "log_flushes" Events Total Ours "Times that redo was written and synced for those who waited.";
    LogFlushTimeNs "log_flush_time_ns" Nanoseconds Total Ours "Time that redo was written and synced.";
    LogFlushesStalled "log_flushes_stalled" Events Total Ours "Times that writing and syncing redo took 10 ms or longer.";
    LogWaits "log_waits" Events Total Status "Times that a frame waited because the log buffer was full.";
    LogPadded "log_padded" Bytes Total Metrics "Bytes written to fill blocks of redo.";
    LsnCurrent "lsn_current" Lsn Gauge Status "End of the redo.";
    LsnFlushed "lsn_flushed" Lsn Gauge Status "End of the redo that is durable.";
    LsnLastCheckpoint "lsn_last_checkpoint" Lsn Gauge Status "Where recovery would begin.";
    LsnOldest "log_lsn_buf_pool_oldest" Lsn Gauge Metrics "First change that is not on disk.";
    CheckpointAge "checkpoint_age" Bytes Gauge Status "Redo that recovery would read.";
    CheckpointMaxAge "checkpoint_max_age" Bytes Gauge Status "Checkpoint age at which writers wait for a checkpoint.";
    LogMaxModifiedAgeAsync "log_max_modified_age_async" Bytes Gauge Metrics "Checkpoint age from which writers are slowed down.";
    LogMaxModifiedAgeSync "log_max_modified_age_sync" Bytes Gauge Metrics "Checkpoint age from which flushing does not keep to io_capacity_max.";
    LogCheckpoints "log_checkpoints" Events Total Metrics "Checkpoints taken.";
    PagesCreated "pages_created" Pages Total Status "Pages made new.";
    PagesRead "pages_read" Pages Total Status "Pages read from data files.";
    PagesWritten "pages_written" Pages Total Status "Pages written in place.";
    RowsRead "rows_read" Rows Total Status "Rows given to callers.";
    RowsInserted "rows_inserted" Rows Total Status "Rows put that were not there.";
    RowsUpdated "rows_updated" Rows Total Status "Rows put that were there.";
    RowsDeleted "rows_deleted" Rows Total Status "Rows deleted.";
    IndexPageSplits "index_page_splits" Events Total Metrics "Pages split.";
    IndexPageMergeSuccessful "index_page_merge_successful" Events Total Metrics "Pages merged with a neighbour.";
    BufferFlushAdaptiveTotalPages "buffer_flush_adaptive_total_pages" Pages Total Metrics "Pages flushed to hold the checkpoint age.";
    BufferFlushBackgroundTotalPages "buffer_flush_background_total_pages" Pages Total Metrics "Pages flushed for the share of dirty pages or because nothing else happened.";
    BufferFlushSyncTotalPages "buffer_flush_sync_total_pages" Pages Total Metrics "Pages flushed because redo was about to run out.";
    BufferFlushSync "buffer_flush_sync" Events Total Metrics "Times that a furious flush began: by the cleaner, or by a user because redo was about to run out.";
    BufferLruBatchFlushTotalPages "buffer_LRU_batch_flush_total_pages" Pages Total Metrics "Dirty pages flushed to free their frames.";
    Commits "commits" Events Total Ours "Batches and transactions committed.";
    CommitsDurable "commits_durable" Events Total Ours "Commits acknowledged as durable.";
    AdmitDelays "admit_delays" Events Total Ours "Commits that were slowed down because checkpoint age was high.";
    AdmitDelayNs "admit_delay_ns" Nanoseconds Total Ours "Time that commits were slowed down.";
    AdmitWaits "admit_waits" Events Total Ours "Commits that waited for a checkpoint.";
    CpuNsRows "cpu_ns_rows" Nanoseconds Total Ours "Processor time in reading, locking and applying the rows of batches and transactions, taken from one call in 63.";
    CpuNsCommit "cpu_ns_commit" Nanoseconds Total Ours "Processor time in waiting for tickets, taken from one in 63.";
    CpuNsCleaner "cpu_ns_cleaner" Nanoseconds Total Ours "Processor time of the cleaner.";
    PolicyDecisions "policy_decisions" Events Total Ours "Times that the flushing policy was asked what to do.";
    PolicyDecisionNs "policy_decision_ns" Nanoseconds Total Ours "Time that this took, with all that it looks at.";
    PolicyPagesPerS "policy_pages_per_s" Pages Gauge Ours "Pages per second that the flushing policy counts on now: what steady has seen the device write, or the cap of the others; 0 where nothing caps it or it is not known yet.";
    PolicyRaisedPagesPerS "policy_raised_pages_per_s" Pages Gauge Ours "Pages per second that flush_write_limit = auto-raised has added.";
    PolicyBound "policy_bound" Events Gauge Ours "What held the flushing policy's last order back: 0 nothing, 1 io_capacity, 2 io_capacity_max, 3 the device.";
    HistoryListLength "history_list_length" Events Gauge Status "Commits whose old versions are not purged yet.";
    VersionsKept "versions_kept" Events Total Ours "Old versions of rows kept for snapshots.";
    VersionBytesMemory "version_bytes_memory" Bytes Gauge Ours "Old versions in memory.";
    VersionBytesSpilled "version_bytes_spilled" Bytes Gauge Ours "Old versions in the file for them.";
    RowsPurged "rows_purged" Rows Total Ours "Deleted rows that purge has removed.";
    TrxPurged "trx_purged" Events Total Ours "Commits whose old versions were purged.";
    Snapshots "snapshots" Events Gauge Ours "Snapshots that are open.";
    OldestSnapshotAge "oldest_snapshot_age" Seconds Gauge Ours "Age of the oldest open snapshot.";
    OldestSnapshotTrx "oldest_snapshot_trx" Events Gauge Ours "Number of the transaction that holds the oldest snapshot; 0 for none.";
    OldestSnapshotVersions "oldest_snapshot_versions" Events Gauge Ours "Commits since the oldest open snapshot was taken.";
    TrxRollbacks "trx_rollbacks" Events Total Metrics "Transactions rolled back that had written something.";
    RowLockWaits "row_lock_waits" Events Total Status "Times that a row lock was waited for.";
    RowLockTimeNs "row_lock_time_ns" Nanoseconds Total Ours "Time that row locks were waited for.";
    RowLockTimeMaxNs "row_lock_time_max_ns" Nanoseconds Gauge Ours "Longest wait for a row lock.";
    RowLockCurrentWaits "row_lock_current_waits" Events Gauge Status "Row locks that are waited for now.";
    RowLocks "row_locks" Events Gauge Ours "Row locks that are held now.";
    LockDeadlocks "lock_deadlocks" Events Total Metrics "Deadlocks found; one transaction of each was rolled back.";
    LockTimeouts "lock_timeouts" Events Total Metrics "Row locks that were not released in time.";
    CpuNsPurge "cpu_ns_purge" Nanoseconds Total Ours "Processor time of purge.";
    Uptime "uptime" Seconds Gauge Ours "Time since the engine opened.";
}
