//! Rates that did not hold.
//!
//! Invariant: what the processors, the hypervisor or another process disturbed says nothing about
//! the device and is left out.

use iostrata_run::{Finding, Replicate};
use iostrata_spec::{IoApi, Layer};
use iostrata_stats::{Shape, Steadiness, Verdict};
use iostrata_units::{bytes, percent, rate, seconds};

use super::statement::{WithEvidence, caution};
use super::{Case, FindingId};
use crate::compared::carries;

pub(crate) const SUSTAINED: &str = "sustained_16k";
/// Undisturbed replicates that are needed to judge a device.
const REPLICATES_MIN: usize = 10;
const DISTURBED: [Verdict; 5] = [
    Verdict::CpuLimited,
    Verdict::ForeignIo,
    Verdict::Steal,
    Verdict::Throttled,
    Verdict::ToolLimited,
];

fn is_undisturbed(replicate: &Replicate) -> bool {
    DISTURBED.iter().all(|&verdict| !carries(replicate, verdict))
}

pub(super) fn burst_limit(case: &Case<'_, '_>) -> Option<Finding> {
    let replicate = case.log.seen(SUSTAINED)?.replicates.last()?;
    let series = &replicate.streams.first()?.series;
    if !is_undisturbed(replicate) || series.width_s <= 0.0 {
        return None;
    }
    let slices: Vec<f64> =
        series.writes.iter().map(|&writes| f64::from(writes) / series.width_s).collect();
    if slices.len() < 2 {
        return None;
    }
    let Shape::Step { at, before, after } = Steadiness::of(&slices).burst()? else { return None };
    let at_s = at as f64 * series.width_s;
    let block = f64::from(replicate.point.streams.first()?.spec.block_bytes);
    let written: f64 = series.writes.iter().take(at).map(|&writes| f64::from(writes) * block).sum();
    let fall_pct = 100.0 * (1.0 - after / before);
    let text = format!(
        "Writes fell from {} to {} ({} less) after {} and {}: an allowance ran out. Figures from \
         before are higher than what lasts.",
        rate(before),
        rate(after),
        percent(fall_pct),
        seconds(at_s),
        bytes(written)
    );
    Some(
        caution(FindingId::BurstLimit, Layer::Device, 1, text)
            .with("fall_pct", fall_pct)
            .with("after_s", at_s)
            .with("after_bytes", written)
            .with("lasting_writes_per_s", after),
    )
}

/// Whether the longest point was steady: short ones then wobble for other reasons.
fn holds_for_long(calm: &[&Replicate]) -> bool {
    let mut sustained = calm.iter().filter(|one| one.point.id == SUSTAINED);
    sustained.any(|one| !carries(one, Verdict::NotSteady) && !carries(one, Verdict::BurstLimited))
}

pub(super) fn not_steady(case: &Case<'_, '_>) -> Option<Finding> {
    let of_device = case
        .log
        .points()
        .iter()
        .filter(|seen| seen.point.streams.iter().all(|stream| stream.spec.api != IoApi::Null));
    let all: Vec<&Replicate> = of_device.flat_map(|seen| seen.replicates.iter().copied()).collect();
    let calm: Vec<&Replicate> = all.iter().copied().filter(|one| is_undisturbed(one)).collect();
    let enough = calm.len() >= REPLICATES_MIN && 2 * calm.len() >= all.len();
    let unsteady = calm.iter().filter(|one| carries(one, Verdict::NotSteady)).count();
    if !enough || unsteady * 2 < calm.len() || holds_for_long(&calm) {
        return None;
    }
    let text = format!(
        "The rate drifted, waved or stepped in {unsteady} of {} measurements although nothing on \
         this machine was seen to disturb them: the device, or what lies behind it, is not steady, \
         and its figures hold only on average.",
        calm.len()
    );
    let found = caution(FindingId::NotSteadyDevice, Layer::Device, unsteady as u64, text);
    Some(found.with("unsteady", unsteady as u64).with("measured", calm.len() as u64))
}
