//! One window: starts the workers of every stream together, decides when it ends, gathers.
//!
//! Invariant: all workers see the same start and the same end. A window of exact length ends then
//! and only then, unless it is interrupted, a request fails or a budget of bytes is used up.
//! It computes no figure.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostrata_spec::{OpKind, Sharing};
use iostrata_stats::{Stop, StoppingRule, Verdicts};

use crate::clock::{Clock, ClockFacts, MonotonicClock, TscClock, clock_facts};
use crate::error::LoadError;
use crate::failure::Failure;
use crate::job::{Job, JobOutcome, StreamPlan, recorded};
use crate::outcome::{StreamOutcome, WindowOutcome};
use crate::process;
use crate::shared_stats::{SharedStats, StatsLayout, WorkerState};
use crate::span::Span;
use crate::tally::Slices;

/// Slices of the longest window: bounds the memory of a series.
const SLICES_MAX: u32 = 16_384;
/// The same where jobs end by themselves, perhaps long before the window must.
const SLICES_MAX_ALONE: u32 = 360_000;
/// Fewest slices before a window may end early.
const SLICES_MIN: u32 = 250;
/// The shortest slice.
const SLICE: Duration = Duration::from_millis(1);
/// How often the controller looks at the window.
const LOOK: Duration = Duration::from_millis(4);
/// Slices before the planned end of a window at which it is decided whether it needs to be longer.
const END_NOTICE: usize = 10;
/// Slices before the present one that workers may not have posted yet.
const UNPOSTED: usize = 2;
/// Workers are told the start this long before it.
const NOTICE_NS: u64 = 2_000_000;
/// Segments that can be cut as warm-up begin at these parts of the longest window.
const WARM_UP_PARTS: [u32; 6] = [64, 32, 16, 12, 8, 4];

/// Somebody who wants to know when the window opens and closes.
pub trait WindowObserver {
    /// Called just before the window opens.
    fn opened(&mut self);
    /// Called every few milliseconds while it is open, with the seconds since it opened.
    fn open(&mut self, elapsed_s: f64);
    /// Called just after the window closed.
    fn closed(&mut self);
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl WindowObserver for NoObserver {
    fn opened(&mut self) {}
    fn open(&mut self, _elapsed_s: f64) {}
    fn closed(&mut self) {}
}

/// What surrounds a window.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// Set by a signal: the window ends soon and what was measured is kept.
    pub interrupted: &'a AtomicBool,
    /// This program, for workers that are processes.
    pub program: Option<PathBuf>,
}

/// Runs the streams together in one window. The first stream's spec says how long.
///
/// # Errors
/// When a worker cannot be started or its API fails.
pub fn measure(
    streams: &[StreamPlan],
    surroundings: &Surroundings<'_>,
    observer: &mut dyn WindowObserver,
) -> Result<WindowOutcome, LoadError> {
    let facts = clock_facts();
    match facts.tsc_ns_per_tick {
        Some(ns) => Window::new(streams, facts, TscClock::new(ns))?.run(surroundings, observer),
        None => Window::new(streams, facts, MonotonicClock)?.run(surroundings, observer),
    }
}

struct Window<'a, C> {
    streams: &'a [StreamPlan],
    jobs: Vec<(usize, Job)>,
    shared: SharedStats,
    facts: &'a ClockFacts,
    clock: C,
    exact: bool,
    rule: StoppingRule,
    /// Slices after which the window ends, unless its requests are slow.
    planned_slices: u32,
}

impl<'a, C: Clock> Window<'a, C> {
    fn new(streams: &'a [StreamPlan], facts: &'a ClockFacts, clock: C) -> Result<Self, LoadError> {
        assert!(!streams.is_empty(), "a window needs a stream");
        let main = &streams[0].spec;
        let longest = longest(streams);
        let alone = streams.iter().any(|one| one.spec.variation.io_bytes_max.is_some());
        let most = if alone { SLICES_MAX_ALONE } else { SLICES_MAX };
        let slices = (longest.as_nanos() / SLICE.as_nanos()).clamp(1, u128::from(most)) as u32;
        let exact = main.runtime.is_some();
        let jobs = jobs(streams, exact, slices, longest / slices);
        let slow = main.point_time_slow.filter(|_| !exact).unwrap_or(longest).max(longest);
        let layout = StatsLayout {
            workers: jobs.len() as u32,
            slices: (slow.as_secs_f64() / longest.as_secs_f64() * f64::from(slices)) as u32,
            slice_ticks: (clock.ticks_in(longest.as_nanos() as u64) / u64::from(slices)).max(1),
            kinds: kinds(streams),
        };
        Ok(Self {
            streams,
            jobs,
            shared: SharedStats::new(layout).map_err(LoadError::SharedStats)?,
            facts,
            clock,
            exact,
            rule: StoppingRule::new(main.precision, (slices / 16).max(SLICES_MIN) as usize),
            planned_slices: slices,
        })
    }

    fn run(
        self,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
    ) -> Result<WindowOutcome, LoadError> {
        let mut interrupted = false;
        let outcomes = std::thread::scope(|scope| {
            let mut handles = Vec::with_capacity(self.jobs.len());
            let mut spawned = Ok(());
            for (_, job) in &self.jobs {
                let program = surroundings.program.as_deref().filter(|_| job.spec.processes);
                let run = move |window: &Self| match program {
                    Some(program) => window.run_process(program, job),
                    None => job.run(&window.shared, window.facts),
                };
                let window = &self;
                let named = std::thread::Builder::new().name(format!("worker-{}", job.number));
                match named.spawn_scoped(scope, move || run(window)) {
                    Ok(handle) => handles.push(handle),
                    Err(source) => {
                        let workers = self.jobs.len() as u32;
                        spawned = Err(LoadError::Spawn { worker: job.number, workers, source });
                        break;
                    }
                }
            }
            let all_ready = spawned.is_ok() && self.wait_until_ready();
            interrupted = self.conduct(all_ready, surroundings, observer);
            let outcomes: Result<Vec<JobOutcome>, LoadError> = handles
                .into_iter()
                .zip(0..)
                .map(|(handle, worker)| match handle.join() {
                    Ok(outcome) => outcome,
                    Err(panic) => {
                        Err(LoadError::WorkerPanicked { worker, why: panic_text(&*panic) })
                    }
                })
                .collect();
            spawned.and(outcomes)
        })?;
        Ok(self.gather(outcomes, interrupted))
    }

    fn run_process(&self, program: &std::path::Path, job: &Job) -> Result<JobOutcome, LoadError> {
        let workers = self.jobs.len() as u32;
        let outcome = process::run_in_child(program, job, workers, &self.shared, self.facts);
        self.shared.post_state(job.number, WorkerState::Done);
        outcome
    }

    /// Waits until no worker is starting; false when one has already ended, which is a failure.
    fn wait_until_ready(&self) -> bool {
        loop {
            let states: Vec<_> =
                (0..self.jobs.len()).map(|n| self.shared.state(n as u32)).collect();
            if states.contains(&WorkerState::Done) {
                return false;
            }
            if !states.contains(&WorkerState::Starting) {
                return true;
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    /// Whether every worker has ended by itself.
    fn all_done(&self) -> bool {
        let mut numbers = 0..self.jobs.len() as u32;
        numbers.all(|number| self.shared.state(number) == WorkerState::Done)
    }

    /// Opens the window, ends it when it is time, and says whether it was interrupted.
    fn conduct(
        &self,
        all_ready: bool,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
    ) -> bool {
        if !all_ready {
            self.shared.post_start(self.clock.now().max(1));
            self.shared.post_stop_after(1);
            return false;
        }
        observer.opened();
        let start = self.clock.now() + self.clock.ticks_in(NOTICE_NS);
        self.shared.post_start(start);
        self.shared.post_stop_after(u64::from(self.shared.layout().slices));
        let mut interrupted = false;
        let mut next_check = self.rule.next_check(0);
        loop {
            // The end may come closer at any moment.
            let left = self.shared.stop().saturating_sub(self.clock.now());
            if left == 0 {
                break;
            }
            let left_ns = self.clock.to_ns(left);
            std::thread::sleep(LOOK.min(Duration::from_nanos(left_ns + 10_000)));
            observer.open(self.clock.to_ns(self.clock.now().saturating_sub(start)) as f64 * 1e-9);
            if !interrupted && surroundings.interrupted.load(Ordering::Relaxed) {
                interrupted = true;
                self.shared.post_stop_soon(self.clock.now());
            }
            if self.all_done() {
                self.shared.post_stop_soon(self.clock.now());
                break;
            }
            if !self.exact {
                next_check = self.look(start, next_check);
                self.end_as_planned(start);
            }
        }
        observer.closed();
        interrupted
    }

    /// Slices that every worker has posted: one counts as posted once the one after the next has
    /// begun.
    fn posted(&self, start: u64) -> usize {
        let begun = self.clock.now().saturating_sub(start) / self.shared.layout().slice_ticks;
        (begun as usize).saturating_sub(UNPOSTED)
    }

    /// Ends the window early if it is time to look and the main stream is precise enough.
    fn look(&self, start: u64, next_check: usize) -> usize {
        // On a busy machine this thread may look after the last slice has ended.
        if self.posted(start) < next_check || next_check > self.shared.layout().slices as usize {
            return next_check;
        }
        let slices = self.slices_of(0, next_check);
        let counts = slices.counts(|_| true);
        if self.is_long_enough(&slices) && self.rule.decide(&counts) == Stop::Enough {
            self.shared.post_stop_soon(self.clock.now());
        }
        self.rule.next_check(next_check)
    }

    /// Ends a window whose time is up, unless its requests are so slow that it needs more.
    fn end_as_planned(&self, start: u64) {
        let (posted, most) = (self.posted(start), self.shared.layout().slices as usize);
        let planned = self.planned_slices as usize;
        let is_up = planned < most && posted + END_NOTICE >= planned;
        if is_up && self.is_long_enough(&self.slices_of(0, posted.min(most))) {
            // One that had to go on ends with the present slice, not at a moment that is past: what
            // a slow request was waited for counts.
            self.shared.post_stop_after(planned.max(posted + UNPOSTED + 1) as u64);
        }
    }

    /// Whether these slices last long enough for requests as slow as theirs.
    fn is_long_enough(&self, slices: &Slices) -> bool {
        let slice_ns = self.clock.to_ns(self.shared.layout().slice_ticks) as f64;
        slices.window_ns_min().is_some_and(|least| slices.len as f64 * slice_ns >= least)
    }

    /// Tallies of the first slices of one stream, summed over its workers.
    fn slices_of(&self, stream: usize, len: usize) -> Slices {
        let jobs = self.jobs.iter().filter(|(of, _)| *of == stream);
        let workers: Vec<u32> = jobs.map(|(_, job)| job.number).collect();
        self.shared.slices(&workers, &recorded(&self.streams[stream].spec).kinds, len)
    }

    fn gather(&self, outcomes: Vec<JobOutcome>, interrupted: bool) -> WindowOutcome {
        let layout = self.shared.layout();
        let start = self.shared.start().unwrap_or_default();
        let used = self.shared.stop().saturating_sub(start) / layout.slice_ticks;
        let used = used.min(u64::from(layout.slices)) as usize;
        let mut streams: Vec<StreamOutcome> = self
            .streams
            .iter()
            .enumerate()
            .map(|(index, plan)| StreamOutcome {
                plan: plan.clone(),
                segments: Vec::new(),
                slices: self.slices_of(index, used),
                failure: Failure::default(),
                notes: Vec::new(),
                verdicts: Verdicts::none(),
                written_bytes: 0,
                counted_slice: 0,
                ended_s: 0.0,
            })
            .collect();
        for ((index, job), outcome) in self.jobs.iter().zip(outcomes) {
            let written_bytes = self.shared.written(job.number);
            let ended = self.shared.ended(job.number);
            // A worker that failed to say when it ended was there until the end.
            let stream = &mut streams[*index];
            stream.counted_slice = if self.exact { job.span.counted_slice } else { 0 };
            stream.ended_s = stream.ended_s.max(self.clock.to_ns(ended) as f64 * 1e-9);
            stream.add(outcome, written_bytes);
        }
        let slice_s = self.clock.to_ns(layout.slice_ticks * u64::from(layout.slices)) as f64 * 1e-9
            / f64::from(layout.slices);
        WindowOutcome { streams, slice_s, exact: self.exact, interrupted }
    }
}

/// The longest that a window of these streams may be: until the last of those ends that end at a
/// given time. Where the main stream stops when it is precise, only its own time counts.
fn longest(streams: &[StreamPlan]) -> Duration {
    let main = streams[0].spec.longest();
    if streams[0].spec.runtime.is_none() {
        return main;
    }
    let ends = streams.iter().filter(|stream| stream.spec.runtime.is_some());
    ends.map(|stream| stream.spec.longest()).fold(main, Duration::max)
}

/// What the streams do, all together.
fn kinds(streams: &[StreamPlan]) -> Vec<OpKind> {
    let all: Vec<OpKind> = streams.iter().flat_map(|stream| recorded(&stream.spec).kinds).collect();
    OpKind::ALL.into_iter().filter(|kind| all.contains(kind)).collect()
}

/// The files of one job of a stream: all of them, or its own.
fn files_of(stream: &StreamPlan, job: u32) -> Vec<(PathBuf, u64)> {
    let files = match stream.spec.variation.sharing {
        Sharing::Own if !stream.files.is_empty() => {
            let count = stream.spec.files as usize;
            &stream.files[job as usize * count..][..count]
        }
        _ => stream.files.as_slice(),
    };
    files.iter().map(|file| (file.path.clone(), file.bytes)).collect()
}

/// The jobs of every stream, numbered through, each with the number of its stream.
fn jobs(streams: &[StreamPlan], exact: bool, slices: u32, slice: Duration) -> Vec<(usize, Job)> {
    let mut jobs = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        let span = Span::of(&stream.spec, slice);
        let mut first_slices = vec![0];
        if exact {
            first_slices.push(span.counted_slice);
        } else {
            first_slices.extend(WARM_UP_PARTS.map(|part| (slices / part) as usize));
        }
        first_slices.dedup();
        for job in 0..stream.spec.jobs {
            let files = files_of(stream, job);
            let job = Job {
                number: jobs.len() as u32,
                job,
                spec: stream.spec.clone(),
                files,
                first_slices: first_slices.clone(),
                span,
            };
            jobs.push((index, job));
        }
    }
    jobs
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

#[cfg(test)]
mod tests;
