//! Settings that keep the page cleaner from its work, or give it too much of it.

use iostrata_plan::Layer;
use iostrata_run::{Risk, WatchSample};
use iostrata_stats::units::{microseconds, percent};

use super::advised;
use super::recording::Recording;
use crate::server_setting::Family;
use crate::statement::Statement;

/// The low-water mark of dirty pages at which MariaDB's page cleaner always works.
const AWAKE_PCT: &str = "0.001";
/// Beyond this share of its limit a cleaner that writes nothing sleeps, in percent.
const AGE_PCT_MIN: f64 = 20.0;
/// Samples in a row that show it asleep.
const ASLEEP_MIN: usize = 5;
/// A device whose reads take no longer has no seeks.
const SEEKLESS_MS_MAX: f64 = 1.0;
/// Reads per second from which on the time of one is known.
const READS_PER_S_MIN: f64 = 20.0;
/// Pages per second that every server writes in time, whatever its settings: the least
/// `innodb_io_capacity`.
const PAGES_PER_S_LEAST: f64 = 100.0;
/// The share of its limit at which a sleeping cleaner wakes, where the server does not report it.
const ASYNC_SHARE: f64 = 7.0 / 8.0;

/// Redo is made, its age is high, nothing is written, and once that is begun it has to be hurried:
/// at this rate of redo the dirty pages are due between the async limit and the limit.
fn is_asleep(sample: &WatchSample, redo_bytes_per_s: f64) -> bool {
    let redo = sample.redo_bytes_per_s.is_some_and(|rate| rate > 0.0);
    let age = sample.checkpoint_age_pct.is_some_and(|pct| pct >= AGE_PCT_MIN);
    let hurries = || {
        let limit = sample.checkpoint_age_limit_bytes? as f64;
        let told = sample.checkpoint_age_async_bytes.map(|bytes| bytes as f64);
        let room = limit - told.unwrap_or(ASYNC_SHARE * limit);
        Some(sample.dirty_pages? as f64 * redo_bytes_per_s >= PAGES_PER_S_LEAST * room)
    };
    redo && age && sample.flushed_pages_per_s == Some(0.0) && hurries() == Some(true)
}

/// MariaDB with a low-water mark of 0 does not wake its cleaner by checkpoint age.
pub(crate) fn sleeps(recording: &Recording<'_>) -> Option<Statement> {
    let is_zero = recording.number("max_dirty_pages_pct_lwm")? == 0.0;
    if recording.family != Family::MariaDb || !is_zero {
        return None;
    }
    let redo_bytes_per_s = recording.mean(|sample| sample.redo_bytes_per_s)?.value;
    let asleep = recording.longest(|sample| is_asleep(sample, redo_bytes_per_s));
    let pressure = recording.redo_pressure();
    if pressure.is_none() && asleep < ASLEEP_MIN {
        return None;
    }
    let seen = match (&pressure, asleep) {
        (_, ASLEEP_MIN..) => {
            format!("nothing was written in {asleep} samples in a row while redo aged")
        }
        (Some(pressure), _) => pressure.words(),
        (None, _) => String::new(),
    };
    let text = format!(
        "With {} = 0 MariaDB's page cleaner sleeps until {} of the pool is dirty or redo has \
         nearly run out: {seen}.",
        recording.named("max_dirty_pages_pct_lwm"),
        percent(recording.number("max_dirty_pages_pct").unwrap_or(90.0)),
    );
    let age = recording.mean(|sample| sample.checkpoint_age_pct);
    let why = (text.clone(), Risk::None);
    let advice = advised::set(recording, "max_dirty_pages_pct_lwm", AWAKE_PCT, why);
    let n = age.as_ref().map_or(0, |age| age.n);
    let said = Statement::new(Layer::Engine, n, text)
        .with("max_dirty_pages_pct_lwm", 0.0)
        .with("samples_asleep_in_a_row", asleep as u64)
        .measured("checkpoint_age_pct", age.as_ref());
    let said = match &pressure {
        Some(pressure) => pressure.beside(said),
        None => said,
    };
    Some(said.advising(advice))
}

/// Without adaptive flushing pages are written when redo has nearly run out.
pub(crate) fn adaptive_off(recording: &Recording<'_>) -> Option<Statement> {
    let pressure = recording.redo_pressure()?;
    if recording.is_on("adaptive_flushing")? {
        return None;
    }
    let setting = recording.named("adaptive_flushing");
    let text = format!("{setting} is OFF, and {}.", pressure.words());
    let why = (text.clone(), Risk::None);
    let advice = advised::set(recording, "adaptive_flushing", "ON", why);
    let n = recording.document.samples.len() as u64;
    let said = pressure.beside(Statement::new(Layer::Engine, n, text));
    Some(said.with("adaptive_flushing", "OFF").advising(advice))
}

/// Neighbours are written along on a device that has no seeks to save.
pub(crate) fn neighbors(recording: &Recording<'_>) -> Option<Statement> {
    let setting = recording.number("flush_neighbors").filter(|value| *value != 0.0)?;
    let read_ms = recording.mean(|sample| {
        let device = sample.device.as_ref()?;
        device.read_ms.filter(|_| device.reads_per_s >= READS_PER_S_MIN)
    })?;
    let most = read_ms.ci95.map_or(read_ms.value, |[_, high]| high);
    let flushed = recording.mean(|sample| sample.flushed_pages_per_s)?;
    if most >= SEEKLESS_MS_MAX || flushed.value < PAGES_PER_S_LEAST {
        return None;
    }
    let text = format!(
        "A read of the device takes {}: there are no seeks to save, and {} = {setting} writes \
         pages that need not be written yet.",
        microseconds(1e3 * read_ms.value),
        recording.named("flush_neighbors"),
    );
    let why = (text.clone(), Risk::None);
    let advice = advised::set(recording, "flush_neighbors", "0", why);
    let said = Statement::new(Layer::Engine, read_ms.n, text)
        .measured("device_read_ms", &read_ms)
        .measured("flushed_pages_per_s", &flushed)
        .with("flush_neighbors", setting);
    Some(said.advising(advice))
}
