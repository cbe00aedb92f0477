//! How points are told apart: by the factors in which they differ.
//!
//! Purpose: a study of parts changes one thing at a time, so that most points have the same level
//! of most factors. Those levels are said once, of all, and a point is named by where it differs.
//! Invariant: two points with different levels have different names.

use iostrata_plan::study::{FactorLevels, LevelAt};

use super::levels::{describe, level, level_words};

/// Of so many out of three points a level is the usual one.
const USUAL_OF_THREE: usize = 2;
/// Fewer factors with a usual level are named at every point.
const USUAL_MIN: usize = 2;

/// The names of some points.
pub(super) struct Naming<'a> {
    /// The factors in the study's order, each with the level that most points have.
    factors: Vec<(&'a FactorLevels, Option<&'a str>)>,
}

impl<'a> Naming<'a> {
    /// Names by these factors, for points that have these levels.
    pub(super) fn of(points: &[&'a [LevelAt]], factors: &[&'a FactorLevels]) -> Self {
        let usual = |factor: &FactorLevels| {
            let levels = || points.iter().filter_map(|levels| level(levels, &factor.factor));
            let is_usual = |one: &&str| {
                let count = levels().filter(|other| other == one).count();
                3 * count >= USUAL_OF_THREE * points.len()
            };
            levels().find(is_usual)
        };
        let mut factors: Vec<_> = factors.iter().map(|factor| (*factor, usual(factor))).collect();
        if factors.iter().filter(|(_, usual)| usual.is_some()).count() < USUAL_MIN {
            factors.iter_mut().for_each(|(_, usual)| *usual = None);
        }
        Self { factors }
    }

    /// The factors that are named at every point.
    pub(super) fn always(&self) -> Vec<&'a FactorLevels> {
        self.those(|_, usual: Option<&str>| usual.is_none())
    }

    /// Where a point has another level than most: `readers 1`.
    pub(super) fn differences(&self, levels: &[LevelAt]) -> String {
        let differs = |factor: &str, usual: Option<&str>| level(levels, factor) != usual;
        describe(
            levels,
            &self.those(|factor: &str, usual: Option<&str>| {
                usual.is_some() && differs(factor, usual)
            }),
        )
    }

    /// What tells a point apart, or all its levels where nothing does: `readers 1, depth 8`.
    pub(super) fn name(&self, levels: &[LevelAt]) -> String {
        let is_named =
            |factor: &str, usual: Option<&str>| usual.is_none() || level(levels, factor) != usual;
        match describe(levels, &self.those(is_named)) {
            none if none.is_empty() => describe(levels, &self.those(|_, _| true)),
            name => name,
        }
    }

    fn those(&self, is_one: impl Fn(&str, Option<&str>) -> bool) -> Vec<&'a FactorLevels> {
        let those = self.factors.iter().filter(|(factor, usual)| is_one(&factor.factor, *usual));
        those.map(|(factor, _)| *factor).collect()
    }

    /// The usual levels as a sentence; nothing where every point is named in full.
    pub(super) fn says(&self) -> Option<String> {
        let words = self
            .factors
            .iter()
            .filter_map(|(factor, usual)| usual.map(|level| level_words(&factor.factor, level)));
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| format!("Unless stated otherwise: {}.", words.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTORS: [&str; 3] = ["disk", "nr_requests", "readers"];
    const POINTS: [[&str; 3]; 4] = [
        ["hdd-15k", "128", "0"],
        ["hdd-15k", "1024", "0"],
        ["ssd-sata", "128", "0"],
        ["hdd-15k", "1024", "1"],
    ];

    fn factors() -> Vec<FactorLevels> {
        let factor = |name: &str| FactorLevels {
            factor: name.to_owned(),
            levels: Vec::new(),
            is_axis: false,
        };
        FACTORS.map(factor).to_vec()
    }

    fn points() -> Vec<Vec<LevelAt>> {
        let at = |(factor, level): (&str, &str)| LevelAt {
            factor: factor.to_owned(),
            level: level.to_owned(),
        };
        POINTS.map(|levels| FACTORS.into_iter().zip(levels).map(at).collect()).to_vec()
    }

    #[test]
    fn what_most_points_have_is_said_once() {
        let (factors, points) = (factors(), points());
        let levels: Vec<&[LevelAt]> = points.iter().map(Vec::as_slice).collect();
        let naming = Naming::of(&levels, &factors.iter().collect::<Vec<_>>());
        assert_eq!(naming.says().unwrap(), "Unless stated otherwise: disk hdd-15k, readers 0.");
        let names = levels.iter().map(|levels| naming.name(levels));
        let expected = [
            "nr requests 128",
            "nr requests 1024",
            "disk ssd-sata, nr requests 128",
            "nr requests 1024, readers 1",
        ];
        assert_eq!(names.collect::<Vec<_>>(), expected);
        let differences = levels.iter().map(|levels| naming.differences(levels));
        assert_eq!(differences.collect::<Vec<_>>(), ["", "", "disk ssd-sata", "readers 1"]);
        assert_eq!(naming.always(), [&factors[1]]);
    }

    #[test]
    fn a_usual_level_of_one_factor_is_named_at_every_point() {
        let (factors, points) = (factors(), points());
        let levels: Vec<&[LevelAt]> = points.iter().map(Vec::as_slice).collect();
        let naming = Naming::of(&levels, &[&factors[1], &factors[2]]);
        assert_eq!(naming.says(), None);
        assert_eq!(naming.name(levels[0]), "nr requests 128, readers 0");
        assert_eq!(naming.differences(levels[3]), "");
        assert_eq!(naming.always().len(), 2);
    }

    #[test]
    fn a_point_that_is_usual_throughout_is_named_in_full() {
        let (factors, points) = (factors(), points());
        let levels: Vec<&[LevelAt]> = points.iter().map(Vec::as_slice).collect();
        let naming = Naming::of(&levels, &[&factors[0], &factors[2]]);
        assert_eq!(naming.name(levels[0]), "disk hdd-15k, readers 0");
        assert_eq!(naming.name(levels[3]), "readers 1");
    }
}
