//! Rates that did not hold.
//!
//! Invariant: what the processors, the hypervisor or another process disturbed is no evidence about
//! the device and is left out.

use iostrata_plan::{IoApi, Layer, OpKind, rung};
use iostrata_run::Replicate;
use iostrata_stats::units::{bytes, percent, rate, seconds};
use iostrata_stats::{Measured, Shape, Steadiness, Verdict, estimate, loss_pct};

use super::fell::allowance;
use crate::below::in_memory;
use crate::case::Case;
use crate::disturbed::{carries, shows_the_device};
use crate::observed::Which;
use crate::statement::Statement;

/// The name of the rate that lasts in the catalogue.
pub(crate) const LASTING_RATE: &str = "lasting_rate";
const SUSTAINED: &str = rung::SUSTAINED_16K;
/// Undisturbed replicates that are needed to judge a device.
const REPLICATES_MIN: usize = 10;
/// Change relative to the mean from which a rate that does not hold matters.
const SIZE_MIN: f64 = 0.2;
/// Share of the window in which tasks may wait for a processor, in percent.
const PRESSURE_PCT_MAX: f64 = 20.0;
/// Share of the processors that may be busy, in percent.
const BUSY_PCT_MAX: f64 = 85.0;
/// A fall within the sustained point that is a loss, and the low end of its interval, in percent.
const FALL_PCT_MIN: f64 = 100.0 / 3.0;
const FALL_PCT_LOW_MIN: f64 = 20.0;
/// What a drive's own buffer holds at most, and how long it can hide the rate that lasts.
const BUFFER_BYTES_MAX: f64 = 2e9;
const BUFFER_S_MAX: f64 = 5.0;

/// A fall of the rate within the sustained point.
struct SustainedFall {
    at_s: f64,
    written_bytes: f64,
    before: f64,
    after: f64,
    loss: Measured,
}

impl SustainedFall {
    fn of(case: &Case<'_, '_>) -> Option<Self> {
        let replicate = case.log.seen(SUSTAINED)?.replicates.last()?;
        let series = &replicate.streams.first()?.series;
        if !shows_the_device(replicate) || series.width_s <= 0.0 {
            return None;
        }
        let slices: Vec<f64> = series
            .of(OpKind::Write)
            .iter()
            .map(|&writes| f64::from(writes) / series.width_s)
            .collect();
        if slices.len() < 2 {
            return None;
        }
        let Shape::Step { at, before, after } = Steadiness::of(&slices).burst()? else {
            return None;
        };
        let block = f64::from(replicate.point.streams.first()?.spec.block_bytes);
        let writes: f64 =
            series.of(OpKind::Write).iter().take(at).map(|&writes| f64::from(writes)).sum();
        let loss = loss_pct(&estimate(&slices[..at])?, &estimate(&slices[at..])?).ok()?;
        let at_s = at as f64 * series.width_s;
        Some(Self { at_s, written_bytes: writes * block, before, after, loss })
    }

    fn pct(&self) -> f64 {
        100.0 * (1.0 - self.after / self.before)
    }

    /// Every drive has a buffer of its own; an allowance lasts longer.
    fn is_of_a_buffer(&self) -> bool {
        self.written_bytes <= BUFFER_BYTES_MAX && self.at_s <= BUFFER_S_MAX
    }

    fn with_evidence(&self, said: Statement) -> Statement {
        said.with("fall_pct", self.pct())
            .with("after_s", self.at_s)
            .with("after_bytes", self.written_bytes)
            .with("lasting_writes_per_s", self.after)
    }
}

pub(crate) fn burst_limit(case: &Case<'_, '_>, _: Which) -> Option<Statement> {
    in_the_sustained_point(case).or_else(|| allowance(case))
}

fn in_the_sustained_point(case: &Case<'_, '_>) -> Option<Statement> {
    let is_loss = |fall: &SustainedFall| {
        let low = fall.loss.ci95.map_or(0.0, |[low, _]| low);
        !fall.is_of_a_buffer() && fall.pct() >= FALL_PCT_MIN && low >= FALL_PCT_LOW_MIN
    };
    let fall = SustainedFall::of(case).filter(is_loss)?;
    let text = format!(
        "Writes fell from {} to {} ({} less) after {} and {}: a flash cache or burst credit that \
         ran out, heat, or a neighbour. Figures from before are higher than what lasts.",
        rate(fall.before),
        rate(fall.after),
        percent(fall.pct()),
        seconds(fall.at_s),
        bytes(fall.written_bytes)
    );
    let effect = Measured { value: fall.pct(), ..fall.loss.clone() };
    Some(fall.with_evidence(Statement::sized(Layer::Device, &effect, text)))
}

pub(crate) fn write_buffer(case: &Case<'_, '_>) -> Option<Statement> {
    let fall = SustainedFall::of(case).filter(SustainedFall::is_of_a_buffer)?;
    let text = format!(
        "A buffer of the device takes the first {} of 16 KiB writes at {}; after that {} last. \
         Figures of short bursts of writes are higher than what lasts.",
        bytes(fall.written_bytes),
        rate(fall.before),
        rate(fall.after)
    );
    let found = Statement::new(Layer::Device, fall.loss.n, text);
    Some(fall.with_evidence(found))
}

/// The rate that writes held as long as they were watched, and for how long that was.
pub(crate) fn lasting_rate(case: &Case<'_, '_>) -> Option<Statement> {
    let replicate = case.log.seen(SUSTAINED)?.replicates.last()?;
    let is_memory = in_memory(case.host).is_some();
    if is_memory || SustainedFall::of(case).is_some() || !case.log.falls().is_empty() {
        return None;
    }
    let write = replicate.streams.first()?.ops[OpKind::Write].as_ref()?;
    let before = case.log.seen(rung::PRECONDITION).and_then(|seen| seen.replicates.last());
    let before = before.and_then(|one| one.streams.first()?.ops[OpKind::Write].as_ref());
    let after = before.map_or_else(String::new, |filled| {
        format!(" after {} of overwrites", bytes(filled.bytes as f64))
    });
    let text = format!(
        "Writes held {} for {} and {}{after}; what lasts longer was not seen. Burst credit lasts \
         half an hour and a flash cache takes up to 100 GiB: probe --precondition --lasting 30m \
         finds it.",
        rate(write.iops.value),
        seconds(replicate.duration_s),
        bytes(write.bytes as f64)
    );
    let found = Statement::new(Layer::Device, write.iops.n, text);
    Some(
        found
            .with("writes_per_s", write.iops.value)
            .with("seen_s", replicate.duration_s)
            .with("written_bytes", write.bytes)
            .with_some("overwritten_before_bytes", before.map(|filled| filled.bytes)),
    )
}

/// Pages of 16 KiB per second that can be flushed for long, where writes fell in the sustained
/// point: with the doublewrite every page is written twice.
pub(crate) fn lasting_pages_per_s(case: &Case<'_, '_>) -> Option<f64> {
    Some(SustainedFall::of(case)?.after / 2.0)
}

/// Whether tasks waited for a processor: what the rate did then may be their doing.
fn is_pressed(replicate: &Replicate) -> bool {
    let Some(evidence) = &replicate.evidence else { return false };
    let waited = evidence.pressure.and_then(|pressure| pressure.cpu).map(|cpu| cpu.some_pct);
    let busy = evidence.cpu.map(|cpu| cpu.busy_pct());
    waited.is_some_and(|pct| pct > PRESSURE_PCT_MAX) || busy.is_some_and(|pct| pct > BUSY_PCT_MAX)
}

/// Whether the rate of a window drifted, swung or stepped by as much as matters.
fn wavers(replicate: &Replicate) -> bool {
    let Some(stream) = replicate.streams.get(replicate.point.metric.stream) else { return false };
    let column = stream.series.of(replicate.point.metric.op);
    let slices: Vec<f64> = column.iter().map(|&count| f64::from(count)).collect();
    let steadiness = Steadiness::of(&slices);
    let matters = |shape: &Shape| {
        !matches!(shape, Shape::Stall { .. }) && steadiness.relative_size(shape) >= SIZE_MIN
    };
    carries(replicate, Verdict::NotSteady) && steadiness.shapes.iter().any(matters)
}

/// Whether the longest point was steady: short ones then wobble for other reasons.
fn holds_for_long(calm: &[&Replicate]) -> bool {
    let mut sustained = calm.iter().filter(|one| one.point.id == SUSTAINED);
    sustained.any(|one| !wavers(one) && !carries(one, Verdict::BurstLimited))
}

pub(crate) fn not_steady(case: &Case<'_, '_>) -> Option<Statement> {
    let of_device = case
        .log
        .points()
        .iter()
        .filter(|seen| seen.point.streams.iter().all(|stream| stream.spec.api != IoApi::Null));
    let all: Vec<&Replicate> = of_device.flat_map(|seen| seen.replicates.iter().copied()).collect();
    let calm: Vec<&Replicate> =
        all.iter().copied().filter(|one| shows_the_device(one) && !is_pressed(one)).collect();
    let enough = calm.len() >= REPLICATES_MIN && 2 * calm.len() >= all.len();
    let unsteady = calm.iter().filter(|one| wavers(one)).count();
    if !enough || unsteady * 2 < calm.len() || holds_for_long(&calm) {
        return None;
    }
    let text = format!(
        "The rate drifted, swung or stepped in {unsteady} of {} measurements although nothing on \
         this machine was seen to disturb them: the device, or what lies behind it, is not steady, \
         and its figures hold only on average.",
        calm.len()
    );
    let found = Statement::new(Layer::Device, unsteady as u64, text);
    Some(found.with("unsteady", unsteady as u64).with("measured", calm.len() as u64))
}
