//! What the log counts, by InnoDB's names.
//!
//! Invariant: every count only grows.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedoCounters {
    /// Bytes written to segments, padding included.
    pub os_log_written: u64,
    /// Syncs of segments and of the control file.
    pub os_log_fsyncs: u64,
    /// Writes of segments.
    pub log_writes: u64,
    /// Frames appended.
    pub log_write_requests: u64,
    /// Times that what was appended was made durable.
    pub log_flushes: u64,
    /// Time that this took, in nanoseconds.
    pub log_flush_time_ns: u64,
    /// Those of them that took [`STALLED_REDO_WRITE`](iostrata_innodb::flush::STALLED_REDO_WRITE)
    /// or longer.
    pub log_flushes_stalled: u64,
    /// Times that an append found the buffer full.
    pub log_waits: u64,
    /// Bytes written behind the end of the log to fill a block.
    pub log_padded: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) written: AtomicU64,
    pub(crate) fsyncs: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) flush_ns: AtomicU64,
    pub(crate) stalled: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) padded: AtomicU64,
}

pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

impl Counts {
    pub(crate) fn read(&self, requests: u64) -> RedoCounters {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RedoCounters {
            os_log_written: get(&self.written),
            os_log_fsyncs: get(&self.fsyncs),
            log_writes: get(&self.writes),
            log_write_requests: requests,
            log_flushes: get(&self.flushes),
            log_flush_time_ns: get(&self.flush_ns),
            log_flushes_stalled: get(&self.stalled),
            log_waits: get(&self.waits),
            log_padded: get(&self.padded),
        }
    }
}
