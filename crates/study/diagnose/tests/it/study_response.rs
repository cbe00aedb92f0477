//! Response time over load on a made-up limit: the knee, the queue that grows, and the text.

use iostrata_diagnose::{ProbeEnd, summarise_study};
use iostrata_plan::study::{Extent, MeasuringOverrides, StudyPlan, StudySpec, shipped_text};
use iostrata_plan::{OpKind, Pacing};
use iostrata_run::{Event, OpFigures, StreamFigures, StudyDocument};
use iostrata_stats::{Latencies, LatencyHistogram, LatencyUs, Measured};

use crate::support::host;
use crate::support::study::{self, stream};

const LIMIT: f64 = 1500.0;

fn plan() -> StudyPlan {
    let text = shipped_text("limits").unwrap();
    let spec = StudySpec::parse(text, "limits.toml").unwrap();
    spec.plan(Extent::Quick, None, &MeasuringOverrides::default()).unwrap()
}

/// Requests per second that come, and how long one takes.
fn behaviour(pacing: Pacing, jobs: u32) -> (f64, f64) {
    let Pacing::Open { rate_iops, .. } = pacing else {
        return (LIMIT, 1e6 * f64::from(jobs) / LIMIT);
    };
    let load = rate_iops * f64::from(jobs) / LIMIT;
    let wait_us = if load < 0.93 { 2_000.0 } else { 50_000.0 };
    (LIMIT * load.min(1.0), if load > 1.0 { 400_000.0 } else { wait_us })
}

fn replicate(plan: &StudyPlan, cell: usize, number: u32) -> Event {
    let cell = &plan.cells[cell];
    let (iops, us) = behaviour(cell.workload.pacing, cell.workload.jobs);
    let iops = iops * [0.999, 1.001, 1.0][number as usize];
    let near =
        |value: f64| Measured::new(value, [value * 0.995, value * 1.005], 40, <_>::default());
    let latency =
        LatencyUs { mean: us / 2.0, p50: us / 3.0, p95: us / 1.1, p99: us, p99_9: us, max: us };
    let rated = cell.workload.pacing != Pacing::Closed;
    let op = OpFigures {
        ios: 4000,
        bytes: 4000 * 16384,
        iops: near(iops),
        latency_mean_us: near(us / 2.0),
        latency_us: latency,
        response_mean_us: rated.then(|| near(us / 2.0)),
        response_us: rated.then_some(latency),
        latencies: Latencies::default(),
    };
    let kind = if cell.workload.mix.writes() { OpKind::Write } else { OpKind::Read };
    let stream = StreamFigures {
        duration_s: Some(4.0),
        ops: [(kind, op)].into_iter().collect(),
        ..stream(iops)
    };
    study::replicate(cell, number, stream)
}

fn document() -> StudyDocument {
    let plan = plan();
    let cells = 0..plan.cells.len();
    let events: Vec<Event> = (0..3)
        .flat_map(|n| cells.clone().map(move |cell| (cell, n)))
        .map(|(cell, n)| replicate(&plan, cell, n))
        .collect();
    summarise_study(host(), &plan, &events, ProbeEnd::default())
}

#[test]
fn waiting_begins_somewhere_and_beyond_the_limit_the_queue_grows() {
    let document = document();
    let curves: Vec<_> = document.axes.iter().filter(|axis| axis.factor == "rate_pct").collect();
    assert_eq!(curves.len(), 2, "reads and writes");
    for axis in curves {
        assert_eq!(
            axis.x,
            [50.0, 70.0, 80.0, 90.0, 95.0, 100.0, 110.0],
            "a closed loop has no rate"
        );
        let response = axis.response.as_ref().unwrap();
        assert_eq!((response.knee, response.p99_us[0]), (Some(95.0), 2_000.0));
        let backlog = response.backlog.as_ref().unwrap();
        assert_eq!((backlog.at, backlog.window_s), (110.0, 4.0));
        assert!((backlog.per_s - 150.0).abs() < 1.0, "1650 come, 1500 are done: {backlog:?}");
        let [low, high] = backlog.per_s_ci95;
        assert!(low < 150.0 && high > 150.0);
    }
}

#[test]
fn the_headline_of_limits_answers_its_question() {
    let document = document();
    let said = &document.headline;
    assert!(
        said[0].starts_with("Random reads wait little up to 90 % of the limit (99 % of them are")
            && said[0].contains("at 110 % the queue grows by 150 requests every second"),
        "{said:#?}"
    );
    assert!(said[1].starts_with("Random writes wait little"), "{said:#?}");
    let same = "With mq-deadline below the limit it is 10.7 ms, with none 10.7 ms (equal within";
    assert!(said[2].starts_with(same), "{said:#?}");
    assert!(said[3].starts_with("With a queue of 128 requests it is 10.7 ms"), "{said:#?}");
    assert!(document.answers.iter().all(|answer| answer.is_known));
}

/// Every view takes the unit of a piece of evidence from the end of its name.
#[test]
fn evidence_of_a_response_ends_in_its_unit() {
    let document = document();
    let finding = document.findings.iter().find(|one| one.id == "response_at_rate").unwrap();
    for (name, value) in &finding.evidence {
        let unit = ["_us", "_per_s", "_per_s_ci95"].iter().any(|unit| name.ends_with(unit));
        assert!(unit, "{name} would be shown in another unit than its own: {value}");
    }
    assert_eq!(finding.evidence["at_110_percent_response_p99_us"], 400_000.0);
}

/// A replicate of 10,000 requests whose latencies are given by `us`.
fn with_histogram(plan: &StudyPlan, number: u32, us: impl Fn(u64) -> u64) -> Event {
    let Event::Replicate(mut replicate) = replicate(plan, 0, number) else { unreachable!() };
    let op = replicate.streams[0].ops.iter_mut().next().map(|(_, op)| op).unwrap();
    op.latencies.service = LatencyHistogram::new();
    (0..10_000).for_each(|at| op.latencies.service.record_ns(1000 * us(at)));
    op.ios = 10_000;
    op.latency_us = op.latencies.service.summary().unwrap();
    let mean_us = op.latency_us.mean;
    op.latency_mean_us =
        Measured::new(mean_us, [mean_us * 0.99, mean_us * 1.01], 40, <_>::default());
    (op.response_mean_us, op.response_us) = (None, None);
    Event::Replicate(replicate)
}

#[test]
fn percentiles_of_a_point_are_those_of_all_its_requests() {
    let plan = plan();
    let point = |events: &[Event]| {
        let end = ProbeEnd { bytes_written: 0, duration_s: 3.0, interrupted: false };
        let mut points = summarise_study(host(), &plan, events, end).points;
        points.remove(0).ops.iter().next().map(|(_, op)| op.clone()).unwrap()
    };
    // Every second replicate has one slow request of ten.
    let mixture: Vec<Event> = (0..3)
        .map(|number| {
            with_histogram(&plan, number, |at| match (number % 2, at % 10) {
                (1, 0) => 3_000,
                _ => 100,
            })
        })
        .collect();
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
    let found = point(&mixture);
    // 1,000 of 30,000 are slow: the 99th percentile is one of them, the 95th is not. The mean of
    // three 99th percentiles is a latency that no request had.
    let latency = found.latency_us;
    assert!(near(latency.p95, 100.0) && near(latency.p99, 3_000.0), "{latency:?}");
    let percents: Vec<f64> = found.latency_percentiles.iter().map(|one| one.percent).collect();
    assert_eq!(percents, [50.0, 95.0, 99.0, 99.9]);
    assert_eq!(found.latency_percentiles[2].us, latency.p99);
    let [low, high] = found.latency_percentiles[0].us_ci95.unwrap();
    assert!(low <= latency.p50 && latency.p50 <= high);
    assert!(found.response_us.is_none() && found.response_percentiles.is_empty());

    let mut bare = mixture;
    for event in &mut bare {
        let Event::Replicate(replicate) = event else { continue };
        replicate.streams[0].ops.iter_mut().for_each(|(_, op)| op.latencies = <_>::default());
    }
    let old = point(&bare);
    assert!(near(old.latency_us.p99, (100.0 + 3_000.0 + 100.0) / 3.0), "{:?}", old.latency_us);
    assert!(old.latency_percentiles.is_empty(), "how wide they are is unknown");
}
