//! What a seek costs, measured, compared with the kernel's rotational flag.

use iostrata_plan::{Layer, Point, rung};
use iostrata_run::Replicate;
use iostrata_stats::PAIRS_MIN;
use iostrata_stats::units::{microseconds, rate};

use super::capped::confirmed;
use crate::cap::cap;
use crate::case::Case;
use crate::disturbed::did_its_work;
use crate::figure::{application_latency_us, combined, device_latency_us, median};
use crate::observed::Which;
use crate::statement::Statement;

/// Names in the catalogue.
pub(crate) const SEEK_COST: &str = "seek_cost";
pub(crate) const ROTATIONAL_FLAG_WRONG: &str = "rotational_flag_wrong";
const ALONE: &str = rung::READ_4K_DEPTH_1;
const MANY: &str = rung::READ_4K_DEPTH_16;
const SEQUENTIAL: &str = rung::OVERWRITE_16K;
/// A random read that is faster than this needs no arm to move, in microseconds.
const FLASH_US_MAX: f64 = 1_000.0;
/// A random read that is slower than this may have moved one, in microseconds.
const SEEK_US_MIN: f64 = 3_000.0;
/// Sequential requests must be this many times as fast as random ones.
const SEEK_RATIO_MIN: f64 = 3.0;
/// A disk with one arm gains less than this from 16 requests in flight, an array that many times;
/// networks gain more.
const ARM_GAIN_MAX: f64 = 4.0;

/// Latency by the device where it is known, else by the application.
fn latency_us(replicate: &Replicate) -> Option<f64> {
    if !did_its_work(replicate) {
        return None;
    }
    let of_device_us = device_latency_us(replicate).filter(|&us| us > 0.0);
    of_device_us.or_else(|| application_latency_us(replicate))
}

fn middle_us(case: &Case<'_, '_>, id: &str, which: Which) -> Option<(f64, u64)> {
    let all: Vec<f64> =
        case.log.replicates(id, which).iter().filter_map(|(_, one)| latency_us(one)).collect();
    let n = all.len() as u64;
    median(all).map(|us| (us, n))
}

/// The random and the sequential latency and their replicates, where they show an arm.
fn seek(case: &Case<'_, '_>, which: Which) -> Option<(f64, f64, u64)> {
    let (random, n) = middle_us(case, ALONE, which)?;
    let (sequential, _) = middle_us(case, SEQUENTIAL, which)?;
    let rate_of = |id: &str| {
        combined(case.log.replicates(id, which).iter().map(|(_, one)| *one)).map(|one| one.value)
    };
    // A cap lets requests wait as long as an arm does.
    if confirmed(case.log).or_else(|| cap(case.log, Which::All)).is_some() {
        return None;
    }
    let gain = rate_of(MANY)? / rate_of(ALONE)?;
    let most = ARM_GAIN_MAX * arms(case);
    let arm = random >= SEEK_US_MIN && random >= SEEK_RATIO_MIN * sequential && gain < most;
    arm.then_some((random, sequential, n))
}

/// Disks below that the kernel calls rotational: each has an arm of its own. At least one.
fn arms(case: &Case<'_, '_>) -> f64 {
    let path = &case.host.path;
    let turns = |name: &str| {
        let device = path.devices.iter().find(|device| device.name == name);
        device.is_some_and(|device| device.rotational_flag == Some(true))
    };
    let lowest = path.block_stack.iter().filter(|layer| layer.below.is_empty());
    lowest.filter(|layer| turns(&layer.name)).count().max(1) as f64
}

pub(crate) fn seek_cost_confirming(case: &Case<'_, '_>) -> Vec<Point> {
    match seek(case, Which::All) {
        Some(_) => case.points(&[ALONE, MANY, SEQUENTIAL]),
        None => Vec::new(),
    }
}

pub(crate) fn seek_cost(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    let (random, sequential, n) = seek(case, which)?;
    if n < PAIRS_MIN as u64 {
        return None;
    }
    let text = format!(
        "A random read takes {}, a sequential request {}: it behaves like a hard disk, and pages \
         that lie together are worth writing together.",
        microseconds(random),
        microseconds(sequential)
    );
    let found = Statement::new(Layer::Device, n, text);
    Some(found.with("random_read_us", random).with("sequential_us", sequential))
}

/// The device that claims to be rotational; the server checks the topmost one.
fn claims_rotation<'c>(case: &Case<'c, '_>) -> Option<&'c str> {
    let device = case.host.path.devices.iter().find(|device| device.rotational_flag.is_some())?;
    (device.rotational_flag == Some(true)).then_some(device.name.as_str())
}

pub(crate) fn flag_wrong_confirming(case: &Case<'_, '_>) -> Vec<Point> {
    let fast = middle_us(case, ALONE, Which::All).is_some_and(|(us, _)| us < FLASH_US_MAX);
    if fast && claims_rotation(case).is_some() { case.points(&[ALONE]) } else { Vec::new() }
}

pub(crate) fn flag_wrong(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    let device = claims_rotation(case)?;
    let (us, n) = middle_us(case, ALONE, which)?;
    if n < PAIRS_MIN as u64 || us >= FLASH_US_MAX {
        return None;
    }
    let iops = case.log.seen(ALONE).and_then(|seen| seen.figure());
    let text = format!(
        "The kernel calls {device} rotational, but a random read takes {} ({} one at a time): it \
         is flash. Servers that believe the flag write neighbouring pages for nothing.",
        microseconds(us),
        rate(iops.map_or(0.0, |iops| iops.value))
    );
    Some(Statement::new(Layer::Device, n, text).with("device", device).with("random_read_us", us))
}
