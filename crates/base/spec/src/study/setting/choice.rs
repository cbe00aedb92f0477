//! Settings whose value is one word of a few.

use crate::study::VolumeKind;
use crate::{FlushCount, FlushScope, IoApi, Mix, Preparation, RateProcess, SyncWrites};

/// Which requests, in fio's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rw {
    /// Reads in order.
    Read,
    /// Writes in order.
    Write,
    /// Both, in order.
    Readwrite,
    /// Reads anywhere.
    Randread,
    /// Writes anywhere.
    Randwrite,
    /// Both, anywhere.
    Randrw,
}

impl Rw {
    /// Whether requests go anywhere instead of in order.
    pub fn is_random(self) -> bool {
        matches!(self, Rw::Randread | Rw::Randwrite | Rw::Randrw)
    }

    /// Whether reads and writes are mixed.
    pub fn is_mixed(self) -> bool {
        matches!(self, Rw::Readwrite | Rw::Randrw)
    }

    /// The mix, given the percentage of reads where there are both.
    pub fn mix(self, read_pct: u8) -> Mix {
        match self {
            Rw::Read | Rw::Randread => Mix::Read,
            Rw::Write | Rw::Randwrite => Mix::Write,
            Rw::Readwrite | Rw::Randrw => Mix::Both { read_pct },
        }
    }

    /// In a reader's words.
    pub fn words(self) -> &'static str {
        match self {
            Rw::Read => "sequential reads",
            Rw::Write => "sequential writes",
            Rw::Readwrite => "sequential reads and writes",
            Rw::Randread => "random reads",
            Rw::Randwrite => "random writes",
            Rw::Randrw => "random reads and writes",
        }
    }
}

/// A value that is one word of a few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// What lies on the volume.
    Filesystem(VolumeKind),
    /// Which requests.
    Rw(Rw),
    /// The API.
    Engine(IoApi),
    /// What each write promises.
    Sync(SyncWrites),
    /// Which files a flush covers.
    Scope(FlushScope),
    /// What is counted up to a flush.
    Count(FlushCount),
    /// How arrivals are spaced.
    Arrivals(RateProcess),
    /// What created files hold.
    Preparation(Preparation),
    /// An I/O scheduler of the kernel.
    Scheduler(&'static str),
}

/// Words of `filesystem`.
pub(super) const FILESYSTEMS: &[(&str, Choice)] = &[
    ("raw", Choice::Filesystem(VolumeKind::Raw)),
    ("ext4", Choice::Filesystem(VolumeKind::Ext4)),
    ("xfs", Choice::Filesystem(VolumeKind::Xfs)),
    ("btrfs", Choice::Filesystem(VolumeKind::Btrfs)),
    ("here", Choice::Filesystem(VolumeKind::Here)),
];

/// Words of `rw`.
pub(super) const REQUESTS: &[(&str, Choice)] = &[
    ("read", Choice::Rw(Rw::Read)),
    ("write", Choice::Rw(Rw::Write)),
    ("rw", Choice::Rw(Rw::Readwrite)),
    ("randread", Choice::Rw(Rw::Randread)),
    ("randwrite", Choice::Rw(Rw::Randwrite)),
    ("randrw", Choice::Rw(Rw::Randrw)),
];

/// Words of `ioengine`.
pub(super) const ENGINES: &[(&str, Choice)] = &[
    ("sync", Choice::Engine(IoApi::Sync)),
    ("libaio", Choice::Engine(IoApi::Libaio)),
    ("io_uring", Choice::Engine(IoApi::IoUring)),
];

/// Words of `sync`.
pub(super) const PROMISES: &[(&str, Choice)] = &[
    ("none", Choice::Sync(SyncWrites::None)),
    ("dsync", Choice::Sync(SyncWrites::Dsync)),
    ("sync", Choice::Sync(SyncWrites::Sync)),
    ("rwf_dsync", Choice::Sync(SyncWrites::RwfDsync)),
];

/// Words of `fsync_scope`.
pub(super) const SCOPES: &[(&str, Choice)] =
    &[("file", Choice::Scope(FlushScope::File)), ("all", Choice::Scope(FlushScope::All))];

/// Words of `fsync_every`.
pub(super) const COUNTS: &[(&str, Choice)] = &[
    ("writes", Choice::Count(FlushCount::Writes)),
    ("requests", Choice::Count(FlushCount::Requests)),
];

/// Words of `rate_process`.
pub(super) const ARRIVALS: &[(&str, Choice)] = &[
    ("fixed", Choice::Arrivals(RateProcess::Fixed)),
    ("poisson", Choice::Arrivals(RateProcess::Poisson)),
];

/// Words of `preparation`.
pub(super) const PREPARATIONS: &[(&str, Choice)] = &[
    ("written", Choice::Preparation(Preparation::Written)),
    ("fallocated", Choice::Preparation(Preparation::Fallocated)),
    ("empty", Choice::Preparation(Preparation::Empty)),
];

/// Words of `scheduler`.
pub(super) const SCHEDULERS: &[(&str, Choice)] = &[
    ("none", Choice::Scheduler("none")),
    ("mq-deadline", Choice::Scheduler("mq-deadline")),
    ("kyber", Choice::Scheduler("kyber")),
    ("bfq", Choice::Scheduler("bfq")),
];
