//! What must come out whatever the parameters are, on a drive with an arm and on one without.

use iostrata_run::KernelThen::{self, Today, Y2009};

use super::simulate::run_on;
use super::*;
use crate::queue::standin::Arm;

/// 0.1 ms and 300 ms per GiB of way, or 1.4 ms wherever.
fn drive(has_arm: bool) -> Box<Arm> {
    if has_arm { Arm::new(8, 100_000, 300_000_000).0 } else { Arm::new(8, 1_400_000, 0).0 }
}

fn plan(kernel: KernelThen, nr_requests: u32) -> InsertPlan {
    let mut plan = InsertPlan::post("hdd-15k".parse().unwrap(), nr_requests, kernel);
    plan.rows_at = vec![8_000_000];
    plan.replicates = 1;
    plan
}

fn outcome(plan: &InsertPlan, has_arm: bool) -> InsertOutcome {
    run_on(plan, &|_| Ok(drive(has_arm))).unwrap()
}

fn rows_per_hour(kernel: KernelThen, nr_requests: u32, has_arm: bool) -> f64 {
    outcome(&plan(kernel, nr_requests), has_arm).points[0].rows_per_hour.value
}

#[test]
fn cpu_time_of_a_row_follows_from_the_post() {
    // 0.0738 x 8 cores x 5,400 s over 41 million rows.
    assert_eq!(ROW_CPU_NS, 77_760);
}

#[test]
fn a_larger_queue_helps_an_arm_in_2009() {
    let rates = [128, 2_048, 100_000].map(|nr_requests| rows_per_hour(Y2009, nr_requests, true));
    assert!(rates[0] < rates[1] && 2.0 * rates[1] < rates[2], "{rates:?}");
}

#[test]
fn todays_kernel_bounds_the_queue_and_hardly_feels_it() {
    let large = outcome(&plan(Today, 100_000), true);
    assert_eq!(large.nr_requests_taken, crate::queue::SCHEDULED_REQUESTS_MAX);
    let rates = [128, 100_000].map(|nr_requests| rows_per_hour(Today, nr_requests, true));
    assert!(rates[1] / rates[0] < 1.3, "{rates:?}");
}

#[test]
fn a_reader_waits_behind_a_larger_queue_but_reads_go_first() {
    let reader = |nr_requests| {
        let plan = InsertPlan { has_reader: true, ..plan(Y2009, nr_requests) };
        outcome(&plan, true).points[0].reader.clone().unwrap()
    };
    let (small, large) = (reader(128), reader(100_000));
    let write_await_ms = large.device.iostat().write_await_ms.unwrap();
    assert!(large.reads > 50 && small.reads > 50);
    assert!(large.latency_us.p99 / 1e3 < write_await_ms / 4.0, "reads do not wait like writes");
    let order = [large.latency_us.p50, large.latency_us.p95, large.latency_us.p99];
    assert!(order.is_sorted() && large.latency_us.p99 <= large.latency_us.max);
}

#[test]
fn equal_plans_have_equal_outcomes_and_seeds_differ() {
    let plan = plan(Y2009, 1_024);
    assert_eq!(outcome(&plan, true), outcome(&plan, true));
    let other = InsertPlan { seed: 2, ..plan.clone() };
    assert_ne!(outcome(&plan, true).points, outcome(&other, true).points);
}

#[test]
fn what_was_skipped_counts_like_what_was_seen() {
    // With a queue of 128, nearly all of every commit is skipped; the columns are whole.
    let point = &outcome(&plan(Y2009, 128), false).points[0];
    let columns = point.device.iostat();
    assert!((columns.service_ms().unwrap() / 1.4 - 1.0).abs() < 0.02, "{columns:?}");
    assert!((columns.queue_size - 143.0).abs() < 6.0, "128 and half a batch: {columns:?}");
    let by_law = columns.writes_per_s * columns.await_ms().unwrap() / 1e3;
    assert!((columns.queue_size / by_law - 1.0).abs() < 0.05, "{columns:?}");
    let pages_per_s = columns.write_kib_per_s / 4.0;
    let by_rows = point.rows_per_hour.value / 3600.0 * point.pages_per_row;
    assert!((pages_per_s / by_rows - 1.0).abs() < 0.02, "{pages_per_s} {by_rows}");
}

/// Rates with and without shortcuts, on a drive of the catalogue.
fn short_and_exact(disk: &str, nr_requests: u32, rows: u64) -> [iostrata_stats::Measured; 2] {
    [false, true].map(|is_exact| {
        let mut plan = InsertPlan::post(disk.parse().unwrap(), nr_requests, Y2009);
        (plan.rows_at, plan.replicates, plan.is_exact) = (vec![rows], 3, is_exact);
        run(&plan, None).unwrap().points[0].rows_per_hour.clone()
    })
}

/// Shortcuts change no rate: with this queue at these rows, and in the long form at some more.
fn assert_alike(usual: (u32, u64), long: &[(u32, u64)]) {
    let is_soak = std::env::var_os("IOSTRATA_SOAK").is_some();
    for &(nr_requests, rows) in std::iter::once(&usual).chain(long.iter().filter(|_| is_soak)) {
        let [short, exact] = short_and_exact("hdd-15k", nr_requests, rows);
        let half =
            |one: &iostrata_stats::Measured| one.ci95.map_or(0.0, |[low, high]| high - low) / 2.0;
        let apart = (short.value - exact.value).abs();
        let near = apart < half(&short).hypot(half(&exact)) || apart < 0.05 * exact.value;
        assert!(near, "{nr_requests}: {short:?} {exact:?}");
        assert!(apart < 0.35 * exact.value, "{nr_requests}: {short:?} {exact:?}");
    }
}

#[test]
fn a_backlog_that_is_skipped_changes_no_rate() {
    assert_alike((128, 8_000_000), &[(10_000, 13_000_000), (128, 41_000_000)]);
}

#[test]
fn a_drive_that_is_sampled_changes_no_rate() {
    assert_alike((100_000, 13_000_000), &[(100_000, 41_000_000)]);
}

#[test]
fn hours_add_up_over_the_growth() {
    let plan = InsertPlan { rows_at: vec![2_000_000, 13_000_000], ..plan(Y2009, 128) };
    let points = outcome(&plan, false).points;
    let cpu_h = 2e6 * ROW_CPU_NS as f64 / 3.6e12;
    let rate = points[0].rows_per_hour.value;
    assert!((points[0].reached_h - (cpu_h + 2e6 / rate) / 2.0).abs() < 1e-9);
    let step = 11e6 * (1.0 / rate + 1.0 / points[1].rows_per_hour.value) / 2.0;
    assert!((points[1].reached_h - points[0].reached_h - step).abs() < 1e-9);
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let said = |change: fn(&mut InsertPlan)| {
        let mut plan = plan(Y2009, 128);
        change(&mut plan);
        run(&plan, None).unwrap_err().to_string()
    };
    assert!(said(|plan| plan.rows_at.clear()).contains("must rise"));
    assert!(said(|plan| plan.rows_at = vec![5_000, 4_000]).contains("must rise"));
    assert!(said(|plan| plan.rows_at = vec![10]).contains("at least 1000"));
    assert!(said(|plan| plan.replicates = 0).contains("one replicate"));
    assert!(said(|plan| plan.capacity_bytes = 1 << 30).contains("take fewer rows"));
}
