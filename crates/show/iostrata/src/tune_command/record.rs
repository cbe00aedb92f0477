//! What is kept of a tuning: every sample, every change, what it came to.

use std::time::{Duration, Instant};

use iostrata_run::{TunedSetting, WatchDocument, WatchSample, WatchTarget};
use iostrata_target::{TargetFacts, TargetSample};
use iostrata_watch::{Record as Samples, Seen, Watch};

/// Gathers the document.
pub struct Record {
    start: Instant,
    watch: Watch,
    samples: Samples,
    last: Option<WatchSample>,
    target: WatchTarget,
    settings: Vec<TunedSetting>,
}

impl Record {
    /// Begins now.
    pub fn begin(facts: &TargetFacts) -> Self {
        let is_kept = |name: &str| name.starts_with("innodb_");
        let settings = facts.settings.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
        let target = WatchTarget {
            name: facts.name.clone(),
            flavour: facts.flavour.clone(),
            version: facts.version.clone(),
            settings,
            missing: Vec::new(),
        };
        Self {
            start: Instant::now(),
            watch: Watch::default(),
            samples: Samples::default(),
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
        let watched = self.watch.take(Seen {
            at_s: self.at_s(),
            sample: Ok(*sample),
            sample_us: took.as_secs_f64() * 1e6,
            device: None,
        });
        self.samples.add(&watched);
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
        self.settings.push(one);
    }

    /// What the server does not tell, and why.
    pub fn note_missing(&mut self, missing: Vec<String>) {
        self.target.missing = missing;
    }

    /// What came of it.
    pub fn document(self) -> WatchDocument {
        WatchDocument { settings: self.settings, ..self.samples.document(self.target) }
    }
}
