//! What to simulate: a disk, a queue, and the table sizes at which to look.

use iostrata_plan::disk::{DiskModel, DiskSpec};
use iostrata_run::KernelThen;
use iostrata_run::host::DeviceWindow;
use iostrata_stats::{LatencyUs, Measured};
use thiserror::Error;

use crate::cache::Submission;
use crate::drive::DriveFacts;
use crate::drive::raid::RAID1_15K;
use crate::model::ModelError;
use crate::queue::{REQUESTS_DEFAULT, Scheduler};

/// Bytes of index per row, over all four indexes: the post's 4.5 GB at 77 million rows.
pub const INDEX_BYTES_PER_ROW: f64 = 4.5e9 / 77e6;
/// Bytes of one disk of the post's kind. The post does not say; 73 GB is the size in which disks of
/// 15,000 turns were sold with its server.
pub const DISK_BYTES: u64 = 73_000_001_536;
/// Queue sizes to compare: the post's default, what commenters asked for, and the post's large one.
pub const POST_QUEUE_SIZES: [u32; 5] = [128, 1_024, 2_048, 10_000, 100_000];
/// Rows at which to look: those of the post's figures (13, 41 and 77 million) and sizes that cover
/// the growth between them.
pub const POST_ROWS_AT: [u64; 4] = [5_000_000, 13_000_000, 41_000_000, 77_000_000];

/// Rows of the smallest table to look at.
pub const ROWS_MIN: u64 = 1_000;

/// Bytes of the index of a table with so many rows.
pub fn index_bytes(rows: u64) -> u64 {
    (rows as f64 * INDEX_BYTES_PER_ROW).round() as u64
}

/// Rows of a table with an index of so many bytes.
pub fn rows_of(index_bytes: u64) -> u64 {
    (index_bytes as f64 / INDEX_BYTES_PER_ROW).round() as u64
}

/// What a disk of a plan is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertDevice {
    /// The post's: two disks of 15,000 turns in RAID 1, their own write caches on, nothing
    /// protected by a battery.
    PostPair {
        /// Commands that it takes at a time; 1 is a pair without command queueing.
        queue_depth: u32,
    },
    /// What the disk's text says.
    Spec,
}

impl InsertDevice {
    /// Two disks of an array of which nothing is said about a cache are the post's; anything else
    /// is what its text says.
    pub fn of(disk: &DiskSpec) -> Self {
        let is_pair = disk.model == DiskModel::Raid10Hdd && disk.spindles == Some(2);
        match is_pair && disk.write_cache.is_none() {
            true => {
                Self::PostPair { queue_depth: disk.queue_depth.unwrap_or(RAID1_15K.queue_depth) }
            }
            false => Self::Spec,
        }
    }
}

/// One queue size on one disk under one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertPlan {
    /// The disk by its text.
    pub disk: DiskSpec,
    /// What it is made of.
    pub device: InsertDevice,
    /// Its size in bytes, a multiple of 4,096.
    pub capacity_bytes: u64,
    /// Requests that the queue is asked to hold.
    pub nr_requests: u32,
    /// Whose bounds hold.
    pub kernel: KernelThen,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// In which order dirty pages are submitted.
    pub submission: Submission,
    /// Rows in the table at which to look, rising.
    pub rows_at: Vec<u64>,
    /// Independent windows at each of them, three at least for an interval worth the name.
    pub replicates: u32,
    /// Whether to look a second time with a reader beside the inserts: 16 KiB at random places of
    /// another table, one at a time.
    pub has_reader: bool,
    /// Whether every request is worked through by queue and drive, where otherwise stretches that
    /// are alike are sampled: far slower, to check the samples by.
    pub is_exact: bool,
    /// The seed; the same replicate of the same point has the same seed in every plan.
    pub seed: u64,
}

impl InsertPlan {
    /// The post's load on a disk under a kernel, with the deadline scheduler and the kernel's own
    /// order of submission.
    pub fn post(disk: DiskSpec, nr_requests: u32, kernel: KernelThen) -> Self {
        let pairs = match disk.model {
            DiskModel::Raid10Hdd => u64::from(disk.spindles.unwrap_or(2) / 2).max(1),
            _ => 1,
        };
        Self {
            device: InsertDevice::of(&disk),
            disk,
            capacity_bytes: pairs * DISK_BYTES / 4096 * 4096,
            nr_requests,
            kernel,
            scheduler: Scheduler::Deadline,
            submission: Submission::of(kernel),
            rows_at: POST_ROWS_AT.to_vec(),
            replicates: 3,
            has_reader: false,
            is_exact: false,
            seed: 1,
        }
    }

    /// Whether the queue is as large as it is when nobody asks.
    pub fn is_default_queue(&self) -> bool {
        self.nr_requests == REQUESTS_DEFAULT
    }
}

/// Why a plan can't be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InsertError {
    /// The disk can't be modelled.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tables do not fit.
    #[error(
        "a table of {rows} rows and the table of the reader take {needed_bytes} bytes, and the \
         disk {disk} has {capacity_bytes}: take fewer rows or a larger disk"
    )]
    TooLarge {
        /// Rows of the largest table.
        rows: u64,
        /// Bytes that its files take.
        needed_bytes: u64,
        /// The disk.
        disk: String,
        /// Its size.
        capacity_bytes: u64,
    },
    /// Nothing to look at, or not in rising order.
    #[error("the row counts to look at must rise from at least {least}, found {found:?}")]
    Rows {
        /// The smallest table.
        least: u64,
        /// What the plan has.
        found: Vec<u64>,
    },
    /// No window.
    #[error("a point needs at least one replicate")]
    NoReplicates,
}

/// A reader beside the inserts.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertReader {
    /// Latency of its reads over all replicates.
    pub latency_us: LatencyUs,
    /// The mean of the replicates' means, in us.
    pub latency_us_mean: Measured,
    /// The mean of the replicates' 99th percentiles, in us.
    pub latency_us_p99: Measured,
    /// The 99th percentile of each replicate, in us.
    pub replicates_p99_us: Vec<f64>,
    /// Reads in all.
    pub reads: u64,
    /// Rows inserted per hour while it reads.
    pub rows_per_hour: Measured,
    /// The device while it reads, over all replicates.
    pub device: DeviceWindow,
}

/// The load at one size of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertPoint {
    /// Rows in the table.
    pub rows: u64,
    /// Bytes of its index.
    pub index_bytes: u64,
    /// Rows inserted per hour at this size, in the long run: pages written per hour over pages
    /// dirtied per row. `not_steady` when the two differed twofold within a window, `cpu_limited`
    /// when the drive had time left.
    pub rows_per_hour: Measured,
    /// The same of each replicate.
    pub replicates: Vec<f64>,
    /// The device over all replicates.
    pub device: DeviceWindow,
    /// Clean pages that a row dirties; as many are written per row in the long run.
    pub pages_per_row: f64,
    /// Virtual hours from the empty table to this size.
    pub reached_h: f64,
    /// Virtual seconds measured, over all replicates.
    pub measured_s: f64,
    /// A reader beside the inserts, when the plan has one.
    pub reader: Option<InsertReader>,
}

/// What came of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertOutcome {
    /// The plan.
    pub plan: InsertPlan,
    /// What holds for the drive behind it.
    pub facts: DriveFacts,
    /// Requests that the kernel takes of what the plan asks for.
    pub nr_requests_taken: u32,
    /// The load at each size, rising.
    pub points: Vec<InsertPoint>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_and_rows_belong_together() {
        assert_eq!(index_bytes(77_000_000), 4_500_000_000);
        assert_eq!(rows_of(4_500_000_000), 77_000_000);
        assert!((58.0..59.0).contains(&INDEX_BYTES_PER_ROW));
        assert!(POST_ROWS_AT.is_sorted() && POST_QUEUE_SIZES.is_sorted());
    }

    #[test]
    fn two_mirrored_disks_are_the_posts_unless_a_cache_is_said() {
        let of = |text: &str| InsertDevice::of(&text.parse().unwrap());
        let pair = |queue_depth| InsertDevice::PostPair { queue_depth };
        assert_eq!(of("raid10-hdd,spindles=2"), pair(256));
        assert_eq!(of("raid10-hdd,spindles=2,queue=1"), pair(1));
        for other in ["raid10-hdd,spindles=2,cache=off", "raid10-hdd,spindles=34", "hdd-15k"] {
            assert_eq!(of(other), InsertDevice::Spec, "{other}");
        }
    }

    #[test]
    fn an_array_is_as_large_as_its_pairs() {
        let disk = |text: &str| text.parse::<DiskSpec>().unwrap();
        let bytes = |text| InsertPlan::post(disk(text), 128, KernelThen::Y2009).capacity_bytes;
        assert_eq!(bytes("raid10-hdd,spindles=34") / bytes("raid10-hdd,spindles=2"), 17);
        assert_eq!(bytes("hdd-15k"), bytes("ssd-sata"));
        assert!(bytes("hdd-15k").is_multiple_of(4096));
    }
}
