//! Arrays against the one published figure and against their promises.

mod pace;
mod promises;
mod table;

use super::*;
use crate::bench::{BenchOutcome, BenchWindow, Load, run};
use crate::drive::Drive;
use crate::drive::hdd::HDD_15K;

fn outcome(drive: &mut dyn Drive, load: &Load, warm_up_s: f64, span_s: f64) -> BenchOutcome {
    run(drive, load, BenchWindow::seconds(warm_up_s, span_s), 5).expect("a load that fits")
}

/// An array as large as its disks were sold.
fn capacity_bytes(parameters: &RaidParameters) -> u64 {
    HDD_15K.capacity_bytes * u64::from(parameters.spindles / 2)
}

fn plain(parameters: RaidParameters) -> Raid {
    Raid::new(parameters, capacity_bytes(&parameters), 3)
}

fn protected(parameters: RaidParameters, cache: ProtectedCacheParameters) -> Protected {
    Protected::array(parameters, cache, capacity_bytes(&parameters), 3)
}
