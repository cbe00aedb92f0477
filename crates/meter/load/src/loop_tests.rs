//! The measuring loop against stand-ins: virtual time, files in memory, recorded requests.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use iostrata_io::{
    ApiConfig, Buffers, Caps, Completion, Fate, FileApi, IoError, MemoryApi, MemoryFiles, NullApi,
    Op, OpKind, OpenFiles,
};
use iostrata_plan::{
    Access, BlockSizes, Blocks, Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, Mix,
    OpKind as Kind, Pacing, Pause, Preparation, RangeSteps, RateProcess, Sharing, Verify,
};
use iostrata_stats::{Latencies, LatencyHistogram, Verdict};

use crate::clock::{Clock, Ticks, VirtualClock};
use crate::extras::Extras;
use crate::generator::{Generator, Request};
use crate::job::Job;
use crate::outcome::JobOutcome;
use crate::recorder::Flight;
use crate::shared_stats::{SharedStats, StatsLayout};
use crate::tally::Span;

const SLICE_NS: u64 = 1_000_000;

fn shared(slices: u32) -> SharedStats {
    let kinds = Kind::OF_FILES.to_vec();
    let layout = StatsLayout { workers: 1, slices, slice_ticks: SLICE_NS, kinds, shown: true };
    let shared = SharedStats::new(layout).unwrap();
    shared.post_start(1);
    shared.post_stop_after(u64::from(slices));
    shared
}

impl JobOutcome {
    /// What was recorded of a kind of operation in a segment.
    pub(crate) fn latencies(&self, segment: usize, kind: Kind) -> &Latencies {
        &self.segments[segment].kinds[kind].as_ref().unwrap().latencies
    }
}

impl Job {
    pub(crate) fn of(spec: IoSpec) -> Self {
        let span = Span::default();
        Self {
            number: 0,
            job: 0,
            spec,
            files: Vec::new(),
            first_slices: vec![0],
            span,
            detail: false,
        }
    }
}

pub(crate) fn small(mix: Mix) -> IoSpec {
    let mut spec = IoSpec::new("memory");
    (spec.mix, spec.size_bytes, spec.files) = (mix, 1 << 20, 2);
    spec
}

/// Runs a spec on files in memory, each request taking the virtual time that `cost` returns.
pub(crate) fn on_memory(
    spec: IoSpec,
    slices: u32,
    cost: impl FnMut(u64) -> u64 + Send + 'static,
) -> (JobOutcome, Vec<Op>, SharedStats) {
    on_memory_in(Job::of, spec, slices, cost)
}

/// The same with a job made otherwise.
fn on_memory_in(
    job: impl FnOnce(IoSpec) -> Job,
    spec: IoSpec,
    slices: u32,
    mut cost: impl FnMut(u64) -> u64 + Send + 'static,
) -> (JobOutcome, Vec<Op>, SharedStats) {
    let clock = VirtualClock::default();
    let files = MemoryFiles::new(spec.files, spec.file_bytes());
    let passing = clock.clone();
    files.before_each(move |number, _op| {
        passing.advance(cost(number));
        Fate::Done
    });
    let shared = shared(slices);
    let outcome =
        job(spec).drive::<MemoryApi, _>(&shared, clock, &OpenFiles::memory(&files)).unwrap();
    (outcome, files.ops(), shared)
}

thread_local! {
    static SEEN: RefCell<Vec<Op>> = const { RefCell::new(Vec::new()) };
    static READS_OF_CLOCK: Cell<u64> = const { Cell::new(0) };
}

/// The null API, with every request written down, where no more memory can be locked.
struct Recorded(NullApi);

impl FileApi for Recorded {
    fn start(
        config: &ApiConfig,
        files: &OpenFiles,
        buffers: &Buffers,
    ) -> Result<(Self, Caps), IoError> {
        let (api, caps) = NullApi::start(config, files, buffers)?;
        Ok((Self(api), Caps { is_memlock_limited: true, ..caps }))
    }

    fn queue(&mut self, op: Op) {
        SEEN.with_borrow_mut(|seen| seen.push(op));
        self.0.queue(op);
    }

    fn submit(&mut self) -> Result<u32, IoError> {
        self.0.submit()
    }

    fn reap(
        &mut self,
        min: u32,
        wait_at_most: Option<u64>,
        on: impl FnMut(Completion),
    ) -> Result<u32, IoError> {
        self.0.reap(min, wait_at_most, on)
    }
}

/// A clock that ticks 500 ns at every reading and counts its readings.
#[derive(Clone)]
struct CountedClock(VirtualClock);

impl Clock for CountedClock {
    fn now(&self) -> Ticks {
        READS_OF_CLOCK.set(READS_OF_CLOCK.get() + 1);
        self.0.advance(500);
        self.0.now()
    }

    fn to_ns(&self, ticks: Ticks) -> u64 {
        ticks
    }

    fn ticks_in(&self, ns: u64) -> Ticks {
        ns
    }

    fn wait(&self, until: Ticks) -> u64 {
        self.0.wait(until)
    }
}

#[test]
fn the_null_api_runs_the_same_loop() {
    let mut spec = small(Mix::Both { read_pct: 70 });
    spec.api = IoApi::Null;
    let shared = shared(10);
    let files = OpenFiles::null(spec.files, spec.file_bytes());
    let clock = CountedClock(VirtualClock::default());
    let outcome = Job::of(spec.clone()).drive::<Recorded, _>(&shared, clock, &files).unwrap();
    assert!(outcome.verdicts.has(Verdict::MemlockLimited), "{:?}", outcome.verdicts);
    let seen = SEEN.take();
    let mut generator = Generator::new(&spec, 0);
    for op in &seen {
        let expected = generator.next_request().unwrap();
        assert_eq!((op.kind, op.file, op.offset), (expected.kind, expected.file, expected.offset));
    }
    // 10 ms of one reading of 500 ns per request, since a completion is the next one's start:
    // 20,000 requests, every one in slice and histogram with its 500 ns between the two stamps.
    let slices = shared.slices(&[0], &Kind::ALL, 10);
    let counted: u64 = Kind::ALL.map(|kind| slices.sum(kind).count).iter().sum();
    let kinds: Vec<Kind> = outcome.segments[0].kinds.kinds().collect();
    assert_eq!(kinds, [Kind::Read, Kind::Write], "flushes are not recorded");
    let [read, write] = [Kind::Read, Kind::Write].map(|kind| outcome.latencies(0, kind));
    assert_eq!(read.service.count() + write.service.count(), counted);
    assert!((19_990..=20_000).contains(&counted), "{counted}");
    assert!((seen.len() as u64).abs_diff(counted) <= 1);
    assert_eq!(read.service.summary().unwrap().max, 0.5);
    let reads_per_op = READS_OF_CLOCK.get() as f64 / seen.len() as f64;
    assert!(reads_per_op < 1.01, "the clock was read {reads_per_op} times per request");
}

#[test]
fn a_stall_shows_in_the_response_and_not_in_the_service() {
    for process in [RateProcess::Fixed, RateProcess::Poisson] {
        let mut spec = small(Mix::Read);
        spec.pacing = Pacing::Open { rate_iops: 1000.0, process };
        // 50 us each, and one of 200 ms at the 5,000th.
        let cost = |number| if number == 5_000 { 200_000_000 } else { 50_000 };
        let (outcome, ops, _) = on_memory(spec, 10_000, cost);
        assert!((9_600..=10_400).contains(&ops.len()), "{}", ops.len());
        let read = outcome.latencies(0, Kind::Read);
        let service = read.service.percentile_us(99.0).unwrap();
        let response = read.response.as_ref().unwrap().percentile_us(99.0).unwrap();
        assert!(service < 60.0, "service p99 {service} us must not see it");
        assert!(response > 50_000.0, "response p99 {response} us must see it");
    }
}

#[test]
fn a_flush_waits_for_the_writes_before_it() {
    let mut spec = small(Mix::Write);
    spec.depth = 4;
    (spec.api, spec.access) = (IoApi::Libaio, Access::Sequential);
    let flush = |scope| Flush {
        method: FlushMethod::Fdatasync,
        every: 10,
        scope,
        count: FlushCount::Writes,
    };
    for (scope, flushes) in [(FlushScope::File, 1), (FlushScope::All, 2)] {
        spec.flush = Some(flush(scope));
        let (outcome, ops, _) = on_memory(spec.clone(), 5, |_| 1000);
        let mut writes = 0;
        for group in ops.chunk_by(|a, b| a.kind == b.kind) {
            match group[0].kind {
                OpKind::Write => writes = group.len(),
                _ => assert_eq!((writes, group.len()), (10, flushes)),
            }
        }
        let sync = outcome.latencies(0, Kind::Sync);
        let commit = sync.response.as_ref().unwrap().summary().unwrap();
        // From the start of the first of 10 writes of 1 us each to the end of the flush.
        assert!(commit.p50 >= 10.9 && commit.p50 < 13.0, "{commit:?}");
    }
}

#[test]
fn a_failed_request_ends_the_window_and_is_not_counted() {
    let clock = VirtualClock::default();
    let files = MemoryFiles::new(2, 1 << 19);
    let passing = clock.clone();
    files.before_each(move |number, _op| {
        passing.advance(10_000);
        if number == 777 { Fate::Failed(5) } else { Fate::Done }
    });
    let shared = shared(1000);
    let outcome = Job::of(small(Mix::Write))
        .drive::<MemoryApi, _>(&shared, clock, &OpenFiles::memory(&files))
        .unwrap();
    let first = outcome.failure.first.unwrap();
    assert_eq!((first.errno(), first.kind, first.asked_bytes), (Some(5), Kind::Write, 4096));
    assert_eq!(outcome.latencies(0, Kind::Write).service.count(), 777);
    assert!(files.ops().len() < 790, "the worker went on after the failure");
}

#[test]
fn an_append_ends_with_its_file_and_a_budget_ends_the_writes() {
    let mut spec = small(Mix::Write);
    (spec.access, spec.preparation, spec.files) = (Access::Sequential, Preparation::Empty, 1);
    let (_, ops, _) = on_memory(spec.clone(), 10_000, |_| 1000);
    assert_eq!(ops.len() as u64, spec.file_bytes() / 4096);
    spec.preparation = Preparation::Written;
    spec.write_bytes_max = Some(4096 * 3000);
    let (_, ops, shared) = on_memory(spec, 10_000, |_| 1000);
    // 1,000 requests per slice; the end is noticed at an edge and is two edges away.
    assert!((3_000..=7_000).contains(&ops.len()), "{}", ops.len());
    assert_eq!(shared.written(0), ops.len() as u64 * 4096);
}

#[test]
fn an_open_loop_keeps_its_schedule_when_requests_are_slow() {
    let mut spec = small(Mix::Read);
    spec.pacing = Pacing::Open { rate_iops: 1000.0, process: RateProcess::Fixed };
    // Twice as slow as the schedule: half the requests are done, later and later.
    let (outcome, ops, _) = on_memory(spec, 1000, |_| 2_000_000);
    assert!((499..=501).contains(&ops.len()), "{}", ops.len());
    let response = outcome.latencies(0, Kind::Read).response.as_ref().unwrap();
    let last_us = response.summary().unwrap().max;
    assert!((495_000.0..505_000.0).contains(&last_us), "{last_us}");
}

#[test]
fn what_is_noted_in_detail_adds_up_to_what_is_counted() {
    let mut spec = small(Mix::Both { read_pct: 50 });
    (spec.depth, spec.api) = (4, IoApi::Libaio);
    let job = |detail| move |spec| Job { detail, ..Job::of(spec) };
    let (plain, ..) = on_memory_in(job(false), spec.clone(), 20, |_| 30_000);
    assert!(plain.segments[0].detail.is_none(), "it was not asked for");
    let (outcome, _, shared) = on_memory_in(job(true), spec, 20, |_| 30_000);
    let detail = outcome.segments[0].detail.as_ref().unwrap();
    let mut counted = 0;
    for kind in [Kind::Read, Kind::Write] {
        let service = &outcome.latencies(0, kind).service;
        let halves =
            [&detail.submission, &detail.completion].map(|all| all[kind].as_ref().unwrap());
        assert_eq!(halves.map(LatencyHistogram::count), [service.count(); 2]);
        let sum_us = |of: &LatencyHistogram| of.mean_us().unwrap() * of.count() as f64;
        let sums = halves.map(sum_us);
        assert!((sums[0] + sums[1] - sum_us(service)).abs() < 1.0, "{sums:?} {service:?}");
        let all = shared.slices(&[0], &[kind], 20).sum(kind);
        assert!((all.submission_ns as f64 * 1e-3 - sums[0]).abs() < 1.0);
        counted += service.count();
    }
    let started: u64 = detail.depths.iter().sum();
    assert!((counted..=counted + 4).contains(&started), "{started} of {counted}");
    assert!(detail.depths[2] > 0 && detail.depths[3] == 0, "four at most: {:?}", detail.depths);
    assert!(detail.submissions[1] > 0 && detail.completions[1] > 0, "{detail:?}");
}

// Delays, ramps, pauses and early ends in the measuring loop, in virtual time.

fn slices(ms: u64) -> Duration {
    Duration::from_nanos(ms * SLICE_NS)
}

#[test]
fn a_job_is_counted_between_its_ramp_and_its_end() {
    let mut spec = small(Mix::Read);
    spec.runtime = Some(slices(5));
    (spec.variation.start_delay, spec.variation.ramp_time) = (slices(3), slices(2));
    let span = Span::of(&spec, slices(1));
    assert_eq!(span, Span { first_slice: 3, counted_slice: 5, end_slice: Some(10) });
    let first_slices = vec![0, span.counted_slice];
    let (outcome, _, shared) =
        on_memory_in(|spec| Job { span, first_slices, ..Job::of(spec) }, spec, 50, |_| 1000);
    let counts: Vec<u64> = (0..12).map(|slice| shared.tally(0, slice, Kind::Read).count).collect();
    assert_eq!(counts[..3], [0; 3], "it has not begun");
    assert!(counts[3..10].iter().all(|count| (999..=1000).contains(count)), "{counts:?}");
    assert_eq!(counts[10..], [0; 2], "it has ended, before the window");
    assert_eq!(shared.ended(0), 10 * SLICE_NS);
    let counted = outcome.latencies(1, Kind::Read).service.count();
    assert_eq!(counted, counts[5..10].iter().sum::<u64>());
}

#[test]
fn a_job_ends_when_it_has_asked_for_its_bytes() {
    let mut spec = small(Mix::Write);
    spec.variation.io_bytes_max = Some(4096 * 2500);
    let (outcome, ops, shared) = on_memory_in(Job::of, spec, 50, |_| 1000);
    assert_eq!(ops.len(), 2500);
    let counted = outcome.latencies(0, Kind::Write).service.count();
    let bytes = outcome.segments[0].kinds[Kind::Write].as_ref().unwrap().bytes;
    assert_eq!((counted, bytes), (2500, 2500 * 4096));
    let slices: u64 = (0..50).map(|slice| shared.tally(0, slice, Kind::Write).count).sum();
    assert_eq!(slices, 2500, "the slice it ended in is posted too");
    assert!(shared.ended(0).abs_diff(2500 * 1000) < 3000, "{}", shared.ended(0));
    assert_eq!(shared.stop(), 1 + 50 * SLICE_NS, "others go on");
}

#[test]
fn a_job_that_ends_can_take_the_window_with_it() {
    let mut spec = small(Mix::Read);
    (spec.variation.io_bytes_max, spec.variation.ends_window) = (Some(4096 * 100), true);
    let (_, _, shared) = on_memory_in(Job::of, spec, 50, |_| 1000);
    assert!(shared.stop() <= 1 + 3 * SLICE_NS, "{}", shared.stop());
}

#[test]
fn pauses_are_no_part_of_a_latency() {
    let mut spec = small(Mix::Read);
    spec.variation.pause = Some(Pause { every: 10, length: Duration::from_micros(990) });
    let (outcome, ops, _) = on_memory_in(Job::of, spec, 100, |_| 1000);
    // Ten requests of 1 us and a pause of 990 us: 1,000 of them in 100 ms.
    assert!((990..=1010).contains(&ops.len()), "{}", ops.len());
    let read = outcome.latencies(0, Kind::Read).service.summary().unwrap();
    assert!(read.max < 1.1, "{read:?}");
}

#[test]
fn sizes_of_each_direction_reach_the_requests() {
    let mut spec = small(Mix::Both { read_pct: 50 });
    spec.variation.sharing = Sharing::Whole;
    spec.variation.blocks =
        Blocks::ByKind { read: BlockSizes::One(4096), write: BlockSizes::One(16384) };
    let (outcome, ops, _) = on_memory_in(Job::of, spec, 5, |_| 1000);
    assert!(ops.iter().all(|op| op.len == if op.kind == OpKind::Read { 4096 } else { 16384 }));
    let [read, write] = [Kind::Read, Kind::Write].map(|kind| {
        let recorded = outcome.segments[0].kinds[kind].as_ref().unwrap();
        recorded.bytes / recorded.latencies.service.count()
    });
    assert_eq!((read, write), (4096, 16384));
}

#[test]
fn a_batch_is_waited_for_as_a_whole() {
    let mut spec = small(Mix::Read);
    (spec.api, spec.depth, spec.variation.reap_min) = (IoApi::Libaio, 8, 4);
    let (_, ops, _) = on_memory_in(Job::of, spec, 5, |_| 1000);
    assert!(ops.len() > 4000, "{}", ops.len());
}

#[test]
fn requests_that_overlap_wait_and_are_made_all_the_same() {
    let mut spec = small(Mix::Write);
    (spec.api, spec.depth, spec.access) = (IoApi::Libaio, 8, Access::Uniform);
    spec.variation.serialize_overlap = true;
    spec.variation.io_bytes_max = Some(4096 * 500);
    let mut extras = Extras::of(&spec, 0, false, &OpenFiles::null(2, 8192)).unwrap().unwrap();
    let request = |offset| Request { kind: OpKind::Write, file: 1, offset };
    let flight = |file, offset| Flight { file, offset, len: 4096, ..Flight::default() };
    for (flights, overlaps) in [
        (vec![], false),
        (vec![flight(0, 8192)], false),
        (vec![flight(1, 4096), flight(1, 12_288)], false),
        (vec![flight(1, 0), flight(1, 8192)], true),
        (vec![flight(1, 10_240)], true),
    ] {
        let next = Some((request(8192), 4096));
        assert_eq!(extras.holds_back(next, 77, flights.iter().copied()), overlaps, "{flights:?}");
        assert_eq!(extras.held_since(), overlaps.then_some(77));
        assert_eq!(extras.take_held(), next.filter(|_| overlaps));
    }
    // Two files of few blocks, so that nearly every request meets another.
    spec.size_bytes = 4096 * 2 * u64::from(spec.files);
    let (outcome, ops, _) = on_memory_in(Job::of, spec, 50, |_| 1000);
    assert_eq!(ops.len(), 500);
    assert_eq!(outcome.latencies(0, Kind::Write).service.count(), 500);
}

#[test]
fn what_was_discarded_is_written_before_a_job_ends() {
    let mut spec = small(Mix::TrimWrite);
    spec.variation.sharing = Sharing::Whole;
    spec.variation.io_bytes_max = Some(4096 * 3);
    let mut extras = Extras::of(&spec, 0, false, &OpenFiles::null(2, 8192)).unwrap().unwrap();
    let mut plain = Generator::new(&spec, 0);
    let kinds: Vec<OpKind> = std::iter::from_fn(|| extras.next_request(&mut plain))
        .map(|(request, _)| request.kind)
        .collect();
    assert_eq!(kinds, [OpKind::Trim, OpKind::Write, OpKind::Trim, OpKind::Write]);
}

#[test]
fn a_last_flush_is_made_and_not_counted() {
    let mut spec = small(Mix::Write);
    (spec.variation.io_bytes_max, spec.variation.end_flush) = (Some(4096 * 10), true);
    let (outcome, ops, _) = on_memory_in(Job::of, spec, 5, |_| 1000);
    let kinds: Vec<OpKind> = ops.iter().map(|op| op.kind).collect();
    assert_eq!(kinds[..10], [OpKind::Write; 10]);
    assert_eq!(kinds[10..], [OpKind::Sync; 2], "one for each file");
    assert!(outcome.segments[0].kinds[Kind::Sync].is_none());
}

#[test]
fn a_range_that_is_flushed_is_what_was_written_since_the_last() {
    let mut spec = small(Mix::Write);
    (spec.files, spec.access) = (1, Access::Sequential);
    spec.variation.io_bytes_max = Some(4096 * 9);
    let method = FlushMethod::SyncFileRange(RangeSteps { write: true, ..RangeSteps::default() });
    let (scope, count) = (FlushScope::File, FlushCount::Writes);
    spec.flush = Some(Flush { method, every: 4, scope, count });
    let (outcome, ops, _) = on_memory(spec, 5, |_| 1000);
    let ranges = ops.iter().filter(|op| op.kind == OpKind::Sync);
    let ranges: Vec<(u64, u32)> = ranges.map(|op| (op.offset, op.len)).collect();
    assert_eq!(ranges, [(0, 4 * 4096), (4 * 4096, 4 * 4096)]);
    let flushes = outcome.segments[0].kinds[Kind::Sync].as_ref().unwrap();
    assert_eq!((flushes.latencies.service.count(), flushes.bytes), (2, 0));
}

#[test]
fn each_loop_is_read_back_before_the_next_and_has_no_part_in_the_time_of_writes() {
    let mut spec = small(Mix::Write);
    (spec.files, spec.access, spec.size_bytes) = (1, Access::Sequential, 4096 * 50);
    spec.variation.io_bytes_max = Some(3 * 4096 * 50);
    let verify = Verify { reads_back: true, loops: 3, ..Verify::default() };
    spec.variation.verify = Some(verify);
    // Every request takes 10 us, of the third loop 30.
    let cost = |number| if number < 200 { 10_000 } else { 30_000 };
    let (outcome, ops, shared) = on_memory_in(Job::of, spec, 50, cost);
    let kinds: Vec<(OpKind, usize)> =
        ops.chunk_by(|a, b| a.kind == b.kind).map(|group| (group[0].kind, group.len())).collect();
    let expected: Vec<(OpKind, usize)> =
        [(OpKind::Write, 50), (OpKind::Read, 50)].into_iter().cycle().take(6).collect();
    assert_eq!(kinds, expected);
    assert_eq!(outcome.failure.first, None);
    let (writes, reads) = (shared.reads_back(0), shared.ended(0) - shared.reads_back(0));
    let expected = 50 * (10_000 + 10_000 + 30_000);
    assert!(writes.abs_diff(expected) < 5000, "{writes}");
    assert!(reads.abs_diff(expected) < 5000, "{reads}");
}

#[test]
fn a_job_that_ends_as_it_writes_again_has_read_back_only_before() {
    let mut spec = small(Mix::Write);
    (spec.files, spec.access, spec.size_bytes) = (1, Access::Sequential, 4096 * 50);
    spec.variation.io_bytes_max = Some(2 * 4096 * 50);
    let verify = Verify { reads_back: true, loops: 2, ..Verify::default() };
    spec.variation.verify = Some(verify);
    // It is cut off 200 us after it began to write the second time.
    let (_, _, shared) = on_memory_in(Job::of, spec, 2, |_| 18_000);
    let reads = shared.ended(0) - shared.reads_back(0);
    assert!(reads.abs_diff(50 * 18_000) < 20_000, "{reads} of {}", shared.ended(0));
}
