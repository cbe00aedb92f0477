use super::*;
use crate::bench::{BenchOutcome, BenchWindow, Load, run};
use crate::drive::Drive;

const VOLUME: u64 = 100 << 30;

fn volume(capacity_bytes: u64, credits: f64) -> Cloud {
    Cloud::new(CloudParameters::gp2(), capacity_bytes, 1).with_credits(credits)
}

fn bench(mut volume: Cloud, load: &Load, window: BenchWindow) -> BenchOutcome {
    run(&mut volume, load, window, 1).unwrap()
}

fn near(found: f64, want: f64) {
    assert!((found / want - 1.0).abs() < 0.02, "{found} for {want}");
}

#[test]
fn a_full_bucket_bursts_and_an_empty_one_has_the_baseline() {
    let window = BenchWindow::seconds(1.0, 20.0);
    for load in [Load::random_read(32), Load::random_write(32)] {
        near(bench(volume(VOLUME, 5.4e6), &load, window).iops.value, 3_000.0);
        near(bench(volume(VOLUME, 0.0), &load, window).iops.value, 300.0);
    }
    // The floor of small volumes, and one so large that it never bursts.
    near(bench(volume(8 << 30, 0.0), &Load::random_read(32), window).iops.value, 100.0);
    near(bench(volume(2 << 40, 0.0), &Load::random_read(32), window).iops.value, 6_144.0);
}

#[test]
fn the_bucket_runs_dry_when_the_formula_says() {
    // Credits over what is taken beyond the baseline: 54,000 / (3,000 - 300) = 20 s.
    let rate = |from_s, span_s| {
        let window = BenchWindow::seconds(from_s, span_s);
        bench(volume(VOLUME, 54_000.0), &Load::random_read(32), window).iops.value
    };
    near(rate(1.0, 18.0), 3_000.0);
    near(rate(21.0, 10.0), 300.0);
}

#[test]
fn half_an_hour_of_burst_is_in_a_full_bucket() {
    let parameters = CloudParameters::gp2();
    let minutes = parameters.credits_max / parameters.burst_iops / 60.0;
    assert_eq!(minutes, 30.0);
}

#[test]
fn idle_time_fills_the_bucket_again() {
    let mut volume = volume(VOLUME, 0.0);
    let read = |id, at_ns, volume: &mut Cloud| {
        let request = Request { id, command: Command::Read, at_bytes: 0, bytes: 4096 };
        volume.submit(at_ns, request);
    };
    read(1, 0, &mut volume);
    read(2, 10_000_000_000, &mut volume);
    assert!((2_990.0..3_001.0).contains(&volume.credits()), "{}", volume.credits());
}

#[test]
fn latency_is_the_way_to_the_store() {
    let window = BenchWindow::seconds(0.1, 20.0);
    let read = bench(volume(VOLUME, 5.4e6), &Load::random_read(1), window).read.unwrap();
    near(read.latency_us.mean, 600.0 + 4096.0 / 128.0 / 1.048_576);
    let write = bench(volume(VOLUME, 5.4e6), &Load::random_write(1), window).write.unwrap();
    near(write.latency_us.mean, 800.0 + 4096.0 / 128.0 / 1.048_576);
    assert!(read.latency_us.p99 > 1.3 * read.latency_us.p50, "{read:?}");
}

#[test]
fn large_requests_meet_the_bandwidth() {
    let window = BenchWindow::seconds(1.0, 10.0);
    let large = Load { block_bytes: 1 << 20, ..Load::random_read(32) };
    let mib = f64::from(1 << 20);
    near(bench(volume(VOLUME, 5.4e6), &large, window).bytes_per_s, 128.0 * mib);
    near(bench(volume(500 << 30, 5.4e6), &large, window).bytes_per_s, 250.0 * mib);
    // Each counts as four I/Os: 300 a second are 75 MiB/s.
    near(bench(volume(VOLUME, 0.0), &large, window).bytes_per_s, 75.0 * mib);
}

#[test]
fn neighbours_in_a_row_count_as_one_up_to_256_kib() {
    let window = BenchWindow::seconds(1.0, 10.0);
    let rate = |bytes| {
        let load = Load::sequential_read(bytes, 1);
        bench(volume(VOLUME, 0.0), &load, window).iops.value
    };
    near(rate(4_096), 300.0);
    assert!(rate(32_768) > 1_000.0, "eight of them are one: {}", rate(32_768));
}

#[test]
fn nothing_is_volatile_and_a_flush_costs_nothing_much() {
    let load = Load { flush_every: Some(1), ..Load::random_write(1) };
    let found = bench(volume(VOLUME, 5.4e6), &load, BenchWindow::seconds(0.1, 2.0));
    assert_eq!(found.flush.unwrap().latency_us.mean, 10.0);
    assert_eq!(volume(VOLUME, 0.0).facts().volatile_bytes, 0);
}
