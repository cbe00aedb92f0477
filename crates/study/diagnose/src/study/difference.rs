//! Answers about figures that are often 0: worst seconds, and stalls.
//!
//! No ratio can be taken to 0, so two sides are compared by their difference. Invariant: a sentence
//! stands only where the interval of the difference supports it.

use iostrata_plan::study::{Contrast, ThenMetric};
use iostrata_stats::{Difference, ERROR_RATE, Interval};

use super::sentence::{Outcome, not_shown, template, too_few_pairs, with_figures};
use super::sides::Sides;

/// What a difference of a metric is measured by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    /// What it is a difference of, behind its number.
    unit: &'static str,
    /// Less than this does not matter in practice.
    material: f64,
    /// Two sides are about equal where the whole interval is within this of 0.
    about_equal: f64,
}

/// The scale of a metric that is compared by its difference.
pub(super) fn scale(metric: ThenMetric) -> Option<Scale> {
    let (unit, material, about_equal) = match metric {
        ThenMetric::MinOverMean1s => ("of the mean", 0.05, 0.15),
        ThenMetric::StalledPct => ("points", 2.0, 10.0),
        ThenMetric::StallsPerMin => ("a minute", 1.0, 3.0),
        _ => return None,
    };
    Some(Scale { unit, material, about_equal })
}

/// The sentence of what was decided.
pub(super) fn sentence(
    contrast: &Contrast,
    sides: &Sides,
    found: &Difference,
    (outcome, ends): (Outcome, Interval),
    scale: Scale,
) -> String {
    let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
    let said = with_figures(template(contrast, outcome), contrast.metric, sides, mean, None);
    format!("{said} ({})", in_words(found.value.value, ends, outcome, scale))
}

/// What holds, else why nothing does; `p` with all answers of the study taken into account.
pub(super) fn outcome(
    found: &Difference,
    p: Option<f64>,
    scale: Scale,
) -> Result<(Outcome, Interval), String> {
    let (Some(p), Some(ends @ [low, high])) = (p, found.value.ci95) else {
        return Err(too_few_pairs(found.replicates));
    };
    let value = found.value.value;
    if p <= ERROR_RATE && value.abs() >= scale.material {
        return Ok((if value > 0.0 { Outcome::More } else { Outcome::Less }, ends));
    }
    if low.abs().max(high.abs()) <= scale.about_equal {
        return Ok((Outcome::Same, ends));
    }
    let is_beyond_zero = low > 0.0 || high < 0.0;
    let range = format!(
        "a difference of {}, 95 % {} to {} {}",
        iostrata_stats::units::count(value),
        iostrata_stats::units::count(low),
        iostrata_stats::units::count(high),
        scale.unit
    );
    Err(not_shown(is_beyond_zero, &range))
}

/// `a difference of 38 points, 95 % 25 to 51`: up, whichever way the sentence puts it.
fn in_words(value: f64, [low, high]: Interval, outcome: Outcome, scale: Scale) -> String {
    let (value, low, high) = match outcome {
        Outcome::Less => (-value, -high, -low),
        Outcome::More | Outcome::Same => (value, low, high),
    };
    let [value, low, high] = [value, low, high].map(iostrata_stats::units::count);
    let equal = match outcome {
        Outcome::Same => {
            format!(
                "equal within {} {}: ",
                iostrata_stats::units::count(scale.about_equal),
                scale.unit
            )
        }
        Outcome::More | Outcome::Less => String::new(),
    };
    format!("{equal}a difference of {value} {}, 95 % {low} to {high}", scale.unit)
}

#[cfg(test)]
mod tests {
    use iostrata_plan::study::Take;
    use iostrata_stats::{Measured, difference};

    use super::*;

    fn side(values: &[f64]) -> Vec<Measured> {
        let one =
            |&value: &f64| Measured::new(value, [value - 0.001, value + 0.001], 9, <_>::default());
        values.iter().map(one).collect()
    }

    fn asked(metric: ThenMetric, above: &[f64], below: &[f64]) -> Result<String, String> {
        let contrast = Contrast {
            metric,
            at: vec![],
            of: vec![],
            over: vec![],
            take: Take::Only,
            effects: vec![],
            more: "{of} against {over}".to_owned(),
            less: "only {of} against {over}".to_owned(),
            same: "{of} either way".to_owned(),
        };
        let sides = Sides::of_one_cell(side(above), side(below));
        let (found, scale) =
            (difference(&sides.pairs(), sides.cells).unwrap(), scale(metric).unwrap());
        let outcome = outcome(&found, found.p, scale)?;
        Ok(sentence(&contrast, &sides, &found, outcome, scale))
    }

    #[test]
    fn stalls_are_set_against_none_at_all() {
        let stalled = |above: &[f64], below: &[f64]| asked(ThenMetric::StalledPct, above, below);
        let more = stalled(&[48.0, 52.0, 50.0], &[0.0, 0.0, 6.0]).unwrap();
        assert!(more.starts_with("50 against 2 (a difference of 48 points, 95 % 3"), "{more}");
        let less = stalled(&[0.0, 0.0, 6.0], &[48.0, 52.0, 50.0]).unwrap();
        assert!(less.starts_with("only 2 against 50 (a difference of 48 points, 95 % 3"), "{less}");
        let same = stalled(&[0.0, 0.0, 1.0], &[0.0, 2.0, 0.0]).unwrap();
        assert!(
            same.starts_with("0.333 either way (equal within 10 points: a difference of -0.333"),
            "{same}"
        );
        assert_eq!(
            stalled(&[10.0, 60.0, 20.0], &[30.0, 10.0, 0.0]).unwrap_err(),
            "too noisy (a difference of 16.7, 95 % -70.6 to 104 points)"
        );
        let few = stalled(&[50.0, 52.0], &[0.0, 0.0]).unwrap_err();
        assert_eq!(few, "only 2 replicates have both sides; 3 are needed");
        let many = stalled(&[20.0, 25.0, 22.0], &[0.0, 0.0, 6.0]).unwrap();
        assert!(many.starts_with("22"), "{many}");
    }

    #[test]
    fn what_is_known_and_tiny_is_about_equal() {
        let worst = |above: &[f64]| asked(ThenMetric::MinOverMean1s, above, &[0.30, 0.31, 0.30]);
        assert!(worst(&[0.34, 0.35, 0.34]).unwrap().contains("either way"));
        assert!(worst(&[0.00, 0.01, 0.00]).unwrap().starts_with("only 0.00333 against 0.303"));
        let few = asked(ThenMetric::StallsPerMin, &[9.0, 8.0, 9.0], &[0.0, 0.0, 0.0]).unwrap();
        assert!(few.contains(" a minute, 95 % "), "{few}");
    }

    #[test]
    fn exactly_the_metrics_whose_texts_name_no_ratio_have_a_scale() {
        for (name, metric, _) in ThenMetric::NAMED {
            let found = scale(metric);
            assert_eq!(found.is_some(), metric.is_by_difference(), "{name}");
            assert!(found.is_none_or(|scale| scale.material < scale.about_equal), "{name}");
        }
    }
}
