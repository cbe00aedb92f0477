//! The scale of a chart: where a value stands, and which ticks are labelled.

use iostrata_stats::Interval;

use crate::words;

/// An axis: from an end to an end, in equal steps or equal times.
pub(super) struct Axis {
    pub(super) log: bool,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Axis {
    pub(super) fn linear([low, high]: Interval) -> Self {
        Self { log: false, low, high }
    }

    /// A logarithmic axis around positive figures.
    pub(super) fn around(figures: impl Iterator<Item = f64>) -> Self {
        let figures = figures.filter(|one| one.is_finite() && *one > 0.0);
        let (low, high) = figures.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return Self { log: true, low: 1.0, high: 10.0 };
        }
        Self { log: true, low: low / 1.25, high: high * 1.25 }
    }

    /// The place of a value: 0 at the low end, 1 at the high one.
    pub(super) fn at(&self, value: f64) -> f64 {
        let of = |value: f64| if self.log { value.max(1e-12).ln() } else { value };
        (of(value) - of(self.low)) / (of(self.high) - of(self.low))
    }

    pub(super) fn percent(&self, value: f64) -> String {
        format!("{:.2}%", self.at(value) * 100.0)
    }

    /// About six round values between the ends.
    fn ticks(&self) -> Vec<f64> {
        let inside = |tick: &f64| (-0.001..=1.001).contains(&self.at(*tick));
        if self.log {
            let decades = (self.high / self.low).log10();
            let steps: &[f64] = match decades {
                wide if wide > 3.0 => &[1.0],
                wide if wide > 1.2 => &[1.0, 3.0],
                _ => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            };
            let first = self.low.log10().floor() as i32;
            let last = self.high.log10().ceil() as i32;
            let all = (first..=last).flat_map(|ten| steps.iter().map(move |s| s * 10f64.powi(ten)));
            return all.filter(inside).collect();
        }
        let rough = (self.high - self.low) / 5.0;
        let ten = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * ten).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        (0..12).map(|n| (first + n) as f64 * step).filter(inside).collect()
    }

    pub(super) fn labelled(&self) -> Vec<(f64, String)> {
        self.ticks().into_iter().map(|tick| (tick, words::value(tick, ""))).collect()
    }

    /// The ticks whose labels do not touch on so many pixels.
    pub(super) fn apart(&self, ticks: &[(f64, String)], width: f64) -> Vec<(f64, String)> {
        let mut free = f64::NEG_INFINITY;
        let mut kept = Vec::new();
        for (tick, label) in ticks {
            let half = label.chars().count() as f64 * 3.5 + 4.0;
            let at = (self.at(*tick) * width).clamp(half - 4.0, width - half + 4.0);
            if at - half >= free {
                free = at + half;
                kept.push((*tick, label.clone()));
            }
        }
        kept
    }
}
