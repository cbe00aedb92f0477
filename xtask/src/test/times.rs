//! How long tests take: kept from run to run, so that the longest begin first.
//!
//! Invariant: a test that was never run counts as [`UNKNOWN_S`]; times order the tests and are
//! shown, and no test fails by them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// What a test counts that was never run.
const UNKNOWN_S: f64 = 1.0;

/// Times of a whole run on two cores, for a clean clone.
const COMMITTED: &str = include_str!("times.txt");

/// Seconds by the name of a job.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Times(BTreeMap<String, f64>);

impl Times {
    /// Those that the repository has.
    pub fn committed() -> Self {
        Self::parse(COMMITTED)
    }

    /// The committed ones, and over them those of the last runs on this clone.
    pub fn known(path: &Path) -> Self {
        let mut times = Self::committed();
        times.0.extend(Self::parse(&fs::read_to_string(path).unwrap_or_default()).0);
        times
    }

    fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let (seconds, name) = line.trim().split_once(' ')?;
            Some((name.to_owned(), seconds.parse().ok()?))
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// Seconds of a job.
    pub fn of(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(UNKNOWN_S)
    }

    /// Seconds of a job that was run.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Takes what a job took.
    pub fn set(&mut self, name: &str, seconds: f64) {
        self.0.insert(name.to_owned(), seconds);
    }

    /// Jobs from the longest to the shortest.
    pub fn longest(&self) -> Vec<(&str, f64)> {
        let mut all: Vec<(&str, f64)> =
            self.0.iter().map(|(name, seconds)| (name.as_str(), *seconds)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    /// Writes those of at least so many seconds, in the order of their names.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path, seconds_min: f64) -> Result<()> {
        let mut text = String::new();
        for (name, seconds) in self.0.iter().filter(|(_, seconds)| **seconds >= seconds_min) {
            writeln!(text, "{seconds:.1} {name}").context("a line is text")?;
        }
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest that unit tests in one process should take, in seconds.
    const UNIT_S_MAX: f64 = 40.0;

    #[test]
    fn unit_tests_that_take_long_are_divided() {
        let committed = Times::committed();
        let long = |(name, seconds): &(&str, f64)| name.contains("(unit") && *seconds > UNIT_S_MAX;
        let long: Vec<(&str, f64)> = committed.longest().into_iter().filter(long).collect();
        assert!(long.is_empty(), "give some of them a row in lanes::UNITS: {long:?}");
    }

    #[test]
    fn times_are_read_back_as_written() {
        let dir = std::env::temp_dir().join(format!("iostrata-times-{}", std::process::id()));
        let mut times = Times::default();
        times.set("cli tune::a", 12.34);
        times.set("run (unit)", 0.2);
        times.write(&dir, 1.0).unwrap();
        let read = Times::parse(&fs::read_to_string(&dir).unwrap());
        fs::remove_file(&dir).unwrap();
        assert_eq!(read.longest(), [("cli tune::a", 12.3)]);
        assert_eq!((read.of("cli tune::a"), read.of("unknown")), (12.3, UNKNOWN_S));
    }
}
