//! One window of requests: the workers of every stream, their jobs, and what they brought back.
//!
//! Invariant: a stream's workers get its files, and their own where it has them apart. When the
//! window ends is the controller's business. It computes no figure.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use iostrata_plan::{IoApi, OpKind, PerKind, Sharing, SyncWrites};
use iostrata_run::host::OwnIo;
use iostrata_stats::StoppingRule;

use crate::clock::{Clock, ClockFacts, MonotonicClock, TscClock, clock_facts};
use crate::controller::{Controller, Interim, Length, Surroundings, WindowObserver, warm_up_cuts};
use crate::error::LoadError;
use crate::figures::WindowFigures;
use crate::job::{self, Job, StreamPlan, asked, recorded};
use crate::outcome::{CloneOutcome, JobOutcome, LoadFailure, StreamOutcome, WindowOutcome};
use crate::segment::Segment;
use crate::shared_stats::{SharedStats, StatsLayout, WorkerState};
use crate::steady::SteadyState;
use crate::tally::{Slices, Span};

/// Slices of the longest window: bounds the memory of a series.
const SLICES_MAX: u32 = 16_384;
/// The same where jobs end by themselves, perhaps long before the window must.
const SLICES_MAX_ALONE: u32 = 360_000;
/// Fewest slices before a window may end early.
const SLICES_MIN: u32 = 250;
/// A requested snapshot is complete after so many seconds: within a slice, unless requests are
/// slow.
const SHOWN_WITHIN_S: f64 = 0.05;
/// The shortest slice.
const SLICE: Duration = Duration::from_millis(1);
/// Runs the streams together in one window. The first stream's spec sets the length.
///
/// # Errors
/// When a worker cannot be started or its API fails.
pub fn measure(
    streams: &[StreamPlan],
    surroundings: &Surroundings<'_>,
    observer: &mut dyn WindowObserver,
) -> Result<WindowOutcome, LoadError> {
    measure_in_view(streams, surroundings, observer, None)
}

/// The same, with a receiver of the figures so far while the window is open.
pub(crate) fn measure_in_view(
    streams: &[StreamPlan],
    surroundings: &Surroundings<'_>,
    observer: &mut dyn WindowObserver,
    interim: Option<Interim<'_>>,
) -> Result<WindowOutcome, LoadError> {
    let (facts, shown) = (clock_facts(), interim.is_some());
    match facts.tsc_ns_per_tick {
        Some(ns) => Window::new(streams, facts, TscClock::new(ns), shown)?.run(
            surroundings,
            observer,
            interim,
        ),
        None => {
            Window::new(streams, facts, MonotonicClock, shown)?.run(surroundings, observer, interim)
        }
    }
}

struct Window<'a, C> {
    streams: &'a [StreamPlan],
    jobs: Vec<(usize, Job)>,
    facts: &'a ClockFacts,
    controller: Controller<C>,
}

impl<'a, C: Clock> Window<'a, C> {
    fn new(
        streams: &'a [StreamPlan],
        facts: &'a ClockFacts,
        clock: C,
        shown: bool,
    ) -> Result<Self, LoadError> {
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
            shown,
        };
        let rule = StoppingRule::new(main.precision, (slices / 16).max(SLICES_MIN) as usize);
        let controller = Controller {
            shared: SharedStats::new(layout).map_err(LoadError::SharedStats)?,
            clock,
            length: match exact {
                true => Length::Exact,
                false => Length::Precise { rule, planned: slices },
            },
            main_workers: workers_of(&jobs, 0),
            main_kinds: recorded(main).kinds,
        };
        Ok(Self { streams, jobs, facts, controller })
    }

    fn run(
        self,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
        interim: Option<Interim<'_>>,
    ) -> Result<WindowOutcome, LoadError> {
        let work = |worker: u32| {
            let (_, job) = &self.jobs[worker as usize];
            let program = surroundings.program.as_deref().filter(|_| job.spec.processes);
            match program {
                Some(program) => self.run_process(program, job),
                None => job.run(&self.controller.shared, self.facts),
            }
        };
        let mut view = interim.map(View::new);
        let mut steady = self.steady();
        let (shared, slice_s) = (&self.controller.shared, self.controller.slice_s());
        let mut end_steady_streams = |open_s: f64| {
            let most = shared.layout().slices as usize;
            let slices = ((open_s / slice_s) as usize).min(most);
            for (streams, state) in &mut steady {
                let workers = || streams.iter().flat_map(|one| workers_of(&self.jobs, *one));
                let counts = || {
                    let workers: Vec<u32> = workers().collect();
                    shared.slices(&workers, &OpKind::DIRECTIONS, slices).counts(|_| true)
                };
                if state.is_attained(open_s, slice_s, counts) {
                    workers().for_each(|worker| shared.tell_to_end(worker));
                }
            }
        };
        let mut at_look = |_: &mut dyn WindowObserver, open_s: f64| {
            if let Some(view) = &mut view {
                view.look(&self, open_s);
            }
            end_steady_streams(open_s);
            false
        };
        let (outcomes, conducted) =
            self.controller.run(work, surroundings, observer, &mut at_look)?;
        let mut outcome = self.gather(outcomes, conducted.interrupted);
        for (streams, state) in steady {
            let rates = state.into_rates();
            for stream in streams {
                outcome.streams[stream].steady = Some(rates.clone());
            }
        }
        Ok(outcome)
    }

    /// What streams need that end when they are steady, grouped as they are checked.
    fn steady(&self) -> Vec<(Vec<usize>, SteadyState)> {
        let mut states: Vec<(Vec<usize>, SteadyState)> = Vec::new();
        let mut of_group = BTreeMap::new();
        for (number, stream) in self.streams.iter().enumerate() {
            let varied = &stream.spec.variation;
            let Some(steady) = varied.steady else { continue };
            if let Some(at) = steady.group.and_then(|group| of_group.get(&group)) {
                let (streams, _): &mut (Vec<usize>, SteadyState) = &mut states[*at];
                streams.push(number);
                continue;
            }
            steady.group.and_then(|group| of_group.insert(group, states.len()));
            let begin_s = (varied.start_delay + varied.ramp_time).as_secs_f64();
            states.push((vec![number], SteadyState::new(steady, begin_s)));
        }
        states
    }

    fn run_process(&self, program: &std::path::Path, job: &Job) -> Result<JobOutcome, LoadError> {
        let shared = &self.controller.shared;
        let workers = self.jobs.len() as u32;
        let outcome = job::run_in_child(program, job, workers, shared, self.facts);
        shared.post_state(job.number, WorkerState::Done);
        outcome
    }

    /// What the workers have shown so far, as if the window ended there.
    fn interim(&self) -> WindowOutcome {
        let (shared, slice_s) = (&self.controller.shared, self.controller.slice_s());
        let shown: Vec<_> = self.jobs.iter().map(|(_, job)| shared.shown(job.number)).collect();
        let len = shown.iter().flatten().map(|(slices, _)| *slices).max().unwrap_or(0);
        let outcome = |plan: &StreamPlan| {
            let slices = Slices { len, kinds: PerKind::default() };
            StreamOutcome::new(asked(&plan.name, &plan.spec), slices)
        };
        let mut streams: Vec<StreamOutcome> = self.streams.iter().map(outcome).collect();
        for ((index, job), shown) in self.jobs.iter().zip(shown) {
            let Some((covered, segment)) = shown else { continue };
            let stream = &mut streams[*index];
            let kinds = recorded(&job.spec).kinds;
            stream.slices.add(&shared.slices(&[job.number], &kinds, covered));
            let ended_s = covered as f64 * slice_s;
            // Segments are shown whole, from the first that counts on.
            let counts = |first: &&usize| **first >= job.span.counted_slice;
            let first_slice = job.first_slices.iter().find(counts).copied().unwrap_or(len);
            stream.counted_slice = first_slice;
            stream.ended_s = stream.ended_s.max(ended_s);
            let kinds = segment.kinds.iter().filter(|(kind, _)| kinds.contains(kind));
            let kinds = kinds.map(|(kind, of)| (kind, of.clone())).collect();
            stream.add_segments(vec![Segment { first_slice, kinds, ..segment }]);
            if job.detail {
                stream.clones.push(self.clone_outcome(job, covered, ended_s));
            }
        }
        WindowOutcome {
            slice_s,
            exact: true,
            cut_slice: 0,
            interrupted: false,
            own_io: None,
            written_bytes: 0,
            failure: None,
            streams,
        }
    }

    fn clone_outcome(&self, job: &Job, covered: usize, ended_s: f64) -> CloneOutcome {
        let shared = self.controller.shared.clone();
        let reads_back_s = self.controller.reads_back_s(job.number);
        CloneOutcome { shared, worker: job.number, covered, ended_s, reads_back_s }
    }

    fn gather(&self, outcomes: Vec<JobOutcome>, interrupted: bool) -> WindowOutcome {
        let exact = matches!(self.controller.length, Length::Exact);
        let shared = &self.controller.shared;
        let used = self.controller.used_slices();
        let outcome = |(index, plan): (usize, &StreamPlan)| {
            let kinds = recorded(&plan.spec).kinds;
            let slices = shared.slices(&workers_of(&self.jobs, index), &kinds, used);
            StreamOutcome::new(asked(&plan.name, &plan.spec), slices)
        };
        let mut streams: Vec<StreamOutcome> =
            self.streams.iter().enumerate().map(outcome).collect();
        for ((index, job), outcome) in self.jobs.iter().zip(outcomes) {
            // A worker that failed to report when it ended was there until the end.
            let stream = &mut streams[*index];
            stream.counted_slice = if exact { job.span.counted_slice } else { 0 };
            stream.ended_s = stream.ended_s.max(self.controller.ended_s(job.number));
            stream.add(outcome, shared.written(job.number));
            if job.detail {
                let ended_s = self.controller.ended_s(job.number);
                stream.clones.push(self.clone_outcome(job, used, ended_s));
            }
        }
        let with_files = || {
            let both = self.streams.iter().zip(&streams);
            both.filter(|(plan, _)| plan.spec.api != IoApi::Null)
        };
        WindowOutcome {
            slice_s: self.controller.slice_s(),
            exact,
            cut_slice: if exact { 0 } else { streams[0].warm_up() },
            interrupted,
            own_io: Some(own_io(with_files())),
            written_bytes: with_files().map(|(_, stream)| stream.written_bytes).sum(),
            failure: self
                .streams
                .iter()
                .zip(&streams)
                .find_map(|(plan, one)| failure(plan, one))
                .or_else(|| rates_missed(&streams)),
            streams,
        }
    }
}

/// When the figures so far are due, and whether they were requested of the workers.
struct View<'a> {
    interim: Interim<'a>,
    due_s: f64,
    asked_s: Option<f64>,
}

impl<'a> View<'a> {
    fn new(interim: Interim<'a>) -> Self {
        Self { due_s: interim.every.as_secs_f64(), interim, asked_s: None }
    }

    /// Requests a snapshot when it is due, and hands it on a little later.
    fn look<C: Clock>(&mut self, window: &Window<'_, C>, open_s: f64) {
        match self.asked_s {
            None if open_s >= self.due_s => {
                window.controller.shared.ask_to_show();
                self.asked_s = Some(open_s);
            }
            Some(asked_s) if open_s >= asked_s + SHOWN_WITHIN_S => {
                (self.interim.on)(WindowFigures::of(&window.interim()));
                self.asked_s = None;
                self.due_s = (self.due_s + self.interim.every.as_secs_f64()).max(open_s);
            }
            _ => {}
        }
    }
}

/// The workers of a stream.
fn workers_of(jobs: &[(usize, Job)], stream: usize) -> Vec<u32> {
    let of_stream = jobs.iter().filter(|(of, _)| *of == stream);
    of_stream.map(|(_, job)| job.number).collect()
}

/// Why a stream ended early, when a request failed or a file vanished.
fn failure(plan: &StreamPlan, outcome: &StreamOutcome) -> Option<LoadFailure> {
    let files = &plan.files;
    let path = |file: u32| {
        let file = files.get(file as usize);
        file.map_or_else(|| "a file".to_owned(), |file| file.path.display().to_string())
    };
    if let Some(request) = outcome.failure.first {
        return Some(LoadFailure::Request { request, path: path(request.file) });
    }
    if plan.spec.variation.call.is_some_and(|call| call.changes_names()) {
        return None;
    }
    let gone = files.iter().find(|file| !file.path.exists())?;
    Some(LoadFailure::Removed { path: gone.path.display().to_string() })
}

/// The rates that streams missed, where any did.
fn rates_missed(streams: &[StreamOutcome]) -> Option<LoadFailure> {
    let missed = |one: &StreamOutcome| Some((one.asked.name.clone(), one.failure.missed_rate?));
    let missed: Vec<_> = streams.iter().filter_map(missed).collect();
    (!missed.is_empty()).then_some(LoadFailure::RatesMissed { missed })
}

/// The window's own requests, to separate foreign ones from them.
fn own_io<'a>(streams: impl Iterator<Item = (&'a StreamPlan, &'a StreamOutcome)>) -> OwnIo {
    let mut own = OwnIo { direct: true, ..OwnIo::default() };
    for (StreamPlan { spec, .. }, stream) in streams {
        let slices = &stream.slices;
        let [reads, writes, syncs] = OpKind::OF_FILES.map(|kind| slices.sum(kind).count);
        let bytes = |kind| stream.moved_bytes(kind, slices, &stream.segments);
        own.direct &= spec.direct;
        own.reads += reads;
        own.writes += writes;
        own.read_bytes += bytes(OpKind::Read);
        own.written_bytes += bytes(OpKind::Write);
        own.flushes += syncs + if spec.sync == SyncWrites::None { 0 } else { writes };
    }
    own
}

/// The longest that a window of these streams may be: until the end of the last one that ends at a
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
        let mut first_slices =
            if exact { vec![0, span.counted_slice] } else { warm_up_cuts(slices) };
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
                detail: stream.detail,
            };
            jobs.push((index, job));
        }
    }
    jobs
}

/// When a window may end, by clock and shared statistics alone: slow requests on virtual time.
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iostrata_plan::{IoApi, IoSpec};

    use super::*;
    use crate::clock::VirtualClock;
    use crate::tally::{SliceTally, Tally};

    /// What so many requests leave in a slice, of which each took this long.
    fn tally(count: u64, latency_ms: u64) -> SliceTally {
        let service_ns = count * latency_ms * 1_000_000;
        let read = Tally { count, service_ns, ..Tally::default() };
        let mut tally = SliceTally::default();
        tally[OpKind::Read as usize] = read;
        tally
    }

    fn spec(point_time: Duration, slow: Option<Duration>) -> IoSpec {
        let mut spec = IoSpec::new("x");
        (spec.api, spec.depth, spec.size_bytes) = (IoApi::Null, 64, 1 << 30);
        (spec.point_time, spec.point_time_slow, spec.precision) = (point_time, slow, 0.5);
        spec
    }

    /// Milliseconds after which a window ends whose requests take so long, at a steady rate.
    fn ends_after_ms(spec: IoSpec, latency_ms: u64) -> u64 {
        ends_with(spec, |_| tally(1, latency_ms))
    }

    fn ends_with(spec: IoSpec, tally: impl Fn(usize) -> SliceTally) -> u64 {
        let plans =
            [StreamPlan { name: "main".to_owned(), spec, files: Vec::new(), detail: false }];
        let clock = VirtualClock::default();
        let window = Window::new(&plans, clock_facts(), clock.clone(), false).unwrap();
        let Controller { shared, length, .. } = &window.controller;
        let ticks = shared.layout().slice_ticks;
        clock.advance(1);
        let start = clock.now();
        shared.post_start(start);
        shared.post_stop_after(u64::from(shared.layout().slices));
        let Length::Precise { rule, .. } = length else { unreachable!("no runtime was given") };
        let mut next_check = rule.next_check(0);
        for slice in 0.. {
            if clock.now() >= shared.stop() {
                break;
            }
            clock.advance(ticks);
            shared.post_slice(0, slice, &tally(slice));
            window.controller.look(start, &mut next_check, &mut None);
        }
        (shared.stop() - start) / 1_000_000
    }

    const POINT: Duration = Duration::from_millis(700);

    #[test]
    fn a_point_lasts_twenty_times_its_latency() {
        assert!((250..400).contains(&ends_after_ms(spec(POINT, None), 1)), "precise enough early");
        let slow = Some(Duration::from_secs(3));
        let ended = ends_after_ms(spec(POINT, slow), 64);
        assert!((1_280..1_700).contains(&ended), "20 times 64 ms are 1,280 ms, not {ended}");
        assert!((250..400).contains(&ends_after_ms(spec(POINT, slow), 1)), "no reason to wait");
        assert_eq!(
            ends_after_ms(spec(POINT, Some(Duration::from_secs(1))), 64),
            1_000,
            "the bound"
        );
        assert_eq!(ends_after_ms(spec(POINT, None), 64), 700, "the bound of all points");
    }

    #[test]
    fn a_point_whose_rate_drifts_ends_as_planned_unless_it_is_slow() {
        let slow = Some(Duration::from_secs(3));
        let drifting = |latency_ms| {
            ends_with(spec(POINT, slow), |slice| tally(1 + slice as u64 / 50, latency_ms))
        };
        assert_eq!(drifting(30), 700);
        let ended = drifting(64);
        assert!((1_280..1_300).contains(&ended), "no longer than it must, not {ended}");
    }
}
