//! The table of settings. Fields, defaults, parsing, printing, help and documents come from it.

use std::path::PathBuf;

use super::kind::{
    ChecksumAlgorithm, Doublewrite, FlushLogAt, FlushMethod, FlushWriteLimit, InnoDb, IoMethod,
    MaxPurgeLagVersion, PolicyName, Setting, Value, ValueKind, When,
};

/// Bytes in a KiB, MiB, GiB, TiB.
const K: u64 = 1 << 10;
const M: u64 = 1 << 20;
const G: u64 = 1 << 30;
const T: u64 = 1 << 40;

const fn size(min: u64, max: u64) -> ValueKind {
    ValueKind::Size { min, max, is_power_of_two: false }
}

const fn power(min: u64, max: u64) -> ValueKind {
    ValueKind::Size { min, max, is_power_of_two: true }
}

const fn count(min: u64, max: u64) -> ValueKind {
    ValueKind::Count { min, max }
}

const fn percent(min: f64, max: f64) -> ValueKind {
    ValueKind::Percent { min, max }
}

/// Rows of the form `name: type = default, "default in words", kind, when, {InnoDB}, [aliases],
/// "sentence";` as fields of `Settings` and rows of `CATALOGUE`.
macro_rules! settings {
    ($($name:ident: $type:ty = $default:expr, $words:literal, $kind:expr, $when:ident,
        {$($variable:literal = $theirs:literal)?}, [$($alias:literal)*], $doc:literal;)+) => {
        /// Every setting of the engine.
        ///
        /// Sizes are in bytes. A field may be written directly; `check` decides whether the result
        /// can be used.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $(#[doc = $doc] pub $name: $type,)+
        }

        /// Every setting, in the order in which they are shown.
        pub const CATALOGUE: &[Setting] = &[$(Setting {
            name: stringify!($name),
            aliases: &[$($alias),*],
            kind: $kind,
            default: $words,
            when: When::$when,
            innodb: settings!(@innodb $($variable, $theirs)?),
            doc: $doc,
        },)+];

        impl Default for Settings {
            /// The defaults of an engine inside another program: small, and quick to make.
            fn default() -> Settings {
                Settings { $($name: $default,)+ }
            }
        }

        impl Settings {
            /// Puts a value in its field; `name` as in the catalogue, `text` without outer spaces.
            /// False when the setting does not take it.
            pub(super) fn put(&mut self, setting: &Setting, text: &str) -> bool {
                match setting.name {
                    $(stringify!($name) => match Value::parse(text, &setting.kind) {
                        Some(value) => self.$name = value,
                        None => return false,
                    },)+
                    _ => return false,
                }
                true
            }

            /// The text of a field; `name` as in the catalogue.
            pub(super) fn print(&self, setting: &Setting) -> String {
                match setting.name {
                    $(stringify!($name) => Value::print(&self.$name, &setting.kind),)+
                    _ => String::new(),
                }
            }
        }
    };
    (@innodb) => { None };
    (@innodb $variable:literal, $theirs:literal) => {
        Some(InnoDb { name: $variable, default: $theirs })
    };
}

settings! {
    buffer_pool_size: u64 = 128 * M, "128M", size(256 * K, 16 * T), Open,
        {"innodb_buffer_pool_size" = "128M"}, [],
        "Memory for pages; at least 64 of them.";
    page_size: u32 = 16384, "16K", power(4 * K, 64 * K), Creation,
        {"innodb_page_size" = "16K"}, [],
        "Size of a page on disk and in memory.";
    data_files: u32 = 4, "4", count(1, 64), Creation, {}, [],
        "Files over which pages are striped, so that no single file's lock sets the pace.";
    redo_log_capacity: u64 = 32 * M, "32M", size(64 * K, 128 * G), Live,
        {"innodb_redo_log_capacity" = "100M"}, [],
        "Disk space for redo, written when the engine is made; the more there is, the longer changes gather before pages are written.";
    redo_directory: Option<PathBuf> = None, "the data's", ValueKind::Directory, Creation,
        {"innodb_log_group_home_dir" = "./"}, ["log_group_home_dir"],
        "Directory of the redo files, where they shall lie on another device than the data.";
    log_buffer_size: u64 = 16 * M, "16M", size(16 * K, 4 * G), Open,
        {"innodb_log_buffer_size" = "64M"}, [],
        "Memory for redo that is not yet written; when it is full, changes wait.";
    log_write_ahead_size: u32 = 4096, "4K", power(512, 16 * K), Open,
        {"innodb_log_write_ahead_size" = "8K"}, [],
        "Block in which redo is written: the device's, so that it never reads before it writes.";
    flush_log_at_trx_commit: FlushLogAt = FlushLogAt::Commit, "1",
        ValueKind::Choice(FlushLogAt::WORDS), Live,
        {"innodb_flush_log_at_trx_commit" = "1"}, ["flush_log_at_commit"],
        "What a commit waits for: 1 its redo is durable; 2 it is written, 0 nothing, and both lose up to flush_log_at_timeout.";
    flush_log_at_timeout: u32 = 1, "1", count(1, 2700), Live,
        {"innodb_flush_log_at_timeout" = "1"}, [],
        "Seconds after which redo is made durable when commits do not ask for it.";
    flush_method: FlushMethod = FlushMethod::Direct, "O_DIRECT",
        ValueKind::Choice(FlushMethod::WORDS), Open,
        {"innodb_flush_method" = "O_DIRECT"}, [],
        "System calls that bring data and redo to the device; the page cache is passed by with the direct ones.";
    use_fdatasync: bool = true, "ON", ValueKind::Switch, Open,
        {"innodb_use_fdatasync" = "ON"}, [],
        "Syncs with fdatasync, which leaves out times of access, instead of fsync.";
    trust_device_cache: bool = false, "OFF", ValueKind::Switch, Open, {}, [],
        "Leaves out the syncs that InnoDB leaves out for a device without a volatile cache; with one, a power cut then loses data.";
    io_method: IoMethod = IoMethod::IoUring, "io_uring", ValueKind::Choice(IoMethod::WORDS), Open, {}, [],
        "How requests are given to the kernel; one that the kernel refuses falls back to the one before it.";
    doublewrite: Doublewrite = Doublewrite::On, "ON", ValueKind::Choice(Doublewrite::WORDS), Live,
        {"innodb_doublewrite" = "ON"}, [],
        "What protects pages that a crash leaves half written: ON restores them, DETECT_ONLY names them, OFF does neither.";
    doublewrite_pages: u32 = 128, "128", count(1, 512), Open,
        {"innodb_doublewrite_pages" = "128"}, [],
        "Pages in one doublewrite batch, which costs one sync.";
    checksum_algorithm: ChecksumAlgorithm = ChecksumAlgorithm::Crc32, "crc32",
        ValueKind::Choice(ChecksumAlgorithm::WORDS), Open,
        {"innodb_checksum_algorithm" = "crc32"}, [],
        "Checksum of pages; with none, damaged pages are not noticed.";
    policy: PolicyName = PolicyName::Steady, "steady", ValueKind::Choice(PolicyName::WORDS), Live, {}, [],
        "Policy that decides which pages are flushed, and when: ours, or one of InnoDB's history.";
    flush_write_limit: FlushWriteLimit = FlushWriteLimit::Policy, "policy",
        ValueKind::Choice(FlushWriteLimit::WORDS), Live, {}, [],
        "What caps a policy of history; auto-raised adds 100 to io_capacity whenever the redo was found three quarters full ten times, and leaves the setting alone.";
    io_capacity: u32 = 10_000, "10000", count(1, 10_000_000), Live,
        {"innodb_io_capacity" = "10000"}, [],
        "Pages per second for background flushing; a value above io_capacity_max raises that to twice it.";
    io_capacity_max: u32 = 20_000, "20000", count(1, 20_000_000), Live,
        {"innodb_io_capacity_max" = "2 * innodb_io_capacity"}, [],
        "Pages per second that flushing keeps to unless redo is about to run out.";
    max_dirty_pages_pct: f64 = 90.0, "90", percent(0.0, 99.99), Live,
        {"innodb_max_dirty_pages_pct" = "90"}, [],
        "Share of the pool that may be dirty before it is flushed with io_capacity.";
    max_dirty_pages_pct_lwm: f64 = 0.0, "0", percent(0.0, 99.99), Live,
        {"innodb_max_dirty_pages_pct_lwm" = "10"}, [],
        "Share of dirty pages from which flushing for it begins to grow; 0 begins it shortly below max_dirty_pages_pct.";
    adaptive_flushing: bool = true, "ON", ValueKind::Switch, Live,
        {"innodb_adaptive_flushing" = "ON"}, [],
        "Flushes as fast as redo is produced; without it nothing is flushed for redo below the async limit.";
    adaptive_flushing_lwm: f64 = 10.0, "10", percent(0.0, 70.0), Live,
        {"innodb_adaptive_flushing_lwm" = "10"}, [],
        "Share of the redo capacity in use below which nothing is flushed for it.";
    flushing_avg_loops: u32 = 30, "30", count(1, 1000), Live,
        {"innodb_flushing_avg_loops" = "30"}, [],
        "Loops of the cleaner that its averages reach back; more is smoother and slower to follow.";
    idle_flush_pct: f64 = 100.0, "100", percent(0.0, 100.0), Live,
        {"innodb_idle_flush_pct" = "100"}, [],
        "Share of io_capacity that is flushed while nothing changes.";
    flush_sync: bool = true, "ON", ValueKind::Switch, Live,
        {"innodb_flush_sync" = "ON"}, [],
        "Lets flushing go beyond io_capacity_max when redo is about to run out.";
    flush_neighbors: u32 = 0, "0", count(0, 2), Live,
        {"innodb_flush_neighbors" = "0"}, [],
        "Flushes the dirty neighbours of a page with it: 0 none, 1 contiguous ones, 2 those of its extent; for rotating disks.";
    lru_scan_depth: u32 = 1024, "1024", count(1, 1_000_000), Live,
        {"innodb_lru_scan_depth" = "1024"}, [],
        "Free frames that the cleaner keeps ready, at most an eighth of the pool.";
    old_blocks_pct: u32 = 37, "37", count(5, 95), Live,
        {"innodb_old_blocks_pct" = "37"}, [],
        "Share of the pool, in percent, in which a page must be used again before it counts as young.";
    read_ahead_threshold: u32 = 56, "56", count(0, 64), Live,
        {"innodb_read_ahead_threshold" = "56"}, [],
        "Pages of an extent read in order after which the next extent is read ahead; 0 never.";
    autoextend_increment: u64 = 8 * M, "8M", size(64 * K, 1000 * M), Open,
        {"innodb_autoextend_increment" = "64"}, [],
        "Step by which the data grows, over all files; InnoDB counts it in MiB.";
    merge_threshold: u32 = 50, "50", count(1, 50), Live,
        {"MERGE_THRESHOLD" = "50"}, [],
        "Share of a page, in percent, below which it is merged with its neighbour.";
    fill_factor: u32 = 100, "100", count(10, 100), Live,
        {"innodb_fill_factor" = "100"}, [],
        "Share of a page, in percent, that a sorted load fills.";
    lock_wait_timeout: u32 = 50, "50", count(0, 1 << 30), Live,
        {"innodb_lock_wait_timeout" = "50"}, [],
        "Seconds that a transaction waits for a row lock before it gives up; 0 does not wait.";
    page_cleaners: u32 = 4, "4", count(1, 16), Open,
        {"innodb_page_cleaners" = "4"}, [],
        "Threads that write dirty pages, each a batch at a time; four batches at once where pages are copied before.";
    purge_threads: u32 = 1, "1", count(0, 4), Open,
        {"innodb_purge_threads" = "1 or 4"}, [],
        "Threads that remove deleted rows which no snapshot sees any more; with 0 the policy has to ask for it.";
    purge_batch_size: u32 = 300, "300", count(1, 5000), Live,
        {"innodb_purge_batch_size" = "300"}, [],
        "Deleted rows that purge takes at once; InnoDB counts undo pages.";
    max_purge_lag: u32 = 0, "0", count(0, 4_294_967_295), Live,
        {"innodb_max_purge_lag" = "0"}, [],
        "History length from which each written row is delayed, if max_purge_lag_delay is set; 0 never.";
    max_purge_lag_delay: u32 = 0, "0", count(0, 10_000_000), Live,
        {"innodb_max_purge_lag_delay" = "0"}, [],
        "Longest such delay in microseconds; 0 keeps max_purge_lag without effect, as in InnoDB from 5.6 on.";
    max_purge_lag_version: MaxPurgeLagVersion = MaxPurgeLagVersion::Mysql84, "8.4",
        ValueKind::Choice(MaxPurgeLagVersion::WORDS), Live, {}, [],
        "Version of MySQL whose rule max_purge_lag follows.";
    version_log_memory: u64 = 64 * M, "64M", size(256 * K, T), Open, {}, [],
        "Memory for old versions of rows that snapshots may see; beyond it they go to a file.";
}
