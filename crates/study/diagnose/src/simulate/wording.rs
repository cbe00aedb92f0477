//! Figures and names inside sentences.

use iostrata_run::{KernelThen, QueueComparison};
use iostrata_stats::units::{capital, count};
use iostrata_stats::{Conclusion, Interval};

/// Changes whose whole interval is smaller than this many percent count as none.
const NOTHING_PCT: f64 = 5.0;

/// What an effect comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// Higher beyond its interval.
    More,
    /// Lower beyond its interval.
    Less,
    /// Known to change by less than 5 %.
    Nothing,
    /// The interval holds no change, and more too.
    Unclear,
    /// One side was not steady: nothing is concluded.
    Unsteady,
    /// Too few replicates for an interval.
    Unknown,
}

/// What an effect comes to. A change that is certain but under 5 % is nothing to a reader.
pub(super) fn size(effect: &QueueComparison) -> Size {
    let small =
        |[low, high]: Interval| low > 1.0 - NOTHING_PCT / 100.0 && high < 1.0 + NOTHING_PCT / 100.0;
    match effect.conclusion {
        Conclusion::TooFewPairs => Size::Unknown,
        _ if effect.ratio_ci95.is_some_and(small) => Size::Nothing,
        Conclusion::Higher => Size::More,
        Conclusion::Lower => Size::Less,
        Conclusion::NoMeasurableDifference if effect.ratio_ci95.is_none() => Size::Unsteady,
        Conclusion::NoMeasurableDifference => Size::Unclear,
    }
}

/// `4.12x [4.01, 4.23]`.
pub(super) fn times(ratio: f64, ci95: Option<Interval>) -> String {
    let [value, low, high] =
        [ratio, ci95.map_or(ratio, |ends| ends[0]), ci95.map_or(ratio, |e| e[1])].map(ratio_text);
    match ci95 {
        Some(_) => format!("{value}x [{low}, {high}]"),
        None => format!("{value}x"),
    }
}

/// [`times`] of an effect.
pub(super) fn effect_times(effect: &QueueComparison) -> String {
    times(effect.ratio, effect.ratio_ci95)
}

fn ratio_text(ratio: f64) -> String {
    if (0.9..1.1).contains(&ratio) { format!("{ratio:.3}") } else { count(ratio) }
}

/// `an index of 4.5 GB`, in powers of 1000 as the post counts.
pub(super) fn at_index(index_bytes: u64) -> String {
    format!("an index of {:.1} GB", index_bytes as f64 / 1e9)
}

/// `the kernel of 2009`.
pub(super) fn kernel(kernel: KernelThen) -> &'static str {
    match kernel {
        KernelThen::Y2009 => "the kernel of 2009",
        KernelThen::Today => "today's kernel",
    }
}

/// `13 M rows`.
pub(super) fn rows(rows: u64) -> String {
    format!("{} rows", count(rows as f64))
}

/// A sentence from its parts, the first letter large.
pub(super) fn sentence(text: &str) -> String {
    capital(text) + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_write_them() {
        assert_eq!(times(4.123, Some([4.0, 4.3])), "4.12x [4, 4.3]");
        assert_eq!(times(1.0, Some([0.998, 1.002])), "1.000x [0.998, 1.002]");
        assert_eq!(sentence("on flash"), "On flash.");
    }
}
