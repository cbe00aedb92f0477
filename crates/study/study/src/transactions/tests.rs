//! Documents of made-up windows.

use std::time::Duration;

use iostrata_plan::PerKind;
use iostrata_run::{Cpu, OpFigures, Series};
use iostrata_stats::{Latencies, Measured, Verdict};

use super::*;

fn op(ios: u64, duration_s: f64) -> OpFigures {
    let mut latencies = Latencies::new(true);
    (0..ios).for_each(|n| latencies.record(1_000_000 + n, 2_000_000 + n));
    let rate = ios as f64 / duration_s;
    let mean = Measured::new(1_000.0, [990.0, 1_010.0], 40, Verdicts::none());
    OpFigures {
        ios,
        bytes: 0,
        iops: Measured::new(rate, [rate * 0.99, rate * 1.01], 40, Verdicts::none()),
        latency_us: latencies.service.summary().unwrap(),
        latency_mean_us: mean.clone(),
        response_us: latencies.response.as_ref().and_then(LatencyHistogram::summary),
        response_mean_us: Some(mean.scaled(2.0)),
        latencies,
    }
}

/// Ten seconds of so many new orders and payments, in even tenths of a second.
fn replicate(threads: u32, new_orders: u32, payments: u32) -> Replicate {
    let mut spec = TransactionSpec::new("tpcc", "engine:/data");
    (spec.threads, spec.runtime) = (threads, Some(Duration::from_secs(10)));
    let done = u64::from(new_orders + payments);
    let tps = done as f64 / 10.0;
    let each = |count: u32| vec![count / 100; 100];
    let ops: PerKind<OpFigures> = [
        (OpKind::NewOrder, op(u64::from(new_orders), 10.0)),
        (OpKind::Payment, op(u64::from(payments), 10.0)),
    ]
    .into_iter()
    .collect();
    let counts = TransactionFigures {
        errors: [("1213".to_owned(), 7)].into_iter().collect(),
        retries: 9,
        round_trips: 20 * done,
        statements: 30 * done,
        warm_up_s: 1.5,
        ..TransactionFigures::default()
    };
    let stream = StreamFigures {
        name: "tpcc".to_owned(),
        ops,
        total: Some(Measured::new(tps, [tps * 0.99, tps * 1.01], 90, Verdicts::none())),
        cpu: Cpu { user_s: 1.0, sys_s: 0.5, ns_per_io: Some(1.5e9 / done as f64) },
        series: Series {
            width_s: 0.1,
            counts: [(OpKind::NewOrder, each(new_orders)), (OpKind::Payment, each(payments))]
                .into_iter()
                .collect(),
            latency_mean_us: vec![1_000.0; 100],
        },
        transactions: Some(counts),
        ..StreamFigures::default()
    };
    Replicate {
        point: transaction_point(&spec),
        replicate: 0,
        started_s: 0.0,
        duration_s: 10.0,
        streams: vec![stream],
        evidence: None,
        verdicts: [Verdict::Steal].into_iter().collect(),
    }
}

fn facts() -> TransactionFacts {
    TransactionFacts {
        isolation: "repeatable read".to_owned(),
        deviations: vec!["no terminals".to_owned()],
        ..TransactionFacts::default()
    }
}

#[test]
fn a_window_becomes_the_document_of_the_contract() {
    let document = transaction_document(&[replicate(8, 4_500, 5_500)], &facts()).unwrap();
    assert_eq!((document.tps, document.tps_n, document.threads), (1_000.0, 90, 8));
    assert_eq!(document.tps_ci95, Some([990.0, 1_010.0]));
    assert!((document.nopm.unwrap() - 27_000.0).abs() < 1e-9);
    assert!((document.mix[&OpKind::NewOrder] - 0.45).abs() < 1e-12);
    assert_eq!(document.completed[&OpKind::Payment], 5_500);
    assert_eq!(document.response_us, None, "a closed loop has no schedule");
    assert_eq!(document.series.t_s.len(), 10);
    assert!((document.series.t_s[9] - 10.0).abs() < 1e-9);
    assert!(document.series.tps.iter().all(|tps| (tps - 1_000.0).abs() < 1e-9));
    assert!((document.stability.unwrap().min_over_mean_1s - 1.0).abs() < 1e-9);
    assert_eq!((document.errors["1213"], document.retries), (7, 9));
    let driver = document.driver;
    assert_eq!((driver.round_trips_per_txn, driver.statements_per_txn), (Some(20.0), Some(30.0)));
    assert!((driver.us_per_txn.unwrap() - 150.0).abs() < 1e-9 && driver.cpu_s == 1.5);
    assert!(document.levels.is_empty() && document.verdicts.has(Verdict::Steal));
    assert_eq!(document.warm_up_s, 1.5);
}

#[test]
fn of_a_staircase_the_best_level_is_shown_and_its_knee() {
    let levels = [
        replicate(1, 1_000, 1_000),
        replicate(4, 4_000, 4_000),
        replicate(16, 4_100, 4_100),
        replicate(64, 3_000, 3_000),
    ];
    let document = transaction_document(&levels, &facts()).unwrap();
    assert_eq!((document.threads, document.tps), (16, 820.0));
    let threads: Vec<u32> = document.levels.iter().map(|level| level.threads).collect();
    assert_eq!((threads.as_slice(), document.knee_threads), (&[1, 4, 16, 64][..], Some(4)));
    assert!((document.levels[0].latency_us.p50 / 1_000.0 - 1.0).abs() < 0.01);
    let rising = transaction_document(&levels[..2], &facts()).unwrap();
    assert_eq!((rising.threads, rising.knee_threads), (4, None), "nobody saw it flatten");
}

#[test]
fn a_window_in_which_nothing_completed_has_no_rate() {
    let mut nothing = replicate(1, 100, 100);
    nothing.streams[0].total = None;
    nothing.streams[0].ops = PerKind::default();
    nothing.streams[0].series = Series::default();
    let document = transaction_document(&[nothing], &facts()).unwrap();
    assert_eq!(document.unknown.len(), 1, "{:?}", document.unknown);
    assert_eq!((document.nopm, document.stability), (None, None));
    assert_eq!(document.driver.round_trips_per_txn, None);
    assert!(transaction_document(&[], &facts()).is_none());
}

#[test]
fn the_last_third_is_set_against_the_first() {
    let mut slowing = replicate(8, 4_500, 5_500);
    let series = &mut slowing.streams[0].series;
    series.counts =
        [(OpKind::NewOrder, (0..100).map(|at| 120 - at / 2).collect())].into_iter().collect();
    let drift = transaction_document(&[slowing], &facts()).unwrap().drift.unwrap();
    assert!(drift.first_tps > 1_100.0 && drift.last_tps < 800.0, "{drift:?}");
    assert!(drift.is_significant() && (-35.0..-25.0).contains(&drift.change_pct), "{drift:?}");
}

#[test]
fn stalls_are_told_on_the_clock_of_the_samples_and_of_the_window() {
    let mut stalled = replicate(8, 4_500, 5_500);
    let hole = |at: usize| if (40..55).contains(&at) { 0 } else { 100 };
    let series = &mut stalled.streams[0].series;
    series.counts = [(OpKind::NewOrder, (0..100).map(hole).collect())].into_iter().collect();
    let asked = std::cell::RefCell::new(Vec::new());
    let stalls = transaction_stalls(&stalled, &|from_s, to_s| {
        asked.borrow_mut().push((from_s, to_s));
        (StallCause::Device, "seen".to_owned())
    });
    let [stall] = &stalls[..] else { panic!("{stalls:?}") };
    assert!((stall.t_s - 4.0).abs() < 0.21 && (stall.length_s - 1.5).abs() < 0.21, "{stall:?}");
    assert_eq!((stall.min_tps, stall.cause), (0.0, StallCause::Device));
    let (from_s, to_s) = asked.borrow()[0];
    assert!((from_s - stall.t_s - 1.5).abs() < 1e-9, "the warm-up took 1.5 s");
    assert!((to_s - from_s - stall.length_s).abs() < 1e-9);
}

#[test]
fn seconds_between_rare_transactions_are_no_stalls() {
    let mut rare = replicate(1, 3, 3);
    let every_other_second = (0..100).map(|at| u32::from(at % 20 == 0)).collect();
    rare.streams[0].series.counts = [(OpKind::NewOrder, every_other_second)].into_iter().collect();
    assert_eq!(transaction_stalls(&rare, &|_, _| (StallCause::Device, String::new())), []);
}

#[test]
fn who_is_not_served_counts_as_slower_than_any() {
    let mut rated = replicate(8, 500, 500);
    assert!((response_percentile_us(&rated, 99.0).unwrap() / 2_000.0 - 1.0).abs() < 0.01);
    let counts = rated.streams[0].transactions.as_mut().unwrap();
    (counts.errors, counts.waiting) = (BTreeMap::new(), 11);
    assert_eq!(response_percentile_us(&rated, 99.0), None, "11 of 1011 are more than 1 %");
    assert!(response_percentile_us(&rated, 95.0).is_some());
}

#[test]
fn a_search_shows_the_highest_rate_that_held() {
    let open = |rate_per_s, done| {
        let mut level = replicate(8, done, done);
        let spec = level.point.transactions.as_mut().unwrap();
        spec.pacing = TransactionPacing::Open {
            rate_per_s,
            process: iostrata_plan::RateProcess::Poisson,
            queue_max: 10,
            overload: iostrata_plan::Overload::Queue,
        };
        level.streams[0].transactions.as_mut().unwrap().errors = BTreeMap::new();
        level
    };
    let mut late = open(190.0, 900);
    late.streams[0].transactions.as_mut().unwrap().waiting = 100;
    let levels = [replicate(8, 1_000, 1_000), late, open(100.0, 500)];
    let target = LatencyTarget {
        percentile: 99.0,
        target_us: 3_000.0,
        rate_per_s: Some(100.0),
        ..LatencyTarget::default()
    };
    let facts = TransactionFacts { latency_target: Some(target), ..facts() };
    let document = transaction_document(&levels, &facts).unwrap();
    assert_eq!((document.tps, document.knee_threads), (100.0, None));
    let held: Vec<Option<bool>> = document.levels.iter().map(|level| level.holds_target).collect();
    assert_eq!(held, [None, Some(false), Some(true)]);
    assert_eq!(document.levels[2].rate_per_s, Some(100.0));
    let none = LatencyTarget { rate_per_s: None, ..target };
    let facts = TransactionFacts { latency_target: Some(none), ..facts };
    assert_eq!(transaction_document(&levels, &facts).unwrap().tps, 100.0, "the lowest tried");
}
