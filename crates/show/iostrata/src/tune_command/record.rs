//! What is kept of a tuning: samples, changes, what it came to.

use std::time::Instant;

use iostrata_run::{TunedSetting, WatchDocument, WatchSample};
use iostrata_study::Listener;
use iostrata_target::TargetFacts;
use iostrata_watch::TimedSample;

use crate::watch_command::recorder::{ObservedTarget, Recorder};
use crate::watch_command::source::target_of;
use crate::watch_command::target_host::TargetHost;

/// Gathers the document.
pub struct TuneRecord<'a> {
    start: Instant,
    observed: ObservedTarget,
    recorder: Recorder<'a>,
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
        Self { start: Instant::now(), observed, recorder, last: None }
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
        self.last = Some(watched.sample);
    }

    /// Transactions per second of late.
    pub fn tps_recent(&self) -> Option<f64> {
        self.last.as_ref()?.tps
    }

    /// Mean time of a read of the device below, in milliseconds.
    pub fn read_ms(&self) -> Option<f64> {
        self.last.as_ref()?.device.as_ref()?.read_ms
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
