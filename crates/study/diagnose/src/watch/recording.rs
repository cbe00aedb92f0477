//! The figures of a recording, and the settings that held.
//!
//! Invariant: what a target does not tell is `None`, never 0; a figure rests on the samples that
//! have it, and on no fewer than [`SAMPLES_MIN`].

use iostrata_run::{Advice, ManagedService, StallCause, WatchDocument, WatchSample};
use iostrata_stats::units::{percent, seconds, times};
use iostrata_stats::{Measured, estimate};
use serde_json::json;

use crate::server_setting::{Family, Release};
use crate::statement::Statement;

/// Fewer samples with figures say nothing.
pub(super) const SAMPLES_MIN: usize = 30;
/// Share of its limit from which on the checkpoint age leaves no room, in percent.
const PRESSED_PCT: f64 = 90.0;
/// The part of a redo log that is the limit of the checkpoint age, about.
pub(super) const LIMIT_SHARE: f64 = 0.82;
/// Samples of the highest rate that was kept up.
const KEPT_UP_SAMPLES: usize = 5;

/// Signs that redo space ran out, or nearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RedoPressure {
    /// Stalls for want of redo space.
    pub stalls: u64,
    /// Their length together, in seconds.
    pub stalled_s: f64,
    /// Times that pages were written at any price.
    pub furious_flushes: u64,
    /// The checkpoint age that a twentieth of the samples passed, in percent of its limit.
    pub age_pct_p95: Option<f64>,
}

impl RedoPressure {
    /// `it stalled 3 times for want of redo space (12 s)`, or what else speaks for it.
    pub fn words(&self) -> String {
        let Self { stalls, stalled_s, furious_flushes, age_pct_p95 } = *self;
        if stalls > 0 {
            let seconds = seconds(stalled_s);
            return format!("it stalled {} for want of redo space ({seconds})", times(stalls));
        }
        if furious_flushes > 0 {
            return format!("pages were written at any price {}", times(furious_flushes));
        }
        let age = age_pct_p95.unwrap_or_default();
        format!("the checkpoint age reached {} of its limit", percent(age))
    }

    /// A statement with what speaks for redo space that ran out.
    pub fn beside(&self, said: Statement) -> Statement {
        said.with("redo_stalls", self.stalls)
            .with("redo_stalled_s", self.stalled_s)
            .with("furious_flushes", self.furious_flushes)
            .with("checkpoint_age_pct_p95", json!(self.age_pct_p95))
    }
}

/// A statement and what follows from it.
pub(crate) struct AdvisedStatement {
    pub said: Statement,
    pub advice: Vec<Advice>,
}

impl AdvisedStatement {
    /// A statement from which nothing follows that could be set.
    pub fn only(said: Statement) -> Self {
        Self { said, advice: Vec::new() }
    }

    /// A statement with advice, where there is any.
    pub fn with(said: Statement, advice: impl IntoIterator<Item = Advice>) -> Self {
        Self { said, advice: advice.into_iter().collect() }
    }
}

/// A recording that is long enough.
pub(crate) struct Recording<'d> {
    pub document: &'d WatchDocument,
    pub family: Family,
    /// Major, minor and patch level, where the version begins with them.
    pub version: Release,
    /// Who runs the server, where that is a service.
    pub service: Option<ManagedService>,
    samples: Vec<&'d WatchSample>,
}

impl<'d> Recording<'d> {
    /// `None` where there are too few samples with figures.
    pub fn of(document: &'d WatchDocument) -> Option<Self> {
        let samples: Vec<&WatchSample> =
            document.samples.iter().filter(|sample| sample.error.is_none()).collect();
        if samples.len() < SAMPLES_MIN {
            return None;
        }
        let target = &document.target;
        let family = match target.flavour.as_str() {
            "engine" => Family::Engine,
            "mariadb" => Family::MariaDb,
            _ => Family::MySql,
        };
        let mut numbers = target.version.split(|char: char| !char.is_ascii_digit());
        let mut number = || numbers.next().and_then(|text| text.parse().ok()).unwrap_or(0);
        let version = (number(), number(), number());
        let settings = target.settings.iter().map(|(name, value)| (&**name, &**value));
        let service = ManagedService::of(settings);
        Some(Self { document, family, version, service, samples })
    }

    /// The values of a figure, in the order of time.
    pub fn series(&self, of: impl Fn(&WatchSample) -> Option<f64>) -> Vec<f64> {
        self.series_of(of)
    }

    /// The same of what is more than a number.
    pub fn series_of<T>(&self, of: impl Fn(&WatchSample) -> Option<T>) -> Vec<T> {
        self.samples.iter().filter_map(|sample| of(sample)).collect()
    }

    /// The mean of a figure.
    pub fn mean(&self, of: impl Fn(&WatchSample) -> Option<f64>) -> Option<Measured> {
        measured(&self.series(of))
    }

    /// Pages that became dirty per second: those that were written, and by how many more there are.
    pub fn pages_dirtied_per_s(&self) -> Option<Measured> {
        let dirtied = |pair: &[&WatchSample]| {
            let [before, after] = pair else { return None };
            let grown = after.dirty_pages? as f64 - before.dirty_pages? as f64;
            let seconds = Some(after.t_s - before.t_s).filter(|seconds| *seconds > 0.0)?;
            Some(after.flushed_pages_per_s? + grown / seconds)
        };
        let rates: Vec<f64> = self.samples.windows(2).filter_map(dirtied).collect();
        measured(&rates).filter(|rate| rate.value > 0.0)
    }

    /// The highest rate of page writes that was kept up for some samples.
    pub fn flushed_per_s_best(&self) -> Option<f64> {
        let rates = self.series(|sample| sample.flushed_pages_per_s);
        let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len() as f64;
        rates.windows(KEPT_UP_SAMPLES).map(mean).max_by(f64::total_cmp)
    }

    /// The value below which this share of the samples lies.
    pub fn quantile(&self, share: f64, of: impl Fn(&WatchSample) -> Option<f64>) -> Option<f64> {
        let mut values = self.series(of);
        values.sort_by(f64::total_cmp);
        let at = ((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1));
        (values.len() >= SAMPLES_MIN).then(|| values[at])
    }

    /// The share of the samples of which something holds, among those of which it is known.
    pub fn share(&self, of: impl Fn(&WatchSample) -> Option<bool>) -> Option<f64> {
        let known: Vec<bool> = self.samples.iter().filter_map(|sample| of(sample)).collect();
        let held = known.iter().filter(|held| **held).count();
        (known.len() >= SAMPLES_MIN).then(|| held as f64 / known.len() as f64)
    }

    /// Longest stretch of samples of which something holds.
    pub fn longest(&self, holds: impl Fn(&WatchSample) -> bool) -> usize {
        let (mut longest, mut now) = (0, 0);
        for sample in &self.samples {
            now = if holds(sample) { now + 1 } else { 0 };
            longest = longest.max(now);
        }
        longest
    }

    /// First and last value of a figure, with the seconds between.
    pub fn ends(&self, of: impl Fn(&WatchSample) -> Option<f64>) -> Option<([f64; 2], f64)> {
        let known = |sample: &&&WatchSample| of(sample).is_some();
        let (first, last) = (self.samples.iter().find(known)?, self.samples.iter().rfind(known)?);
        let seconds = last.t_s - first.t_s;
        (seconds > 0.0).then_some(([of(first)?, of(last)?], seconds))
    }

    /// Stalls of a cause, and their length together in seconds.
    pub fn stalls(&self, cause: StallCause) -> (u64, f64) {
        let stalls = self.document.stalls.iter().filter(|stall| stall.cause == cause);
        stalls.fold((0, 0.0), |(count, s), stall| (count + 1, s + stall.length_s))
    }

    /// Whether redo space ran out, or nearly; `None` where nothing speaks for it.
    pub fn redo_pressure(&self) -> Option<RedoPressure> {
        let (stalls, stalled_s) = self.stalls(StallCause::RedoFull);
        let furious = self.ends(|sample| sample.furious_flushes.map(|count| count as f64));
        let furious_flushes =
            furious.map_or(0, |([first, last], _)| (last - first).max(0.0) as u64);
        let age_pct_p95 = self.quantile(0.95, |sample| sample.checkpoint_age_pct);
        let is_high = age_pct_p95.is_some_and(|age| age >= PRESSED_PCT);
        let found = RedoPressure { stalls, stalled_s, furious_flushes, age_pct_p95 };
        (stalls > 0 || furious_flushes > 0 || is_high).then_some(found)
    }

    /// The name that this target gives a setting of InnoDB.
    pub fn named(&self, setting: &str) -> String {
        match self.family {
            Family::Engine => setting.to_owned(),
            _ => format!("innodb_{setting}"),
        }
    }

    /// A setting of InnoDB as it was at the end: the last that tuning made of it.
    pub fn setting(&self, setting: &str) -> Option<&'d str> {
        self.variable(&self.named(setting))
    }

    /// A variable by its full name.
    pub fn variable(&self, name: &str) -> Option<&'d str> {
        let tuned = self.document.settings.iter().rev().find(|tuned| tuned.name == name);
        let tuned = tuned.map(|tuned| tuned.to.as_str());
        tuned.or_else(|| self.document.target.settings.get(name).map(String::as_str))
    }

    /// A setting that is a number.
    pub fn number(&self, setting: &str) -> Option<f64> {
        self.setting(setting)?.parse().ok()
    }

    /// A setting that is on or off.
    pub fn is_on(&self, setting: &str) -> Option<bool> {
        is_on(self.setting(setting)?)
    }

    /// The limit of the checkpoint age, in bytes.
    pub fn age_limit(&self) -> Option<f64> {
        self.quantile(0.5, |sample| sample.checkpoint_age_limit_bytes.map(|bytes| bytes as f64))
    }

    /// Bytes that the sizes and numbers of redo files ask for.
    pub fn redo_files(&self) -> Option<f64> {
        let files = match self.family {
            Family::MySql => self.number("log_files_in_group")?,
            _ => 1.0,
        };
        Some(self.number("log_file_size")? * files)
    }

    /// Bytes of the redo log, and the setting that changes them. MySQL 8.0.30 and later shows a
    /// capacity also where it goes by the files; the limit of the age tells.
    pub fn redo_capacity(&self) -> Option<(&'static str, f64)> {
        let Some(capacity) = self.number("redo_log_capacity") else {
            return Some(("log_file_size", self.redo_files()?));
        };
        let by_files = self.redo_files().zip(self.age_limit());
        let is_by_files = by_files.is_some_and(|(files, limit)| {
            let off = |bytes: f64| (limit / (LIMIT_SHARE * bytes)).ln().abs();
            off(files) < off(capacity)
        });
        let bytes = if is_by_files { self.redo_files()? } else { capacity };
        Some(("redo_log_capacity", bytes))
    }
}

/// Whether a switch is on; words that are neither say nothing.
pub(super) fn is_on(word: &str) -> Option<bool> {
    match word.to_ascii_uppercase().as_str() {
        "ON" | "1" => Some(true),
        "OFF" | "0" => Some(false),
        _ => None,
    }
}

fn measured(values: &[f64]) -> Option<Measured> {
    if values.len() < SAMPLES_MIN {
        return None;
    }
    Some(estimate(values)?.measured())
}
