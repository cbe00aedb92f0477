//! Levels of points, factor by factor, and how they are named and points distinguished.
//!
//! Invariants: a point that has no level of a factor (the files of a raw device) stands at that
//! factor's first level, as it does where effects are taken; it is not named there. Two points with
//! different levels have different names. A study of parts changes one thing at a time, so that
//! most points have the same level of most factors: those levels are stated once, for all, and a
//! point is named by where it differs.

use iostrata_plan::study::setting::{Setting, SettingValue};
use iostrata_plan::study::{FactorLevels, LevelAt};
use iostrata_plan::{Rw, Words};
use iostrata_run::{StudyDocument, StudyPoint};

use crate::report::words;

/// The level of a point, where it has one.
pub(super) fn level<'a>(levels: &'a [LevelAt], factor: &str) -> Option<&'a str> {
    levels.iter().find(|at| at.factor == factor).map(|at| at.level.as_str())
}

/// The place of a point's level among the factor's levels.
pub(super) fn place(point: &StudyPoint, factor: &FactorLevels) -> usize {
    let level = level(&point.levels, &factor.factor);
    level.and_then(|level| factor.levels.iter().position(|one| one == level)).unwrap_or(0)
}

/// The factors in which points differ, in the study's order.
pub(super) fn varying<'a>(
    study: &'a StudyDocument,
    points: &[&StudyPoint],
) -> Vec<&'a FactorLevels> {
    let differs = |factor: &&FactorLevels| {
        let mut places = points.iter().map(|point| place(point, factor));
        let first = places.next();
        places.any(|place| Some(place) != first)
    };
    study.factors.iter().filter(differs).collect()
}

/// A level as a place on an axis; nothing where it has none.
pub(super) fn number(factor: &str, level: &str) -> Option<f64> {
    match Setting::named(factor) {
        Some(setting) => setting.position(level),
        None => level.parse().ok(),
    }
}

/// The level at a place on a factor's axis, as the study's text has it: `288M`.
pub(super) fn level_at(study: &StudyDocument, factor: &str, x: f64) -> String {
    let levels =
        study.factors.iter().filter(|one| one.factor == factor).flat_map(|one| &one.levels);
    let level = levels.into_iter().find(|level| number(factor, level) == Some(x));
    level.cloned().unwrap_or_else(|| x.to_string())
}

/// A factor in a reader's words: `File system`, `Block size`.
pub(super) fn factor_words(factor: &str) -> String {
    match factor {
        "filesystem" | "fs" => "File system".to_owned(),
        "rw" | "readwrite" => "Requests".to_owned(),
        "bs" | "block_size" => "Block size".to_owned(),
        "rwmixread" => "Share of reads".to_owned(),
        "iodepth" => "Depth".to_owned(),
        "ioengine" => "File API".to_owned(),
        "nr_requests" => factor.to_owned(),
        "rate_pct" => "Rate, % of the limit".to_owned(),
        other => words::title(own_name(other)),
    }
}

/// The name of a setting of a database without the database's.
fn own_name(factor: &str) -> &str {
    factor.split_once('.').map_or(factor, |(_, own)| own)
}

/// The same inside a sentence or on an axis.
pub(super) fn axis_words(factor: &str) -> String {
    let words = factor_words(factor);
    let mut letters = words.chars();
    let first = letters.next().map_or(String::new(), |first| first.to_lowercase().collect());
    first + letters.as_str()
}

/// Whether a factor belongs to the load, and not to the system.
pub(super) fn is_workload(factor: &str) -> bool {
    const OF_WORKLOAD: [&str; 10] = [
        "rw",
        "readwrite",
        "rwmixread",
        "bs",
        "block_size",
        "size",
        "filesize",
        "volume_size",
        "random_distribution",
        "preparation",
    ];
    OF_WORKLOAD.contains(&factor)
}

/// A level in a reader's words: `16 workers`, `raw device`, `scheduler none`.
pub(super) fn level_words(factor: &str, level: &str) -> String {
    let plural = if level == "1" { "" } else { "s" };
    let parsed = Setting::named(factor).and_then(|setting| setting.parse(level).ok());
    match (factor, parsed) {
        ("rw" | "readwrite", Some(SettingValue::Word(word))) => {
            Rw::of(word).map_or_else(|| level.to_owned(), |rw| rw.words().to_owned())
        }
        ("filesystem" | "fs", _) if level == "raw" => "raw device".to_owned(),
        ("filesystem" | "fs" | "bs" | "block_size" | "ioengine", _) | (_, None) => level.to_owned(),
        ("workers" | "files" | "volumes", _) => {
            format!("{level} {}{plural}", factor.trim_end_matches('s'))
        }
        ("iodepth", _) => format!("depth {level}"),
        ("rate_pct" | "rate_iops" | "rate_tps", _) if level == "0" => {
            "as fast as it goes".to_owned()
        }
        ("rate_pct", _) => format!("{level} % of the limit"),
        ("direct", Some(SettingValue::Switch(false))) => "buffered".to_owned(),
        (_, Some(SettingValue::Text(_))) => {
            format!("{} {level}", own_name(factor).replace('_', " "))
        }
        ("rate_tps", _) => format!("{level} transactions/s"),
        (_, Some(SettingValue::Switch(true))) => factor.replace('_', " "),
        (_, Some(SettingValue::Switch(false))) => format!("no {}", factor.replace('_', " ")),
        _ => format!("{} {level}", factor.replace('_', " ")),
    }
}

/// A level next to the words of its factor, which it does not repeat: `none`.
pub(super) fn level_beside(factor: &str, level: &str) -> String {
    let words = level_words(factor, level);
    let own = format!("{} ", own_name(factor).replace('_', " "));
    words.strip_prefix(&own).map_or(words.clone(), str::to_owned)
}

/// A point's levels of some factors in words, in the order of the factors.
pub(super) fn describe(levels: &[LevelAt], factors: &[&FactorLevels]) -> String {
    let words = factors.iter().filter_map(|factor| {
        level(levels, &factor.factor).map(|level| level_words(&factor.factor, level))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// All of some levels in words.
pub(super) fn listed(levels: &[LevelAt]) -> String {
    let words = levels.iter().map(|at| level_words(&at.factor, &at.level));
    words.collect::<Vec<_>>().join(", ")
}

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

    /// What distinguishes a point, or all its levels where nothing does: `readers 1, depth 8`.
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

    #[test]
    fn levels_read_as_words() {
        assert_eq!(level_words("workers", "1"), "1 worker");
        assert_eq!(level_words("files", "8"), "8 files");
        assert_eq!(level_words("filesystem", "raw"), "raw device");
        assert_eq!(level_words("bs", "16k"), "16k");
        assert_eq!(level_words("rw", "randwrite"), "random writes");
        assert_eq!(level_words("direct", "false"), "buffered");
        assert_eq!(level_words("scheduler", "none"), "scheduler none");
        assert_eq!(level_words("method", "fsync"), "fsync");
    }

    #[test]
    fn a_level_beside_its_factor_does_not_repeat_it() {
        assert_eq!(level_beside("scheduler", "none"), "none");
        assert_eq!(level_beside("nr_requests", "128"), "128");
        assert_eq!(level_beside("engine.page_size", "4K"), "4K");
        assert_eq!(level_beside("workers", "8"), "8 workers");
        assert_eq!(level_beside("filesystem", "raw"), "raw device");
    }

    #[test]
    fn levels_of_an_axis_are_numbers() {
        assert_eq!(number("workers", "128"), Some(128.0));
        assert_eq!(number("bs", "4k"), Some(4096.0));
        assert_eq!(number("share", "0.5"), Some(0.5));
        assert_eq!(number("filesystem", "ext4"), None);
        assert_eq!(number("rate_pct", "95"), Some(95.0));
        assert_eq!(number("rate_pct", "0"), None, "a closed loop lies on no axis of rates");
    }

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
