//! Figures of windows on virtual time: what is doubted, what is withheld.

use iostrata_plan::Mix;

use super::*;
use crate::job::asked;
use crate::loop_tests::{on_memory, small};

/// The window of a disk that answers all requests in flight after so many nanoseconds.
fn outcome(depth: u32, slices: u32, latency_ns: u64) -> WindowOutcome {
    let mut spec = small(Mix::Read);
    spec.depth = depth;
    let passes = move |number| if number % u64::from(depth) == 0 { latency_ns } else { 0 };
    let (job, _, shared) = on_memory(spec.clone(), slices, passes);
    let slices = shared.slices(&[0], &[OpKind::Read], slices as usize);
    let mut stream = StreamOutcome::new(asked("main", &spec), slices);
    stream.add_segments(job.segments);
    WindowOutcome {
        streams: vec![stream],
        slice_s: 1e-3,
        exact: true,
        cut_slice: 0,
        interrupted: false,
        own_io: None,
        written_bytes: 0,
        failure: None,
    }
}

fn main_stream(outcome: &WindowOutcome) -> StreamFigures {
    WindowFigures::of(outcome).streams.remove(0)
}

#[test]
fn a_window_shorter_than_twenty_latencies_says_so() {
    for (slices, is_short) in [(250, true), (1_200, true), (1_400, false)] {
        let stream = main_stream(&outcome(32, slices, 64_000_000));
        let read = stream.ops[OpKind::Read].as_ref().unwrap();
        assert!((read.latency_us.mean / 64_000.0 - 1.0).abs() < 0.01, "{:?}", read.latency_us);
        for figure in [&read.iops, &read.latency_mean_us] {
            assert_eq!(figure.verdicts.has(Verdict::TooFewSamples), is_short, "{slices}");
        }
    }
}

#[test]
fn a_window_without_a_completion_has_no_rate() {
    let stream = main_stream(&outcome(4, 50, 1_000_000_000));
    let read = stream.ops[OpKind::Read].as_ref().unwrap();
    assert_eq!(read.ios, 0);
    assert!(read.iops.verdicts.has(Verdict::TooFewSamples));
    assert_eq!((read.iops.ci95, read.iops.n), (None, 0), "nobody knows how few they are");
}

#[test]
fn rate_times_latency_is_what_was_in_flight() {
    for depth in [1, 8] {
        let stream = main_stream(&outcome(depth, 400, 400_000));
        let read = stream.ops[OpKind::Read].as_ref().unwrap();
        let product = read.iops.value * read.latency_us.mean * 1e-6;
        assert!((product / f64::from(depth) - 1.0).abs() < 0.02, "{product} of {depth}");
        assert!((product - stream.depth_mean).abs() < 1e-6);
    }
}

#[test]
fn figures_that_contradict_each_other_are_withheld() {
    let mut stream = main_stream(&outcome(8, 400, 400_000));
    let kept = stream.clone();
    assert!(!withhold_impossible(&mut stream, 8.0, 0.4));
    assert_eq!(stream, kept);
    assert!(withhold_impossible(&mut stream, 1.0, 0.4), "8 in flight where one may be");
    assert!(stream.ops.is_empty() && stream.total.is_none());
    assert!(
        stream.notes[0].contains("8.0 requests in flight, and at most 1"),
        "{:?}",
        stream.notes
    );
}

#[test]
fn a_rate_that_fell_where_requests_failed_is_no_burst() {
    let fallen = || {
        let mut stream = main_stream(&outcome(8, 400, 400_000));
        stream.verdicts.add(Verdict::BurstLimited);
        stream.verdicts.add(Verdict::NotSteady);
        stream.ops.get_mut(OpKind::Read).unwrap().iops.verdicts.add(Verdict::BurstLimited);
        stream
    };
    let with_errors = |errors: u64| {
        let mut stream = fallen();
        let errors = [("no_space".to_owned(), errors)].into_iter().collect();
        stream.transactions = Some(TransactionFigures { errors, ..Default::default() });
        stream
    };
    let mut full = with_errors(5_000);
    assert!(has_failed(&full) && !has_failed(&with_errors(1)) && !has_failed(&fallen()));
    withdraw_burst(&mut full);
    assert!(!full.verdicts.has(Verdict::BurstLimited) && full.verdicts.has(Verdict::NotSteady));
    assert!(!full.ops[OpKind::Read].as_ref().unwrap().iops.verdicts.has(Verdict::BurstLimited));
}
