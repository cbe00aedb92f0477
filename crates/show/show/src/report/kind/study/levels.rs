//! Levels of points, factor by factor, and how a reader names them.
//!
//! Invariant: a point that has no level of a factor (the files of a raw device) stands at that
//! factor's first level, as it does where effects are taken; it is not named there.

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

/// Whether a factor is what is asked of the system, and no part of the system.
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

/// A level beside the words of its factor, which it does not repeat: `none`.
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
}
