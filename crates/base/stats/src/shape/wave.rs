//! Wave: movement that comes back with a period.
//!
//! Method: the highest peak of the power spectrum over the noise around it, at least
//! [`CYCLES_MIN`] cycles long; its frequency refined and its fundamental found. Harmonics join when
//! they stand out of what is left, so that sawtooth and square waves are taken out too, and nothing
//! is taken out that might be noise.

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
/// Phases at which a cycle is looked at for its trough and crest.
const PHASES: usize = 64;
/// Highest harmonic that is taken for part of a wave.
const HARMONIC_MAX: usize = 24;

/// A line of the spectrum that stands out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    /// Cycles per slice.
    pub(crate) frequency: f64,
    /// Which harmonic of its wave it is, as far as its own spectrum shows; 1 is the fundamental.
    pub(crate) harmonic: usize,
    /// Sum of squares that it explains.
    pub(crate) explained: f64,
}

/// A periodic part of a series: a fundamental and those of its harmonics that stand out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wave {
    fundamental: f64,
    harmonics: Vec<usize>,
}

impl Wave {
    pub(crate) fn new(line: &Line) -> Self {
        let mut harmonics = vec![1, line.harmonic];
        harmonics.dedup();
        Self { fundamental: line.frequency / line.harmonic as f64, harmonics }
    }

    /// Slices per cycle.
    pub(crate) fn period_slices(&self) -> f64 {
        1.0 / self.fundamental
    }

    /// Takes a line in if it is a further harmonic; in a window of so many slices, a line is one
    /// when it lies within half a cycle of a multiple.
    pub(crate) fn take_in(&mut self, line: &Line, slices: usize) -> bool {
        let multiple = (line.frequency / self.fundamental).round() as usize;
        let distance = (line.frequency - multiple as f64 * self.fundamental).abs();
        let is_new = (1..=HARMONIC_MAX).contains(&multiple)
            && distance < 0.5 / slices as f64
            && !self.harmonics.contains(&multiple);
        if is_new {
            self.harmonics.push(multiple);
        }
        is_new
    }

    /// Whether another wave cannot be told apart in a window of so many slices.
    pub(crate) fn is_near(&self, other: &Wave, slices: usize) -> bool {
        (self.fundamental - other.fundamental).abs() < 0.5 / slices as f64
    }

    /// Cycles per slice of every line of it.
    pub(crate) fn frequencies(&self) -> impl Iterator<Item = f64> + '_ {
        self.harmonics.iter().map(|&harmonic| harmonic as f64 * self.fundamental)
    }

    /// Cosine and sine of every line of it.
    pub(crate) fn columns(&self, slices: usize) -> impl Iterator<Item = Vec<f64>> + '_ {
        self.frequencies().flat_map(move |frequency| {
            let angle = move |at: usize| TAU * frequency * at as f64;
            let cosine = (0..slices).map(|at| angle(at).cos()).collect();
            let sine = (0..slices).map(|at| angle(at).sin()).collect();
            [cosine, sine]
        })
    }

    /// Half of the distance from trough to crest, from the coefficients of [`Self::columns`].
    pub(crate) fn amplitude(&self, coefficients: &[f64]) -> f64 {
        let value = |phase: usize| -> f64 {
            let at = TAU * phase as f64 / PHASES as f64;
            let pairs = coefficients.chunks_exact(2).zip(&self.harmonics);
            pairs
                .map(|(pair, &harmonic)| {
                    let (sin, cos) = (at * harmonic as f64).sin_cos();
                    pair[0] * cos + pair[1] * sin
                })
                .sum()
        };
        let values = (0..PHASES).map(value);
        let (low, high) = values.fold((0.0f64, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        (high - low) / 2.0
    }

    /// Columns of the fit that belong to it.
    pub(crate) fn width(&self) -> usize {
        2 * self.harmonics.len()
    }
}

/// The strongest significant line in a series of mean 0.
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
    let frequency = refine(series, peak.frequency, spectrum.bin_width()).max(low);
    let stands_out = |frequency: f64| {
        let near = spectrum.peak_near(frequency, 1.0 / slices, low, FREQUENCY_MAX);
        frequency >= low && near.is_some_and(|near| near.ratio > threshold)
    };
    let harmonic = [3, 2].into_iter().find(|&part| stands_out(frequency / part as f64));
    let explained = 2.0 * power_at(series, frequency) / slices;
    Some(Line { frequency, harmonic: harmonic.unwrap_or(1), explained })
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
