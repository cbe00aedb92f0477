//! What is kept of a tuning: samples, changes, what it came to.

use std::collections::VecDeque;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use iostrata_database::target::{TargetFacts, TargetSample};
use iostrata_database::tune::{Controller, LeverValues, Look};
use iostrata_database::watch::TimedSample;
use iostrata_diagnose::{CommitTimes, tuned_figures};
use iostrata_run::{StallCause, TunedSetting, WatchDocument, WatchSample};
use iostrata_show::metrics::TuneState;
use iostrata_study::Listener;

use super::disk::SeenDisk;
use super::plan::TunePlan;
use crate::display::Display;
use crate::watch_command::export::Export;
use crate::watch_command::recorder::{ObservedTarget, Recorder};
use crate::watch_command::source::target_of;
use crate::watch_command::target_host::TargetHost;

/// So many times of being tuned are kept.
const SPANS_MOST: usize = 1_000;

/// Gathers the document.
pub struct TuneRecord<'a> {
    start: Instant,
    observed: ObservedTarget,
    recorder: Recorder<'a>,
    disk: SeenDisk,
    last: Option<WatchSample>,
    is_dry: bool,
    /// Whether the server is tuned; never in a dry run.
    is_active: bool,
    put_backs: u64,
    /// When the server was tuned, the last times.
    spans: VecDeque<[f64; 2]>,
    /// Commits as last told, and those since without tuning and with it.
    commits: [CommitTimes; 3],
    export: Option<Export>,
}

impl<'a> TuneRecord<'a> {
    /// Begins now; a server on this host has that beside it.
    pub fn begin(
        facts: &TargetFacts,
        plan: &TunePlan,
        keeper: &'a mut (dyn Listener + Send),
    ) -> Self {
        let target = target_of(facts);
        let mut recorder = Recorder::new(Some(keeper));
        // A directory that cannot be written is said at the end.
        let _is_lost = recorder.begin(&target);
        let observed =
            ObservedTarget::new(target, TargetHost::of_server(facts, plan.address.is_local()));
        Self {
            start: Instant::now(),
            observed,
            recorder,
            disk: SeenDisk::default(),
            last: None,
            is_dry: plan.is_dry,
            is_active: false,
            put_backs: 0,
            spans: VecDeque::new(),
            commits: Default::default(),
            export: None,
        }
    }

    /// Exports the same for Prometheus from now on.
    pub fn export_to(&mut self, export: Export, display: &Display) {
        export.begin(std::slice::from_ref(&self.observed.target), display);
        self.export = Some(export);
    }

    /// What became of the server in a step. Gives whether it was taken over, or got its own
    /// settings back.
    pub fn stepped(
        &mut self,
        controller: &Controller,
        (present, has_lease): (&LeverValues, bool),
    ) -> bool {
        let is_active = controller.is_active() && !self.is_dry;
        let was_active = std::mem::replace(&mut self.is_active, is_active);
        self.put_backs += u64::from(was_active && !self.is_active);
        let at_s = self.at_s();
        match self.spans.back_mut().filter(|_| was_active) {
            Some(span) => span[1] = at_s,
            None if self.is_active => {
                if self.spans.len() == SPANS_MOST {
                    self.spans.pop_front();
                }
                self.spans.push_back([at_s; 2]);
            }
            None => {}
        }
        if let Some(export) = &self.export {
            let state = TuneState {
                is_active: self.is_active,
                set_point_ratio: controller.set_point_pct() / 100.0,
                changes: self.changes(),
                put_backs: self.put_backs,
                has_lease,
                settings: match self.is_dry {
                    // These are those that it would have.
                    true => Vec::new(),
                    false => present.iter().map(|(lever, now)| (lever.name(), now)).collect(),
                },
            };
            export.board().tuned(0, state);
        }
        was_active != self.is_active
    }

    /// How long commits took since the server was started, as it tells; those since it was asked
    /// last were tuned ones, or not.
    pub fn committed(&mut self, times: Option<CommitTimes>, are_tuned: Option<bool>) {
        let [last, sides @ ..] = &mut self.commits;
        let times = times.unwrap_or_default();
        if let Some(are_tuned) = are_tuned {
            for (us, count) in &times {
                let more = count.saturating_sub(last.get(us).copied().unwrap_or(0));
                *sides[usize::from(are_tuned)].entry(*us).or_default() += more;
            }
        }
        *last = times;
    }

    /// Whether the server is tuned.
    pub fn is_active(&self) -> bool {
        self.is_active
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
        if let Some(export) = &self.export {
            export.board().take(0, &watched);
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
        let document = self.recorder.document(self.observed.target);
        let (spans, [_, own, tuned]) = (Vec::from(self.spans), &self.commits);
        let tuned = tuned_figures(&document, &spans, [own, tuned]);
        WatchDocument { duration_s, tuned, ..document }
    }
}

/// What the controller sees of a server of which nothing else is known yet.
pub fn look<'a>(at_s: f64, sample: &'a TargetSample, present: &'a LeverValues) -> Look<'a> {
    let utc_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (read_ms, seeks, is_stalled) = (None, None, false);
    Look { now_us: (at_s * 1e6) as u64, sample, present, read_ms, seeks, is_stalled, utc_s }
}
