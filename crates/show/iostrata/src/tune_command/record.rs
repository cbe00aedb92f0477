//! What is kept of a tuning: samples, changes, what it came to.

use std::collections::VecDeque;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use iostrata_database::target::{TargetFacts, TargetSample};
use iostrata_database::tune::{Controller, LeverValues, Look, Rest, Vitals};
use iostrata_database::watch::TimedSample;
use iostrata_diagnose::{CommitTimes, tuned_figures};
use iostrata_run::{StallCause, TunedFigure, TunedSetting, WatchDocument, WatchSample};
use iostrata_show::metrics::TuneState;
use iostrata_stats::Measured;
use iostrata_stats::units::{count, times};
use iostrata_study::Listener;

use super::plan::{SeenDisk, TunePlan};
use crate::args::Printing;
use crate::display::{Display, print_text};
use crate::server_group::lines;
use crate::watch_command::recorder::{Export, ObservedTarget, Recorder, TargetHost};
use crate::watch_command::source::target_of;

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
    /// Commits as last reported, and those since without tuning and with it.
    commits: [CommitTimes; 3],
    export: Option<Export>,
}

impl<'a> TuneRecord<'a> {
    /// Begins now; figures of the host are added for a server on this host.
    pub fn begin(
        facts: &TargetFacts,
        plan: &TunePlan,
        keeper: &'a mut (dyn Listener + Send),
    ) -> Self {
        let target = target_of(facts);
        let mut recorder = Recorder::new(Some(keeper));
        // A directory that cannot be written is reported at the end.
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

    /// How long commits took since the server was started, as it reports; those since the last
    /// report were tuned ones, or not.
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

    /// What the server does not report, and why.
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

/// Prints lines: on stdout, or on stderr where a document is printed.
pub struct Narrator<'a> {
    display: &'a Display,
    is_document: bool,
    is_quiet: bool,
}

impl<'a> Narrator<'a> {
    /// As the user wants it printed.
    pub fn new(display: &'a Display, printing: &Printing) -> Self {
        Self { display, is_document: printing.json, is_quiet: printing.quiet }
    }

    /// A line.
    pub fn say(&self, text: &str) {
        if self.is_document {
            self.display.note(text);
        } else if !self.is_quiet {
            // The reader of stdout may be gone; tuning goes on.
            let _unread = print_text(&format!("{text}\n"));
        }
    }

    /// How a person puts the server back, should this program not do it.
    pub fn by_hand(&self, server: &str, statements: &[String]) {
        self.display.note(&format!(
            "Every setting goes back when tune ends. Should it be killed, iostrata restore \
             --target '{server}' puts them back, or by hand, if the server was not restarted \
             since:{}",
            lines(statements)
        ));
    }

    /// What becomes of the server when this host dies.
    pub fn lease(&self, lease: Result<(&str, u32), &String>) {
        self.display.note(&match lease {
            Ok((event, seconds)) => format!(
                "While it is tuned, the server restores its settings if tune is silent for \
                 {seconds} s, by its event {event}."
            ),
            Err(why) => format!(
                "No lease ({why}): should this host die while the server is tuned, its settings \
                 stay until iostrata restore runs here, or a person puts them back."
            ),
        });
    }

    /// What keeps `tune` from setting the server; a dry run goes on.
    pub fn obstacle(&self, why: &str) {
        self.say(&format!("In the way of tuning it: {why}"));
    }

    /// A change that was made, or would be.
    pub fn changed(&self, one: &TunedSetting, is_dry: bool) {
        let TunedSetting { t_s, name, from, to, why } = one;
        let would = if is_dry { " (not set: --dry-run)" } else { "" };
        self.say(&format!("[ {t_s:.0}s ] {name}: {from} -> {to}{would}; {why}"));
    }

    /// How the server is.
    pub fn status(&self, t_s: f64, now: &Vitals, tps: Option<f64>, rest: Option<Rest>) {
        let tps = tps.map_or_else(String::new, |tps| format!(", {tps:.0} tps"));
        let left = rest.map_or_else(String::new, |why| format!("; left alone: {why}"));
        self.say(&format!("[ {t_s:.0}s ] {now}{tps}{left}"));
    }

    /// What came of it.
    pub fn summary(&self, document: &WatchDocument, changes: u64, is_dry: bool) {
        let per_txn = document.pages_written_per_txn.map_or_else(String::new, |pages| {
            format!(", {pages:.2} pages written per transaction")
        });
        let tps = document.tps.map_or_else(String::new, |tps| format!(", {tps:.0} tps"));
        let tuned = match (is_dry, changes) {
            (true, _) => "watched, nothing was set (--dry-run)".to_owned(),
            (false, 0) => "watched, nothing had to be set".to_owned(),
            (false, changes) => format!("tuned, settings changed {}", times(changes)),
        };
        let stalled = match document.stalls.len() as u64 {
            0 => "it never stalled".to_owned(),
            stalls => format!("it stalled {}", times(stalls)),
        };
        let figures = &document.tuned;
        if figures.iter().any(|one| one.untuned.is_some()) {
            let is_known = |one: &&TunedFigure| one.tuned.is_some() || one.untuned.is_some();
            figures.iter().filter(is_known).for_each(|one| self.say(&beside(one)));
        } else if !figures.is_empty() {
            self.say(
                "Savings are not known: no similar load ran untuned for a full cycle of the redo",
            );
        }
        let lasted = document.duration_s;
        self.say(&format!("{lasted:.0} s: {tuned}{tps}{per_txn}; {stalled}"));
    }
}

/// A figure as it was tuned, and as it was with the server's own settings.
fn beside(one: &TunedFigure) -> String {
    let side = |side: &Option<Measured>| match side {
        None => "not known".to_owned(),
        Some(Measured { value, ci95: Some([low, high]), .. }) => {
            format!("{} ({} to {})", count(*value), count(*low), count(*high))
        }
        Some(side) => count(side.value),
    };
    let TunedFigure { title, unit, untuned, tuned, .. } = one;
    format!("{title}, {unit}: {} tuned, {} untuned", side(tuned), side(untuned))
}

#[cfg(test)]
mod tests {
    use iostrata_stats::Verdicts;

    use super::*;

    #[test]
    fn what_is_not_known_is_said_beside_what_is() {
        let tuned = Measured::new(434.4, [431.0, 437.2], 30, Verdicts::none());
        let worst = Measured::without_interval(61.25, 300, Verdicts::none());
        let one = TunedFigure {
            title: "worst two seconds".to_owned(),
            unit: "transactions/s".to_owned(),
            tuned: Some(tuned),
            ..TunedFigure::default()
        };
        let begins = "worst two seconds, transactions/s: 434 (431 to 437) tuned,";
        assert_eq!(beside(&one), format!("{begins} not known untuned"));
        let one = TunedFigure { untuned: Some(worst), ..one };
        assert_eq!(beside(&one), format!("{begins} 61.2 untuned"));
    }
}
