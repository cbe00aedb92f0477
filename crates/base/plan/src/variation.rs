//! What a job file can request of a stream beyond one even flow of equal requests.
//!
//! Invariant: the default changes nothing, so that a plain workload never pays for what it does not
//! use: the loop checks [`Variation::is_plain_order`] once, before it begins.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One block size and how often it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockShare {
    /// Bytes of the request.
    pub bytes: u32,
    /// Its weight against the others.
    pub weight: u32,
}

/// The block sizes of one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BlockSizes {
    /// Always the same.
    One(u32),
    /// Every multiple of `least` up to `most` as likely as any other.
    Range {
        /// The smallest, in bytes.
        least: u32,
        /// The largest, in bytes.
        most: u32,
    },
    /// Some sizes with a weight each.
    Shares(Vec<BlockShare>),
}

impl BlockSizes {
    /// The smallest size in bytes; offsets are multiples of it.
    pub fn least(&self) -> u32 {
        match self {
            BlockSizes::One(bytes) | BlockSizes::Range { least: bytes, .. } => *bytes,
            BlockSizes::Shares(shares) => {
                shares.iter().map(|share| share.bytes).min().unwrap_or_default()
            }
        }
    }

    /// The largest size in bytes; a buffer holds it.
    pub fn most(&self) -> u32 {
        match self {
            BlockSizes::One(bytes) => *bytes,
            BlockSizes::Range { least, most } => most / (*least).max(1) * least,
            BlockSizes::Shares(shares) => {
                shares.iter().map(|share| share.bytes).max().unwrap_or_default()
            }
        }
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            BlockSizes::One(bytes) => f64::from(*bytes),
            BlockSizes::Range { least, .. } => (f64::from(*least) + f64::from(self.most())) / 2.0,
            BlockSizes::Shares(shares) => {
                let weights: f64 = shares.iter().map(|share| f64::from(share.weight)).sum();
                let bytes = |share: &BlockShare| f64::from(share.bytes) * f64::from(share.weight);
                shares.iter().map(bytes).sum::<f64>() / weights.max(1.0)
            }
        }
    }
}

/// How large requests are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Blocks {
    /// All of the spec's `block_bytes`.
    #[default]
    Fixed,
    /// By direction; the spec's `block_bytes` is the smallest of all.
    ByKind {
        /// Of reads.
        read: BlockSizes,
        /// Of writes and discards.
        write: BlockSizes,
    },
}

/// How the jobs of a stream share its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// All use all files; sequential jobs start in parts of their own.
    #[default]
    Parts,
    /// All use all files, each as if it were alone.
    Whole,
    /// Each has files of its own: `files` and `size_bytes` are those of one job.
    Own,
}

/// Which file a request of a stream of several files goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileOrder {
    /// By the access alone: sequential streams finish one file before the next.
    #[default]
    Sequential,
    /// In turn, after every so many requests.
    RoundRobin(u32),
    /// Any, drawn again after every so many requests.
    Random(u32),
}

/// What happens between two offsets that the access chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Nothing.
    #[default]
    None,
    /// So many requests one behind the other at each random offset.
    Run(u32),
    /// So many requests at each offset.
    Repeat(u32),
    /// So many bytes are left out between sequential requests.
    Skip(u64),
    /// From the end of a sequential request so many bytes back.
    Back(u64),
}

/// A pause that a job makes: it waits for its requests in flight, then for the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pause {
    /// After how many requests.
    pub every: u32,
    /// How long.
    pub length: Duration,
}

/// What of a stream becomes steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SteadyOf {
    /// No second's requests are further from their mean.
    Iops,
    /// The line through the requests of each second is no steeper.
    IopsSlope,
    /// No second's bytes are further from their mean.
    Bandwidth,
    /// The line through the bytes of each second is no steeper.
    BandwidthSlope,
}

/// How far it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SteadyLimit {
    /// In percent of the mean.
    Pct(f64),
    /// In requests per second.
    Plain(f64),
}

/// When the rate of a stream is steady, as fio defines it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steady {
    /// The figure that is checked.
    pub of: SteadyOf,
    /// How far it may be.
    pub limit: SteadyLimit,
    /// How long it must be so.
    pub duration: Duration,
    /// Time before it is first checked.
    pub ramp: Duration,
    /// Streams with the same number are checked together, and end together; absent: the stream by
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}

/// The call that requests make on their files in place of moving bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileCall {
    /// fallocate: writes make room and let the file grow, discards punch holes.
    Allocate,
    /// ftruncate: writes cut or grow the file to their offset.
    Truncate,
    /// open: the file is made, where it is not there, and closed again.
    Create,
    /// stat.
    Stat,
    /// unlink.
    Delete,
}

impl FileCall {
    /// Whether it takes the name of a file, once for all of it, and not an open descriptor.
    pub fn is_by_name(self) -> bool {
        matches!(self, Self::Create | Self::Stat | Self::Delete)
    }

    /// Whether it makes or removes files.
    pub fn changes_names(self) -> bool {
        matches!(self, Self::Create | Self::Delete)
    }
}

/// The share of the requests of a flow that each job of a stream makes: those of jobs that run
/// are to each other as their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// Which flow; streams of one window share it.
    pub id: u32,
    /// Its weight, from 1.
    pub weight: u32,
    /// How long a job that is ahead waits before it looks again; zero: as short as it can.
    pub wait: Duration,
}

/// A rate per second that a job must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MinimumRate {
    /// In bytes.
    Bytes(u64),
    /// In requests.
    Requests(u64),
}

/// The rates that a job must reach or else ends, as in fio: checked from two seconds after its
/// start on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MinimumRates {
    /// Of reads.
    pub read: Option<MinimumRate>,
    /// Of writes or discards.
    pub write: Option<MinimumRate>,
    /// The time over which a rate is averaged.
    pub cycle: Duration,
    /// Whether the window ends with a job that misses one.
    pub ends_window: bool,
}

/// Zones of the file, each used for a while before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Strides {
    /// Bytes that are moved in a zone before the next one begins.
    pub moved_bytes: u64,
    /// Bytes of a zone.
    pub zone_bytes: u64,
    /// Bytes that are left out between zones.
    pub skipped_bytes: u64,
}

/// A part of each file, and how many of the requests go there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zone {
    /// Requests in a hundred.
    pub requests_pct: f64,
    /// Percent of the file.
    pub size_pct: f64,
}

/// How random offsets are distributed over a file, where not all are as likely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// One zone behind the other, each with its share of the requests.
    Zoned(Vec<Zone>),
    /// Pareto's with this input, as fio has it: of 0.2 a fifth of the blocks has four fifths of the
    /// requests. The likely blocks are spread over the file.
    Pareto(f64),
    /// Around the middle of the file, with this deviation in percent of it.
    Normal(f64),
}

/// How the contents of blocks are verified: each that is written holds its offset and time, with a
/// checksum over all of it, or is a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verify {
    /// Jobs that write read everything back when all is written; those that only read verify what
    /// they read in any case.
    pub reads_back: bool,
    /// Equal parts of a job's bytes behind each of which it does so; 0: one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loops: u32,
    /// The bytes of which every block is a repetition; empty: blocks have a seal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pattern: Vec<u8>,
    /// Whether blocks are read back and not checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unchecked: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A log whose requests are made instead of any others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replay {
    /// The log, of fio's version 2 or 3.
    pub log: PathBuf,
    /// Whether all requests go to one file.
    pub is_redirected: bool,
    /// Whether requests wait for their moment.
    pub stalls: bool,
    /// How often it is replayed.
    pub loops: u32,
    /// Whether it has flushes,
    pub flushes: bool,
    /// and whether all of them are fdatasync.
    pub is_fdatasync: bool,
}

/// A log of requests that each job appends to, in fio's version 3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestLog {
    /// The log.
    pub path: PathBuf,
    /// The stream's files by the names that they have in it.
    pub files: Vec<PathBuf>,
}

/// What a stream does differently from a plain one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Variation {
    /// How large requests are.
    pub blocks: Blocks,
    /// The call that requests make on files in place of moving bytes; only with the sync API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<FileCall>,
    /// Sizes of a range are any number of bytes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bs_unaligned: bool,
    /// How jobs share the files.
    pub sharing: Sharing,
    /// Which file is next.
    pub file_order: FileOrder,
    /// What lies between two offsets.
    pub step: Step,
    /// Random requests in a hundred, of reads and of writes or discards; those in between follow
    /// the last one of their direction. Absent: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_pct: Option<[u8; 2]>,
    /// What random offsets are multiples of, of reads and of writes or discards; absent: the
    /// smallest block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub align_bytes: Option<[u32; 2]>,
    /// Zones that requests keep to, one behind the other; absent: the whole file is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strides: Option<Strides>,
    /// How random offsets are distributed; absent: as the access defines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// The first byte of each file that is used; `size_bytes` counts from it.
    pub offset_bytes: u64,
    /// That is where the file ends that is there, and what it holds stays.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub appends: bool,
    /// Time between the start of the window and the stream's first request.
    pub start_delay: Duration,
    /// Time after that in which nothing is counted; `runtime` begins behind it.
    pub ramp_time: Duration,
    /// Bytes of reads and writes after which a job ends by itself.
    pub io_bytes_max: Option<u64>,
    /// Pauses between requests.
    pub pause: Option<Pause>,
    /// The share that a job has of the requests of a flow; absent: as many as it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// Rates that a job must reach; absent: whatever it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_rates: Option<MinimumRates>,
    /// Completions that a job waits for before it starts further requests.
    pub reap_min: u32,
    /// The window ends when the first job of this stream ends.
    pub ends_window: bool,
    /// Each job flushes all its files after its last request, outside all figures.
    pub end_flush: bool,
    /// The stream ends when it is steady.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// The files are read into the page cache before the window.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pre_read: bool,
    /// Requests come from a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Requests are logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_log: Option<RequestLog>,
    /// A request waits while one of its job is in flight that it overlaps.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub serialize_overlap: bool,
    /// Processors that workers may run on; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Contents are verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// Pages of the files leave the page cache before the window,
    pub drop_cache: bool,
    /// and again whenever a job has gone through its files.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drops_each_pass: bool,
    /// Sequential reads and writes of a mix go through the files each by themselves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub directions_apart: bool,
}

impl Default for Variation {
    fn default() -> Self {
        Self {
            blocks: Blocks::Fixed,
            call: None,
            bs_unaligned: false,
            sharing: Sharing::Parts,
            file_order: FileOrder::Sequential,
            step: Step::None,
            random_pct: None,
            align_bytes: None,
            strides: None,
            distribution: None,
            offset_bytes: 0,
            appends: false,
            start_delay: Duration::ZERO,
            ramp_time: Duration::ZERO,
            io_bytes_max: None,
            pause: None,
            flow: None,
            minimum_rates: None,
            reap_min: 1,
            ends_window: false,
            end_flush: false,
            steady: None,
            pre_read: false,
            replay: None,
            request_log: None,
            serialize_overlap: false,
            cpus: Vec::new(),
            verify: None,
            drop_cache: false,
            drops_each_pass: false,
            directions_apart: false,
        }
    }
}

impl Variation {
    /// Whether offsets and sizes are those of a plain stream.
    pub fn is_plain_order(&self) -> bool {
        self.blocks == Blocks::Fixed
            && self.file_order == FileOrder::Sequential
            && self.step == Step::None
            && self.random_pct.is_none()
            && self.align_bytes.is_none()
            && self.strides.is_none()
            && !self.directions_apart
            && self.distribution.is_none()
            && self.offset_bytes == 0
    }

    /// Whether jobs need nothing between their requests that a plain one does not.
    pub fn is_plain_loop(&self) -> bool {
        self.is_plain_order()
            && self.io_bytes_max.is_none()
            && self.pause.is_none()
            && self.flow.is_none()
            && self.minimum_rates.is_none()
            && self.steady.is_none()
            && !self.drops_each_pass
            && self.reap_min == 1
            && self.verify.is_none()
            && !self.serialize_overlap
            && self.replay.is_none()
            && self.request_log.is_none()
            && !self.end_flush
    }

    /// Whether nothing at all differs from a plain stream.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
