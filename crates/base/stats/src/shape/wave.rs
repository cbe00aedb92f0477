//! Wave: movement that comes back with a period.
//!
//! Method: the highest peak of the power spectrum over the noise around it, at least
//! [`CYCLES_MIN`] cycles long; its frequency refined, its fundamental found, and up to four
//! harmonics fitted, so that sawtooth and square waves are taken out too.

use std::f64::consts::TAU;

use crate::spectrum::{Spectrum, power_at};

/// Fewest cycles in the window: less looks like a drift or a step.
const CYCLES_MIN: f64 = 3.0;
/// Highest frequency in cycles per slice; beyond it slices alias.
const FREQUENCY_MAX: f64 = 0.45;
/// Expected number of such peaks by chance above which a peak is noise.
const BY_CHANCE_MAX: f64 = 0.000_1;
/// Shortest series searched for waves.
const SLICES_MIN: usize = 64;
/// Shortest series that can afford harmonics.
const SLICES_MIN_HARMONICS: usize = 200;
/// Harmonics fitted at first, the fundamental included; more join as they are found.
const HARMONICS: usize = 4;
/// Harmonics fitted at most.
const HARMONICS_MAX: usize = 16;

/// A periodic part of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    /// Cycles per slice of the fundamental.
    pub(crate) frequency: f64,
    /// Harmonics fitted, the fundamental included.
    pub(crate) harmonics: usize,
    /// Sum of squares that the strongest line explains.
    pub(crate) explained: f64,
    /// Harmonics fall within this of a multiple: half a cycle in the window.
    pub(crate) resolution: f64,
}

impl Line {
    /// Whether another line is a harmonic of this one.
    pub(crate) fn has(&self, other: &Line) -> bool {
        let multiple = self.multiple(other) as f64;
        multiple >= 1.0 && (other.frequency - multiple * self.frequency).abs() < self.resolution
    }

    /// Takes another line in as a harmonic, and those between; whether it was new.
    pub(crate) fn widen(&mut self, other: &Line) -> bool {
        let before = self.harmonics;
        self.harmonics = before.max(self.multiple(other));
        self.harmonics > before
    }

    fn multiple(&self, other: &Line) -> usize {
        (other.frequency / self.frequency).round() as usize
    }
}

/// The strongest significant wave in a series of mean 0.
pub(crate) fn find(series: &[f64]) -> Option<Line> {
    if series.len() < SLICES_MIN {
        return None;
    }
    let slices = series.len() as f64;
    let low = CYCLES_MIN / slices;
    let spectrum = Spectrum::of(series);
    let peak = spectrum.peak(low, FREQUENCY_MAX)?;
    let threshold = (slices / 2.0 / BY_CHANCE_MAX).ln();
    if peak.ratio < threshold {
        return None;
    }
    let strongest = refine(series, peak.frequency, spectrum.bin_width()).max(low);
    let reach = 1.0 / slices;
    let stands_out = |frequency: f64| {
        let near = spectrum.peak_near(frequency, reach, low, FREQUENCY_MAX);
        near.is_some_and(|near| near.ratio > threshold)
    };
    let divisor = (2..=3)
        .rev()
        .find(|&parts| {
            let fundamental = strongest / f64::from(parts);
            fundamental >= low && stands_out(fundamental)
        })
        .unwrap_or(1);
    let frequency = strongest / f64::from(divisor);
    let fitting = (0.5 / frequency).ceil() as usize - 1;
    let harmonics =
        if series.len() < SLICES_MIN_HARMONICS { 1 } else { fitting.clamp(1, HARMONICS) };
    let explained = 2.0 * power_at(series, strongest) / slices;
    Some(Line { frequency, harmonics, explained, resolution: 0.5 / slices })
}

/// The frequency of most power within a bin of a peak, by golden sections.
fn refine(series: &[f64], centre: f64, reach: f64) -> f64 {
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (centre - reach, centre + reach);
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_left, mut at_right) = (power_at(series, left), power_at(series, right));
    for _ in 0..16 {
        if at_left > at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = power_at(series, left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = power_at(series, right);
        }
    }
    (low + high) / 2.0
}

/// Cosine and sine of every harmonic of a line.
pub(crate) fn columns(slices: usize, line: &Line) -> Vec<Vec<f64>> {
    (1..=line.harmonics)
        .flat_map(|harmonic| {
            let step = TAU * line.frequency * harmonic as f64;
            let cosine = (0..slices).map(move |at| (step * at as f64).cos()).collect();
            let sine = (0..slices).map(move |at| (step * at as f64).sin()).collect();
            [cosine, sine]
        })
        .collect()
}

/// Half of the distance from trough to crest, from the coefficients of [`columns`].
pub(crate) fn amplitude(coefficients: &[f64]) -> f64 {
    const PHASES: usize = 64;
    let value = |phase: usize| -> f64 {
        let at = TAU * phase as f64 / PHASES as f64;
        let pairs = coefficients.chunks_exact(2).zip(1..);
        pairs
            .map(|(pair, harmonic)| {
                let (sin, cos) = (at * f64::from(harmonic)).sin_cos();
                pair[0] * cos + pair[1] * sin
            })
            .sum()
    };
    let values = (0..PHASES).map(value);
    let (low, high) = values.fold((0.0f64, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    (high - low) / 2.0
}
