//! From one sample to the next: what is printed of each.

use iostrata_run::{
    Event, FileIo, FileTable, SampleSpan, SessionWaits, StallCause, StallSnapshot, StatementDigest,
    TargetSample, TransactionStall, WatchSample,
};

use crate::watch::moment::{ProcessorWaits, SampleMoment, TimedSample};
use crate::watch::stalls::Stalls;
use crate::watch::totals::Totals;

/// A target that is watched.
#[derive(Debug, Default)]
pub struct Watch {
    last: Option<SampleMoment>,
    /// Its last sample, which is reused where the target took no new one.
    said: WatchSample,
    totals: Totals,
    /// When it last reported what it did with its files, in seconds on the clock of its samples.
    files: Option<(f64, FileTable)>,
    stalls: Stalls,
    snapshot: Option<LastSnapshot>,
}

/// The activity when the last stall began, or when its cause first showed.
#[derive(Debug)]
struct LastSnapshot {
    snapshot: StallSnapshot,
    /// The cause that the stall had then.
    cause: StallCause,
    /// When its statements were counted again.
    recount: Recount,
}

/// How long a stall lasts until its statements are counted once more during it, in seconds.
const RECOUNT_S: f64 = 10.0;

/// When statements of a stall were counted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recount {
    /// Not yet.
    Never,
    /// During the stall.
    Meanwhile,
    /// After its end.
    AtEnd,
}

/// What a sample came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchStep {
    /// The sample with its rates.
    pub sample: WatchSample,
    /// The current stall, or the one that has just ended, as far as it is known. A later one with
    /// the same start replaces it.
    pub stall: Option<TransactionStall>,
    /// The activity when it began, where it was queried now. A later one of the same stall replaces
    /// it.
    pub snapshot: Option<Box<StallSnapshot>>,
    /// What the target did since watching began.
    pub totals: Box<Totals>,
}

impl WatchStep {
    /// The event that keeps it.
    pub fn event(&self) -> Event {
        Event::Sampled {
            sample: Box::new(self.sample.clone()),
            stall: self.stall.clone(),
            snapshot: self.snapshot.clone(),
        }
    }
}

impl Watch {
    /// Takes the next sample.
    pub fn take(&mut self, seen: TimedSample) -> WatchStep {
        let TimedSample { at_s, sample, sample_us, on_host } = seen;
        self.totals.add_host(&on_host);
        let (mut shown, stall) = match sample {
            Ok(sample) => {
                let stolen_pct = on_host.held.cpu_stolen_pct;
                let processors = ProcessorWaits::of(&on_host.held);
                let stall = self.answered(SampleMoment { at_s, sample, stolen_pct, processors });
                (self.said.clone(), stall)
            }
            Err(error) => {
                let mut refused =
                    WatchSample { error: Some(error.to_string()), ..WatchSample::default() };
                // What was counted so far stays known.
                let nothing = TargetSample::default();
                self.fill(&mut refused, &SampleSpan::first(&nothing));
                (refused, self.stalls.refused(at_s, error.code))
            }
        };
        (shown.t_s, shown.sample_us) = (at_s, sample_us);
        on_host.beside(&mut shown);
        self.totals.count_sample(&shown);
        WatchStep { sample: shown, stall, snapshot: None, totals: Box::new(self.totals.clone()) }
    }

    fn answered(&mut self, moment: SampleMoment) -> Option<TransactionStall> {
        let last = self.last.replace(moment);
        let is_same = last.is_some_and(|last| {
            moment.sample.taken_us.is_some() && last.sample.taken_us == moment.sample.taken_us
        });
        self.said.restarted = false;
        if is_same {
            return None;
        }
        let restarted = last.is_some_and(|last| moment.sample.was_restarted_since(&last.sample));
        let span = match &last {
            Some(last) => moment.since(last),
            None => SampleSpan::first(&moment.sample),
        };
        self.totals.add(&span);
        let files = self.file_io(&moment, restarted);
        let mut said = WatchSample { files, restarted, ..WatchSample::default() };
        self.fill(&mut said, &span);
        if restarted {
            self.stalls.forget();
        }
        let found = self.stalls.take(moment);
        said.stalled = found.is_going;
        if let Some(going) = found.stall.as_ref().filter(|_| found.is_going) {
            said.stall_cause = Some(going.cause);
            said.stall_evidence = Some(going.evidence.clone());
        }
        self.said = said;
        found.stall
    }

    /// Sets the figures of a span.
    fn fill(&self, sample: &mut WatchSample, span: &SampleSpan<'_>) {
        sample.fill(|place, figure| figure.value(span, self.totals.count(place)));
    }

    /// Whether it is time to query what sessions wait for, which costs more than a sample: once
    /// when a stall begins, and while its cause is not known.
    pub fn needs_session_waits(&self) -> bool {
        self.stalls.needs_session_waits()
    }

    /// The sample that was taken last, in which the target stalls, once it is known what sessions
    /// wait for.
    pub fn explain(&mut self, watched: &mut WatchStep, waits: SessionWaits) {
        let Some(stall) = self.stalls.explain(waits) else { return };
        for sample in [&mut self.said, &mut watched.sample] {
            sample.stalled = true;
            sample.stall_cause = Some(stall.cause);
            sample.stall_evidence = Some(stall.evidence.clone());
        }
        watched.stall = Some(stall);
    }

    /// Whether a stall goes on that has no snapshot yet, after its last sample; or none since
    /// sessions began to wait for something, while before only the machine was busy.
    pub fn needs_snapshot(&self, watched: &WatchStep) -> bool {
        let of_machine = |cause| matches!(cause, StallCause::Unknown | StallCause::Processors);
        let is_new = |stall: &TransactionStall| {
            self.snapshot.as_ref().is_none_or(|last| {
                let is_other = last.snapshot.stall_t_s != stall.t_s;
                is_other || of_machine(last.cause) && !of_machine(stall.cause)
            })
        };
        watched.sample.stalled && watched.stall.as_ref().is_some_and(is_new)
    }

    /// Keeps the activity when the stall of the last sample began, with that sample.
    pub fn keep_snapshot(&mut self, watched: &mut WatchStep, snapshot: StallSnapshot) {
        let Some(stall) = &watched.stall else { return };
        let (cause, stall_t_s, t_s) = (stall.cause, stall.t_s, watched.sample.t_s);
        let snapshot = StallSnapshot { stall_t_s, t_s, ..snapshot };
        watched.snapshot = Some(Box::new(snapshot.clone()));
        self.snapshot = Some(LastSnapshot { snapshot, cause, recount: Recount::Never });
    }

    /// Whether it is time to count the statements of the snapshot again: once while a long stall
    /// goes on, and once at its end.
    pub fn needs_statements(&self, watched: &WatchStep) -> bool {
        let Some(LastSnapshot { snapshot, recount, .. }) = &self.snapshot else { return false };
        let stall = watched.stall.as_ref().filter(|stall| stall.t_s == snapshot.stall_t_s);
        match (stall, watched.sample.stalled) {
            (Some(stall), true) => *recount == Recount::Never && stall.length_s >= RECOUNT_S,
            (Some(_), false) => *recount != Recount::AtEnd,
            (None, _) => false,
        }
    }

    /// Keeps what they came to in so many seconds.
    pub fn keep_statements(
        &mut self,
        watched: &mut WatchStep,
        (statements, seconds): (Vec<StatementDigest>, f64),
    ) {
        let Some(LastSnapshot { snapshot, recount, .. }) = &mut self.snapshot else { return };
        *recount = if watched.sample.stalled { Recount::Meanwhile } else { Recount::AtEnd };
        (snapshot.statements, snapshot.statements_s) = (statements, Some(seconds));
        watched.snapshot = Some(Box::new(snapshot.clone()));
    }

    /// File I/O since the last report. A target that is queried rarely, because it takes long to
    /// answer, is taken to go on as before.
    fn file_io(&mut self, now: &SampleMoment, restarted: bool) -> Option<FileIo> {
        let before = if restarted { self.files.take() } else { self.files };
        let Some(table) = now.sample.files else {
            return self.said.files.take().filter(|_| !restarted);
        };
        let at_s = now.taken_s();
        self.files = Some((at_s, table));
        let (before_s, before) = before.filter(|(before_s, _)| !restarted && at_s > *before_s)?;
        let grown = table.since(&before)?;
        self.totals.add_files(&grown);
        Some(FileIo::of(&grown, at_s - before_s))
    }
}

#[cfg(test)]
mod tests;
