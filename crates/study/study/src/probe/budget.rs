//! The options of a probe, how much it will write and how long it will take, before it begins.
//!
//! Invariant: the announced figures are upper bounds; shares add up to the whole.

use std::path::PathBuf;
use std::time::Duration;

use iostrata_plan::IoApi;
use iostrata_run::Unavailable;
use iostrata_run::host::PathFacts;
use iostrata_stats::units::{Size, bytes};
use thiserror::Error;

// The options of a probe, and what the directory allows of them.

/// The user's options.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeOptions {
    /// The directory.
    pub dir: PathBuf,
    /// Measure reads only.
    pub read_only: bool,
    /// Bytes that are never exceeded.
    pub write_bytes_max: u64,
    /// Size of the read set, when given.
    pub size_bytes: Option<u64>,
    /// Bound on the whole, when given.
    pub time_max: Option<Duration>,
    /// Bound on one point, when given.
    pub point_time: Option<Duration>,
    /// Relative half-width at which a point may stop.
    pub precision: f64,
    /// Whether advice is tried out.
    pub verify: bool,
    /// Whether the files are overwritten before anything is measured.
    pub precondition: bool,
    /// How long the sustained writes last, when given.
    pub lasting: Option<Duration>,
    /// Why nothing is known of the storage: then only a database is measured.
    pub below_is_unknown: Option<Unavailable>,
    /// Whether transactions are measured as well.
    pub transactions: Transactions,
}

/// Whether a probe measures transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transactions {
    /// No database was named.
    #[default]
    NotAsked,
    /// They cannot be, or may not.
    Missing(Unavailable),
    /// On a database.
    Measured,
}

/// What every point of a probe has in common on this directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The directory.
    pub dir: PathBuf,
    /// Whether the file system takes O_DIRECT.
    pub direct: bool,
    /// Whether anything is written besides the file that is read.
    pub writes: bool,
    /// The API that keeps many requests in flight.
    pub deep_api: IoApi,
    /// The APIs that work here.
    pub apis: Vec<IoApi>,
    /// Bytes of the file that reads go to.
    pub read_bytes: u64,
    /// Bytes of each file set that writes go to.
    pub write_bytes: u64,
    /// Bytes of the log file.
    pub log_bytes: u64,
    /// Smallest block that reads and commits use: 4 KiB, or more where the device needs it.
    pub block_bytes: u32,
    /// Factor on every point's time, so that the whole keeps its bound.
    pub time_factor: f64,
    /// Bytes that one point may write.
    pub point_write_bytes_max: u64,
    /// Bound on one point.
    pub point_time_max: Duration,
    /// Relative half-width at which a point may stop.
    pub precision: f64,
    /// How long the sustained writes last, where that was given.
    pub lasting: Option<Duration>,
}

/// Database pages.
pub const PAGE_BYTES: u32 = 16 << 10;

const MIB: u64 = 1 << 20;
/// Bytes of the file that reads go to, where no size is given.
const READ_BYTES: u64 = 1024 * MIB;
/// Bytes of each set that writes go to.
const WRITE_BYTES: u64 = 256 * MIB;
/// Bytes of the log file.
const LOG_BYTES: u64 = 64 * MIB;
/// Write sets are no smaller, unless the read set is.
pub(super) const LEAST_BYTES: u64 = 64 * MIB;
/// The smallest read set that shows more than caches.
const READ_BYTES_MIN: u64 = 16 * MIB;
/// Replicates that write as much as they are allowed, those of the database-shaped load included.
const HEAVY_REPLICATES: u64 = 106;
/// Sets that are written to and have to be filled: on one, two, four and eight files.
const WRITE_SETS: f64 = 4.0;
/// Logs that have to be filled.
const LOG_SETS: f64 = 3.0;
/// Share of the budget that is left for points that confirm suspicions and for `--verify`.
const RESERVE: f64 = 0.15;
/// What the sustained point may write of the budget.
const SUSTAINED_SHARE: f64 = 0.15;
const SUSTAINED_BYTES_MAX: u64 = 4096 * MIB;
/// The same where writes are to last for a given time.
const LASTING_SHARE: f64 = 0.5;
/// How long sustained writes last by themselves, at factor 1.
pub(super) const SUSTAINED: Duration = Duration::from_secs(12);
/// What overwriting the files before anything else may write of the budget, and how long it may
/// take; of a shorter time, half.
const PRECONDITION_SHARE: f64 = 0.5;
const PRECONDITION: Duration = Duration::from_secs(600);
/// The whole, filling and confirmations included, at factor 1.
const WHOLE: Duration = Duration::from_secs(116);
const WHOLE_READ_ONLY: Duration = Duration::from_secs(40);
/// Transactions, the making and loading of their tables included, at factor 1.
pub(super) const TOP_TIME: Duration = Duration::from_secs(75);
/// Share of a shorter time that transactions get.
const TOP_SHARE: f64 = 0.4;

/// Why a probe cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TooSmall {
    /// The options are.
    #[error("{0}")]
    Asked(String),
    /// The room in the directory is.
    #[error("{0}")]
    Room(String),
}

/// What a probe will do at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// Bytes of the file that reads go to.
    pub read_bytes: u64,
    /// Bytes of each set that writes go to.
    pub write_bytes: u64,
    /// Bytes of the log file.
    pub log_bytes: u64,
    /// Bytes written in all, at most.
    pub written_bytes_max: u64,
    /// Bytes of files at one time, at most.
    pub file_bytes_max: u64,
    /// Time in all, at most.
    pub time_max: Duration,
    /// Time for transactions after it, at most.
    pub top_time_max: Duration,
    /// Bytes that one point may write.
    pub point_write_bytes_max: u64,
    /// Bytes that the sustained point may write.
    pub sustained_write_bytes_max: u64,
    /// What the sustained point lasts longer than it does by itself.
    pub lasting_more: Duration,
    /// Bytes that overwriting the files first may write; 0 where it was not requested.
    pub precondition_bytes_max: u64,
    /// How long that may take.
    pub precondition_time_max: Duration,
}

impl Announcement {
    /// The time of a probe that neither overwrites its files first nor writes for longer.
    pub(super) fn usual_time(&self) -> Duration {
        self.time_max.saturating_sub(self.lasting_more + self.precondition_time_max)
    }

    /// How many sets of `write_bytes` are filled in all, logs included.
    pub(super) fn sets(&self) -> f64 {
        WRITE_SETS + LOG_SETS * self.log_bytes as f64 / self.write_bytes.max(1) as f64
    }
}

/// Fits the probe into the directory's free space and the user's bounds.
///
/// # Errors
/// What is too small, what was found, and the fix.
pub fn announce(options: &ProbeOptions, path: &PathFacts) -> Result<Announcement, TooSmall> {
    if options.below_is_unknown.is_some() {
        return Ok(announce_top(options));
    }
    let read_bytes = read_bytes(options, path.free_bytes)?;
    let Sets { write_bytes, log_bytes, all_bytes: file_bytes_max } =
        Sets::beside(read_bytes, options.read_only);
    let filled_bytes = file_bytes_max;
    if filled_bytes > options.write_bytes_max {
        return Err(TooSmall::Asked(format!(
            "--max-write {}: the files alone need {}; use at least that, a smaller --size, or \
             --read-only",
            Size(options.write_bytes_max),
            Size(filled_bytes)
        )));
    }
    let all = options.write_bytes_max - filled_bytes;
    let first = if options.precondition { PRECONDITION_SHARE } else { 0.0 };
    let precondition_bytes_max = (all as f64 * first) as u64;
    let for_requests = all - precondition_bytes_max;
    let sustained = match options.lasting {
        Some(_) => (for_requests as f64 * LASTING_SHARE) as u64,
        None => ((for_requests as f64 * SUSTAINED_SHARE) as u64).min(SUSTAINED_BYTES_MAX),
    };
    let heavy = (for_requests - sustained) as f64 * (1.0 - RESERVE);
    let whole = if options.read_only { WHOLE_READ_ONLY } else { WHOLE };
    let lasting_more = options.lasting.unwrap_or(SUSTAINED).saturating_sub(SUSTAINED);
    let precondition_time_max = match (options.precondition, options.time_max) {
        (false, _) => Duration::ZERO,
        (true, Some(all)) => PRECONDITION.min(all.saturating_sub(lasting_more) / 2),
        (true, None) => PRECONDITION,
    };
    let [time_max, top_time_max] = times(options, whole + lasting_more + precondition_time_max);
    Ok(Announcement {
        read_bytes,
        write_bytes,
        log_bytes,
        written_bytes_max: if options.read_only { read_bytes } else { options.write_bytes_max },
        file_bytes_max,
        time_max,
        top_time_max,
        point_write_bytes_max: (heavy as u64 / HEAVY_REPLICATES).max(u64::from(u16::MAX)),
        sustained_write_bytes_max: sustained,
        lasting_more,
        precondition_bytes_max,
        precondition_time_max,
    })
}

/// The time for the storage and that for transactions.
fn times(options: &ProbeOptions, whole: Duration) -> [Duration; 2] {
    let has_database = options.transactions == Transactions::Measured;
    let top = if has_database { TOP_TIME } else { Duration::ZERO };
    let below = if options.below_is_unknown.is_some() { Duration::ZERO } else { whole };
    let Some(all) = options.time_max.filter(|all| *all < below + top) else { return [below, top] };
    let top = match (has_database, below.is_zero()) {
        (false, _) => Duration::ZERO,
        (true, true) => all,
        (true, false) => all.mul_f64(TOP_SHARE).min(TOP_TIME),
    };
    [(all - top).min(below), top]
}

/// What a probe of nothing but transactions will do.
fn announce_top(options: &ProbeOptions) -> Announcement {
    let [time_max, top_time_max] = times(options, Duration::ZERO);
    Announcement {
        read_bytes: 0,
        write_bytes: 0,
        log_bytes: 0,
        written_bytes_max: options.write_bytes_max,
        file_bytes_max: 0,
        time_max,
        top_time_max,
        point_write_bytes_max: 0,
        sustained_write_bytes_max: 0,
        lasting_more: Duration::ZERO,
        precondition_bytes_max: 0,
        precondition_time_max: Duration::ZERO,
    }
}

/// The sets in addition to a read set.
struct Sets {
    write_bytes: u64,
    log_bytes: u64,
    /// Of all files at one time, at most.
    all_bytes: u64,
}

impl Sets {
    fn beside(read_bytes: u64, read_only: bool) -> Self {
        let least = LEAST_BYTES.min(read_bytes);
        let write_bytes = (read_bytes / 4).clamp(least, WRITE_BYTES);
        let log_bytes = LOG_BYTES.min(write_bytes);
        // One read set, four write sets, the consumed set of the moment, the logs.
        let written = if read_only { 0 } else { 5 * write_bytes + 3 * log_bytes };
        Self { write_bytes, log_bytes, all_bytes: read_bytes + written }
    }
}

/// The read set: the given size, or what the free space and the budget allow.
fn read_bytes(options: &ProbeOptions, free_bytes: Option<u64>) -> Result<u64, TooSmall> {
    let free_bytes = free_bytes.unwrap_or(u64::MAX);
    if let Some(asked) = options.size_bytes {
        if asked < READ_BYTES_MIN {
            return Err(TooSmall::Asked(format!(
                "--size {}: too small to measure anything but caches; use at least {}",
                Size(asked),
                Size(READ_BYTES_MIN)
            )));
        }
        if asked > free_bytes / 3 {
            return Err(TooSmall::Room(format!(
                "--size {}: the probe needs up to three times that and {} are free; use a smaller \
                 --size",
                Size(asked),
                bytes(free_bytes as f64)
            )));
        }
        return Ok(asked / MIB * MIB);
    }
    let all_bytes = |read_bytes| Sets::beside(read_bytes, options.read_only).all_bytes;
    // A tenth of the space is left alone.
    let room_bytes = free_bytes / 10 * 9;
    let fits = |read_bytes: &u64| {
        let most_bytes = (free_bytes / 6).min(options.write_bytes_max / 4);
        *read_bytes <= most_bytes
            && all_bytes(*read_bytes) <= room_bytes.min(options.write_bytes_max)
    };
    let sizes = (READ_BYTES_MIN / MIB..=READ_BYTES / MIB).rev().map(|mebibytes| mebibytes * MIB);
    let least_bytes = all_bytes(READ_BYTES_MIN);
    sizes.into_iter().find(fits).ok_or_else(|| match options.write_bytes_max < least_bytes {
        true => TooSmall::Asked(format!(
            "--max-write {}: too little to measure anything but caches; use at least {}",
            Size(options.write_bytes_max),
            bytes(least_bytes as f64)
        )),
        false => TooSmall::Room(format!(
            "too little room: {} free; free at least {}, or name a smaller --size, down to {}, or \
             another directory",
            bytes(free_bytes as f64),
            bytes((least_bytes * 10).div_ceil(9) as f64),
            Size(READ_BYTES_MIN)
        )),
    })
}
