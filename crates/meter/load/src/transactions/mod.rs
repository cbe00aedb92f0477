//! A load of transactions: terminals, sessions and a schedule between them.
//!
//! Purpose: drive whatever a workload runs on a database, in a closed loop, at a rate, or as people
//! at terminals do. Invariant: it uses a database and a workload only through [`source`]'s traits;
//! figures are made as those of requests are.

mod agenda;
mod crew;
mod driver;
mod source;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostrata_plan::{TransactionPacing, TransactionSpec};
use iostrata_stats::{StoppingRule, Verdict};

use crate::clock::{Clock, ClockFacts, MonotonicClock, TscClock, clock_facts};
use crate::controller::{
    Controller, Length, Surroundings, WindowEnd, WindowObserver, transactions_warm_up, warm_up_cuts,
};
use crate::error::LoadError;
use crate::figures::WindowFigures;
use crate::load::Load;
use crate::outcome::{CpuOf, LoadFailure, StreamOptions, StreamOutcome, WindowOutcome};
use crate::recorder::Recorder;
use crate::segment::{HistogramNeeds, Segment};
use crate::shared_stats::{SharedStats, StatsLayout, WorkerState};
use crate::tally::Span;
use agenda::{Agenda, OpenLoop};
use crew::{Crew, Events, Failures, LastLook, Live, LostSessions};
use driver::Driver;

pub use crew::LiveFigures;
pub use source::{
    FailedTransaction, NextTransaction, Ran, Reach, SessionError, Settlement, TransactionCost,
    TransactionEnd, TransactionSource, TransactionWorker, Turn,
};

#[cfg(test)]
mod tests;

/// Transactions of a workload on a target.
#[derive(Clone, Copy)]
pub struct TransactionLoad<'a> {
    source: &'a dyn TransactionSource,
    spec: &'a TransactionSpec,
    reaches_storage: bool,
}

impl<'a> TransactionLoad<'a> {
    /// Transactions as a spec has them. `reaches_storage`: whether the target is on this machine,
    /// so that the machine is worth watching.
    pub fn new(
        source: &'a dyn TransactionSource,
        spec: &'a TransactionSpec,
        reaches_storage: bool,
    ) -> Self {
        Self { source, spec, reaches_storage }
    }
}

impl Load for TransactionLoad<'_> {
    fn reaches_storage(&self) -> bool {
        self.reaches_storage
    }

    fn run(
        &self,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
    ) -> Result<WindowFigures, LoadError> {
        let (source, spec, facts) = (self.source, self.spec, clock_facts());
        let outcome = match facts.tsc_ns_per_tick {
            Some(ns) => TransactionWindow::new(source, spec, facts, TscClock::new(ns))?
                .run(surroundings, observer)?,
            None => TransactionWindow::new(source, spec, facts, MonotonicClock)?
                .run(surroundings, observer)?,
        };
        Ok(WindowFigures::of(&outcome))
    }
}

// One window of transactions: its workers, its length, and what it brought back.
//
// Invariants: sessions belong to one worker each; a window of given length is exactly so long,
// whether its warm-up was given or found. It computes no figure.

/// Lengths of a slice. Each goes into the step by which windows of steadiness slide.
const SLICES_MS: [u64; 7] = [1, 2, 5, 10, 20, 50, 100];
/// More slices than this only where they are of the longest length.
const SLICES_MAX: u128 = 4096;
/// Most memory of all slices of all workers; beyond it slices are longer still.
const SLICES_BYTES_MAX: u128 = 256 << 20;
/// Fewest slices before a window may end early.
const SLICES_MIN: u32 = 250;
/// Slices that a found warm-up may be longer than a quarter: the end is posted a little late.
const SLACK: u32 = 16;
/// Slices of the longest series that is kept: an hour by tenths of a second.
const SERIES_POINTS_MAX: usize = 36_000;

/// One window of transactions.
struct TransactionWindow<'a, C> {
    source: &'a dyn TransactionSource,
    spec: &'a TransactionSpec,
    facts: &'a ClockFacts,
    crew: Crew,
    pub(crate) controller: Controller<C>,
    /// Slices at which segments begin.
    first_slices: Vec<usize>,
    /// The first slice that counts.
    counted_slice: usize,
}

/// How many threads run so many sessions.
fn workers_of(source: &dyn TransactionSource, threads: u32) -> u32 {
    if source.blocks() {
        return threads;
    }
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    threads.min(cpus)
}

/// Number of the first slot of a worker, and how many it has.
fn slots_of(worker: u32, workers: u32, threads: u32) -> (u32, u32) {
    let first = |worker: u32| (u64::from(threads) * u64::from(worker) / u64::from(workers)) as u32;
    (first(worker), first(worker + 1) - first(worker))
}

/// The length of a slice in a window of this length, for so many words per slice.
fn slice_of(counted: Duration, workers: u32, kinds: usize) -> Duration {
    let slices = |ms: u64| counted.as_millis() / u128::from(ms);
    let ms = SLICES_MS.into_iter().find(|ms| slices(*ms) <= SLICES_MAX).unwrap_or(100);
    let bytes = |ms: u64| slices(ms) * u128::from(workers) * kinds as u128 * 24;
    let longer = std::iter::successors(Some(ms), |ms| Some(ms * 2));
    Duration::from_millis(
        longer.into_iter().find(|ms| bytes(*ms) <= SLICES_BYTES_MAX).unwrap_or(ms),
    )
}

/// The length of a window in slices.
struct Shape {
    /// Most slices.
    slices: u32,
    slice: Duration,
    length: Length,
    counted_slice: usize,
    first_slices: Vec<usize>,
}

impl Shape {
    fn of(spec: &TransactionSpec, workers: u32, kinds: usize) -> Self {
        let counted = spec.runtime.unwrap_or(spec.point_time).max(Duration::from_millis(1));
        let nominal = slice_of(counted, workers, kinds);
        let slices = (counted.as_secs_f64() / nominal.as_secs_f64()).ceil().max(1.0) as u32;
        let slice = counted / slices;
        let found = |length, slices| {
            let first_slices = warm_up_cuts(slices);
            (length, 0, first_slices)
        };
        let (length, counted_slice, first_slices) = match (spec.runtime, spec.warm_up) {
            (None, _) => {
                let checked = (slices / 16).max(SLICES_MIN) as usize;
                let rule = StoppingRule::new(spec.precision, checked);
                found(Length::Precise { rule, planned: slices }, slices)
            }
            (Some(_), None) => found(Length::Behind { slices }, slices),
            (Some(_), Some(warm_up)) => {
                let before = (warm_up.as_secs_f64() / slice.as_secs_f64()).round() as usize;
                let mut first_slices = vec![0, before];
                first_slices.dedup();
                (Length::Exact, before, first_slices)
            }
        };
        let most = match length {
            Length::Behind { .. } => slices + slices / 4 + SLACK,
            Length::Exact | Length::Precise { .. } => slices + counted_slice as u32,
        };
        Self { slices: most, slice, length, counted_slice, first_slices }
    }
}

impl<'a, C: Clock> TransactionWindow<'a, C> {
    pub(crate) fn new(
        source: &'a dyn TransactionSource,
        spec: &'a TransactionSpec,
        facts: &'a ClockFacts,
        clock: C,
    ) -> Result<Self, LoadError> {
        let workers = workers_of(source, spec.threads.max(1));
        Self::with_workers(workers, source, spec, facts, clock)
    }

    /// The same with so many threads.
    fn with_workers(
        workers: u32,
        source: &'a dyn TransactionSource,
        spec: &'a TransactionSpec,
        facts: &'a ClockFacts,
        clock: C,
    ) -> Result<Self, LoadError> {
        let kinds = source.kinds();
        let Shape { slices, slice, length, counted_slice, first_slices } =
            Shape::of(spec, workers, kinds.len());
        let slice_ticks = clock.ticks_in(slice.as_nanos() as u64).max(1);
        let layout =
            StatsLayout { workers, slices, slice_ticks, kinds: kinds.clone(), shown: false };
        let controller = Controller {
            shared: SharedStats::new(layout).map_err(LoadError::SharedStats)?,
            clock,
            length,
            main_workers: (0..workers).collect(),
            main_kinds: kinds,
        };
        let crew = crew(spec, workers);
        Ok(Self { source, spec, facts, crew, controller, first_slices, counted_slice })
    }

    pub(crate) fn run(
        self,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
    ) -> Result<WindowOutcome, LoadError> {
        let mut last = LastLook::new(self.spec.live_percentile);
        let slice_s = self.controller.slice_s();
        let warm_up_s = self.counted_slice as f64 * slice_s;
        let gone_max_s = self.spec.gone_max.as_secs_f64();
        let (mut gone_since_s, mut are_gone, mut is_warm) = (None, false, false);
        let mut at_look = |observer: &mut dyn WindowObserver, open_s: f64| {
            if !is_warm && open_s >= warm_up_s {
                is_warm = true;
                observer.warmed_up();
            }
            if last.is_due(open_s) {
                let figures = last.look(&self.crew.live, open_s);
                observer.live(&LiveFigures { is_warm_up: !is_warm, ..figures });
            }
            if !self.crew.gone.are_all() {
                gone_since_s = None;
                return false;
            }
            are_gone = open_s - *gone_since_s.get_or_insert(open_s) >= gone_max_s;
            are_gone
        };
        let work = |worker: u32| self.work(worker);
        let (all, conducted) = self.controller.run(work, surroundings, observer, &mut at_look)?;
        Ok(self.gather(all, conducted, are_gone))
    }

    /// What one thread does.
    pub(crate) fn work(&self, number: u32) -> Result<Vec<Segment>, LoadError> {
        let shared = &self.controller.shared;
        let _done = PostsDone { shared, number };
        let slots = slots_of(number, self.crew.workers, self.spec.threads.max(1));
        let worker = self.source.worker(slots.0, slots.1).map_err(|source| {
            LoadError::Sessions { first: slots.0 + 1, last: slots.0 + slots.1, source }
        })?;
        let recorded = HistogramNeeds {
            kinds: self.controller.main_kinds.clone(),
            scheduled: self.spec.pacing.is_scheduled(),
            ..HistogramNeeds::default()
        };
        let recorder = Recorder::new(shared.clone(), number, &self.first_slices, &recorded);
        let clock = self.controller.clock.clone();
        let driver = Driver::new(worker, (&self.crew, shared), (clock, recorder), number, slots);
        shared.post_state(number, WorkerState::Ready);
        let span = Span { counted_slice: self.counted_slice, ..Span::default() };
        Ok(driver.run(shared.wait_for_start(), span).into_segments())
    }

    pub(crate) fn gather(
        &self,
        all: Vec<Vec<Segment>>,
        conducted: WindowEnd,
        are_gone: bool,
    ) -> WindowOutcome {
        let Controller { shared, clock, main_workers, main_kinds, .. } = &self.controller;
        let slices = shared.slices(main_workers, main_kinds, self.controller.used_slices());
        let mut stream = StreamOutcome::new(self.asked(), slices);
        all.into_iter().for_each(|segments| stream.add_segments(segments));
        let ends = main_workers.iter().map(|worker| self.controller.ended_s(*worker));
        stream.ended_s = ends.fold(0.0, f64::max);
        stream.counted_slice = self.counted_slice;
        if self.facts.tsc_ns_per_tick.is_none() {
            stream.verdicts.add(Verdict::ClockFallback);
        }
        if let (Some(agenda), Some(last)) = (&self.crew.agenda, stream.segments.last_mut()) {
            let start = shared.start().unwrap_or_default();
            let unserved = agenda.unserved(clock, start, shared.stop());
            let counts = &mut last.transactions;
            counts.dropped += unserved.dropped;
            counts.waiting += unserved.waiting;
            counts.arrivals += unserved.dropped + unserved.waiting;
        }
        let found = |slices| transactions_warm_up(&stream.slices.counts(|_| true), slices);
        let cut_slice = match self.controller.length {
            Length::Exact => self.counted_slice,
            // One that was ended before its warm-up had to be known has it now.
            Length::Behind { slices } => conducted.cut_slice.unwrap_or_else(|| found(slices)),
            Length::Precise { planned, .. } => found(planned),
        };
        WindowOutcome {
            slice_s: self.controller.slice_s(),
            exact: !matches!(self.controller.length, Length::Precise { .. }),
            cut_slice,
            interrupted: conducted.interrupted,
            own_io: None,
            written_bytes: 0,
            failure: self.failure(are_gone).or_else(|| self.most_failed(&stream)),
            streams: vec![stream],
        }
    }

    fn asked(&self) -> StreamOptions {
        let TransactionSpec { workload, threads, precision, pacing, .. } = self.spec;
        let blocks = self.source.blocks();
        StreamOptions {
            name: workload.clone(),
            precision: *precision,
            in_flight_max: f64::from((*threads).max(1)),
            holds_depth: blocks && *threads > 1 && !pacing.is_scheduled(),
            workers: self.crew.workers,
            cpu_of: if blocks { CpuOf::Meter } else { CpuOf::Measured },
            block_bytes: None,
            reads: true,
            has_transactions: true,
            series_points_max: SERIES_POINTS_MAX,
        }
    }

    /// Why the window ended early.
    fn failure(&self, are_gone: bool) -> Option<LoadFailure> {
        if let Some((code, text)) = self.crew.failures.ended_by() {
            return Some(LoadFailure::Refused { code, text });
        }
        if are_gone {
            return Some(LoadFailure::SessionsGone {
                sessions: self.crew.gone.sessions(),
                seconds: self.spec.gone_max.as_secs(),
                code: self.crew.gone.code(),
            });
        }
        let TransactionPacing::Open { queue_max, .. } = self.spec.pacing else { return None };
        let is_overloaded = self.crew.is_overloaded.load(Ordering::Relaxed);
        is_overloaded.then_some(LoadFailure::Overloaded { queue_max })
    }

    /// What speaks against the window as a whole: more transactions failed than were done, or some
    /// for a reason that spoils it.
    fn most_failed(&self, stream: &StreamOutcome) -> Option<LoadFailure> {
        let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
        for (code, count) in stream.segments.iter().flat_map(|one| &one.transactions.errors) {
            *errors.entry(code).or_default() += count;
        }
        errors.retain(|code, _| !self.crew.failures.ignores(code));
        let failed: u64 = errors.values().sum();
        let done: f64 = stream.slices.counts(|_| true).iter().sum();
        let most = errors.into_iter().max_by_key(|(_, count)| *count)?.0.to_owned();
        let done = done as u64;
        let code = self.crew.failures.spoiled_by().or((failed > done).then_some(most))?;
        let text = self.crew.failures.text(&code);
        Some(LoadFailure::TransactionsFailed { failed, done, code, text })
    }
}

fn crew(spec: &TransactionSpec, workers: u32) -> Crew {
    let (agenda, homes) = match spec.pacing {
        TransactionPacing::Closed => (None, None),
        TransactionPacing::Open { rate_per_s, process, queue_max, overload } => {
            let seed = spec.seed;
            (Agenda::open(OpenLoop { rate_per_s, process, queue_max, overload, seed }), None)
        }
        TransactionPacing::Terminals { homes } => (Some(Agenda::terminals(homes)), Some(homes)),
    };
    Crew {
        agenda,
        homes,
        seed: spec.seed,
        live: Live::new(workers),
        is_overloaded: AtomicBool::new(false),
        workers,
        gone: LostSessions::new(spec.threads.max(1)),
        failures: Failures::ignoring(&spec.ignored_errors),
        events: spec.events_max.map(Events::new),
    }
}

/// Posts that a worker has ended, however it did.
struct PostsDone<'a> {
    shared: &'a SharedStats,
    number: u32,
}

impl Drop for PostsDone<'_> {
    fn drop(&mut self) {
        self.shared.post_state(self.number, WorkerState::Done);
    }
}
