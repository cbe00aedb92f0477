//! How much a probe will write and how long it will take, before it begins.
//!
//! Invariant: the announced figures are upper bounds; shares add up to the whole.

use std::time::Duration;

use iostrata_run::host::PathFacts;

use super::shape::ProbeOptions;

const MIB: u64 = 1 << 20;
/// Bytes of the file that reads go to, where nothing is asked for.
const READ_BYTES: u64 = 1024 * MIB;
/// Bytes of each set that writes go to.
const WRITE_BYTES: u64 = 256 * MIB;
/// Bytes of the log file.
const LOG_BYTES: u64 = 64 * MIB;
/// The smallest sets that mean anything.
pub(super) const LEAST_BYTES: u64 = 64 * MIB;
/// Replicates that write as much as they are allowed, those of the database-shaped load included.
const HEAVY_REPLICATES: u64 = 98;
/// Sets that are written to and have to be filled: on one, two, four and eight files.
const WRITE_SETS: f64 = 4.0;
/// Logs that have to be filled.
const LOG_SETS: f64 = 3.0;
/// Share of the budget that is left for points that confirm suspicions and for `--verify`.
const RESERVE: f64 = 0.15;
/// What the sustained point may write of the budget.
const SUSTAINED_SHARE: f64 = 0.15;
const SUSTAINED_BYTES_MAX: u64 = 4096 * MIB;
/// The whole, filling and confirmations included, at factor 1.
const WHOLE: Duration = Duration::from_secs(116);
const WHOLE_READ_ONLY: Duration = Duration::from_secs(40);

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
    /// Bytes that one point may write.
    pub point_write_bytes_max: u64,
    /// Bytes that the sustained point may write.
    pub sustained_write_bytes_max: u64,
}

impl Announcement {
    /// How many sets of `write_bytes` are filled in all, logs included.
    pub(super) fn sets(&self) -> f64 {
        WRITE_SETS + LOG_SETS * self.log_bytes as f64 / self.write_bytes.max(1) as f64
    }
}

/// Fits the probe into the directory's free space and the user's bounds.
///
/// # Errors
/// In words: what is too small, what was found, and the fix.
pub fn announce(options: &ProbeOptions, path: &PathFacts) -> Result<Announcement, String> {
    let read_bytes = read_bytes(options, path.free_bytes)?;
    let write_bytes = (read_bytes / 4).clamp(LEAST_BYTES.min(read_bytes), WRITE_BYTES);
    let log_bytes = LOG_BYTES.min(write_bytes);
    // One read set, four write sets, the consumed set of the moment, the logs.
    let file_bytes_max =
        if options.read_only { read_bytes } else { read_bytes + 5 * write_bytes + 3 * log_bytes };
    let filled_bytes = file_bytes_max;
    if filled_bytes > options.write_bytes_max {
        return Err(format!(
            "--max-write {}: the files alone need {}; use at least that, a smaller --size, or \
             --read-only",
            iostrata_units::Size(options.write_bytes_max),
            iostrata_units::Size(filled_bytes)
        ));
    }
    let for_requests = options.write_bytes_max - filled_bytes;
    let sustained = ((for_requests as f64 * SUSTAINED_SHARE) as u64).min(SUSTAINED_BYTES_MAX);
    let heavy = (for_requests - sustained) as f64 * (1.0 - RESERVE);
    let whole = if options.read_only { WHOLE_READ_ONLY } else { WHOLE };
    let time_max = options.time_max.unwrap_or(whole);
    Ok(Announcement {
        read_bytes,
        write_bytes,
        log_bytes,
        written_bytes_max: if options.read_only { read_bytes } else { options.write_bytes_max },
        file_bytes_max,
        time_max: time_max.min(whole),
        point_write_bytes_max: (heavy as u64 / HEAVY_REPLICATES).max(u64::from(u16::MAX)),
        sustained_write_bytes_max: sustained,
    })
}

/// The read set: what was asked for, or what the free space and the budget allow.
fn read_bytes(options: &ProbeOptions, free_bytes: Option<u64>) -> Result<u64, String> {
    let free_bytes = free_bytes.unwrap_or(u64::MAX);
    // Everything together is at most three times the read set, and half the space is left alone.
    let allowed = (free_bytes / 6).min(options.write_bytes_max / 4) / MIB * MIB;
    if let Some(asked) = options.size_bytes {
        if asked < LEAST_BYTES / 4 {
            return Err(format!(
                "--size {}: too small to measure anything but caches; use at least 16M",
                iostrata_units::Size(asked)
            ));
        }
        if asked > free_bytes / 3 {
            return Err(format!(
                "--size {}: the probe needs up to three times that and {} are free; use a smaller \
                 --size",
                iostrata_units::Size(asked),
                iostrata_units::bytes(free_bytes as f64)
            ));
        }
        return Ok(asked / MIB * MIB);
    }
    if free_bytes / 6 < LEAST_BYTES {
        return Err(format!(
            "too little room: {} are free; free at least {}, make the probe's files smaller with \
             --size (at least {}, of which it needs three times), or measure another directory",
            iostrata_units::bytes(free_bytes as f64),
            iostrata_units::bytes((LEAST_BYTES * 6) as f64),
            iostrata_units::Size(LEAST_BYTES / 4),
        ));
    }
    if allowed < LEAST_BYTES {
        return Err(format!(
            "--max-write {}: too little for the probe's files; use at least {}, or smaller files \
             with --size",
            iostrata_units::Size(options.write_bytes_max),
            iostrata_units::Size(LEAST_BYTES * 4),
        ));
    }
    Ok(allowed.min(READ_BYTES))
}
