//! Every setting of a study.
//!
//! Invariant: the order is that of the documents; queue attributes stand in the order in which they
//! are set, the scheduler first, because it resets the others.

use super::choice::{
    ARRIVALS, COUNTS, ENGINES, FILESYSTEMS, PREPARATIONS, PROMISES, REQUESTS, SCHEDULERS, SCOPES,
};
use super::{Setting, SettingId, SettingKind, Takes};

const fn setting(
    kind: SettingKind,
    id: SettingId,
    name: &'static str,
    takes: Takes,
    doc: &'static str,
) -> Setting {
    Setting { id, name, aliases: &[], kind, takes, default: None, short: "", doc }
}

const fn volume(id: SettingId, name: &'static str, takes: Takes, doc: &'static str) -> Setting {
    setting(SettingKind::Volume, id, name, takes, doc)
}

const fn condition(id: SettingId, name: &'static str, takes: Takes, doc: &'static str) -> Setting {
    setting(SettingKind::Conditions, id, name, takes, doc)
}

const fn workload(id: SettingId, name: &'static str, takes: Takes, doc: &'static str) -> Setting {
    setting(SettingKind::Workload, id, name, takes, doc)
}

impl Setting {
    const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn short(mut self, short: &'static str) -> Self {
        self.short = short;
        self
    }

    const fn default(mut self, text: &'static str) -> Self {
        self.default = Some(text);
        self
    }
}

/// The catalogue.
pub static SETTINGS: &[Setting] = &[
    volume(
        SettingId::Filesystem,
        "filesystem",
        Takes::Choice(FILESYSTEMS),
        "What lies on the volume; `raw` for nothing, `here` for the directory as it is",
    )
    .or(&["fs"])
    .default("here"),
    volume(
        SettingId::Disk,
        "disk",
        Takes::Disk,
        "Which disk is emulated under the volume; `none` for the storage that is there",
    )
    .default("none"),
    volume(SettingId::MkfsOptions, "mkfs_options", Takes::Options(' '), "Further options of mkfs")
        .short("mkfs"),
    volume(
        SettingId::MountOptions,
        "mount_options",
        Takes::Options(','),
        "Options of mount; one that this kernel refuses makes its points unavailable here",
    )
    .short("mount")
    .default("defaults"),
    volume(
        SettingId::VolumeSize,
        "volume_size",
        Takes::Bytes(16 << 20),
        "Bytes of each volume; without it as many as the files need",
    )
    .short("v"),
    volume(
        SettingId::Volumes,
        "volumes",
        Takes::Count(1, 64),
        "Equal volumes over which files and workers are spread",
    )
    .short("vols")
    .default("1"),
    condition(
        SettingId::Scheduler,
        "scheduler",
        Takes::Choice(SCHEDULERS),
        "I/O scheduler of the volume",
    ),
    condition(
        SettingId::NrRequests,
        "nr_requests",
        Takes::Count(1, 1_000_000),
        "Length of the request queue; what the kernel really takes is reported",
    )
    .short("nr"),
    condition(
        SettingId::ReadAheadKb,
        "read_ahead_kb",
        Takes::Count(0, 1_048_576),
        "Read-ahead in KiB",
    )
    .short("ra"),
    condition(
        SettingId::Nomerges,
        "nomerges",
        Takes::Count(0, 2),
        "How hard the queue tries to merge requests: 0 fully, 2 not at all",
    )
    .short("nomerges"),
    condition(
        SettingId::RqAffinity,
        "rq_affinity",
        Takes::Count(0, 2),
        "On which processor completions run",
    )
    .short("rqaff"),
    condition(
        SettingId::WbtLatUsec,
        "wbt_lat_usec",
        Takes::Count(0, 10_000_000),
        "Latency target of write-back throttling in microseconds; 0 turns it off",
    )
    .short("wbt"),
    condition(
        SettingId::AddRandom,
        "add_random",
        Takes::Count(0, 1),
        "Whether requests feed the random-number pool",
    )
    .short("rnd"),
    condition(
        SettingId::Iostats,
        "iostats",
        Takes::Count(0, 1),
        "Whether the kernel keeps the device counters",
    )
    .short("iostats"),
    condition(
        SettingId::MemoryLimit,
        "memory_limit",
        Takes::Bytes(32 << 20),
        "Memory of the workload with its page cache",
    )
    .short("mem"),
    condition(
        SettingId::IopsLimit,
        "iops_limit",
        Takes::Count(1, 100_000_000),
        "Reads per second, and writes per second, that the volume is held to",
    )
    .short("lim"),
    condition(
        SettingId::ReadIopsLimit,
        "read_iops_limit",
        Takes::Count(1, 100_000_000),
        "Reads per second that the volume is held to",
    )
    .short("rlim"),
    condition(
        SettingId::WriteIopsLimit,
        "write_iops_limit",
        Takes::Count(1, 100_000_000),
        "Writes per second that the volume is held to",
    )
    .short("wlim"),
    condition(
        SettingId::ReadBandwidthLimit,
        "read_bandwidth_limit",
        Takes::Bytes(4096),
        "Bytes read per second that the volume is held to",
    )
    .short("rbps"),
    condition(
        SettingId::WriteBandwidthLimit,
        "write_bandwidth_limit",
        Takes::Bytes(4096),
        "Bytes written per second that the volume is held to",
    )
    .short("wbps"),
    condition(
        SettingId::DirtyRatio,
        "dirty_ratio",
        Takes::Count(0, 100),
        "`vm.dirty_ratio`: percentage of dirty memory at which writers must wait",
    )
    .short("dirty"),
    condition(
        SettingId::DirtyBackgroundRatio,
        "dirty_background_ratio",
        Takes::Count(0, 100),
        "`vm.dirty_background_ratio`: percentage at which write-back starts",
    )
    .short("dirtybg"),
    condition(
        SettingId::DirtyBytes,
        "dirty_bytes",
        Takes::Bytes(8192),
        "`vm.dirty_bytes`: the same as dirty_ratio, in bytes",
    )
    .short("dirty"),
    condition(
        SettingId::DirtyBackgroundBytes,
        "dirty_background_bytes",
        Takes::Bytes(4096),
        "`vm.dirty_background_bytes`: the same as dirty_background_ratio, in bytes",
    )
    .short("dirtybg"),
    condition(
        SettingId::DirtyExpireCentisecs,
        "dirty_expire_centisecs",
        Takes::Count(0, 8_640_000),
        "`vm.dirty_expire_centisecs`: age at which dirty data must be written",
    )
    .short("expire"),
    condition(
        SettingId::DirtyWritebackCentisecs,
        "dirty_writeback_centisecs",
        Takes::Count(0, 8_640_000),
        "`vm.dirty_writeback_centisecs`: how often write-back wakes up",
    )
    .short("wake"),
    condition(
        SettingId::DropCaches,
        "drop_caches",
        Takes::Switch,
        "Whether the page cache is dropped before every replicate",
    )
    .default("false"),
    workload(SettingId::Rw, "rw", Takes::Choice(REQUESTS), "Which requests")
        .or(&["readwrite"])
        .default("randread"),
    workload(
        SettingId::Rwmixread,
        "rwmixread",
        Takes::Count(0, 100),
        "Percentage of reads where both are made",
    )
    .short("r")
    .default("50"),
    workload(SettingId::Bs, "bs", Takes::Bytes(512), "Bytes of each request")
        .or(&["block_size"])
        .default("4K"),
    workload(
        SettingId::Workers,
        "workers",
        Takes::Count(1, 4096),
        "Jobs at the same time that share the files",
    )
    .or(&["numjobs", "jobs"])
    .short("w")
    .default("1"),
    workload(
        SettingId::Iodepth,
        "iodepth",
        Takes::Count(1, 4096),
        "Requests that each worker keeps in flight",
    )
    .or(&["depth"])
    .short("d")
    .default("1"),
    workload(SettingId::Ioengine, "ioengine", Takes::Choice(ENGINES), "The file API")
        .default("sync"),
    workload(
        SettingId::Direct,
        "direct",
        Takes::Switch,
        "Whether the page cache is bypassed (O_DIRECT)",
    )
    .default("false"),
    workload(SettingId::Sync, "sync", Takes::Choice(PROMISES), "What each write itself promises")
        .short("sync")
        .default("none"),
    workload(
        SettingId::Fsync,
        "fsync",
        Takes::Count(0, 1_000_000_000),
        "fsync after every so many writes of a worker; 0 for never",
    )
    .short("fsync")
    .default("0"),
    workload(
        SettingId::Fdatasync,
        "fdatasync",
        Takes::Count(0, 1_000_000_000),
        "fdatasync after every so many writes of a worker; 0 for never",
    )
    .short("fdatasync")
    .default("0"),
    workload(
        SettingId::FsyncScope,
        "fsync_scope",
        Takes::Choice(SCOPES),
        "Whether a flush covers the file just written, or every file",
    )
    .short("scope")
    .default("file"),
    workload(
        SettingId::FsyncEvery,
        "fsync_every",
        Takes::Choice(COUNTS),
        "What is counted up to the next flush",
    )
    .short("per")
    .default("writes"),
    workload(SettingId::Files, "files", Takes::Count(1, 65_536), "Files that share the size")
        .or(&["nrfiles"])
        .short("f")
        .default("1"),
    workload(SettingId::Size, "size", Takes::Bytes(4096), "Bytes of all files together")
        .or(&["filesize"])
        .short("s")
        .default("1G"),
    workload(
        SettingId::Preparation,
        "preparation",
        Takes::Choice(PREPARATIONS),
        "What the files hold at the start: data, unwritten extents, or nothing",
    )
    .or(&["prepare"])
    .default("written"),
    workload(
        SettingId::RandomDistribution,
        "random_distribution",
        Takes::Distribution,
        "Where random requests go",
    )
    .default("uniform"),
    workload(
        SettingId::RateIops,
        "rate_iops",
        Takes::Number(1e9),
        "Requests per second of each worker, on a schedule; 0 for as fast as it goes",
    )
    .short("rate")
    .default("0"),
    workload(
        SettingId::RatePct,
        "rate_pct",
        Takes::Number(1000.0),
        "Rate of all workers as a percentage of the IOPS limit; 0 for as fast as it goes",
    )
    .short("rate")
    .default("0"),
    workload(
        SettingId::RateProcess,
        "rate_process",
        Takes::Choice(ARRIVALS),
        "How scheduled requests are spaced",
    )
    .default("fixed"),
    workload(
        SettingId::Process,
        "process",
        Takes::Switch,
        "Whether workers are processes instead of threads",
    )
    .default("false"),
];
