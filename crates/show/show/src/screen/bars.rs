//! Samples as bars of a chart.
//!
//! Invariant: every chart has [`SAMPLES_PER_BAR`], so that one place in time is the same number of
//! cells from the right in each; a bar keeps its samples while it moves. What is not told is a
//! gap, and what is more than nothing is seen.

use iostrata_run::WatchSample;

use crate::screen::course::Course;

/// Samples in one bar: the last minutes are seen on a terminal of 80 columns.
pub(crate) const SAMPLES_PER_BAR: usize = 2;

/// What one bar stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bar {
    /// Its value; absent where no sample tells it.
    pub(crate) value: Option<f64>,
    /// The target stalled meanwhile.
    pub(crate) stalled: bool,
}

/// How the samples of a bar become its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Their mean.
    Mean,
    /// Their mean, but the least one while the target stalls.
    Throughput,
    /// The largest one.
    Max,
}

/// The last bars of a course, at most `width`, the newest last.
pub(crate) fn bars(
    course: &Course,
    width: usize,
    fold: Fold,
    value: fn(&WatchSample) -> Option<f64>,
) -> Vec<Bar> {
    let (before, samples) = course.samples();
    let mut parts: Vec<(usize, Vec<&WatchSample>)> = Vec::new();
    for (at, sample) in samples.iter().enumerate() {
        let place = (before + at) / SAMPLES_PER_BAR;
        match parts.last_mut() {
            Some((last, part)) if *last == place => part.push(sample),
            _ => parts.push((place, vec![sample])),
        }
    }
    let from = parts.len().saturating_sub(width);
    parts[from..].iter().map(|(_, part)| bar(part, fold, value)).collect()
}

fn bar(part: &[&WatchSample], fold: Fold, value: fn(&WatchSample) -> Option<f64>) -> Bar {
    let stalled = part.iter().any(|one| one.stalled);
    let told: Vec<f64> = part.iter().filter_map(|one| value(one)).collect();
    let mean = |told: &[f64]| told.iter().sum::<f64>() / told.len() as f64;
    let value = match fold {
        _ if told.is_empty() => None,
        Fold::Max => told.iter().copied().reduce(f64::max),
        Fold::Throughput if stalled => told.iter().copied().reduce(f64::min),
        Fold::Mean | Fold::Throughput => Some(mean(&told)),
    };
    Bar { value, stalled }
}

/// The largest value; absent where none is told.
pub(crate) fn largest<'a>(bars: impl IntoIterator<Item = &'a Bar>) -> Option<f64> {
    bars.into_iter().filter_map(|bar| bar.value).reduce(f64::max)
}

/// How high a value stands, in steps; at least one for what is more than nothing.
pub(crate) fn height(value: f64, max: f64, steps: u64, is_log: bool) -> u64 {
    if !(value > 0.0 && max > 0.0) {
        return 0;
    }
    let share = if is_log { value.ln_1p() / max.ln_1p() } else { value / max };
    ((share * steps as f64).round() as u64).clamp(1, steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_run::WatchTarget;

    fn course(rates: &[(Option<f64>, bool)]) -> Course {
        let mut course = Course::new(WatchTarget::default());
        for (at, (tps, stalled)) in rates.iter().enumerate() {
            let (t_s, tps, stalled) = (at as f64, *tps, *stalled);
            course.take(WatchSample { t_s, tps, stalled, ..WatchSample::default() });
        }
        course
    }

    #[test]
    fn a_stall_within_a_bar_is_not_averaged_away() {
        let course = course(&[
            (Some(600.0), false),
            (Some(500.0), false),
            (Some(3.0), true),
            (Some(601.0), false),
            (None, false),
            (None, false),
            (Some(7.0), false),
        ]);
        let of = |fold| bars(&course, 10, fold, |one| one.tps);
        let values: Vec<Option<f64>> = of(Fold::Throughput).iter().map(|bar| bar.value).collect();
        assert_eq!(values, [Some(550.0), Some(3.0), None, Some(7.0)]);
        assert_eq!(of(Fold::Mean)[1], Bar { value: Some(302.0), stalled: true });
        assert_eq!(of(Fold::Max)[1].value, Some(601.0));
        assert_eq!(bars(&course, 2, Fold::Mean, |one| one.tps).len(), 2);
        assert_eq!(largest(&of(Fold::Max)), Some(601.0));
    }

    #[test]
    fn bars_keep_their_samples_when_old_ones_are_forgotten() {
        let many = |count| course(&vec![(Some(1.0), true); count]);
        for more in 0..4 {
            let course = many(crate::screen::course::SAMPLES_MAX + more);
            let found = bars(&course, 9999, Fold::Mean, |_| Some(1.0));
            let whole = crate::screen::course::SAMPLES_MAX / SAMPLES_PER_BAR;
            assert_eq!(found.len(), whole + more % 2, "{more}");
        }
    }

    #[test]
    fn small_values_are_seen_and_zero_is_nothing() {
        assert_eq!(height(0.0, 100.0, 8, false), 0);
        assert_eq!(height(0.1, 100.0, 8, false), 1);
        assert_eq!(height(100.0, 100.0, 8, false), 8);
        assert_eq!(height(300.0, 100.0, 8, false), 8);
        assert_eq!(height(5.0, 0.0, 8, false), 0);
        assert!(height(10.0, 1000.0, 8, true) > height(10.0, 1000.0, 8, false));
    }
}
