//! What rates amount to.
//!
//! Invariant: never falls. A total is absent until its rate is told once, so that what a target
//! does not tell is never 0; a rate counts for the time since the last sample with figures.

use std::collections::BTreeMap;

use iostrata_run::{StallCause, WatchDevice, WatchSample};

use crate::file_totals::FileTotals;
use crate::growing::grow;

/// What a target did since watching began.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    last_s: Option<f64>,
    stalled: bool,
    /// Samples with and without figures.
    pub(crate) samples: u64,
    /// Samples without figures.
    pub(crate) errors: u64,
    /// Stalls that began.
    pub(crate) stalls: u64,
    /// Seconds in stalls, by cause.
    pub(crate) stalled_s: BTreeMap<&'static str, f64>,
    /// Transactions that ended.
    pub(crate) transactions: Option<f64>,
    /// Redo made, in bytes.
    pub(crate) redo_bytes: Option<f64>,
    /// Pages written.
    pub(crate) flushed_pages: Option<f64>,
    /// Those by the reason: adaptive, LRU, background, sync.
    pub(crate) flushed_by_kind: [Option<f64>; 4],
    /// Commits purged.
    pub(crate) purged: Option<f64>,
    /// What devices did, by their names.
    pub(crate) devices: BTreeMap<String, DeviceTotals>,
    /// Seconds in which tasks waited, by what for and by whether some or all did.
    pub(crate) pressure_s: BTreeMap<(&'static str, &'static str), f64>,
    /// Seconds that a processor quota held tasks back.
    pub(crate) throttled_s: Option<f64>,
    /// What was done with files, by the words of their classes.
    pub(crate) files: BTreeMap<&'static str, FileTotals>,
}

/// What a device did since watching began.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DeviceTotals {
    /// Reads.
    pub(crate) reads: Option<f64>,
    /// Writes.
    pub(crate) writes: Option<f64>,
    /// Flushes.
    pub(crate) flushes: Option<f64>,
    /// Seconds that reads took together.
    pub(crate) read_s: Option<f64>,
    /// Seconds that writes took together.
    pub(crate) write_s: Option<f64>,
}

/// The names of causes as the samples' documents spell them.
pub(crate) const CAUSES: [(StallCause, &str); 7] = [
    (StallCause::RedoFull, "redo_full"),
    (StallCause::FreePages, "free_pages"),
    (StallCause::Purge, "purge"),
    (StallCause::LogBuffer, "log_buffer"),
    (StallCause::Device, "device"),
    (StallCause::Lock, "lock"),
    (StallCause::Unknown, "unknown"),
];

impl Totals {
    /// Adds what a sample tells.
    pub(crate) fn take(&mut self, sample: &WatchSample) {
        self.samples += 1;
        if sample.error.is_some() {
            self.errors += 1;
            self.take_host(sample);
            return;
        }
        let length_s = self.last_s.map_or(0.0, |last_s| (sample.t_s - last_s).max(0.0));
        self.last_s = Some(sample.t_s);
        self.count_stall(sample, length_s);
        let add = |total: &mut Option<f64>, rate: Option<f64>| grow(total, rate, length_s);
        add(&mut self.transactions, sample.tps);
        add(&mut self.redo_bytes, sample.redo_bytes_per_s);
        add(&mut self.flushed_pages, sample.flushed_pages_per_s);
        let kinds = [
            sample.flush_adaptive_pages_per_s,
            sample.flush_lru_pages_per_s,
            sample.flush_background_pages_per_s,
            sample.flush_sync_pages_per_s,
        ];
        for (total, rate) in self.flushed_by_kind.iter_mut().zip(kinds) {
            add(total, rate);
        }
        add(&mut self.purged, sample.purge_per_s);
        if let Some(device) = &sample.device {
            self.devices.entry(device.name.clone()).or_default().take(device, length_s);
        }
        for one in sample.files.iter().flat_map(|files| &files.classes) {
            self.files.entry(one.class.word()).or_default().take(one, length_s);
        }
        self.take_host(sample);
    }

    /// These are told as time, not as a rate.
    fn take_host(&mut self, sample: &WatchSample) {
        let pressure = sample.pressure.unwrap_or_default();
        let resources = [("io", pressure.io), ("cpu", pressure.cpu), ("memory", pressure.memory)];
        for (resource, share) in resources {
            let Some(share) = share else { continue };
            for (kind, us) in [("some", Some(share.some_us)), ("full", share.full_us)] {
                if let Some(us) = us {
                    *self.pressure_s.entry((resource, kind)).or_default() += us as f64 / 1e6;
                }
            }
        }
        let throttled_us = sample.throttle.as_ref().and_then(|of| of.cpu_throttled_us);
        if let Some(us) = throttled_us {
            *self.throttled_s.get_or_insert_default() += us as f64 / 1e6;
        }
    }

    fn count_stall(&mut self, sample: &WatchSample, length_s: f64) {
        if sample.stalled && !self.stalled {
            self.stalls += 1;
        }
        self.stalled = sample.stalled;
        let cause = sample.stall_cause.unwrap_or_default();
        for (one, name) in CAUSES {
            let seconds = self.stalled_s.entry(name).or_default();
            if sample.stalled && one == cause {
                *seconds += length_s;
            }
        }
    }
}

impl DeviceTotals {
    fn take(&mut self, device: &WatchDevice, length_s: f64) {
        let add = |total: &mut Option<f64>, rate: Option<f64>| grow(total, rate, length_s);
        add(&mut self.reads, Some(device.reads_per_s));
        add(&mut self.writes, Some(device.writes_per_s));
        add(&mut self.flushes, device.flushes_per_s);
        // No mean time is told where nothing was done: then nothing is added.
        let seconds = |rate: f64, ms: Option<f64>| ms.map(|ms| rate * ms / 1000.0);
        add(&mut self.read_s, seconds(device.reads_per_s, device.read_ms));
        add(&mut self.write_s, seconds(device.writes_per_s, device.write_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(t_s: f64) -> WatchSample {
        WatchSample { t_s, ..WatchSample::default() }
    }

    #[test]
    fn rates_amount_to_what_was_done() {
        let mut totals = Totals::default();
        totals.take(&at(0.0));
        assert_eq!(totals.transactions, None, "what is not told is not 0");
        totals.take(&WatchSample { tps: Some(100.0), ..at(1.0) });
        totals.take(&WatchSample { tps: Some(50.0), ..at(3.0) });
        assert_eq!(totals.transactions, Some(200.0));
        // Whoever answers again tells the rate since its last answer.
        totals.take(&WatchSample { error: Some("gone".to_owned()), ..at(4.0) });
        totals.take(&WatchSample { tps: Some(10.0), ..at(5.0) });
        assert_eq!((totals.transactions, totals.samples, totals.errors), (Some(220.0), 5, 1));
        totals.take(&WatchSample { tps: Some(-7.0), ..at(6.0) });
        assert_eq!(totals.transactions, Some(220.0));
    }

    #[test]
    fn a_stall_between_two_questions_is_counted() {
        let stall = |t_s, cause| WatchSample { stalled: true, stall_cause: cause, ..at(t_s) };
        let mut totals = Totals::default();
        totals.take(&at(0.0));
        assert_eq!((totals.stalls, totals.stalled_s.len()), (0, 7), "every cause begins at 0");
        totals.take(&stall(1.0, None));
        totals.take(&stall(2.5, Some(StallCause::RedoFull)));
        totals.take(&at(3.0));
        totals.take(&stall(4.0, Some(StallCause::RedoFull)));
        assert_eq!(totals.stalls, 2);
        assert_eq!((totals.stalled_s["unknown"], totals.stalled_s["redo_full"]), (1.0, 2.5));
    }

    #[test]
    fn a_devices_time_is_the_time_of_all_its_requests() {
        let device = WatchDevice {
            name: "vda".to_owned(),
            writes_per_s: 1000.0,
            write_ms: Some(2.0),
            ..WatchDevice::default()
        };
        let mut totals = Totals::default();
        totals.take(&at(0.0));
        totals.take(&WatchSample { device: Some(device), ..at(2.0) });
        let found = &totals.devices["vda"];
        assert_eq!((found.writes, found.write_s), (Some(2000.0), Some(4.0)));
        assert_eq!((found.reads, found.read_s, found.flushes), (Some(0.0), None, None));
    }

    #[test]
    fn causes_are_spelled_as_in_documents() {
        for (cause, name) in CAUSES {
            assert_eq!(serde_json::to_value(cause).unwrap(), name);
        }
    }
    #[test]
    fn pressure_and_files_amount_to_time_and_requests() {
        use iostrata_run::host::{PressureShare, PressureShares, ThrottleEvidence};
        use iostrata_run::{FileClass, FileClassIo, FileIo};

        let io = PressureShare { some_us: 250_000, full_us: Some(100_000), ..Default::default() };
        let redo: FileClassIo = serde_json::from_str(
            r#"{"class": "redo", "writes_per_s": 20, "write_bytes_per_s": 4096, "write_ms": 5}"#,
        )
        .unwrap();
        let sample = |t_s| WatchSample {
            pressure: Some(PressureShares { io: Some(io), ..Default::default() }),
            throttle: Some(ThrottleEvidence {
                cpu_throttled_us: Some(30_000),
                ..Default::default()
            }),
            files: Some(FileIo { classes: vec![redo.clone()], ..FileIo::default() }),
            ..at(t_s)
        };
        let mut totals = Totals::default();
        totals.take(&sample(0.0));
        totals.take(&sample(2.0));
        // While it does not answer, its host is looked at all the same.
        totals.take(&WatchSample { error: Some("gone".to_owned()), files: None, ..sample(3.0) });
        assert_eq!(totals.pressure_s.get(&("io", "some")), Some(&0.75));
        assert_eq!(totals.pressure_s.get(&("cpu", "some")), None, "what is not told is not 0");
        assert!((totals.throttled_s.unwrap() - 0.09).abs() < 1e-9);
        let redo = totals.files.get(FileClass::Redo.word()).unwrap();
        let [read, write, sync] = &redo.ops;
        assert_eq!((read.requests, sync.requests), (None, None), "what is not told is not 0");
        assert_eq!((write.requests, write.bytes), (Some(40.0), Some(8192.0)));
        assert_eq!(write.seconds, Some(0.2));
    }
}
