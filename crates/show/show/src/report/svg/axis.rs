//! The scale of a chart: where a value stands, and which ticks are labelled.

use iostrata_stats::Interval;

use crate::report::words;

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

    /// A logarithmic axis around ratios and 1, which has a tick; far ones are left out.
    pub(super) fn of_ratios(all: &[f64]) -> (Self, Vec<(f64, String)>) {
        let low = all.iter().copied().fold(0.9, f64::min).max(0.005);
        let high = all.iter().copied().fold(1.1, f64::max).min(2000.0);
        let margin = (high / low).powf(0.04);
        let axis = Self { log: true, low: low / margin, high: high * margin };
        let ticks: &[f64] = match axis.high / axis.low {
            span if span < 2.5 => &[0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5],
            span if span < 30.0 => &[0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0],
            span if span < 300.0 => &[0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
            _ => &[0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0],
        };
        let inside = ticks.iter().filter(|tick| (axis.low..=axis.high).contains(*tick));
        let ticks = inside.map(|tick| (*tick, format!("{tick}x"))).collect();
        (axis, ticks)
    }

    /// The place of a value: 0 at the low end, 1 at the high one.
    pub(super) fn at(&self, value: f64) -> f64 {
        let of = |value: f64| if self.log { value.max(1e-12).ln() } else { value };
        (of(value) - of(self.low)) / (of(self.high) - of(self.low))
    }

    /// Whether a value lies between the ends, but for rounding.
    pub(super) fn has(&self, value: f64) -> bool {
        value >= self.low - self.low.abs() * 1e-4 && value <= self.high + self.high.abs() * 1e-4
    }

    /// Whether an end of an interval lies outside.
    pub(super) fn cuts(&self, ends: Interval) -> bool {
        ends.iter().any(|end| end.is_finite() && !self.has(*end))
    }

    pub(super) fn percent(&self, value: f64) -> String {
        format!("{:.2}%", self.at(value) * 100.0)
    }

    /// About so many steps of round values between the ends; a logarithmic axis has its own.
    fn ticks(&self, steps: f64) -> Vec<f64> {
        let inside = |tick: &f64| (-0.001..=1.001).contains(&self.at(*tick));
        if self.log {
            let decades = (self.high / self.low).log10();
            let digits: &[f64] = match decades {
                wide if wide > 3.0 => &[1.0],
                wide if wide > 1.2 => &[1.0, 3.0],
                _ => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            };
            let first = self.low.log10().floor() as i32;
            let last = self.high.log10().ceil() as i32;
            let all =
                (first..=last).flat_map(|ten| digits.iter().map(move |s| s * 10f64.powi(ten)));
            return all.filter(inside).collect();
        }
        let rough = (self.high - self.low) / steps;
        let ten = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * ten).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        (0..12).map(|n| (first + n) as f64 * step).filter(inside).collect()
    }

    pub(super) fn labelled(&self, steps: f64) -> Vec<(f64, String)> {
        self.ticks(steps).into_iter().map(|tick| (tick, words::value(tick, ""))).collect()
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
