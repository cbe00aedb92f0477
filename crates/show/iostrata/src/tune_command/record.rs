//! What is kept of a tuning: samples, changes, what it came to.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use iostrata_run::{StallCause, TunedSetting, WatchDocument, WatchSample};
use iostrata_study::Listener;
use iostrata_target::{TargetFacts, TargetSample};
use iostrata_tune::{LeverValues, Look};
use iostrata_watch::TimedSample;

use super::disk::SeenDisk;
use crate::watch_command::recorder::{ObservedTarget, Recorder};
use crate::watch_command::source::target_of;
use crate::watch_command::target_host::TargetHost;

/// Gathers the document.
pub struct TuneRecord<'a> {
    start: Instant,
    observed: ObservedTarget,
    recorder: Recorder<'a>,
    disk: SeenDisk,
    last: Option<WatchSample>,
}

impl<'a> TuneRecord<'a> {
    /// Begins now; a server on this host has that beside it.
    pub fn begin(
        facts: &TargetFacts,
        is_local: bool,
        keeper: &'a mut (dyn Listener + Send),
    ) -> Self {
        let target = target_of(facts);
        let mut recorder = Recorder::new(Some(keeper));
        // A directory that cannot be written is said at the end.
        let _is_lost = recorder.begin(&target);
        let observed = ObservedTarget::new(target, TargetHost::of_server(facts, is_local));
        Self { start: Instant::now(), observed, recorder, disk: SeenDisk::default(), last: None }
    }

    /// When it began.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Seconds since then.
    pub fn at_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Takes in a sample.
    pub fn take(&mut self, asked: TimedSample) {
        let watched = self.observed.take(asked);
        self.recorder.take(&watched);
        let before_s = self.last.as_ref().map_or(0.0, |last| last.t_s);
        if let Some(device) = &watched.sample.device {
            self.disk.take(device, watched.sample.t_s - before_s);
        }
        self.last = Some(watched.sample);
    }

    /// What the controller sees of the last sample.
    pub fn look<'b>(&self, sample: &'b TargetSample, present: &'b LeverValues) -> Look<'b> {
        let last = self.last.as_ref();
        let is_full = |last: &WatchSample| last.stall_cause == Some(StallCause::RedoFull);
        Look {
            read_ms: last.and_then(|last| last.device.as_ref()?.read_ms),
            seeks: self.disk.seeks(),
            is_stalled: last.is_some_and(|last| last.stalled && is_full(last)),
            ..look(self.at_s(), sample, present)
        }
    }

    /// Transactions per second of late.
    pub fn tps_recent(&self) -> Option<f64> {
        self.last.as_ref()?.tps
    }

    /// A change that was made.
    pub fn changed(&mut self, one: TunedSetting) {
        self.recorder.changed(one);
    }

    /// How many changes were made.
    pub fn changes(&self) -> u64 {
        self.recorder.changes()
    }

    /// What the server does not tell, and why.
    pub fn note_missing(&mut self, missing: Vec<String>) {
        self.observed.target.missing = missing;
    }

    /// What came of it.
    pub fn document(self) -> WatchDocument {
        let duration_s = self.at_s();
        WatchDocument { duration_s, ..self.recorder.document(self.observed.target) }
    }
}

/// What the controller sees of a server of which nothing else is known yet.
pub fn look<'a>(at_s: f64, sample: &'a TargetSample, present: &'a LeverValues) -> Look<'a> {
    let utc_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (read_ms, seeks, is_stalled) = (None, None, false);
    Look { now_us: (at_s * 1e6) as u64, sample, present, read_ms, seeks, is_stalled, utc_s }
}
