//! The disks against their data sheets, and against their promises.

mod latency;
mod promises;
mod queueing;
pub(crate) mod steps;
mod table;

use super::{Hdd, HddParameters};
use crate::bench::{BenchOutcome, BenchWindow, Load, run};

/// What a whole disk answers to a load, in so many seconds of its own time.
fn outcome(parameters: HddParameters, load: &Load, span_s: f64) -> BenchOutcome {
    let mut disk = Hdd::new(parameters, parameters.capacity_bytes, 7);
    run(&mut disk, load, BenchWindow::seconds(span_s / 5.0, span_s), 11).expect("a load that fits")
}

fn iops(parameters: HddParameters, load: &Load) -> f64 {
    outcome(parameters, load, 60.0).iops.value
}

/// Asserts that `found` is within `part` of `wanted`.
fn near(what: &str, found: f64, wanted: f64, part: f64) {
    let ratio = found / wanted;
    assert!((ratio - 1.0).abs() <= part, "{what}: {found:.2}, wanted {wanted:.2}");
}
