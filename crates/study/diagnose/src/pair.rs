//! Pairs of points that do identical work and differ in one layer: what may be called a loss.
//!
//! Invariant: both points of a pair move the same bytes in blocks of the same size with the same
//! mix, concurrency and guarantee. A pair is either work that a well-set database does all the
//! time, where a fifth is worth a line, or work whose price is inherent (allocation, conversion of
//! unwritten extents, the page cache): that is a loss only where it hurts in absolute time.

use iostrata_plan::{Layer, rung};

/// The names of their findings in the catalogue.
pub(crate) const PER_FILE_WRITE_LOCK: &str = "per_file_write_lock";
pub(crate) const MIXED_FILE_LOCK: &str = "mixed_file_lock";
pub(crate) const UNWRITTEN_EXTENT_COST: &str = "unwritten_extent_cost";
pub(crate) const APPEND_ALLOCATION_COST: &str = "append_allocation_cost";
pub(crate) const BUFFERED_WRITE_COST: &str = "buffered_write_cost";
pub(crate) const FSYNC_JOURNAL_COST: &str = "fsync_journal_cost";
pub(crate) const DSYNC_BEATS_FDATASYNC: &str = "dsync_beats_fdatasync";
pub(crate) const API_OVERHEAD: &str = "api_overhead";

/// Two points that may be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// The lower rung: nearer to the device, expected to be at least as fast.
    pub from: &'static str,
    /// The upper rung.
    pub to: &'static str,
    /// The layer in which they differ.
    pub layer: Layer,
    /// The finding that a loss here belongs to.
    pub finding: &'static str,
    /// Smallest loss worth naming, in percent.
    pub loss_pct_min: f64,
    /// Smallest loss worth naming, in microseconds that each request of a job takes longer.
    pub extra_us_min: f64,
    /// Whether the comparison proves nothing once the processors were the limit on either side.
    pub needs_idle_cpu: bool,
    /// Whether a setting of the server chooses between the two.
    pub settable: bool,
    /// What differs, for the sentence: `on one file instead of eight`.
    pub words: &'static str,
}

impl Pair {
    /// Whether the price of the upper rung is the extra requests that the lower one does without.
    pub fn is_inherent(&self) -> bool {
        self.loss_pct_min >= INHERENT_LOSS_PCT_MIN && self.extra_us_min >= INHERENT_EXTRA_US_MIN
    }
}

const INHERENT_LOSS_PCT_MIN: f64 = 50.0;
const INHERENT_EXTRA_US_MIN: f64 = 1_000.0;

/// Work that a well-set database does: threads, files, direct overwrites.
const fn steady(
    from: &'static str,
    to: &'static str,
    layer: Layer,
    finding: &'static str,
    words: &'static str,
) -> Pair {
    Pair {
        from,
        to,
        layer,
        finding,
        loss_pct_min: 20.0,
        extra_us_min: 5.0,
        needs_idle_cpu: false,
        settable: false,
        words,
    }
}

/// Work whose price is inherent: a loss only at half the speed and a millisecond per request.
const fn inherent(
    from: &'static str,
    to: &'static str,
    layer: Layer,
    finding: &'static str,
    words: &'static str,
) -> Pair {
    Pair {
        loss_pct_min: INHERENT_LOSS_PCT_MIN,
        extra_us_min: INHERENT_EXTRA_US_MIN,
        // Busy processors hide a cap, and more requests then look like a price of the work.
        needs_idle_cpu: true,
        ..steady(from, to, layer, finding, words)
    }
}

/// The same requests through another API: a quarter and 20 us, with processors to spare.
const fn api(from: &'static str, to: &'static str, words: &'static str) -> Pair {
    Pair {
        loss_pct_min: 25.0,
        extra_us_min: 20.0,
        needs_idle_cpu: true,
        ..steady(from, to, Layer::FileApi, API_OVERHEAD, words)
    }
}

/// The same commit made durable in another way: `loss_pct` and 200 us.
const fn commit(
    from: &'static str,
    to: &'static str,
    loss_pct_min: f64,
    finding: &'static str,
    words: &'static str,
) -> Pair {
    Pair { loss_pct_min, extra_us_min: 200.0, ..steady(from, to, Layer::FileApi, finding, words) }
}

use Layer::{FileApi, Filesystem};

/// Every pair there is. fsync may cost twice fdatasync on a healthy drive: only beyond 2.5 times
/// does it count.
pub(crate) const PAIRS: &[Pair] = &[
    steady(
        rung::WRITE_16K_FILES_8,
        rung::WRITE_16K_FILES_1,
        Filesystem,
        PER_FILE_WRITE_LOCK,
        "random overwrites by 8 threads on one file instead of eight",
    ),
    steady(
        rung::MIXED_16K_FILES_8,
        rung::MIXED_16K_FILES_1,
        Filesystem,
        MIXED_FILE_LOCK,
        "mixed reads and writes by 8 threads on one file instead of eight",
    ),
    inherent(
        "unwritten_16k_files_8",
        "unwritten_16k_files_1",
        Filesystem,
        UNWRITTEN_EXTENT_COST,
        "first writes to allocated space by 8 threads on one file instead of eight",
    ),
    inherent(
        rung::WRITE_16K_FILES_8,
        "unwritten_16k_files_8",
        Filesystem,
        UNWRITTEN_EXTENT_COST,
        "first writes to allocated space instead of overwrites",
    ),
    inherent(
        rung::BUFFERED_16K_FILES_8,
        rung::BUFFERED_16K_FILES_1,
        Filesystem,
        BUFFERED_WRITE_COST,
        "buffered overwrites by 8 threads on one file instead of eight",
    ),
    inherent(
        rung::OVERWRITE_16K,
        rung::APPEND_16K,
        Filesystem,
        APPEND_ALLOCATION_COST,
        "extending a file instead of overwriting it",
    ),
    api(
        rung::READ_16K_IO_URING_16,
        rung::READ_16K_SYNC_16,
        "16 threads of pread instead of io_uring",
    ),
    api(rung::READ_16K_IO_URING_16, rung::READ_16K_LIBAIO_16, "libaio instead of io_uring"),
    Pair {
        settable: true,
        ..api(
            rung::READ_16K_SYNC_16,
            rung::READ_16K_LIBAIO_16,
            "libaio instead of 16 threads of pread",
        )
    },
    api(rung::READ_16K_LIBAIO_16, rung::READ_16K_IO_URING_16, "io_uring instead of libaio"),
    api(
        rung::READ_16K_SYNC_16,
        rung::READ_16K_IO_URING_16,
        "io_uring instead of 16 threads of pread",
    ),
    inherent(
        rung::FLUSHED_16K_DIRECT,
        rung::FLUSHED_16K_BUFFERED,
        FileApi,
        BUFFERED_WRITE_COST,
        "buffered writes instead of direct ones, both flushed",
    ),
    Pair {
        settable: true,
        ..commit(
            rung::COMMIT_FDATASYNC,
            rung::COMMIT_FSYNC,
            60.0,
            FSYNC_JOURNAL_COST,
            "commits by fsync instead of fdatasync",
        )
    },
    commit(
        rung::COMMIT_DSYNC,
        rung::COMMIT_FDATASYNC,
        30.0,
        DSYNC_BEATS_FDATASYNC,
        "commits by fdatasync instead of O_DSYNC",
    ),
    inherent(
        rung::COMMIT_FDATASYNC,
        rung::APPEND_FDATASYNC,
        Filesystem,
        APPEND_ALLOCATION_COST,
        "commits that extend the log instead of overwriting it",
    ),
    inherent(
        rung::APPEND_FDATASYNC,
        rung::APPEND_FSYNC,
        FileApi,
        FSYNC_JOURNAL_COST,
        "commits that extend the log, by fsync instead of fdatasync",
    ),
];
