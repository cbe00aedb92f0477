//! The part of the writes that protects pages against torn ones.
//!
//! Invariant: it is never advised to be turned off.

use iostrata_plan::Layer;
use iostrata_stats::units::count;

use super::recording::{Recording, is_on};
use crate::statement::Statement;

/// Requests in flight at which a device has enough to do.
const BUSY_IN_FLIGHT: f64 = 4.0;

/// Where the device is what holds flushing back, half of the pages that it writes are copies.
pub(crate) fn share(recording: &Recording<'_>) -> Option<Statement> {
    let pressure = recording.redo_pressure()?;
    let word = recording.setting("doublewrite")?;
    let writes_copies = is_on(word).unwrap_or(matches!(word, "fast" | "DETECT_AND_RECOVER"));
    let in_flight = recording.mean(|sample| Some(sample.device.as_ref()?.in_flight))?;
    let flushed = recording.mean(|sample| sample.flushed_pages_per_s)?;
    if !writes_copies || in_flight.value < BUSY_IN_FLIGHT || flushed.value <= 0.0 {
        return None;
    }
    let text = format!(
        "The device is busy ({:.1} requests in flight), and {}. Each of the {} pages flushed per \
         second is written twice: the doublewrite protects against torn pages. It should stay; a \
         device that writes whole pages atomically, or a larger redo log, saves more.",
        in_flight.value,
        pressure.words(),
        count(flushed.value),
    );
    let said = pressure
        .beside(Statement::new(Layer::Engine, flushed.n, text))
        .measured("flushed_pages_per_s", &flushed)
        .measured("device_in_flight", &in_flight)
        .with("page_writes_per_s", 2.0 * flushed.value)
        .with("doublewrite", word);
    Some(said)
}
