//! What transactions use of a machine, and what the storage below would allow of them.
//!
//! Invariant: what a target does not count is null, never 0; a share of a bound has the interval of
//! both sides.

use iostrata_stats::Interval;
use serde::{Deserialize, Serialize};

/// What a target has used so far, or between two moments, by its own counters. Null is what it does
/// not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResourceUse {
    /// Bytes of redo written.
    pub redo_bytes: Option<f64>,
    /// Syncs of the redo log.
    pub redo_syncs: Option<f64>,
    /// Syncs of all files of tables and redo together, where those of the redo are not counted
    /// apart.
    #[serde(default)]
    pub redo_and_data_syncs: Option<f64>,
    /// Syncs of the binary log.
    pub binlog_syncs: Option<f64>,
    /// Pages of 16 KiB written in place. Those that are changed and not written yet are not in it.
    pub page_writes: Option<f64>,
    /// Pages of 16 KiB written to the doublewrite files.
    pub doublewrite_pages: Option<f64>,
    /// Pages of 16 KiB read.
    pub page_reads: Option<f64>,
    /// Processor time of the target and of what drives it, both on this machine, in microseconds.
    pub cpu_us: Option<f64>,
}

impl ResourceUse {
    /// The use since an earlier moment. A counter that is lower than before was reset: the use is
    /// unknown.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: Option<f64>, then: Option<f64>| Some(now? - then?).filter(|of| *of >= 0.0);
        Self {
            redo_bytes: less(self.redo_bytes, earlier.redo_bytes),
            redo_syncs: less(self.redo_syncs, earlier.redo_syncs),
            redo_and_data_syncs: less(self.redo_and_data_syncs, earlier.redo_and_data_syncs),
            binlog_syncs: less(self.binlog_syncs, earlier.binlog_syncs),
            page_writes: less(self.page_writes, earlier.page_writes),
            doublewrite_pages: less(self.doublewrite_pages, earlier.doublewrite_pages),
            page_reads: less(self.page_reads, earlier.page_reads),
            cpu_us: less(self.cpu_us, earlier.cpu_us),
        }
    }

    /// Syncs of the redo log; where they are not counted apart, those of all files, which are no
    /// fewer.
    pub fn redo_syncs_at_most(&self) -> Option<f64> {
        self.redo_syncs.or(self.redo_and_data_syncs)
    }

    /// Bytes that were written for it, as far as they were counted.
    pub fn written_bytes(&self) -> u64 {
        let pages = self.page_writes.unwrap_or(0.0) + self.doublewrite_pages.unwrap_or(0.0);
        (self.redo_bytes.unwrap_or(0.0) + pages * 16_384.0) as u64
    }
}

/// What bounds a rate of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Syncs of the logs, each of which is waited for.
    Syncs,
    /// Bytes of redo and of doublewrite files, written in order.
    LogWrites,
    /// Pages written in place.
    PageWrites,
    /// Pages read.
    PageReads,
    /// The processors.
    Cpu,
}

impl Resource {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Syncs, Self::LogWrites, Self::PageWrites, Self::PageReads, Self::Cpu];

    /// The unit of what one transaction uses of it.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Syncs => "syncs",
            Self::LogWrites => "bytes",
            Self::PageWrites | Self::PageReads => "pages",
            Self::Cpu => "us",
        }
    }

    /// What readers call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Syncs => "syncs",
            Self::LogWrites => "log writes",
            Self::PageWrites => "page writes",
            Self::PageReads => "page reads",
            Self::Cpu => "processors",
        }
    }
}

/// What one resource would allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoundResource {
    /// Which.
    pub name: Resource,
    /// Transactions per second; null where the target does not count what it uses, where nothing
    /// was used, or where the rung below is not known.
    pub allows_per_s: Option<f64>,
    /// Its 95 % interval.
    pub allows_per_s_ci95: Option<Interval>,
    /// What one transaction uses; null where the target does not count it.
    pub per_txn: Option<f64>,
    /// The unit of `per_txn`.
    pub unit: String,
    /// The rungs below that measure its speed; empty for the processors.
    pub rungs: Vec<String>,
}

/// What the storage and the processors would allow of a rung of transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionBound {
    /// What the binding resource allows.
    pub value: f64,
    /// Its 95 % interval.
    pub value_ci95: Option<Interval>,
    /// Samples behind it.
    pub value_n: u64,
    /// Its unit, that of the rung.
    pub unit: String,
    /// The binding resource: the one that allows the least.
    pub resource: Resource,
    /// What was reached of it, in percent.
    pub reached_pct: f64,
    /// Its 95 % interval.
    pub reached_pct_ci95: Option<Interval>,
    /// Rounds behind it, or independent samples, according to `basis`.
    pub reached_pct_n: u64,
    /// `own_window` where each window was set against what its own devices and processors did,
    /// `paired_rounds` where the bound of each round was compared with what was reached in it,
    /// `independent` where the two were measured at different times.
    pub basis: String,
    /// Every resource.
    pub resources: Vec<BoundResource>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_stays_unknown() {
        let before = ResourceUse { redo_bytes: Some(100.0), ..ResourceUse::default() };
        let pages = (Some(5.0), Some(9.0));
        let after = ResourceUse {
            redo_bytes: Some(612.0),
            page_writes: pages.0,
            doublewrite_pages: pages.1,
            ..ResourceUse::default()
        };
        let used = after.since(&before);
        assert_eq!((used.redo_bytes, used.page_writes, used.cpu_us), (Some(512.0), None, None));
        assert_eq!(used.written_bytes(), 512);
        assert_eq!(after.since(&after).redo_bytes, Some(0.0));
        assert_eq!(before.since(&after).redo_bytes, None, "it began anew");
    }
}
