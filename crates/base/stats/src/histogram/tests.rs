//! Buckets, percentiles and their intervals.

use super::bytes::hdrhistogram;
use super::*;
use crate::random::Random;

/// Exact percentile of sorted latencies in microseconds: the value at rank ceil(p n).
fn exact_us(sorted_ns: &[u64], percent: f64) -> f64 {
    let rank = (percent / 100.0 * sorted_ns.len() as f64 - 1e-6).ceil().max(1.0) as usize;
    sorted_ns[rank - 1] as f64 / 1e3
}

fn close(got: f64, want: f64) -> bool {
    (got - want).abs() <= want * 0.01
}

#[test]
fn percentiles_are_within_one_percent_on_random_data() {
    let mut rng = Random::new(1);
    for round in 0..200 {
        let n = 1 + rng.below(3_000) as usize;
        // From single nanoseconds to hundreds of seconds, with ties and tails.
        let (centre, width) = (rng.uniform() * 20.0, rng.uniform() * 3.0);
        let mut all: Vec<u64> =
            (0..n).map(|_| (centre + width * rng.normal()).exp().min(9e11) as u64).collect();
        let mut histogram = LatencyHistogram::new();
        all.iter().for_each(|&ns| histogram.record_ns(ns));
        all.sort_unstable();
        for percent in [0.0, 1.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0] {
            let (got, want) = (histogram.percentile_us(percent).unwrap(), exact_us(&all, percent));
            assert!(close(got, want), "round {round}, n {n}, p{percent}: {got} for {want}");
        }
        let summary = histogram.summary().unwrap();
        let mean = all.iter().map(|&ns| ns as f64).sum::<f64>() / n as f64 / 1e3;
        assert!((summary.mean - mean).abs() <= mean * 1e-12);
        assert_eq!(summary.max, all[n - 1] as f64 / 1e3);
        assert_eq!(histogram.iter_buckets().map(|bucket| bucket.count).sum::<u64>(), n as u64);
    }
}

#[test]
fn empty_has_no_figures() {
    let mut histogram = LatencyHistogram::new();
    assert!(histogram.is_empty() && histogram.summary().is_none());
    assert_eq!(histogram.percentile_us(50.0), None);
    histogram.record_ns(5);
    histogram.reset();
    assert_eq!(histogram, LatencyHistogram::new());
}

#[test]
fn merging_equals_recording_all() {
    let mut rng = Random::new(2);
    let (mut one, mut other, mut both) =
        (LatencyHistogram::new(), LatencyHistogram::new(), LatencyHistogram::new());
    for index in 0..5_000 {
        let ns = (rng.uniform() * 30.0).exp() as u64;
        if index % 3 == 0 {
            one.record_ns(ns)
        } else {
            other.record_ns(ns)
        }
        both.record_ns(ns);
    }
    one.merge(&other);
    assert_eq!(one, both);
}

#[test]
fn extremes_saturate_and_stay_exact() {
    let mut histogram = LatencyHistogram::new();
    for ns in [0, u64::MAX, HIGH_NS + 1] {
        histogram.record_ns(ns);
    }
    assert_eq!(histogram.count(), 3);
    assert_eq!(histogram.summary().unwrap().max, u64::MAX as f64 / 1e3);
    assert!(close(histogram.percentile_us(50.0).unwrap(), HIGH_NS as f64 / 1e3));
}

#[test]
fn buckets_are_those_of_hdrhistogram() {
    let mut rng = Random::new(5);
    let (mut ours, mut theirs) = (LatencyHistogram::new(), hdrhistogram());
    let edges = (0..40).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    let random: Vec<u64> = (0..20_000).map(|_| (rng.uniform() * 27.0).exp() as u64).collect();
    for ns in edges.chain(random).chain([0, HIGH_NS]) {
        ours.record_ns(ns);
        theirs.record(ns).unwrap();
    }
    let all: Vec<(u64, u64)> =
        ours.held().map(|(index, count)| (values_of(index).0, count)).collect();
    let low = |value| theirs.lowest_equivalent(value);
    let expected: Vec<(u64, u64)> = theirs
        .iter_recorded()
        .map(|step| (low(step.value_iterated_to()), step.count_at_value()))
        .collect();
    assert_eq!(all, expected);
    for percent in [0.0, 0.1, 25.0, 50.0, 99.0, 99.9] {
        let at = theirs.value_at_quantile(percent / 100.0 * (1.0 - 1e-12));
        let middle_us = theirs.median_equivalent(at) as f64 / 1e3;
        assert_eq!(ours.percentile_us(percent), Some(middle_us), "p{percent}");
    }
}

#[test]
fn memory_changes_nothing_but_memory() {
    let mut rng = Random::new(6);
    let (mut whole, mut small) = (LatencyHistogram::new(), LatencyHistogram::default());
    for _ in 0..3_000 {
        let ns = (rng.uniform() * 20.0).exp() as u64;
        whole.record_ns(ns);
        small.record_ns(ns);
    }
    assert_eq!(whole, small);
    let (buckets, summary) = (whole.counts.len(), whole.summary());
    whole.shrink();
    assert!(whole.counts.len() < buckets && whole == small && whole.summary() == summary);
    for ns in [0, u64::MAX, 77] {
        whole.record_ns(ns);
        small.record_ns(ns);
    }
    assert_eq!(whole, small);
    let mut empty = LatencyHistogram::new();
    empty.shrink();
    empty.merge(&small);
    assert_eq!(empty, small);
}

#[test]
fn slow_slices_that_follow_each_other_are_one_moment() {
    let mut slowest = vec![10; 100];
    [(10, 900), (11, 950), (12, 900), (40, 800), (70, 990)]
        .into_iter()
        .for_each(|(at, ns)| slowest[at] = ns);
    let moments = Moments::of(&slowest);
    assert_eq!([1_000, 990, 950, 850, 800].map(|ns| moments.beyond(ns)), [0, 1, 2, 2, 3]);
    assert_eq!(moments.beyond(10), MOMENTS_MAX as u64, "every slice is one");
    assert_eq!(moments.clone().and(&moments).beyond(800), 6);
    assert_eq!(Moments::of(&[0; 50]).beyond(1), 0);
}
