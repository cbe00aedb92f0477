//! One I/O workload: which requests, through which API, how many at once, for how long.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::variation::{Blocks, FileCall, Sharing, Variation};
use crate::words::{ValueError, Words};

/// The way a request reaches the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IoApi {
    /// pread and pwrite, one request at a time per job.
    Sync,
    /// Linux native asynchronous I/O.
    Libaio,
    /// io_uring with registered files and buffers.
    IoUring,
    /// Copies from and to the mapped files, one at a time per job.
    Mmap,
    /// Nothing is touched: shows what the meter itself costs.
    Null,
}

impl IoApi {
    /// Its name.
    pub fn name(self) -> &'static str {
        Words::name(self)
    }
}

/// Where the next request goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// One block after the other; each job starts in its own part of the files.
    Sequential,
    /// Every block as likely as any other.
    Uniform,
    /// A few blocks are much likelier than the rest.
    Zipfian(ZipfTheta),
    /// Random order in which every block comes once before any comes twice.
    Coverage,
}

/// The skew of a zipfian choice: 0 is uniform, 0.99 is the usual database skew. Not 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZipfTheta(pub f64);

impl ZipfTheta {
    /// The usual database skew.
    pub const USUAL: Self = Self(0.99);
    const MAX: f64 = 4.0;

    /// The same, if requests can be drawn by it.
    ///
    /// # Errors
    /// When they cannot.
    pub fn checked(self) -> Result<Self, ValueError> {
        let Self(theta) = self;
        if theta > 0.0 && theta <= Self::MAX && theta != 1.0 {
            return Ok(self);
        }
        let fix = format!("use above 0 and up to {}, but not 1", Self::MAX);
        Err(ValueError { why: "the skew is out of range".to_owned(), fix })
    }
}

impl FromStr for Access {
    type Err = ValueError;

    /// Where random requests go: `uniform`, `coverage`, `zipf` or `zipf:THETA`.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let access = match text.split_once(':') {
            None if matches!(text, "uniform" | "random") => Some(Self::Uniform),
            None if text == "coverage" => Some(Self::Coverage),
            None if text == "zipf" => Some(Self::Zipfian(ZipfTheta::USUAL)),
            Some(("zipf", theta)) => match theta.parse() {
                Ok(theta) => Some(Self::Zipfian(ZipfTheta(theta).checked()?)),
                Err(_) => None,
            },
            _ => None,
        };
        access.ok_or_else(|| ValueError {
            why: "there is no such value".to_owned(),
            fix: "use uniform, coverage or zipf:0.99".to_owned(),
        })
    }
}

/// Which share of the requests reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Reads and writes, chosen request by request.
    Both {
        /// Reads in every hundred requests.
        read_pct: u8,
    },
    /// Neither: every request is a flush of its file with nothing to write back.
    FlushOnly(FlushMethod),
    /// Discards only.
    Trim,
    /// Each block is discarded, then written.
    TrimWrite,
}

impl Mix {
    /// Whether any request reads.
    pub fn reads(self) -> bool {
        matches!(self, Mix::Read | Mix::Both { read_pct: 1.. })
    }

    /// Whether any request writes.
    pub fn writes(self) -> bool {
        match self {
            Mix::Write | Mix::TrimWrite => true,
            Mix::Both { read_pct } => read_pct != 100,
            Mix::Read | Mix::FlushOnly(_) | Mix::Trim => false,
        }
    }

    /// Whether any request discards.
    pub fn trims(self) -> bool {
        matches!(self, Mix::Trim | Mix::TrimWrite)
    }
}

/// What each write itself promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SyncWrites {
    /// Nothing.
    #[default]
    None,
    /// The file is opened with O_DSYNC.
    Dsync,
    /// The file is opened with O_SYNC.
    Sync,
    /// Every write carries RWF_DSYNC.
    RwfDsync,
}

/// The system call that writes back what was written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlushMethod {
    /// fsync: data and all metadata.
    Fsync,
    /// fdatasync: data and the metadata needed to read it.
    Fdatasync,
    /// sync_file_range over all that was written since the last one; it makes nothing durable.
    SyncFileRange(RangeSteps),
}

/// What sync_file_range does, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RangeSteps {
    /// Waits for pages that are being written back.
    pub wait_before: bool,
    /// Begins to write back those that are not.
    pub write: bool,
    /// Waits for all of them.
    pub wait_after: bool,
}

/// Which files a flush covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlushScope {
    /// The file just written.
    #[default]
    File,
    /// Every file of the set, one after the other.
    All,
}

/// What is counted up to the next flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlushCount {
    /// Writes.
    #[default]
    Writes,
    /// Reads and writes.
    Requests,
}

/// Flushes that each job makes as it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flush {
    /// By which call.
    pub method: FlushMethod,
    /// After how many writes (or requests) of this job.
    pub every: u32,
    /// Which files.
    pub scope: FlushScope,
    /// What is counted.
    pub count: FlushCount,
}

/// How arrivals are spaced at a given rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RateProcess {
    /// Evenly.
    #[default]
    Fixed,
    /// Exponential gaps, as independent users make them.
    Poisson,
}

/// The memory of requests, by fio's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Pages of the usual size, as fio and most programs have them. A request of a megabyte is then
    /// hundreds of pieces for the device, and may be split.
    #[default]
    Malloc,
    /// Huge pages, taken without being reserved: a request is one piece or few.
    MmapHuge,
}

impl Memory {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What a created file holds when measuring starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Preparation {
    /// Incompressible data in every block.
    #[default]
    Written,
    /// Blocks allocated by fallocate and never written: unwritten extents.
    Fallocated,
    /// Nothing: writes extend the file.
    Empty,
}

/// When the next request starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// As soon as an earlier one is done.
    #[default]
    Closed,
    /// On a schedule that does not wait for anything to be done.
    Open {
        /// Requests per second of each job.
        rate_iops: f64,
        /// How they are spaced.
        process: RateProcess,
    },
    /// Reads and writes of a mix on schedules of their own. A request that is not due by the mix is
    /// one of the other direction where that is due.
    Directions {
        /// Reads per second of each job; absent: as soon as there is room.
        #[serde(skip_serializing_if = "Option::is_none")]
        read_iops: Option<f64>,
        /// Writes per second, likewise.
        #[serde(skip_serializing_if = "Option::is_none")]
        write_iops: Option<f64>,
        /// How they are spaced.
        process: RateProcess,
    },
}

impl Pacing {
    /// The rates that are bounded, in requests per second of each job.
    pub fn rates(self) -> impl Iterator<Item = f64> {
        let rates = match self {
            Self::Closed => [None, None],
            Self::Open { rate_iops, .. } => [Some(rate_iops), None],
            Self::Directions { read_iops, write_iops, .. } => [read_iops, write_iops],
        };
        rates.into_iter().flatten()
    }
}

/// One I/O workload on one file set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IoSpec {
    /// A file, a directory or a device.
    pub path: PathBuf,
    /// Which share of the requests reads.
    pub mix: Mix,
    /// Where they go.
    pub access: Access,
    /// Bytes of each request.
    pub block_bytes: u32,
    /// The API.
    pub api: IoApi,
    /// Requests that each job keeps in flight.
    pub depth: u32,
    /// Jobs that share the files.
    pub jobs: u32,
    /// Whether jobs are processes instead of threads.
    pub processes: bool,
    /// The memory that requests read into and write from.
    #[serde(default, skip_serializing_if = "Memory::is_default")]
    pub memory: Memory,
    /// Whether the page cache is bypassed.
    pub direct: bool,
    /// Whether completions are polled for, where the device allows it.
    pub polled: bool,
    /// What each write promises.
    pub sync: SyncWrites,
    /// Flushes between the writes.
    pub flush: Option<Flush>,
    /// Number of files.
    pub files: u32,
    /// Bytes of all files together.
    pub size_bytes: u64,
    /// What created files hold at the start.
    pub preparation: Preparation,
    /// When requests start.
    pub pacing: Pacing,
    /// Seed of every random choice.
    pub seed: u64,
    /// Exact length; without it the point stops when it is precise enough.
    pub runtime: Option<Duration>,
    /// Longest time without `runtime`.
    pub point_time: Duration,
    /// Longest time where requests are so slow that `point_time` does not hold enough of them one
    /// after another; absent where `point_time` is the bound for them, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point_time_slow: Option<Duration>,
    /// Relative half-width of the 95 % interval at which a point may stop.
    pub precision: f64,
    /// Bytes after which the point stops writing and ends.
    pub write_bytes_max: Option<u64>,
    /// What job files can request beyond all that.
    #[serde(default, skip_serializing_if = "Variation::is_none")]
    pub variation: Variation,
}

impl IoSpec {
    /// fio's defaults where it has them: 4 KiB random reads, one job, one at a time.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            mix: Mix::Read,
            access: Access::Uniform,
            block_bytes: 4096,
            api: IoApi::Sync,
            depth: 1,
            jobs: 1,
            processes: false,
            memory: Memory::Malloc,
            direct: false,
            polled: false,
            sync: SyncWrites::None,
            flush: None,
            files: 1,
            size_bytes: 1 << 30,
            preparation: Preparation::Written,
            pacing: Pacing::Closed,
            seed: 1,
            runtime: None,
            point_time: Duration::from_secs(30),
            point_time_slow: None,
            precision: 0.03,
            write_bytes_max: None,
            variation: Variation::default(),
        }
    }

    /// The longest that the stream may run, with what comes before its measured window.
    pub fn longest(&self) -> Duration {
        let before = self.variation.start_delay.saturating_add(self.variation.ramp_time);
        before.saturating_add(self.runtime.unwrap_or(self.point_time))
    }

    /// Requests that all jobs together may have in flight.
    pub fn in_flight_max(&self) -> f64 {
        f64::from(self.depth) * f64::from(self.jobs)
    }

    /// The largest request in bytes.
    pub fn block_bytes_most(&self) -> u32 {
        match &self.variation.blocks {
            Blocks::Fixed => self.block_bytes,
            Blocks::ByKind { read, write } => read.most().max(write.most()),
        }
    }

    /// Files that all jobs touch together.
    pub fn files_in_all(&self) -> u32 {
        match self.variation.sharing {
            Sharing::Own => self.files.saturating_mul(self.jobs),
            Sharing::Parts | Sharing::Whole => self.files,
        }
    }

    /// Whether files are not afterwards as they were before.
    pub fn changes_files(&self) -> bool {
        match self.variation.call {
            Some(call) if call.is_by_name() => call.changes_names(),
            // Reads make room.
            Some(FileCall::Allocate) => true,
            _ => self.mix.writes() || self.mix.trims(),
        }
    }

    /// Bytes of one file that are used: the total split evenly, whole blocks.
    pub fn file_bytes(&self) -> u64 {
        let block = u64::from(self.block_bytes);
        self.size_bytes / u64::from(self.files) / block * block
    }
}
