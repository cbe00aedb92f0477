//! Closed and open loops: what is counted, what waits, what is turned away.

use std::time::Duration;

use iostrata_plan::{OpKind, Overload, RateProcess, TransactionPacing};

use super::stand_in::{Act, Event, StandIn, only, spec};
use crate::failure::LoadFailure;
use crate::figures::WindowFigures;

const MS: Duration = Duration::from_millis(1);

fn open(rate_per_s: f64, process: RateProcess, overload: Overload) -> TransactionPacing {
    TransactionPacing::Open { rate_per_s, process, queue_max: 10, overload }
}

#[test]
fn a_closed_loop_counts_what_ends_in_the_window() {
    // The 100th would end half a millisecond after the window.
    let figures = StandIn::new(|n, _| Act::Done(if n == 99 { MS * 3 / 2 } else { MS }))
        .measure(&spec(1, 0.1, TransactionPacing::Closed));
    let stream = only(&figures);
    let done = stream.ops[OpKind::Transaction].as_ref().unwrap();
    assert_eq!((done.ios, figures.duration_s), (99, 0.1));
    assert!((done.latency_us.mean / 1000.0 - 1.0).abs() < 1e-9);
    assert_eq!(done.response_us, None, "there is no schedule");
    let counts = stream.transactions.as_ref().unwrap();
    assert_eq!((counts.round_trips, counts.statements), (300, 500), "that of the last one, too");
    assert_eq!((counts.arrivals, counts.errors.len()), (0, 0));
    assert!(figures.failure.is_none() && figures.own_io.is_none());
}

#[test]
fn what_fails_is_counted_by_its_code_and_is_no_transaction() {
    let figures = StandIn::new(|n, _| match n % 10 {
        3 => Act::Fails("1213"),
        7 => Act::Fails("1205"),
        _ => Act::Done(MS),
    })
    .measure(&spec(1, 1.0, TransactionPacing::Closed));
    let stream = only(&figures);
    let done = stream.ops[OpKind::Transaction].as_ref().unwrap().ios;
    let errors = &stream.transactions.as_ref().unwrap().errors;
    assert!((998..=1000).contains(&done), "{done}");
    let of = |code: &str| errors.get(code).copied().unwrap_or(0);
    assert!(of("1213").abs_diff(done / 8) <= 1 && of("1205").abs_diff(done / 8) <= 1);
}

#[test]
fn a_warm_up_of_given_length_is_not_counted() {
    let mut spec = spec(1, 1.0, TransactionPacing::Closed);
    spec.warm_up = Some(Duration::from_millis(500));
    // Ten times as slow at first.
    let figures = StandIn::new(|n, _| Act::Done(if n < 49 { MS * 10 } else { MS })).measure(&spec);
    let done = only(&figures).ops[OpKind::Transaction].as_ref().unwrap();
    assert!((figures.duration_s - 1.0).abs() < 1e-9, "{}", figures.duration_s);
    assert!((999..=1000).contains(&done.ios) && done.latency_us.max < 1_001.0, "{done:?}");
}

#[test]
fn independent_arrivals_come_as_often_as_asked() {
    let clients = StandIn::new(|_, _| Act::Done(Duration::ZERO));
    let pacing = open(500.0, RateProcess::Poisson, Overload::Queue);
    let figures = clients.measure(&spec(4, 200.0, pacing));
    let stream = only(&figures);
    let arrivals = stream.transactions.as_ref().unwrap().arrivals as f64;
    assert!((arrivals / 100_000.0 - 1.0).abs() < 0.01, "{arrivals}");
    assert_eq!(arrivals as u64, stream.ops[OpKind::Transaction].as_ref().unwrap().ios);
    let starts: Vec<f64> = clients
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::Ran { at_ns, .. } => Some(*at_ns as f64),
            _ => None,
        })
        .collect();
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let variation = square.sqrt() / mean;
    assert!((variation - 1.0).abs() < 0.02, "variation of the gaps: {variation}");
}

#[test]
fn a_stall_is_seen_from_the_schedule_and_not_from_the_start() {
    for process in [RateProcess::Fixed, RateProcess::Poisson] {
        let act = |n| Act::Done(if n == 2_000 { Duration::from_secs(1) } else { MS });
        let figures = StandIn::new(move |n, _| act(n)).measure(&spec(
            1,
            40.0,
            open(200.0, process, Overload::Queue),
        ));
        let stream = only(&figures);
        let done = stream.ops[OpKind::Transaction].as_ref().unwrap();
        let (service, response) = (done.latency_us, done.response_us.unwrap());
        assert!(service.p99 < 1_100.0, "{service:?}");
        assert!(response.p99 > 400_000.0, "{response:?}");
        assert!(done.ios.abs_diff(8_000) < 300, "none is left out: {}", done.ios);
        assert!(stream.start_lateness_us_p99.unwrap() > 400_000.0);
    }
}

/// Twice as much as one session can do, for 10 s.
fn overloaded(overload: Overload) -> WindowFigures {
    let pacing = open(1000.0, RateProcess::Fixed, overload);
    StandIn::new(|_, _| Act::Done(MS * 2)).measure(&spec(1, 10.0, pacing))
}

#[test]
fn too_much_work_queues_or_is_turned_away() {
    let figures = overloaded(Overload::Queue);
    let stream = only(&figures);
    let (done, counts) =
        (stream.ops[OpKind::Transaction].as_ref().unwrap(), stream.transactions.as_ref().unwrap());
    assert!(done.ios.abs_diff(5_000) <= 2 && counts.dropped == 0, "{counts:?}");
    assert!(counts.waiting.abs_diff(5_000) <= 2, "{counts:?}");
    assert!(counts.arrivals.abs_diff(10_000) <= 2, "{counts:?}");
    assert!(done.response_us.unwrap().max > 4.9e6, "the queue grows all the time");

    let figures = overloaded(Overload::Drop);
    let stream = only(&figures);
    let (done, counts) =
        (stream.ops[OpKind::Transaction].as_ref().unwrap(), stream.transactions.as_ref().unwrap());
    assert!(done.ios.abs_diff(5_000) <= 2 && counts.waiting <= 10, "{counts:?}");
    assert!(counts.dropped.abs_diff(4_990) <= 5, "{counts:?}");
    assert!(counts.arrivals.abs_diff(10_000) <= 2, "{counts:?}");
    assert!(done.response_us.unwrap().max < 23e3, "ten wait at most");
    assert!(figures.failure.is_none());

    let figures = overloaded(Overload::Abort);
    assert_eq!(figures.failure, Some(LoadFailure::Overloaded { queue_max: 10 }));
    assert!(figures.duration_s < 0.1, "{} s", figures.duration_s);
    assert!(only(&figures).ops[OpKind::Transaction].as_ref().unwrap().ios >= 8);
}
