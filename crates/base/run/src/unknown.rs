//! Why a figure is not shown as measured.
//!
//! It judges single figures. Whether a figure means what it seems to mean is decided by its
//! verdicts.

use iostrata_stats::Interval;
use serde::{Deserialize, Serialize};

/// Why a figure is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Not a number.
    NotFinite,
    /// No request completed in the measured window.
    NothingCompleted,
    /// A rate, time or cost below zero.
    BelowZero,
    /// The value lies outside its own interval.
    OutsideInterval,
    /// The 95 % interval is wider than the value.
    WiderThanValue,
    /// A share of less than nothing or of more than the whole.
    BeyondWhole,
}

impl Refusal {
    /// The reason in a few words, to stand behind `unknown:`.
    pub fn explain(self) -> &'static str {
        match self {
            Self::NotFinite => "no number came out",
            Self::NothingCompleted => "no request completed",
            Self::BelowZero => "it cannot be below zero",
            Self::OutsideInterval => "it lies outside its interval",
            Self::WiderThanValue => "its interval is wider than its value",
            Self::BeyondWhole => "it is no share of a whole",
        }
    }

    /// Whether the figure may not be kept at all.
    pub(crate) fn is_impossible(self) -> bool {
        self != Self::WiderThanValue
    }
}

/// A figure that is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unknown {
    /// The rung, point, operation or finding.
    pub name: String,
    /// One line for a reader.
    pub title: String,
    /// Why.
    pub why: Refusal,
    /// What it lies between with 95 %, where that is known.
    pub between: Option<Interval>,
    /// The unit of both ends.
    pub unit: String,
}

impl Unknown {
    pub(crate) fn of(
        name: &str,
        title: &str,
        why: Refusal,
        between: Option<Interval>,
        unit: &str,
    ) -> Self {
        let between = between.filter(|_| why == Refusal::WiderThanValue);
        let (name, title, unit) = (name.to_owned(), title.to_owned(), unit.to_owned());
        Self { name, title, why, between, unit }
    }
}

/// Why a rate, a time or a cost is not known; `None` when it is. An interval may reach below zero:
/// those of older runs are symmetric.
pub fn refusal(value: f64, ci95: Option<Interval>) -> Option<Refusal> {
    let ends = ci95.unwrap_or([value; 2]);
    if !value.is_finite() || ends.iter().any(|end| !end.is_finite()) {
        return Some(Refusal::NotFinite);
    }
    let [low, high] = ends;
    match () {
        () if value == 0.0 => Some(Refusal::NothingCompleted),
        () if value < 0.0 => Some(Refusal::BelowZero),
        () if value < low || value > high => Some(Refusal::OutsideInterval),
        () if high - low > value => Some(Refusal::WiderThanValue),
        () => None,
    }
}

/// Why a loss in percent is not known: it is a share of what there was.
pub fn share_refusal(pct: f64, ci95: Option<Interval>) -> Option<Refusal> {
    let ends = ci95.unwrap_or([pct; 2]);
    let all = [pct, ends[0], ends[1]];
    match () {
        () if !all.iter().all(|one| one.is_finite()) => Some(Refusal::NotFinite),
        () if !(0.0..=100.0).contains(&pct) || ends[1] > 100.0 => Some(Refusal::BeyondWhole),
        () if pct < ends[0] || pct > ends[1] => Some(Refusal::OutsideInterval),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_has_a_reason() {
        for (value, ci95, expected) in [
            (100.0, Some([90.0, 110.0]), None),
            (100.0, None, None),
            (0.0, Some([0.0, 0.0]), Some(Refusal::NothingCompleted)),
            (f64::NAN, None, Some(Refusal::NotFinite)),
            (5.0, Some([1.0, f64::INFINITY]), Some(Refusal::NotFinite)),
            (993.0, Some([-1511.0, 3497.0]), Some(Refusal::WiderThanValue)),
            (-3.0, None, Some(Refusal::BelowZero)),
            (5.0, Some([6.0, 7.0]), Some(Refusal::OutsideInterval)),
            (100.0, Some([40.0, 160.0]), Some(Refusal::WiderThanValue)),
        ] {
            assert_eq!(refusal(value, ci95), expected, "{value} {ci95:?}");
        }
    }

    #[test]
    fn a_loss_is_a_share() {
        assert_eq!(share_refusal(62.0, Some([55.0, 68.0])), None);
        assert_eq!(share_refusal(15_898.0, None), Some(Refusal::BeyondWhole));
        assert_eq!(share_refusal(-4.0, None), Some(Refusal::BeyondWhole));
        assert_eq!(share_refusal(80.0, Some([70.0, 141.0])), Some(Refusal::BeyondWhole));
    }
}
