//! Settings that keep the page cleaner from its work, or give it too much of it.

use iostrata_plan::Layer;
use iostrata_run::{FindingKind, Risk, WatchSample};
use iostrata_stats::units::{microseconds, percent};

use super::evidence::{Evidence, finding, pressure_words};
use super::recording::Recording;
use super::{Concluded, advised};
use crate::server_setting::Family;

const SLEEPS: &str = "page_cleaner_sleeps";
const NEIGHBORS: &str = "neighbors_without_seeks";
const ADAPTIVE: &str = "adaptive_flushing_off";
/// The low-water mark of dirty pages at which MariaDB's page cleaner always works.
const AWAKE_PCT: &str = "0.001";
/// Beyond this share of its limit a cleaner that writes nothing sleeps, in percent.
const AGE_PCT_MIN: f64 = 20.0;
/// Samples in a row that show it asleep.
const ASLEEP_MIN: usize = 5;
/// A device whose reads take no longer has no seeks.
const SEEKLESS_MS_MAX: f64 = 1.0;
/// Reads per second that say how long one takes.
const READS_PER_S_MIN: f64 = 20.0;

/// Redo is made, its age is high, and nothing is written.
fn is_asleep(sample: &WatchSample) -> bool {
    let redo = sample.redo_bytes_per_s.is_some_and(|rate| rate > 0.0);
    let age = sample.checkpoint_age_pct.is_some_and(|pct| pct >= AGE_PCT_MIN);
    redo && age && sample.flushed_pages_per_s == Some(0.0)
}

/// MariaDB with a low-water mark of 0 does not wake its cleaner by checkpoint age.
pub(super) fn sleeps(recording: &Recording<'_>) -> Option<Concluded> {
    let is_zero = recording.number("max_dirty_pages_pct_lwm")? == 0.0;
    if recording.family != Family::MariaDb || !is_zero {
        return None;
    }
    let asleep = recording.longest(is_asleep);
    let pressure = recording.redo_pressure();
    if pressure.is_none() && asleep < ASLEEP_MIN {
        return None;
    }
    let seen = match (&pressure, asleep) {
        (_, ASLEEP_MIN..) => {
            format!("nothing was written in {asleep} samples in a row while redo aged")
        }
        (Some(pressure), _) => pressure_words(pressure),
        (None, _) => String::new(),
    };
    let text = format!(
        "With {} = 0 MariaDB's page cleaner sleeps until {} of the pool is dirty or redo has \
         nearly run out: {seen}.",
        recording.named("max_dirty_pages_pct_lwm"),
        percent(recording.number("max_dirty_pages_pct").unwrap_or(90.0)),
    );
    let age = recording.mean(|sample| sample.checkpoint_age_pct);
    let mut evidence = Evidence::default()
        .with("max_dirty_pages_pct_lwm", 0.0)
        .with("samples_asleep_in_a_row", asleep as u64);
    evidence = match &pressure {
        Some(pressure) => evidence.pressure(pressure),
        None => evidence,
    };
    let n = age.as_ref().map_or(0, |age| age.n);
    if let Some(age) = &age {
        evidence = evidence.measured("checkpoint_age_pct", age);
    }
    let why = (SLEEPS, text.clone(), Risk::None);
    let advice = advised::set(recording, "max_dirty_pages_pct_lwm", AWAKE_PCT, why);
    let finding = finding(SLEEPS, FindingKind::Loss, Layer::Engine, text, (n, evidence));
    Some(Concluded { finding, advice: advice.into_iter().collect() })
}

/// Without adaptive flushing pages are written when redo has nearly run out.
pub(super) fn adaptive_off(recording: &Recording<'_>) -> Option<Concluded> {
    let pressure = recording.redo_pressure()?;
    if recording.is_on("adaptive_flushing")? {
        return None;
    }
    let setting = recording.named("adaptive_flushing");
    let text = format!("{setting} is OFF, and {}.", pressure_words(&pressure));
    let evidence = Evidence::default().pressure(&pressure).with("adaptive_flushing", "OFF");
    let why = (ADAPTIVE, text.clone(), Risk::None);
    let advice = advised::set(recording, "adaptive_flushing", "ON", why);
    let n = recording.document.samples.len() as u64;
    let finding = finding(ADAPTIVE, FindingKind::Loss, Layer::Engine, text, (n, evidence));
    Some(Concluded { finding, advice: advice.into_iter().collect() })
}

/// Neighbours are written along on a device that has no seeks to save.
pub(super) fn neighbors(recording: &Recording<'_>) -> Option<Concluded> {
    let setting = recording.number("flush_neighbors").filter(|value| *value != 0.0)?;
    let read_ms = recording.mean(|sample| {
        let device = sample.device.as_ref()?;
        device.read_ms.filter(|_| device.reads_per_s >= READS_PER_S_MIN)
    })?;
    let most = read_ms.ci95.map_or(read_ms.value, |[_, high]| high);
    let flushed = recording.mean(|sample| sample.flushed_pages_per_s)?;
    if most >= SEEKLESS_MS_MAX || flushed.value <= 0.0 {
        return None;
    }
    let text = format!(
        "A read of the device takes {}: there are no seeks to save, and {} = {setting} writes \
         pages that need not be written yet.",
        microseconds(1e3 * read_ms.value),
        recording.named("flush_neighbors"),
    );
    let evidence = Evidence::default()
        .measured("device_read_ms", &read_ms)
        .measured("flushed_pages_per_s", &flushed)
        .with("flush_neighbors", setting);
    let why = (NEIGHBORS, text.clone(), Risk::None);
    let advice = advised::set(recording, "flush_neighbors", "0", why);
    let kind = FindingKind::Sizing;
    let finding = finding(NEIGHBORS, kind, Layer::Engine, text, (read_ms.n, evidence));
    Some(Concluded { finding, advice: advice.into_iter().collect() })
}
