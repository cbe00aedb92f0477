//! What a target did since watching began, as Prometheus reads it.
//!
//! Invariant: no total ever falls. One is absent until it grew once, so that what a target does not
//! report is never 0.

use std::collections::BTreeMap;

use iostrata_run::host::{DeviceCounters, HeldBackShares};
use iostrata_run::{FIGURES, FigureKind, FileTable, SampleSpan, StallCause, WatchSample};

use crate::watch::moment::OnHost;

/// What a target did since watching began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// By how much the counters of the figures grew, in the order of the table.
    counts: Vec<Option<u64>>,
    last_s: Option<f64>,
    is_stalled: bool,
    /// Samples, with and without an answer.
    pub samples: u64,
    /// Samples without one.
    pub errors: u64,
    /// Stalls that began.
    pub stalls: u64,
    /// Seconds in stalls by cause, in the order of [`StallCause::ALL`].
    pub stalled_s: [f64; StallCause::ALL.len()],
    /// What was done with files.
    pub files: FileTable,
    /// What the devices below the data did, by their names.
    pub devices: BTreeMap<String, DeviceCounters>,
    /// Microseconds in which tasks waited: by what for, and whether some or all of them did.
    pub pressure_us: BTreeMap<(&'static str, &'static str), u64>,
    /// Microseconds that a processor quota held tasks back.
    pub throttled_us: Option<u64>,
}

impl Totals {
    /// By how much the counter of the figure at this place of the table grew.
    pub fn count(&self, place: usize) -> Option<u64> {
        self.counts.get(place).copied().flatten()
    }

    /// Adds what the target did in a span.
    pub(crate) fn add(&mut self, span: &SampleSpan<'_>) {
        self.counts.resize(FIGURES.len(), None);
        for (total, figure) in self.counts.iter_mut().zip(FIGURES) {
            let Some(field) = figure.counter() else { continue };
            // A figure that is a total is reported as 0 from the start.
            let is_told = matches!(figure.kind, FigureKind::Total(_)) && field(span.now).is_some();
            let none = is_told.then_some(0);
            if let Some(more) = span.grown(field).or(none.filter(|_| total.is_none())) {
                *total = Some(total.unwrap_or(0).saturating_add(more));
            }
        }
    }

    /// Adds what was done with files.
    pub(crate) fn add_files(&mut self, grown: &FileTable) {
        self.files.add(grown);
    }

    /// Adds what its host did meanwhile.
    pub(crate) fn add_host(&mut self, on_host: &OnHost) {
        if let Some((name, delta)) = &on_host.device {
            let plus = |total: &mut DeviceCounters| *total = total.plus(&delta.counters);
            self.devices.entry(name.clone()).and_modify(plus).or_insert(delta.counters);
        }
        let HeldBackShares { pressure, throttle, .. } = &on_host.held;
        let pressure = pressure.unwrap_or_default();
        let resources = [("io", pressure.io), ("cpu", pressure.cpu), ("memory", pressure.memory)];
        for (resource, share) in resources {
            let Some(share) = share else { continue };
            for (kind, us) in [("some", Some(share.some_us)), ("full", share.full_us)] {
                if let Some(us) = us {
                    *self.pressure_us.entry((resource, kind)).or_default() += us;
                }
            }
        }
        if let Some(us) = throttle.as_ref().and_then(|of| of.cpu_throttled_us) {
            *self.throttled_us.get_or_insert_default() += us;
        }
    }

    /// Counts a sample as it is shown, with the current stall.
    pub(crate) fn count_sample(&mut self, sample: &WatchSample) {
        self.samples += 1;
        if sample.error.is_some() {
            self.errors += 1;
            return;
        }
        let length_s = self.last_s.map_or(0.0, |last_s| (sample.t_s - last_s).max(0.0));
        self.last_s = Some(sample.t_s);
        self.stalls += u64::from(sample.stalled && !self.is_stalled);
        self.is_stalled = sample.stalled;
        let cause = sample.stall_cause.unwrap_or_default();
        for (seconds, (one, _)) in self.stalled_s.iter_mut().zip(StallCause::ALL) {
            if sample.stalled && one == cause {
                *seconds += length_s;
            }
        }
    }
}
