//! What is kept of a tuning: samples, changes, what it came to.
//!
//! Invariant: however long it lasts, what is held in memory and kept in the directory is bounded.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use iostrata_run::{Event, TunedSetting, Unavailable, WatchDocument, WatchSample, WatchTarget};
use iostrata_study::Listener;
use iostrata_target::{TargetFacts, TargetSample};
use iostrata_watch::{TimedSample, Watch, WatchRecord};

use crate::watch_command::source::target_of;
use crate::watch_command::target_host::TargetHost;

/// So many changes are kept as they are made, which a kill leaves, and as many of the last ones are
/// in the document.
const CHANGES_MOST: usize = 10_000;

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
    /// The last changes, and how many there were.
    settings: VecDeque<TunedSetting>,
    changes: u64,
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
            settings: VecDeque::new(),
            changes: 0,
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
        if self.changes < CHANGES_MOST as u64 {
            keep(self.keeper, &Event::Tuned(one.clone()));
        } else {
            self.settings.pop_front();
        }
        self.changes += 1;
        self.settings.push_back(one);
    }

    /// How many changes were made.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// What the server does not tell, and why.
    pub fn note_missing(&mut self, missing: Vec<String>) {
        self.target.missing = missing;
    }

    /// What came of it.
    pub fn document(self) -> WatchDocument {
        let mut document = self.samples.document(self.target);
        let (duration_s, settings) = (self.start.elapsed().as_secs_f64(), Vec::from(self.settings));
        let left_out = self.changes - settings.len() as u64;
        if left_out > 0 {
            let what = format!("the first {left_out} of {} changes", self.changes);
            let why = format!("only the last {CHANGES_MOST} are kept");
            document.unavailable.push(Unavailable::impossible(what, why, None));
        }
        WatchDocument { settings, duration_s, ..document }
    }
}

fn keep(keeper: &mut dyn Listener, event: &Event) {
    // A directory that cannot be written any more is said at the end.
    let _is_lost = keeper.store(event);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts what is kept.
    #[derive(Default)]
    struct Counted(usize);

    impl Listener for Counted {
        fn progress(&mut self, _: f64, _: &str) {}

        fn store(&mut self, _: &Event) -> Result<(), iostrata_study::StudyError> {
            self.0 += 1;
            Ok(())
        }
    }

    #[test]
    fn changes_of_months_are_bounded() {
        let mut kept = Counted::default();
        let mut record = TuneRecord::begin(&TargetFacts::default(), false, &mut kept);
        for second in 0..CHANGES_MOST as u64 + 5 {
            let (name, text) = ("innodb_io_capacity".to_owned(), String::new);
            let t_s = second as f64;
            record.changed(TunedSetting { t_s, name, from: text(), to: text(), why: text() });
        }
        assert_eq!(record.changes(), CHANGES_MOST as u64 + 5);
        let document = record.document();
        assert_eq!((document.settings.len(), document.settings[0].t_s), (CHANGES_MOST, 5.0));
        assert!(document.unavailable[0].what.contains("first 5 of"), "{document:?}");
        assert_eq!(kept.0, 1 + CHANGES_MOST);
    }
}
