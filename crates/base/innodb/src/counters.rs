//! Every counter of the engine, and the page on which a running engine publishes them.

use std::fmt;
use std::ops::{AddAssign, Index, IndexMut};

use self::CounterKind::{Counter as Total, Gauge};
use self::CounterOrigin::{Metrics, Ours, Status};
use self::CounterUnit::{Bytes, Events, Lsn, Nanoseconds, Pages, Rows, Seconds};

/// One counter, as documents and readers of the status page describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterRow {
    /// The counter.
    pub counter: Counter,
    /// Its name, InnoDB's without the prefix where InnoDB has it.
    pub name: &'static str,
    /// What it counts in.
    pub unit: CounterUnit,
    /// Whether it only grows.
    pub kind: CounterKind,
    /// Where its name comes from.
    pub origin: CounterOrigin,
    /// One sentence.
    pub doc: &'static str,
}

impl CounterRow {
    /// What InnoDB calls it in full, if it has it.
    #[must_use]
    pub fn innodb_name(&self) -> Option<String> {
        match self.origin {
            CounterOrigin::Status => Some(format!("Innodb_{}", self.name)),
            CounterOrigin::Metrics => Some(self.name.to_owned()),
            CounterOrigin::Ours => None,
        }
    }
}

/// What a counter counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    /// Events.
    Events,
    /// Pages, or frames that hold one.
    Pages,
    /// Bytes.
    Bytes,
    /// A place in the redo, in bytes from its beginning.
    Lsn,
    /// Rows.
    Rows,
    /// Nanoseconds of processor time.
    Nanoseconds,
    /// Seconds.
    Seconds,
}

impl fmt::Display for CounterUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CounterUnit::Events => "events",
            CounterUnit::Pages => "pages",
            CounterUnit::Bytes => "bytes",
            CounterUnit::Lsn => "LSN",
            CounterUnit::Rows => "rows",
            CounterUnit::Nanoseconds => "ns",
            CounterUnit::Seconds => "s",
        })
    }
}

/// Whether a counter only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// Grows from 0 at the opening of the engine: its rate means something.
    Counter,
    /// What is now: goes up and down.
    Gauge,
}

impl fmt::Display for CounterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CounterKind::Counter => "counter",
            CounterKind::Gauge => "gauge",
        })
    }
}

/// Where a counter's name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterOrigin {
    /// SHOW GLOBAL STATUS, with the prefix `Innodb_`.
    Status,
    /// INFORMATION_SCHEMA.INNODB_METRICS.
    Metrics,
    /// This engine.
    Ours,
}

impl Counter {
    /// The number of counters.
    pub const COUNT: usize = COUNTERS.len();

    /// Its row of the catalogue.
    #[must_use]
    pub fn row(self) -> &'static CounterRow {
        &COUNTERS[self as usize]
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The counter of this name; InnoDB's prefix and capitals make no difference.
    #[must_use]
    pub fn find(name: &str) -> Option<Counter> {
        let lower = name.trim().to_ascii_lowercase();
        let plain = lower.strip_prefix("innodb_").unwrap_or(&lower);
        let row = COUNTERS.iter().find(|row| row.name.eq_ignore_ascii_case(plain))?;
        Some(row.counter)
    }
}

/// The value of every counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters([u64; Counter::COUNT]);

impl Default for Counters {
    fn default() -> Counters {
        Counters([0; Counter::COUNT])
    }
}

impl Counters {
    /// Counters with these values, in the order of the catalogue.
    #[must_use]
    pub fn new(values: [u64; Counter::COUNT]) -> Counters {
        Counters(values)
    }

    /// The values in the order of the catalogue.
    #[must_use]
    pub fn values(&self) -> &[u64; Counter::COUNT] {
        &self.0
    }

    /// Every counter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static CounterRow, u64)> + '_ {
        COUNTERS.iter().zip(self.0)
    }

    /// What was counted since `earlier`: counters as differences, gauges as they are.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        let mut counted = self.clone();
        for (row, value) in COUNTERS.iter().zip(&mut counted.0) {
            if row.kind == CounterKind::Counter {
                *value = value.saturating_sub(earlier[row.counter]);
            }
        }
        counted
    }
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, more: &Counters) {
        self.0.iter_mut().zip(more.0).for_each(|(value, more)| *value += more);
    }
}

impl Index<Counter> for Counters {
    type Output = u64;

    #[inline]
    fn index(&self, counter: Counter) -> &u64 {
        &self.0[counter as usize]
    }
}

impl IndexMut<Counter> for Counters {
    #[inline]
    fn index_mut(&mut self, counter: Counter) -> &mut u64 {
        &mut self.0[counter as usize]
    }
}

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
    BufferPoolReadRequests "buffer_pool_read_requests" Events Total Status "Pages requested.";
    BufferPoolReads "buffer_pool_reads" Events Total Status "Pages requested that were not in the pool and had to be read.";
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
    CheckpointMaxAge "checkpoint_max_age" Bytes Gauge Status "Max checkpoint age: writers wait there for a checkpoint.";
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
    PolicyDecisions "policy_decisions" Events Total Ours "Decisions of the flushing policy.";
    PolicyDecisionNs "policy_decision_ns" Nanoseconds Total Ours "Time that these took, with all that they read.";
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

/// Bytes of a status page.
pub const STATUS_BYTES: usize = 4096;

const MAGIC: [u8; 8] = *b"IOSTATUS";
const VERSION: u32 = 1;
const VALUES_AT: usize = 40;
const CRC_AT: usize = STATUS_BYTES - 16;
const SEQUENCE_END_AT: usize = STATUS_BYTES - 8;

const _: () = assert!(VALUES_AT + Counter::COUNT * 8 <= CRC_AT, "the status page is too small");

/// A hash over the names of all counters in their order (FNV-1a).
pub const TABLE_HASH: u64 = table_hash();

const fn table_hash() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut row = 0;
    while row < COUNTERS.len() {
        let name = COUNTERS[row].name.as_bytes();
        let mut at = 0;
        while at <= name.len() {
            // The end of a name counts too, so that moving a letter to the next one is seen.
            let byte = if at < name.len() { name[at] } else { 0 };
            hash = (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
            at += 1;
        }
        row += 1;
    }
    hash
}

/// The figures of a status page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusPage {
    /// Grows with every publication.
    pub sequence: u64,
    /// The process that holds the engine.
    pub process_id: u32,
    /// When it was published, in microseconds of Unix time.
    pub unix_us: u64,
    /// The counters.
    pub counters: Counters,
}

/// Why bytes are not a status page that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatusFault {
    /// Too few bytes.
    #[error("a status page has {STATUS_BYTES} bytes; found {found}")]
    Short {
        /// The number of bytes found.
        found: usize,
    },
    /// Something else, or nothing published yet.
    #[error("no status page; none was published here yet, or the file is another one")]
    Magic,
    /// Another version's layout.
    #[error("the status page has version {found}; this program reads version {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// Another version's counters.
    #[error(
        "the status page lists other counters (table {found:016x}, here {TABLE_HASH:016x}); read it with the version that runs the engine"
    )]
    Table {
        /// The hash of the writer's table.
        found: u64,
    },
    /// The writer was at work meanwhile: read again.
    #[error("the status page was being written; read it again")]
    Torn,
}

impl StatusPage {
    /// Writes the page.
    pub fn encode(&self, out: &mut [u8; STATUS_BYTES]) {
        out.fill(0);
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&self.process_id.to_le_bytes());
        out[16..24].copy_from_slice(&TABLE_HASH.to_le_bytes());
        out[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        out[32..40].copy_from_slice(&self.unix_us.to_le_bytes());
        let cells = out[VALUES_AT..CRC_AT].chunks_exact_mut(8);
        for (cell, value) in cells.zip(self.counters.values()) {
            cell.copy_from_slice(&value.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out[..CRC_AT]);
        out[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        out[SEQUENCE_END_AT..].copy_from_slice(&self.sequence.to_le_bytes());
    }

    /// Reads a page. On `Torn` the reader reads again.
    ///
    /// # Errors
    /// Bytes that are no status page, one of another version, or one that was being written.
    pub fn decode(bytes: &[u8]) -> Result<StatusPage, StatusFault> {
        let page: &[u8; STATUS_BYTES] = bytes
            .get(..STATUS_BYTES)
            .and_then(|page| page.try_into().ok())
            .ok_or(StatusFault::Short { found: bytes.len() })?;
        if page[..8] != MAGIC {
            return Err(StatusFault::Magic);
        }
        let version = u32_at(page, 8);
        if version != VERSION {
            return Err(StatusFault::Version { found: version });
        }
        let sequence = u64_at(page, 24);
        let is_whole = sequence == u64_at(page, SEQUENCE_END_AT)
            && u32_at(page, CRC_AT) == crc32c::crc32c(&page[..CRC_AT]);
        if !is_whole {
            return Err(StatusFault::Torn);
        }
        let table = u64_at(page, 16);
        if table != TABLE_HASH {
            return Err(StatusFault::Table { found: table });
        }
        let values = std::array::from_fn(|at| u64_at(page, VALUES_AT + at * 8));
        let counters = Counters::new(values);
        let (process_id, unix_us) = (u32_at(page, 12), u64_at(page, 32));
        Ok(StatusPage { sequence, process_id, unix_us, counters })
    }
}

fn u64_at(page: &[u8; STATUS_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| page[at + byte]))
}

fn u32_at(page: &[u8; STATUS_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| page[at + byte]))
}

/// Counters, and status pages whole and torn.
#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn page(sequence: u64, first: u64) -> (StatusPage, Box<[u8; STATUS_BYTES]>) {
        let values = std::array::from_fn(|at| first.wrapping_mul(at as u64 + 1));
        let counters = Counters::new(values);
        let page =
            StatusPage { sequence, process_id: 4711, unix_us: 1_700_000_000_000_000, counters };
        let mut bytes = Box::new([0xAA; STATUS_BYTES]);
        page.encode(&mut bytes);
        (page, bytes)
    }

    #[test]
    fn the_enum_indexes_the_catalogue() {
        for (at, row) in COUNTERS.iter().enumerate() {
            assert_eq!(row.counter as usize, at);
            assert_eq!(row.counter.row(), row);
            assert_eq!(Counter::find(row.name), Some(row.counter));
        }
        assert_eq!(Counter::find("Innodb_buffer_pool_reads"), Some(Counter::BufferPoolReads));
        assert_eq!(Counter::find("nonsense"), None);
    }

    #[test]
    fn names_are_distinct_and_every_sentence_is_one() {
        let names: BTreeSet<&str> = COUNTERS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), COUNTERS.len());
        for row in COUNTERS {
            assert!(row.doc.ends_with('.') && !row.doc.contains(['\n', '|']), "{row:?}");
        }
    }

    #[test]
    fn what_was_counted_between_leaves_gauges_alone() {
        let mut earlier = Counters::default();
        earlier[Counter::Commits] = 5;
        earlier[Counter::BufferPoolPagesDirty] = 9;
        let mut now = earlier.clone();
        now[Counter::Commits] += 3;
        now[Counter::BufferPoolPagesDirty] = 4;
        let counted = now.since(&earlier);
        assert_eq!(counted[Counter::Commits], 3);
        assert_eq!(counted[Counter::BufferPoolPagesDirty], 4);
    }

    #[test]
    fn a_whole_page_comes_back() {
        let (page, bytes) = page(7, 3);
        assert_eq!(StatusPage::decode(bytes.as_slice()), Ok(page));
    }

    #[test]
    fn a_page_of_another_kind_is_told_from_a_torn_one() {
        let (_, bytes) = page(7, 3);
        let changed = |at: usize| {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 0x40;
            StatusPage::decode(&bytes).unwrap_err()
        };
        assert_eq!(StatusPage::decode(&bytes[..100]), Err(StatusFault::Short { found: 100 }));
        assert_eq!(StatusPage::decode(&[0; STATUS_BYTES]), Err(StatusFault::Magic));
        assert_eq!(changed(0), StatusFault::Magic);
        assert_eq!(changed(8), StatusFault::Version { found: 65 });
        for at in [12, 16, 24, 32, 40, 2000, STATUS_BYTES - 16, STATUS_BYTES - 1] {
            assert_eq!(changed(at), StatusFault::Torn, "byte {at}");
        }
    }

    #[test]
    fn a_table_of_other_counters_is_named() {
        let (_, mut bytes) = page(7, 3);
        bytes[16..24].copy_from_slice(&1_u64.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..STATUS_BYTES - 16]);
        bytes[STATUS_BYTES - 16..STATUS_BYTES - 12].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(StatusPage::decode(bytes.as_slice()), Err(StatusFault::Table { found: 1 }));
    }

    proptest! {
        #[test]
        fn half_written_pages_are_torn(at in 25..STATUS_BYTES - 7, first in 1..u64::MAX) {
            let (_, old) = page(7, first);
            let (_, new) = page(8, first.wrapping_add(1));
            for (front, back) in [(&new, &old), (&old, &new)] {
                let mut bytes = front.to_vec();
                bytes[at..].copy_from_slice(&back[at..]);
                prop_assert_eq!(StatusPage::decode(&bytes), Err(StatusFault::Torn));
            }
        }

        #[test]
        fn garbage_is_refused(
            bytes in prop::collection::vec(any::<u8>(), STATUS_BYTES - 2..STATUS_BYTES + 2),
            keeps_head in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if keeps_head {
                bytes[..12].copy_from_slice(&page(1, 1).1[..12]);
            }
            prop_assert!(StatusPage::decode(&bytes).is_err());
        }
    }
}
