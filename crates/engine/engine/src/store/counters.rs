//! What a store has done, by InnoDB's names.
//!
//! Invariant: counters only rise, gauges excepted. Each is right by itself; a snapshot while others
//! write may be between two steps of one of them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// What a store has done since it was opened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct StoreCounters {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        #[derive(Debug, Default)]
        pub(crate) struct Tally {
            $(pub(crate) $name: AtomicU64,)+
        }

        impl Tally {
            pub(crate) fn snapshot(&self) -> StoreCounters {
                StoreCounters { $($name: self.$name.load(Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Batches written to the doublewrite files.
    dblwr_writes,
    /// Pages of which a copy was written to the doublewrite files.
    dblwr_pages_written,
    /// Pages written without a copy because the device does not tear a write of that size.
    dblwr_pages_atomic,
    /// Bytes written to the doublewrite files.
    dblwr_written,
    /// Syncs of doublewrite files.
    dblwr_fsyncs,
    /// Read calls on data files.
    data_reads,
    /// Bytes read from data files.
    data_read,
    /// Write calls on data files, growth included.
    data_writes,
    /// Bytes written to data files, growth included.
    data_written,
    /// Syncs of data files.
    data_fsyncs,
    /// Syncs of data files saved because one of another thread covered them.
    data_fsyncs_shared,
    /// Pages read and found good.
    pages_read,
    /// Pages written in place.
    pages_written,
    /// Pages added by growth.
    pages_extended,
    /// Pages restored from a copy.
    pages_restored,
    /// Page reads in flight now: a gauge.
    pending_reads,
    /// Page writes in flight now, from the copy to the last sync: a gauge.
    pending_writes,
}

pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Relaxed);
}

/// Things in flight, counted in a gauge until this is dropped.
pub(crate) struct Pending<'t> {
    gauge: &'t AtomicU64,
    count: u64,
}

impl<'t> Pending<'t> {
    pub(crate) fn begin(gauge: &'t AtomicU64, count: u64) -> Self {
        add(gauge, count);
        Self { gauge, count }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.gauge.fetch_sub(self.count, Relaxed);
    }
}
