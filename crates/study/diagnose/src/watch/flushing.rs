//! What is flushed against what has to be.

use iostrata_plan::Layer;
use iostrata_run::{Risk, WatchSample};
use iostrata_stats::units::{count, microseconds};

use super::advised;
use super::recording::Recording;
use crate::advice::{LEAST, two_digits};
use crate::statement::Statement;

/// How much more than the mean need is advised, since the need swings.
const ROOM: f64 = 1.25;
/// The manual calls more than this seldom of use.
const SELDOM_OF_USE: f64 = 20_000.0;
/// A server that may flush so much more than it ever did is not held back by the setting.
const FAR_ABOVE: f64 = 1.5;
/// Requests in flight at which a device has enough to do.
pub(super) const BUSY_IN_FLIGHT: f64 = 4.0;

/// The limit of page writes lies below what becomes dirty.
pub(crate) fn capacity_below_need(recording: &Recording<'_>) -> Option<Statement> {
    let pressure = recording.redo_pressure()?;
    let capacity = recording.number("io_capacity")?;
    let need = recording.pages_dirtied_per_s()?;
    let surely = need.ci95.map_or(need.value, |[low, _]| low);
    if surely <= capacity {
        return None;
    }
    let best = recording.flushed_per_s_best();
    // No more than the device gave when it was busy.
    let given = best.filter(|_| is_busy(recording)).unwrap_or(f64::INFINITY);
    let wanted = two_digits((need.value * ROOM).min(given.max(surely)), f64::ceil).max(LEAST);
    let text = format!(
        "{} pages become dirty per second and {} is {}, so that {}.{}",
        count(need.value),
        recording.named("io_capacity"),
        count(capacity),
        pressure.words(),
        if wanted > SELDOM_OF_USE {
            " MySQL's manual calls more than 20,000 seldom of use: look at a larger redo log first."
        } else {
            ""
        },
    );
    let risk = Risk::Wear;
    let max = recording.number("io_capacity_max").filter(|max| *max < 2.0 * wanted);
    // The bound first, as it is to be set.
    let advice = [
        max.and_then(|_| {
            let why = (text.clone(), risk);
            advised::set(recording, "io_capacity_max", (2.0 * wanted) as u64, why)
        }),
        advised::set(recording, "io_capacity", wanted as u64, (text.clone(), risk)),
    ];
    let said = pressure
        .beside(Statement::new(Layer::Engine, need.n, text))
        .measured("pages_dirtied_per_s", &need)
        .with("io_capacity", capacity)
        .with("io_capacity_max", recording.number("io_capacity_max"))
        .with("flushed_pages_per_s_best", best);
    Some(said.advising(advice.into_iter().flatten()))
}

/// The server may flush far more than it ever did, and redo runs out all the same.
pub(crate) fn device_below_need(recording: &Recording<'_>) -> Option<Statement> {
    let pressure = recording.redo_pressure()?;
    let need = recording.pages_dirtied_per_s()?;
    let capacity = recording.number("io_capacity")?;
    let best = recording.flushed_per_s_best()?;
    let in_flight = recording.mean(in_flight)?;
    if capacity <= FAR_ABOVE * best || !is_busy(recording) {
        return None;
    }
    let write_ms = recording.mean(|sample| sample.device.as_ref()?.write_ms);
    let at = write_ms.as_ref().map(|ms| format!(" at {} each", microseconds(1e3 * ms.value)));
    let text = format!(
        "The device took at most {} pages per second with {:.1} requests in flight{}; {} is {}, \
         and {}: a larger one would not write more.",
        count(best),
        in_flight.value,
        at.unwrap_or_default(),
        recording.named("io_capacity"),
        count(capacity),
        pressure.words(),
    );
    let said = pressure
        .beside(Statement::new(Layer::Device, need.n, text))
        .measured("pages_dirtied_per_s", &need)
        .measured("device_in_flight", &in_flight)
        .with("flushed_pages_per_s_best", best)
        .with("io_capacity", capacity)
        .measured("device_write_ms", write_ms.as_ref());
    Some(said)
}

fn in_flight(sample: &WatchSample) -> Option<f64> {
    Some(sample.device.as_ref()?.in_flight)
}

/// Whether the device has enough to do.
fn is_busy(recording: &Recording<'_>) -> bool {
    recording.mean(in_flight).is_some_and(|mean| mean.value >= BUSY_IN_FLIGHT)
}
