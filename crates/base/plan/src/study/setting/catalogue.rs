//! Every setting of a study.
//!
//! Invariant: the order is that of the documents; queue attributes stand in the order in which they
//! are set, the scheduler first, because it resets the others.

use super::Takes::{
    self, Bytes, Count, Database, Disk, Distribution, Number, Options, Switch, Text, Word,
};
use super::{Setting, SettingKind, SettingName, WordSet};
use crate::check::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, DEPTH_MAX, FILES_MAX, JOBS_MAX};
use crate::study::VolumeKind;
use crate::{FlushCount, FlushScope, IoApi, Preparation, RateProcess, Rw, SyncWrites, Words};

/// The kernel's I/O schedulers.
#[derive(Clone, Copy, PartialEq)]
struct Scheduler(&'static str);

impl Words for Scheduler {
    const WORDS: &'static [crate::Word<Self>] = {
        const fn word(name: &'static str) -> crate::Word<Scheduler> {
            crate::Word { value: Scheduler(name), name, aliases: &[], help: "" }
        }
        &[word("none"), word("mq-deadline"), word("kyber"), word("bfq")]
    };
}

/// The file APIs that a study measures: all except the one that touches nothing.
const ENGINES: WordSet = WordSet {
    names: || IoApi::names().into_iter().filter(|name| *name != IoApi::Null.name()).collect(),
    name_of: |text| Some(IoApi::of(text).filter(|api| *api != IoApi::Null)?.name()),
};

/// The word for requests of files.
pub const REQUESTS: &str = "requests";
/// The word for transactions that change rows of one table.
pub const UPDATES: &str = "updates";
/// The word for TPC-C.
pub const TPCC: &str = "tpcc";
/// The word for the load of sysbench-tpcc, which servers run.
pub const TPCC_COMPAT: &str = "tpcc_compat";
/// The word for a load of objects with a history of fixed length.
pub const STRESS: &str = "stress";
/// The word for inserts into random places of three indexes.
pub const INSERT: &str = "insert";
/// The word for the embedded engine.
pub const ENGINE: &str = "engine";

const WORKLOAD_NAMES: [&str; 11] = [
    REQUESTS,
    UPDATES,
    TPCC,
    TPCC_COMPAT,
    STRESS,
    INSERT,
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
];
/// What stands before settings of the engine, where that is what is measured.
pub const OF_ENGINE: &str = "engine.";
/// Before options of a server, by its own names, where one is measured.
pub const OF_SERVER: &str = "server.";
/// And before settings that the engine and servers both have, by the engine's names.
pub const OF_BOTH: &str = "database.";
/// And before those of a second one of the same kind on the same volume.
pub const OF_SECOND: &str = "second.";

/// What can run.
const WORKLOADS: WordSet = WordSet {
    names: || WORKLOAD_NAMES.to_vec(),
    name_of: |text| WORKLOAD_NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(text)),
};

const fn words<T: Words>() -> Takes {
    Word(WordSet::of::<T>())
}

/// The settings and their identities, from one table: identity, name and aliases, what the value
/// looks like, what stands before its level in the name of a point, the default, and one line for a
/// reader.
macro_rules! settings {
    ($($kind:ident {
        $($id:ident $name:literal $(| $alias:literal)*: $takes:expr
            $(, short $short:literal)? $(, default $default:literal)?, $doc:literal;)*
    })*) => {
        /// Every setting.
        #[expect(missing_docs, reason = "the catalogue explains each in one line")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum SettingId {
            $($($id,)*)*
            /// A setting of a database, by its whole name: `engine.policy`, `second.policy`.
            Database(SettingName),
        }

        /// The catalogue.
        pub static SETTINGS: &[Setting] = &[$($(Setting {
            id: SettingId::$id,
            name: SettingName::known($name),
            aliases: &[$($alias),*],
            kind: SettingKind::$kind,
            takes: $takes,
            default: [$(Some($default),)? None][0],
            short: SettingName::known([$($short,)? ""][0]),
            doc: $doc,
        },)*)*];
    };
}

settings! {
    Volume {
        Filesystem "filesystem" | "fs": words::<VolumeKind>(), default "here",
            "File system of the volume; `raw` for none, `here` for the existing directory";
        Disk "disk": Disk, default "none",
            "Disk model below the volume; `none` for the existing storage";
        MkfsOptions "mkfs_options": Options(' '), short "mkfs", "Further options of mkfs";
        MountOptions "mount_options": Options(','), short "mount", default "defaults",
            "Mount options; one that this kernel refuses makes its points unavailable";
        VolumeSize "volume_size": Bytes(16 << 20, u64::MAX), short "v",
            "Bytes of each volume; by default the size of the files";
        Volumes "volumes": Count(1, 64), short "vols", default "1",
            "Equal volumes over which files and workers are spread";
    }
    Conditions {
        Scheduler "scheduler": words::<Scheduler>(), "I/O scheduler of the volume";
        NrRequests "nr_requests": Count(1, 1_000_000), short "nr",
            "Length of the request queue; the effective value is reported";
        ReadAheadKb "read_ahead_kb": Count(0, 1_048_576), short "ra", "Read-ahead in KiB";
        Nomerges "nomerges": Count(0, 2), short "nomerges",
            "How hard the queue tries to merge requests: 0 fully, 2 not at all";
        RqAffinity "rq_affinity": Count(0, 2), short "rqaff", "Processor on which completions run";
        WbtLatUsec "wbt_lat_usec": Count(0, 10_000_000), short "wbt",
            "Latency target of write-back throttling in microseconds; 0 turns it off";
        AddRandom "add_random": Count(0, 1), short "rnd",
            "Whether requests feed the random-number pool";
        Iostats "iostats": Count(0, 1), short "iostats",
            "Whether the kernel keeps the device counters";
        MemoryLimit "memory_limit": Bytes(32 << 20, u64::MAX), short "mem",
            "Memory limit of the workload, with its page cache";
        IopsLimit "iops_limit": Count(1, 100_000_000), short "lim",
            "Limit of reads per second, and of writes per second";
        ReadIopsLimit "read_iops_limit": Count(1, 100_000_000), short "rlim",
            "Limit of reads per second";
        WriteIopsLimit "write_iops_limit": Count(1, 100_000_000), short "wlim",
            "Limit of writes per second";
        ReadBandwidthLimit "read_bandwidth_limit": Bytes(4096, u64::MAX), short "rbps",
            "Limit of bytes read per second";
        WriteBandwidthLimit "write_bandwidth_limit": Bytes(4096, u64::MAX), short "wbps",
            "Limit of bytes written per second";
        DirtyRatio "dirty_ratio": Count(0, 100), short "dirty",
            "`vm.dirty_ratio`: percentage of dirty memory at which writers must wait";
        DirtyBackgroundRatio "dirty_background_ratio": Count(0, 100), short "dirtybg",
            "`vm.dirty_background_ratio`: percentage at which write-back starts";
        DirtyBytes "dirty_bytes": Bytes(8192, u64::MAX), short "dirty",
            "`vm.dirty_bytes`: the same as dirty_ratio, in bytes";
        DirtyBackgroundBytes "dirty_background_bytes": Bytes(4096, u64::MAX), short "dirtybg",
            "`vm.dirty_background_bytes`: the same as dirty_background_ratio, in bytes";
        DirtyExpireCentisecs "dirty_expire_centisecs": Count(0, 8_640_000), short "expire",
            "`vm.dirty_expire_centisecs`: age at which dirty data must be written";
        DirtyWritebackCentisecs "dirty_writeback_centisecs": Count(0, 8_640_000), short "wake",
            "`vm.dirty_writeback_centisecs`: wake-up interval of write-back";
        DropCaches "drop_caches": Switch, default "false",
            "Whether the page cache is dropped before every replicate";
    }
    Workload {
        Rw "rw" | "readwrite": words::<Rw>(), default "randread", "Type of requests";
        Rwmixread "rwmixread": Count(0, 100), short "r", default "50",
            "Percentage of reads in a mix";
        Bs "bs" | "block_size": Bytes(BLOCK_BYTES_MIN as u64, BLOCK_BYTES_MAX as u64), default "4K",
            "Bytes of each request";
        Workers "workers" | "numjobs" | "jobs": Count(1, JOBS_MAX as u64), short "w", default "1",
            "Concurrent jobs that share the files";
        Iodepth "iodepth" | "depth": Count(1, DEPTH_MAX as u64), short "d", default "1",
            "Requests that each worker keeps in flight";
        Ioengine "ioengine": Word(ENGINES), default "sync", "File API";
        Direct "direct": Switch, default "false", "Whether the page cache is bypassed (O_DIRECT)";
        Sync "sync": words::<SyncWrites>(), short "sync", default "none",
            "Durability of each write";
        Fsync "fsync": Count(0, 1_000_000_000), short "fsync", default "0",
            "fsync after this many writes of a worker; 0 for never";
        Fdatasync "fdatasync": Count(0, 1_000_000_000), short "fdatasync", default "0",
            "fdatasync after this many writes of a worker; 0 for never";
        FsyncScope "fsync_scope": words::<FlushScope>(), short "scope", default "file",
            "Whether a flush covers the file just written, or every file";
        FsyncEvery "fsync_every": words::<FlushCount>(), short "per", default "writes",
            "Unit of the flush interval";
        Files "files" | "nrfiles": Count(1, FILES_MAX as u64), short "f", default "1",
            "Files that share the size";
        Size "size" | "filesize": Bytes(4096, u64::MAX), short "s", default "1G",
            "Bytes of all files together";
        Preparation "preparation" | "prepare": words::<Preparation>(), default "written",
            "Initial content of the files: data, unwritten extents, or nothing";
        RandomDistribution "random_distribution": Distribution, default "uniform",
            "Distribution of random offsets";
        RateIops "rate_iops": Number(1e9), short "rate", default "0",
            "Arrival rate of each worker per second; 0 for a closed loop";
        RatePct "rate_pct": Number(1000.0), short "rate", default "0",
            "Arrival rate of all workers in percent of the IOPS limit; 0 for a closed loop";
        RateProcess "rate_process": words::<RateProcess>(), default "fixed",
            "Arrival process of scheduled requests";
        Process "process": Switch, default "false",
            "Whether workers are processes instead of threads";
    }
    Transactions {
        Workload "workload": Word(WORKLOADS), default "requests",
            "The load: file requests, or transactions of a database";
        Target "target": Database, default "engine",
            "The database, with its data on the volume: the embedded engine, or a private server";
        Rows "rows": Count(1, i32::MAX as u64), short "rows", default "100000",
            "Rows of the table, about 200 bytes each; for `insert` the initial rows";
        Warehouses "warehouses": Count(1, 100_000), short "wh", default "2",
            "Warehouses of TPC-C, about 100 MB each";
        Objects "objects": Count(1, i32::MAX as u64), short "objects", default "50000",
            "Objects of `stress`, each with 20 rows of history";
        ReadPct "read_pct": Count(0, 100), short "r", default "50",
            "Read-only transactions of `stress`, percent; the others write";
        CommitRows "commit_rows": Count(1, 10_000), short "c", default "1",
            "Rows per transaction of `insert`";
        StorageEngine "storage_engine": Text,
            "Storage engine of a server's tables, such as MyISAM; by default the server's";
        RedoVolume "redo_volume": Switch, default "false",
            "Whether the redo is on a separate volume, equal to that of the data";
        RowUpdates "row_updates": Count(1, 10_000), short "u", default "10",
            "Rows per transaction of `updates`";
        RateTps "rate_tps": Number(1e9), short "rate", default "0",
            "Arrival rate of transactions per second, of all workers; 0 for a closed loop";
        SecondWorkers "second_workers": Count(0, JOBS_MAX as u64), short "second", default "0",
            "Sessions of a second engine on the same volume; 0 for none";
        SecondRowUpdates "second_row_updates": Count(1, 10_000), short "second_u",
            "Rows per transaction of `updates` there; by default as in the first";
        SecondRateTps "second_rate_tps": Number(1e9), short "second_rate", default "0",
            "Arrival rate of transactions per second there; 0 for a closed loop";
        Readers "readers": Count(0, JOBS_MAX as u64), short "readers", default "0",
            "Threads with random direct 16 KiB reads from a file of 256 MiB on the same volume";
    }
}
