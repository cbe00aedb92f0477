//! The power spectrum of a series, and how a line stands out of it.
//!
//! Purpose: find periodic movement in noise of any colour: a peak is measured against the median of
//! the power around it, not against the whole spectrum, so that slow noise raises no alarm.
//! Method: fast Fourier transform, the series padded with zeros to a power of two.

use std::f64::consts::{LN_2, TAU};

/// Fewest bins whose median is taken as background.
const BLOCK_BINS_MIN: usize = 24;

/// Power over frequency; bin `k` is the frequency `k / padded` in cycles per slice.
pub(crate) struct Spectrum {
    power: Vec<f64>,
    padded: usize,
}

/// A bin that stands out.
pub(crate) struct Peak {
    /// Cycles per slice.
    pub(crate) frequency: f64,
    /// Power over the mean power of the noise around it.
    pub(crate) ratio: f64,
}

impl Spectrum {
    /// The spectrum of a series whose mean was taken out.
    pub(crate) fn of(series: &[f64]) -> Self {
        let padded = series.len().next_power_of_two().max(2);
        let mut real = series.to_vec();
        real.resize(padded, 0.0);
        let mut imaginary = vec![0.0; padded];
        transform(&mut real, &mut imaginary);
        let power =
            (0..=padded / 2).map(|bin| real[bin].powi(2) + imaginary[bin].powi(2)).collect();
        Self { power, padded }
    }

    /// Width of a bin in cycles per slice.
    pub(crate) fn bin_width(&self) -> f64 {
        1.0 / self.padded as f64
    }

    /// The bin between two frequencies that stands out most; `None` if too few lie between.
    pub(crate) fn peak(&self, low: f64, high: f64) -> Option<Peak> {
        self.peak_near((low + high) / 2.0, (high - low) / 2.0, low, high)
    }

    /// The bin within `reach` of a frequency that stands out most of the noise between `low` and
    /// `high`; `None` if too few bins lie between.
    pub(crate) fn peak_near(&self, centre: f64, reach: f64, low: f64, high: f64) -> Option<Peak> {
        let bins = self.padded as f64;
        let first = ((low * bins).ceil() as usize).max(1);
        let last = ((high * bins).floor() as usize).min(self.power.len() - 1);
        let background = self.background(first, last)?;
        let ratio = |bin: usize| self.power[bin] / background[bin - first].max(f64::MIN_POSITIVE);
        let from = ((centre - reach) * bins).ceil().max(first as f64) as usize;
        let to = (((centre + reach) * bins).floor() as usize).min(last);
        let bin = (from..=to).max_by(|&a, &b| ratio(a).total_cmp(&ratio(b)))?;
        Some(Peak { frequency: bin as f64 * self.bin_width(), ratio: ratio(bin) })
    }

    /// Mean power of the noise at each bin of `first..=last`: medians over blocks that widen with
    /// frequency (over ln 2, the median of an exponential law), joined by lines in logarithms.
    fn background(&self, first: usize, last: usize) -> Option<Vec<f64>> {
        let mut knots: Vec<(f64, f64)> = Vec::new();
        let mut start = first;
        while start <= last {
            let wide = (start / 2).max(BLOCK_BINS_MIN);
            let end = if start + 2 * wide > last + 1 { last + 1 } else { start + wide };
            let mut block = self.power[start..end].to_vec();
            if block.len() < BLOCK_BINS_MIN {
                break;
            }
            block.sort_unstable_by(f64::total_cmp);
            let median = (block[block.len() / 2] / LN_2).max(f64::MIN_POSITIVE);
            let middle = ((start as f64) * (end as f64)).sqrt().ln();
            knots.push((middle, median.ln()));
            start = end;
        }
        let (head, tail) = (*knots.first()?, *knots.last()?);
        let mut segment = 0;
        let level = |bin: usize| {
            let at = (bin as f64).ln();
            while segment + 2 < knots.len() && knots[segment + 1].0 < at {
                segment += 1;
            }
            if at <= head.0 || knots.len() == 1 {
                return head.1.exp();
            }
            if at >= tail.0 {
                return tail.1.exp();
            }
            let ((x0, y0), (x1, y1)) = (knots[segment], knots[segment + 1]);
            (y0 + (y1 - y0) * (at - x0) / (x1 - x0)).exp()
        };
        Some((first..=last).map(level).collect())
    }
}

/// Power of a series at one frequency in cycles per slice, by a rotating phasor.
pub(crate) fn power_at(series: &[f64], frequency: f64) -> f64 {
    let (sin, cos) = (TAU * frequency).sin_cos();
    let (mut c, mut s) = (1.0, 0.0);
    let (mut real, mut imaginary) = (0.0, 0.0);
    for value in series {
        real += value * c;
        imaginary += value * s;
        (c, s) = (c * cos - s * sin, s * cos + c * sin);
    }
    real * real + imaginary * imaginary
}

/// In-place radix-2 transform (Cooley and Tukey 1965); the length is a power of two.
fn transform(real: &mut [f64], imaginary: &mut [f64]) {
    let size = real.len();
    assert!(size.is_power_of_two() && imaginary.len() == size, "{size} is no power of two");
    let shift = usize::BITS - size.trailing_zeros();
    for at in 0..size {
        let mirrored = at.reverse_bits() >> shift;
        if at < mirrored {
            real.swap(at, mirrored);
            imaginary.swap(at, mirrored);
        }
    }
    let mut half = 1;
    while half < size {
        let (step_sin, step_cos) = (-std::f64::consts::PI / half as f64).sin_cos();
        for start in (0..size).step_by(2 * half) {
            let (mut c, mut s) = (1.0, 0.0);
            for low in start..start + half {
                let high = low + half;
                let (re, im) =
                    (real[high] * c - imaginary[high] * s, real[high] * s + imaginary[high] * c);
                (real[high], imaginary[high]) = (real[low] - re, imaginary[low] - im);
                (real[low], imaginary[low]) = (real[low] + re, imaginary[low] + im);
                (c, s) = (c * step_cos - s * step_sin, s * step_cos + c * step_sin);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_fast_transform_agrees_with_the_plain_one() {
        let mut rng = Random::new(1);
        let series: Vec<f64> = (0..100).map(|_| rng.normal()).collect();
        let spectrum = Spectrum::of(&series);
        for (bin, power) in spectrum.power.iter().enumerate() {
            let plain = power_at(&series, bin as f64 / 128.0);
            assert!((power - plain).abs() < 1e-8 * (1.0 + plain), "bin {bin}: {power} {plain}");
        }
    }

    #[test]
    fn a_line_stands_out_where_it_is() {
        let mut rng = Random::new(2);
        let series: Vec<f64> =
            (0..1_000).map(|at| (TAU * 0.0371 * f64::from(at)).sin() + rng.normal()).collect();
        let peak = Spectrum::of(&series).peak(0.003, 0.45).unwrap();
        assert!((peak.frequency - 0.0371).abs() < 0.001 && peak.ratio > 50.0, "{}", peak.ratio);
    }
}
