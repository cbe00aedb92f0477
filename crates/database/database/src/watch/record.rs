//! Everything that was watched of one target, as the document that is kept.
//!
//! Invariant: a recording of months fits into memory: the longer it lasts, the fewer samples are
//! kept, evenly spaced; what is summed up is summed up over all of them. Of the settings that were
//! changed the last ones are kept.

use std::collections::VecDeque;

use iostrata_run::{
    Event, SamplerCost, StallSnapshot, TransactionStall, TunedSetting, Unavailable, WatchDocument,
    WatchSample, WatchTarget,
};

use crate::watch::samples::WatchStep;

/// When there are so many samples, every second one is dropped.
const KEPT_MAX: usize = 10_000;
/// So many changes of settings are kept as they are made, which a kill leaves, and as many of the
/// last ones are in the document.
const CHANGES_MAX: usize = 10_000;
/// Snapshots of stalls that are kept.
const SNAPSHOTS_MAX: usize = 100;

/// Collects what was watched.
#[derive(Clone, Debug)]
pub struct WatchRecord {
    samples: Vec<WatchSample>,
    /// Of so many samples one is kept.
    every: u64,
    taken: u64,
    failed: u64,
    last_s: Option<f64>,
    sample_us_sum: f64,
    sample_us_max: f64,
    age_pct_max: Option<f64>,
    stalls: Vec<TransactionStall>,
    /// Those of the last stalls.
    snapshots: VecDeque<StallSnapshot>,
    transactions: Sum,
    pages: Sum,
    /// The last changes of settings, and their number.
    settings: VecDeque<TunedSetting>,
    changes: u64,
}

/// A count over the time in which it was reported.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: f64,
    seconds: f64,
}

impl Sum {
    fn add(&mut self, per_s: Option<f64>, seconds: f64) {
        if let Some(per_s) = per_s {
            self.count += per_s * seconds;
            self.seconds += seconds;
        }
    }
}

impl Default for WatchRecord {
    fn default() -> Self {
        Self {
            samples: Vec::new(),
            every: 1,
            taken: 0,
            failed: 0,
            last_s: None,
            sample_us_sum: 0.0,
            sample_us_max: 0.0,
            age_pct_max: None,
            stalls: Vec::new(),
            snapshots: VecDeque::new(),
            transactions: Sum::default(),
            pages: Sum::default(),
            settings: VecDeque::new(),
            changes: 0,
        }
    }
}

impl WatchRecord {
    /// Adds what a sample came to. Gives whether the sample itself is among those that are kept.
    pub fn add(&mut self, watched: &WatchStep) -> bool {
        let sample = &watched.sample;
        let seconds = self.last_s.replace(sample.t_s).map_or(0.0, |last_s| sample.t_s - last_s);
        self.transactions.add(sample.tps, seconds);
        self.pages.add(sample.flushed_pages_per_s, seconds);
        let ages = [self.age_pct_max, sample.checkpoint_age_pct];
        self.age_pct_max = ages.into_iter().flatten().reduce(f64::max);
        self.sample_us_sum += sample.sample_us;
        self.sample_us_max = self.sample_us_max.max(sample.sample_us);
        self.failed += u64::from(sample.error.is_some());
        if let Some(stall) = &watched.stall {
            // An ongoing one replaces what was known of it.
            match self.stalls.last_mut().filter(|last| last.t_s == stall.t_s) {
                Some(last) => *last = stall.clone(),
                None => self.stalls.push(stall.clone()),
            }
        }
        if let Some(snapshot) = &watched.snapshot {
            self.keep_snapshot(snapshot);
        }
        let is_kept = self.taken.is_multiple_of(self.every);
        if is_kept {
            self.keep(sample);
        }
        self.taken += 1;
        is_kept
    }

    /// Adds a change of a setting. Gives whether it is among the first, which are kept at once.
    pub fn changed(&mut self, one: TunedSetting) -> bool {
        let is_kept = self.changes < CHANGES_MAX as u64;
        if !is_kept {
            self.settings.pop_front();
        }
        self.changes += 1;
        self.settings.push_back(one);
        is_kept
    }

    /// How many settings were changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The document of a run that was killed, of its events; nothing where they are of no target.
    pub fn document_of(events: &[Event]) -> Option<WatchDocument> {
        let (mut record, mut target) = (Self::default(), None);
        for event in events {
            match event {
                Event::Watching(one) => target = Some(one),
                Event::Sampled { sample, stall, snapshot } => {
                    let (sample, stall) = ((**sample).clone(), stall.clone());
                    let snapshot = snapshot.clone();
                    record.add(&WatchStep { sample, stall, snapshot, ..WatchStep::default() });
                }
                Event::Tuned(one) => {
                    record.changed(one.clone());
                }
                _ => {}
            }
        }
        Some(record.document((**target?).clone()))
    }

    fn keep_snapshot(&mut self, snapshot: &StallSnapshot) {
        let is_same = |last: &&mut StallSnapshot| last.stall_t_s == snapshot.stall_t_s;
        match self.snapshots.back_mut().filter(is_same) {
            Some(last) => *last = snapshot.clone(),
            None => self.snapshots.push_back(snapshot.clone()),
        }
        if self.snapshots.len() > SNAPSHOTS_MAX {
            self.snapshots.pop_front();
        }
    }

    fn keep(&mut self, sample: &WatchSample) {
        if self.samples.len() == KEPT_MAX {
            let mut at = 0;
            self.samples.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
        self.samples.push(sample.clone());
    }

    /// The document of it.
    pub fn document(&self, target: WatchTarget) -> WatchDocument {
        let (transactions, pages) = (self.transactions, self.pages);
        let has_time = transactions.seconds > 0.0;
        let per_txn = transactions.count > 0.0 && pages.seconds > 0.0;
        let left_out = self.changes - self.settings.len() as u64;
        let unavailable = (left_out > 0).then(|| {
            let what = format!("the first {left_out} of {} changes", self.changes);
            Unavailable::impossible(what, format!("only the last {CHANGES_MAX} are kept"), None)
        });
        WatchDocument {
            target,
            duration_s: self.last_s.unwrap_or_default(),
            samples: self.samples.clone(),
            stalls: self.stalls.clone(),
            snapshots: self.snapshots.iter().cloned().collect(),
            // The sum of none is -0.
            stalled_s: self.stalls.iter().map(|stall| stall.length_s).sum::<f64>() + 0.0,
            checkpoint_age_pct_max: self.age_pct_max,
            sampler: SamplerCost {
                samples: self.taken,
                failed: self.failed,
                sample_us_mean: self.sample_us_sum / self.taken.max(1) as f64,
                sample_us_max: self.sample_us_max,
            },
            tps: has_time.then(|| transactions.count / transactions.seconds),
            pages_written_per_txn: per_txn.then(|| pages.count / transactions.count),
            settings: self.settings.iter().cloned().collect(),
            unavailable: unavailable.into_iter().collect(),
            ..WatchDocument::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use iostrata_run::StallCause;

    use super::*;

    fn watched(t_s: f64, tps: Option<f64>, stall: Option<(f64, f64)>) -> WatchStep {
        let flushed_pages_per_s = tps.map(|tps| 2.0 * tps);
        let sample = WatchSample { t_s, tps, flushed_pages_per_s, ..WatchSample::default() };
        let stall = stall.map(|(t_s, length_s)| {
            let (cause, evidence) = (StallCause::RedoFull, "full".to_owned());
            TransactionStall { t_s, length_s, min_tps: 0.0, cause, evidence }
        });
        WatchStep { sample, stall, ..WatchStep::default() }
    }

    #[test]
    fn rates_are_weighed_by_time_and_a_stall_is_kept_once() {
        let mut record = WatchRecord::default();
        for one in [
            watched(0.0, None, None),
            watched(1.0, Some(100.0), None),
            watched(4.0, Some(20.0), Some((1.0, 3.0))),
            watched(5.0, None, Some((1.0, 4.0))),
            watched(6.0, Some(40.0), Some((5.5, 0.5))),
        ] {
            record.add(&one);
        }
        let document = record.document(WatchTarget::default());
        // 100 in one second, 60 in three, 40 in one; a second without a rate is left out.
        assert_eq!(document.tps, Some(40.0));
        assert_eq!(document.pages_written_per_txn, Some(2.0));
        assert_eq!((document.duration_s, document.samples.len()), (6.0, 5));
        let stalls: Vec<(f64, f64)> =
            document.stalls.iter().map(|one| (one.t_s, one.length_s)).collect();
        assert_eq!(stalls, [(1.0, 4.0), (5.5, 0.5)]);
        assert_eq!(document.stalled_s, 4.5);
        assert_eq!(WatchRecord::default().document(WatchTarget::default()).tps, None);
    }

    #[test]
    fn a_long_recording_keeps_evenly_spaced_samples_and_sums_of_all() {
        let mut record = WatchRecord::default();
        let seconds = 5 * KEPT_MAX / 2;
        for second in 0..=seconds {
            let mut one = watched(second as f64, (second > 0).then_some(10.0), None);
            // Reported by a sample that is not kept.
            one.sample.checkpoint_age_pct = Some(if second == 7 { 99.0 } else { 50.0 });
            one.sample.sample_us = if second == 9 { 500.0 } else { 100.0 };
            one.sample.error = (second % 100 == 3).then(|| "gone".to_owned());
            record.add(&one);
        }
        let document = record.document(WatchTarget::default());
        assert!((KEPT_MAX / 2..=KEPT_MAX).contains(&document.samples.len()));
        assert!(document.stalled_s.is_sign_positive(), "{:?}", document.stalled_s);
        assert!(document.samples.windows(2).all(|pair| pair[1].t_s - pair[0].t_s == 4.0));
        assert_eq!((document.samples[0].t_s, document.duration_s), (0.0, seconds as f64));
        assert_eq!((document.tps, document.checkpoint_age_pct_max), (Some(10.0), Some(99.0)));
        let SamplerCost { samples, failed, sample_us_max, .. } = document.sampler;
        assert_eq!((samples, failed, sample_us_max), (seconds as u64 + 1, 250, 500.0));
    }

    #[test]
    fn changes_of_months_are_bounded() {
        let mut record = WatchRecord::default();
        let all = 0..CHANGES_MAX as u64 + 5;
        let kept = all.filter(|second| {
            let t_s = *second as f64;
            record.changed(TunedSetting { t_s, ..TunedSetting::default() })
        });
        assert_eq!((kept.count(), record.changes()), (CHANGES_MAX, CHANGES_MAX as u64 + 5));
        let document = record.document(WatchTarget::default());
        assert_eq!((document.settings.len(), document.settings[0].t_s), (CHANGES_MAX, 5.0));
        assert!(document.unavailable[0].what.contains("first 5 of"), "{document:?}");
    }
}
