//! Figures that a ratio cannot be taken to: worst seconds in which next to nothing was committed,
//! and stalls where there were hardly any.
//!
//! Invariant: what was raised to the floor is said to be a bound, never a figure with an interval.

use iostrata_spec::study::ThenMetric;
use iostrata_stats::Measured;

/// What counts as so much at least, and what is said in place of an interval: a ratio needs
/// something to stand on, and a window of a minute hardly tells less.
const LEAST: [(ThenMetric, f64, &str); 3] = [
    (
        ThenMetric::MinOverMean1s,
        0.01,
        "no interval: a worst second below 0.01 of the mean is taken for 0.01",
    ),
    (
        ThenMetric::StalledPct,
        1.0,
        "no interval: stalls in less than 1 % of the time are taken for 1 %",
    ),
    (
        ThenMetric::StallsPerMin,
        1.0,
        "no interval: fewer stalls than one a minute are taken for one",
    ),
];

/// The floor of a metric that has one.
fn least(metric: ThenMetric) -> Option<f64> {
    LEAST.iter().find(|(of, _, _)| *of == metric).map(|(_, least, _)| *least)
}

/// In place of an interval, where figures of a metric were raised.
pub(super) fn why_no_interval(metric: ThenMetric) -> &'static str {
    LEAST.iter().find(|(of, _, _)| *of == metric).map_or("no interval", |(_, _, why)| why)
}

/// A figure, at least the floor of its metric.
pub(super) fn raised(metric: ThenMetric, figure: &Measured) -> Measured {
    let least = least(metric).unwrap_or(f64::MIN);
    Measured { value: figure.value.max(least), ..figure.clone() }
}

/// Which sides of a contrast have figures that were raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Floored {
    pub above: bool,
    pub below: bool,
}

impl Floored {
    /// From figures as measured.
    pub fn of(metric: ThenMetric, above: &[Measured], below: &[Measured]) -> Self {
        let is_any = |side: &[Measured]| {
            least(metric).is_some_and(|least| side.iter().any(|one| one.value < least))
        };
        Self { above: is_any(above), below: is_any(below) }
    }

    pub fn is_any(self) -> bool {
        self.above || self.below
    }

    /// What stands before the ratio: a figure below the line that is less than was taken makes it
    /// larger, one above the line smaller.
    pub fn of_ratio(self) -> String {
        let word = match (self.above, self.below) {
            (false, false) => "",
            (false, true) => "at least ",
            (true, false) => "at most ",
            (true, true) => "about ",
        };
        word.to_owned()
    }

    /// What stands before its distance from one.
    pub fn of_change(self, ratio: f64) -> String {
        let is_more = ratio >= 1.0;
        let word = match (self.above, self.below) {
            (false, false) => "",
            (true, true) => "about ",
            (above, _) if above != is_more => "at least ",
            _ => "at most ",
        };
        word.to_owned()
    }
}

/// What stands before a side of which figures were raised.
pub(super) fn at_most(is_floored: bool) -> String {
    (if is_floored { "at most " } else { "" }).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64) -> Measured {
        Measured::without_interval(value, 1, <_>::default())
    }

    #[test]
    fn a_raised_figure_is_a_bound_of_what_is_made_of_it() {
        let worst = ThenMetric::MinOverMean1s;
        let of = |above, below| Floored::of(worst, &[figure(above)], &[figure(below)]);
        let words = |floored: Floored, ratio: f64| {
            [floored.of_ratio(), floored.of_change(ratio)].map(|word| word.trim().to_owned())
        };
        assert_eq!(words(of(0.5, 0.2), 2.5), ["", ""]);
        assert_eq!(words(of(0.5, 0.0), 50.0), ["at least", "at least"]);
        assert_eq!(words(of(0.0, 0.5), 0.02), ["at most", "at least"]);
        assert_eq!(words(of(0.001, 0.002), 1.0), ["about", "about"]);
        assert!(!of(0.01, 0.01).is_any(), "the floor itself is a figure");
        assert_eq!(raised(worst, &figure(0.0)).value, 0.01);
        assert_eq!(raised(ThenMetric::Tps, &figure(0.001)).value, 0.001, "other metrics have none");
        let (stalled, few) = (ThenMetric::StalledPct, ThenMetric::StallsPerMin);
        assert_eq!([stalled, few].map(|metric| raised(metric, &figure(0.0)).value), [1.0, 1.0]);
        assert!(Floored::of(stalled, &[figure(20.0)], &[figure(0.0)]).below);
        assert!(why_no_interval(few).contains("one a minute"));
        assert!(!Floored::of(ThenMetric::Tps, &[figure(0.0)], &[figure(0.0)]).is_any());
    }
}
