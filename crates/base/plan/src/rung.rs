//! Ids of the probe's points: one table for the plan, the rules, the models and the reports.
//!
//! Invariant: an id never changes its meaning, since documents of every version hold it. Points of
//! a curve have ids of this form, too; only those that something names are listed.

macro_rules! rungs {
    ($($name:ident $id:literal)*) => {
        $(#[doc = concat!("`", $id, "`.")] pub const $name: &str = $id;)*

        /// Every id above.
        pub const ALL: &[&str] = &[$($id),*];
    };
}

/// One connection commits one small transaction after the other.
pub const COMMITS_1: &str = "commits_1";
/// The same without syncs: what the database itself takes for a commit.
pub const COMMITS_1_UNSYNCED: &str = "commits_1_unsynced";
/// 16 connections commit small transactions.
pub const COMMITS_16: &str = "commits_16";
/// TPC-C's transactions on 4 connections.
pub const TPCC_4: &str = "tpcc_4";

/// Overwrites before everything else, where they are requested.
pub const PRECONDITION: &str = "precondition";

/// The rung of the storage that takes turns with these transactions, so that both are of the same
/// rounds.
pub fn in_turns_with(transactions: &str) -> Option<&'static str> {
    match transactions {
        COMMITS_1 | COMMITS_1_UNSYNCED => Some(COMMIT_FDATASYNC),
        COMMITS_16 => Some(COMMIT_FDATASYNC_16),
        _ => None,
    }
}

rungs! {
    METER_NULL "meter_null"
    READ_4K_DEPTH_1 "read_4k_depth_1"
    READ_4K_DEPTH_8 "read_4k_depth_8"
    READ_4K_DEPTH_16 "read_4k_depth_16"
    READ_4K_DEPTH_32 "read_4k_depth_32"
    READ_16K_DEPTH_1 "read_16k_depth_1"
    READ_16K_DEPTH_8 "read_16k_depth_8"
    READ_16K_DEPTH_16 "read_16k_depth_16"
    READ_16K_DEPTH_32 "read_16k_depth_32"
    READ_16K_SYNC_16 "read_16k_sync_16"
    READ_16K_LIBAIO_16 "read_16k_libaio_16"
    READ_16K_IO_URING_16 "read_16k_io_uring_16"
    OVERWRITE_16K "overwrite_16k"
    APPEND_16K "append_16k"
    WRITE_16K_FILES_1 "write_16k_files_1"
    WRITE_16K_FILES_4 "write_16k_files_4"
    WRITE_16K_FILES_8 "write_16k_files_8"
    MIXED_16K_FILES_1 "mixed_16k_files_1"
    MIXED_16K_FILES_8 "mixed_16k_files_8"
    BUFFERED_16K_FILES_1 "buffered_16k_files_1"
    BUFFERED_16K_FILES_8 "buffered_16k_files_8"
    FLUSHED_16K_DIRECT "flushed_16k_direct"
    FLUSHED_16K_BUFFERED "flushed_16k_buffered"
    SEQUENTIAL_READ_1M "sequential_read_1m"
    SEQUENTIAL_WRITE_1M "sequential_write_1m"
    FLUSH_EMPTY "flush_empty"
    COMMIT_FDATASYNC "commit_fdatasync"
    COMMIT_FDATASYNC_4 "commit_fdatasync_4"
    COMMIT_FDATASYNC_16 "commit_fdatasync_16"
    COMMIT_FSYNC "commit_fsync"
    COMMIT_DSYNC "commit_dsync"
    COMMIT_DSYNC_16 "commit_dsync_16"
    APPEND_FDATASYNC "append_fdatasync"
    APPEND_FSYNC "append_fsync"
    SUSTAINED_16K "sustained_16k"
}
