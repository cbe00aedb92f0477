//! What a target did between two samples of it: the only place where a rate is made.
//!
//! Invariant: no rate is below zero. A counter that went back was reset (it wrapped, or was
//! switched off and on) and has no rate; after a restart nothing has one.

use serde::{Deserialize, Serialize};

use super::files::{FileCounts, FileTable};
use super::sample::TargetSample;
use crate::file_io::{FileClassIo, FileIo};
use crate::host::{DeviceDelta, Iostat};

/// A counter or a gauge of a sample.
pub type SampleField = fn(&TargetSample) -> Option<u64>;

/// A sample, and the time since the one before.
#[derive(Clone, Copy, Debug)]
pub struct SampleSpan<'a> {
    /// The later sample.
    pub now: &'a TargetSample,
    before: Option<&'a TargetSample>,
    /// How long it was since the earlier one; 0 where there is none.
    pub seconds: f64,
}

impl<'a> SampleSpan<'a> {
    /// The first sample, which has no rates.
    pub fn first(now: &'a TargetSample) -> Self {
        Self { now, before: None, seconds: 0.0 }
    }

    /// From a sample to another one that was taken so many seconds later. Where no time passed, or
    /// the target was restarted in between, it is a first one.
    pub fn between(before: &'a TargetSample, now: &'a TargetSample, seconds: f64) -> Self {
        if seconds > 0.0 && !now.was_restarted_since(before) {
            Self { now, before: Some(before), seconds }
        } else {
            Self::first(now)
        }
    }

    /// By how much a counter grew.
    pub fn grown(&self, field: SampleField) -> Option<u64> {
        field(self.now)?.checked_sub(field(self.before?)?)
    }

    /// By how much a counter grew per second.
    pub fn per_s(&self, field: SampleField) -> Option<f64> {
        Some(self.grown(field)? as f64 / self.seconds)
    }

    /// By how much a counter grew for each by which another one did.
    pub fn per(&self, field: SampleField, other: SampleField) -> Option<f64> {
        let others = self.per_s(other).filter(|others| *others > 0.0)?;
        Some(self.per_s(field)? / others)
    }

    /// A gauge in percent of another one.
    pub fn pct(&self, part: SampleField, whole: SampleField) -> Option<f64> {
        let whole = whole(self.now).filter(|whole| *whole > 0)?;
        Some(100.0 * part(self.now)? as f64 / whole as f64)
    }

    /// Pages that became dirty: those that were written, and by how many more are dirty. Below zero
    /// where dirty pages were dropped with their table.
    pub fn pages_dirtied(&self) -> Option<f64> {
        let [now, before] = [self.now, self.before?].map(|one| one.dirty_pages);
        let risen = now? as f64 - before? as f64;
        Some(self.grown(|one| one.pages_flushed)? as f64 + risen)
    }

    /// Checkpoint age in percent of its limit.
    pub fn checkpoint_age_pct(&self) -> Option<f64> {
        self.pct(|one| one.checkpoint_age_bytes, |one| one.checkpoint_age_limit_bytes)
    }

    /// Seconds until the checkpoint age reaches its limit if redo is made as in this time.
    pub fn redo_seconds_left(&self) -> Option<f64> {
        let TargetSample { checkpoint_age_bytes, checkpoint_age_limit_bytes, .. } = self.now;
        let left = (*checkpoint_age_limit_bytes)?.saturating_sub((*checkpoint_age_bytes)?);
        let made = self.per_s(|one| one.redo_end_bytes).filter(|made| *made > 0.0)?;
        Some(left as f64 / made)
    }
}

impl FileIo {
    /// What was done with files within so many seconds, by how much their counts grew.
    pub fn of(grown: &FileTable, seconds: f64) -> Self {
        let of = |(class, counts): (_, &FileCounts)| {
            let per_s = |count: Option<u64>| Some(count? as f64 / seconds);
            let mean_ms = |ns: Option<u64>, count: Option<u64>| {
                let count = count.filter(|count| *count > 0)?;
                Some(ns? as f64 / count as f64 / 1e6)
            };
            FileClassIo {
                class,
                reads_per_s: per_s(counts.reads),
                read_bytes_per_s: per_s(counts.read_bytes),
                read_ms: mean_ms(counts.read_ns, counts.reads),
                writes_per_s: per_s(counts.writes),
                write_bytes_per_s: per_s(counts.written_bytes),
                write_ms: mean_ms(counts.write_ns, counts.writes),
                syncs_per_s: per_s(counts.syncs),
                sync_ms: mean_ms(counts.sync_ns, counts.syncs),
            }
        };
        Self { source: grown.source, classes: grown.iter().map(of).collect() }
    }
}

/// What a device did since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchDevice {
    /// As the kernel names it.
    pub name: String,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Flushes per second; null where the kernel does not count them.
    pub flushes_per_s: Option<f64>,
    /// Mean time of a read, in milliseconds.
    pub read_ms: Option<f64>,
    /// Mean time of a write, in milliseconds.
    pub write_ms: Option<f64>,
    /// Mean number of requests in flight.
    pub in_flight: f64,
}

impl WatchDevice {
    /// What a device did between two readings of its counters.
    pub fn of(name: String, delta: &DeviceDelta) -> Self {
        let iostat = Iostat::of(delta);
        Self {
            name,
            reads_per_s: iostat.reads_per_s,
            writes_per_s: iostat.writes_per_s,
            flushes_per_s: iostat.flushes_per_s,
            read_ms: iostat.read_await_ms,
            write_ms: iostat.write_await_ms,
            in_flight: iostat.queue_size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_io::{FileClass, FileIoSource};

    fn told(source: FileIoSource, counts: FileCounts) -> FileTable {
        let mut table = FileTable::new(source);
        *table.entry(FileClass::Redo) = counts;
        table
    }

    const BEFORE: FileCounts = FileCounts {
        reads: Some(5),
        read_bytes: None,
        read_ns: Some(0),
        writes: Some(10),
        written_bytes: Some(1_000),
        write_ns: Some(4_000_000),
        syncs: Some(9),
        sync_ns: None,
    };

    #[test]
    fn rates_and_means_worked_out_by_hand() {
        let source = FileIoSource::PerformanceSchema;
        let after = FileCounts {
            writes: Some(14),
            written_bytes: Some(9_000),
            write_ns: Some(12_000_000),
            syncs: Some(8),
            ..BEFORE
        };
        let grown = told(source, after).since(&told(source, BEFORE)).unwrap();
        let io = FileIo::of(&grown, 2.0);
        let redo = io.class(FileClass::Redo).unwrap();
        assert_eq!((redo.writes_per_s, redo.write_bytes_per_s), (Some(2.0), Some(4_000.0)));
        assert_eq!(redo.write_ms, Some(2.0));
        assert_eq!((redo.reads_per_s, redo.read_ms), (Some(0.0), None), "no read has no time");
        assert_eq!(redo.read_bytes_per_s, None, "what is not reported is not 0");
        assert_eq!((redo.syncs_per_s, redo.sync_ms), (None, None), "a count that went back");
        assert_eq!(io.class(FileClass::Data), None);
    }

    #[test]
    fn counts_of_others_are_not_compared() {
        let of = |source| told(source, BEFORE);
        let before = of(FileIoSource::InnodbStatus);
        assert_eq!(of(FileIoSource::PerformanceSchema).since(&before), None);
        assert_eq!(FileTable::new(FileIoSource::InnodbStatus).since(&before), None);
    }

    #[test]
    fn a_counter_that_went_back_and_a_restart_have_no_rate() {
        let at = |transactions, started_s| TargetSample {
            transactions: Some(transactions),
            started_s: Some(started_s),
            ..TargetSample::default()
        };
        let before = at(100, 10);
        let tps = |now: &TargetSample, seconds| {
            SampleSpan::between(&before, now, seconds).per_s(|one| one.transactions)
        };
        assert_eq!(tps(&at(300, 10), 2.0), Some(100.0));
        assert_eq!(tps(&at(99, 10), 2.0), None);
        assert_eq!(tps(&at(300, 90), 2.0), None, "started again");
        assert_eq!(tps(&at(300, 10), 0.0), None, "no time passed");
    }
}
