//! The catalogue of findings by name; `docs/findings.md` has an entry for each.
//!
//! Invariant: names are stored in run directories and never change their meaning.

macro_rules! findings {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// What can be found. Signature, confirming points, threshold and advice of each are in
        /// `docs/findings.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingId {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl FindingId {
            /// Every finding, in the order of the catalogue.
            pub const ALL: &'static [FindingId] = &[$(FindingId::$variant,)+];

            /// The name in documents and event logs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(FindingId::$variant => $name,)+
                }
            }
        }
    };
}

findings! {
    /// The storage gave an error, turned read-only or filled up.
    StorageFailed = "storage_failed",
    /// A file system that passes requests on stands between: FUSE, an overlay, a network.
    FileSystemBetween = "file_system_between",
    /// A loop device goes through the page cache.
    LoopWithoutDirectIo = "loop_without_direct_io",
    /// Caches below this kernel may hold all files that are read.
    CacheBelow = "cache_below",
    /// The mount makes every write wait until it is durable.
    SyncMount = "sync_mount",
    /// Writers of one file wait for each other.
    PerFileWriteLock = "per_file_write_lock",
    /// Readers and writers of one file wait for each other.
    MixedFileLock = "mixed_file_lock",
    /// First writes to allocated space are dear.
    UnwrittenExtentCost = "unwritten_extent_cost",
    /// Extending a file is dear.
    AppendAllocationCost = "append_allocation_cost",
    /// Writes through the page cache are dear.
    BufferedWriteCost = "buffered_write_cost",
    /// fsync is many times slower than fdatasync.
    FsyncJournalCost = "fsync_journal_cost",
    /// O_DSYNC makes commits durable faster than fdatasync.
    DsyncBeatsFdatasync = "dsync_beats_fdatasync",
    /// Most of a commit is the flush of a volatile cache.
    VolatileCacheFlushCost = "volatile_cache_flush_cost",
    /// A write-back cache is flushed faster than a medium could be written.
    FlushSuspiciouslyCheap = "flush_suspiciously_cheap",
    /// Committers at the same time gain nothing from each other.
    NoGroupCommitGain = "no_group_commit_gain",
    /// One file API is slower than another at the same depth.
    ApiOverhead = "api_overhead",
    /// Requests wait above the device.
    LimitAboveDevice = "limit_above_device",
    /// The volume takes so many requests or bytes per second and no more.
    VolumeCap = "volume_cap",
    /// A limit was set while the run went on.
    LimitSetMeanwhile = "limit_set_meanwhile",
    /// A scheduler is in use that costs fast devices time.
    SchedulerCost = "scheduler_cost",
    /// The request queue is smaller than the load that the device rewards.
    SmallQueue = "small_queue",
    /// The device begins off the boundaries of the blocks below it.
    MisalignedStart = "misaligned_start",
    /// Random reads cost a seek.
    SeekCost = "seek_cost",
    /// The kernel's rotational flag is wrong.
    RotationalFlagWrong = "rotational_flag_wrong",
    /// Direct I/O is refused, or accepted and not done.
    DirectIoIgnored = "direct_io_ignored",
    /// The page cache answered requests that were meant for the device.
    PageCacheAnswered = "page_cache_answered",
    /// The mount sends no flushes.
    BarriersOff = "barriers_off",
    /// The directory is not on a disk of this machine.
    NotALocalDisk = "not_a_local_disk",
    /// The file system has little room left.
    NearlyFull = "nearly_full",
    /// Buffered writers must wait after few dirty bytes.
    SmallDirtyLimit = "small_dirty_limit",
    /// The device promises atomic writes of whole pages.
    AtomicWritesPromised = "atomic_writes_promised",
    /// A higher rate fell to a lower one.
    BurstLimit = "burst_limit",
    /// The drive's buffer takes the first writes faster than writes last.
    WriteBuffer = "write_buffer",
    /// For how long writes were seen to hold their rate.
    LastingRate = "lasting_rate",
    /// Nothing is answered for a moment, again and again.
    PeriodicPauses = "periodic_pauses",
    /// Nothing is answered for a moment, at no period.
    IrregularPauses = "irregular_pauses",
    /// A control group limits memory.
    MemoryLimit = "memory_limit",
    /// Rates drifted, waved or stepped.
    NotSteadyDevice = "not_steady_device",
    /// Other processes used the device.
    ForeignIo = "foreign_io",
    /// The hypervisor took processor time.
    Steal = "steal",
    /// The processors, not the storage, set the pace.
    CpuBoundHost = "cpu_bound_host",
    /// A quota on processor time set the pace.
    CpuQuota = "cpu_quota",
    /// Reads slow down while pages are flushed.
    FlushReadInterference = "flush_read_interference",
    /// Pages per second that can be flushed beside commits and reads.
    FlushCapacity = "flush_capacity",
    /// Durable commits per second.
    CommitRate = "commit_rate",
}
