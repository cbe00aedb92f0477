//! Delays, ramps, pauses and early ends in the measuring loop, in virtual time.

use std::time::Duration;

use iostrata_io::{OpKind, OpenFiles};
use iostrata_plan::{Access, BlockSizes, Blocks, IoApi, Mix, OpKind as Kind, Pause, Sharing};

use crate::extras::Extras;
use crate::generator::{Generator, Request};
use crate::in_flight::Flight;
use crate::job::Job;
use crate::loop_tests::{SLICE_NS, on_memory_in, small};
use crate::span::Span;

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
