//! The policy in a closed loop with a small engine in virtual time.

mod plant;

use plant::{Plan, Plant, limits};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Commits in windows of a hundred hundredths, sliding by ten, from a time on.
fn min_over_mean(plant: &Plant, from_s: f64, window_s: f64) -> f64 {
    let from = (from_s * 100.0) as usize;
    let to = (plant.now_us / 10_000) as usize;
    let counts: Vec<u32> =
        (from..to).map(|at| plant.seen.commits.get(at).copied().unwrap_or(0)).collect();
    let width = (window_s * 100.0) as usize;
    let sums = counts.windows(width).step_by((width / 10).max(1));
    let sums: Vec<u32> = sums.map(|window| window.iter().sum()).collect();
    let mean = f64::from(sums.iter().sum::<u32>()) / sums.len() as f64;
    f64::from(*sums.iter().min().unwrap()) / mean
}

/// Least and greatest age from a time on, as shares of the async limit.
fn band(plant: &Plant, from_s: f64) -> (f64, f64) {
    let from_us = (from_s * 1e6) as u64;
    let async_age = limits(plant.plan.capacity).async_age as f64;
    let ages = plant.seen.ages.iter().filter(|(at, _)| *at >= from_us);
    let shares: Vec<f64> = ages.map(|(_, age)| *age as f64 / async_age).collect();
    (shares.iter().copied().fold(f64::MAX, f64::min), shares.iter().copied().fold(0.0, f64::max))
}

fn report(name: &str, plant: &Plant, from_s: f64) {
    let seen = &plant.seen;
    eprintln!(
        "{name}: min/mean 1s {:.3} 100ms {:.3}, age band {:.2?} of async, age max {:.3} of max, flushed {} least {} ({:.2}), furious {}, waits {}, frame waits {}, looks {}",
        min_over_mean(plant, from_s, 1.0),
        min_over_mean(plant, from_s, 0.1),
        band(plant, from_s),
        seen.age_max as f64 / limits(plant.plan.capacity).max_age as f64,
        seen.flushed_pages,
        seen.least_pages,
        seen.flushed_pages as f64 / seen.least_pages.max(1) as f64,
        seen.furious,
        seen.waits,
        seen.frame_waits,
        seen.looks,
    );
}

#[test]
fn explore() {
    for (capacity, fill_s) in
        [(64 * KIB, 0.05), (MIB, 0.3), (32 * MIB, 3.0), (512 * MIB, 20.0), (2 * GIB, 60.0)]
    {
        let plan = Plan::on(capacity, fill_s);
        let mut plant = Plant::new(plan);
        let rate = capacity as f64 / fill_s;
        plant.offer(rate);
        let span = fill_s * 6.0 + 3.0;
        plant.run(span);
        report(&format!("steady {capacity}"), &plant, fill_s * 2.0);
        let txn_pages = plant.seen.least_pages as f64 / span;
        plant.device(txn_pages * 0.5);
        plant.run(span);
        report(&format!("slow device {capacity}"), &plant, span + fill_s * 2.0);
        plant.device(plan.device_pages_per_s);
        plant.run(span);
        report(&format!("fast again {capacity}"), &plant, 2.0 * span + fill_s * 2.0);
        plant.offer(rate / 4.0);
        plant.run(span * 2.0);
        report(&format!("quarter {capacity}"), &plant, 3.0 * span + fill_s * 8.0);
        plant.offer(rate);
        plant.run(span);
        report(&format!("full {capacity}"), &plant, 5.0 * span + fill_s * 2.0);
        eprintln!();
    }
}
