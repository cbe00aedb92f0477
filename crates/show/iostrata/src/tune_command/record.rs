//! What is kept of a tuning: samples, every change, what it came to.

use std::time::{Duration, Instant};

use iostrata_run::{Event, TunedSetting, WatchDocument, WatchSample, WatchTarget};
use iostrata_study::Listener;
use iostrata_target::{TargetFacts, TargetSample};
use iostrata_watch::{TimedSample, Watch, WatchRecord};

use crate::watch_command::source::target_of;
use crate::watch_command::target_host::TargetHost;

/// Gathers the document.
pub struct TuneRecord<'a> {
    /// Keeps everything at once, so that a kill loses nothing.
    keeper: &'a mut dyn Listener,
    start: Instant,
    watch: Watch,
    host: TargetHost,
    samples: WatchRecord,
    last: Option<WatchSample>,
    target: WatchTarget,
    settings: Vec<TunedSetting>,
}

impl<'a> TuneRecord<'a> {
    /// Begins now; a server on this host has that beside it.
    pub fn begin(facts: &TargetFacts, is_local: bool, keeper: &'a mut dyn Listener) -> Self {
        let target = target_of(facts);
        keep(keeper, &Event::Watching(Box::new(target.clone())));
        Self {
            keeper,
            start: Instant::now(),
            watch: Watch::default(),
            host: TargetHost::of_server(facts, is_local),
            samples: WatchRecord::default(),
            last: None,
            target,
            settings: Vec::new(),
        }
    }

    /// When it began.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Seconds since then.
    pub fn at_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Takes in a sample, and how long the server took to answer.
    pub fn take(&mut self, sample: &TargetSample, took: Duration) {
        let watched = self.watch.take(TimedSample {
            at_s: self.at_s(),
            sample: Ok(*sample),
            sample_us: took.as_secs_f64() * 1e6,
            on_host: self.host.since_last(),
        });
        if self.samples.add(&watched) || watched.stall.is_some() {
            keep(self.keeper, &watched.event());
        }
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
        keep(self.keeper, &Event::Tuned(one.clone()));
        self.settings.push(one);
    }

    /// What the server does not tell, and why.
    pub fn note_missing(&mut self, missing: Vec<String>) {
        self.target.missing = missing;
    }

    /// What came of it.
    pub fn document(self) -> WatchDocument {
        let document = self.samples.document(self.target);
        let duration_s = self.start.elapsed().as_secs_f64();
        WatchDocument { settings: self.settings, duration_s, ..document }
    }
}

fn keep(keeper: &mut dyn Listener, event: &Event) {
    // A directory that cannot be written any more is said at the end.
    let _is_lost = keeper.store(event);
}
