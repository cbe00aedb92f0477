//! Documents of made-up windows.

use std::time::Duration;

use iostrata_run::{Cpu, OpFigures};
use iostrata_spec::PerKind;
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
