//! What a probe is asked for, and what the directory allows of it.

use std::path::PathBuf;
use std::time::Duration;

use iostrata_plan::IoApi;
use iostrata_run::Unavailable;

/// What the user asked for.
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
    /// Whether anything is written beside the file that is read.
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
    /// How long the sustained writes last, where that was asked for.
    pub lasting: Option<Duration>,
}

/// Database pages.
pub const PAGE_BYTES: u32 = 16 << 10;
