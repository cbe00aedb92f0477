//! The table `[measure]`.

use std::time::Duration;

use iostrata_stats::units::{parse_duration, parse_size};

use super::error::StudyTextError;
use super::fields::Fields;
use super::source::SourceText;
use super::tree::TomlEntry;
use crate::study::Measuring;

/// Its keys.
pub(in crate::study) const KEYS: &[&str] = &[
    "replicates",
    "replicates_max",
    "precision",
    "point_time",
    "budget",
    "max_write",
    "trace",
    "profile_hz",
    "seed",
];

/// More replicates than this are never planned.
pub(in crate::study) const REPLICATES_MAX: u32 = 1000;

type Refusal = (String, String);

fn refuse<T>(why: &str, fix: &str) -> Result<T, Refusal> {
    Err((why.to_owned(), fix.to_owned()))
}

/// Overrides what is there with the values of a table.
///
/// # Errors
/// The first value that cannot be used.
pub(in crate::study) fn read(
    source: &SourceText,
    place: &str,
    entries: &[TomlEntry],
    measuring: &mut Measuring,
) -> Result<(), StudyTextError> {
    let fields = Fields::open(source, place, entries, KEYS)?;
    if let Some(replicates) = fields.parsed("replicates", replicates)? {
        measuring.replicates = replicates;
        measuring.replicates_max = measuring.replicates_max.max(replicates);
    }
    if let Some(most) = fields.parsed("replicates_max", replicates)? {
        measuring.replicates_max = most.max(measuring.replicates);
    }
    if let Some(precision) = fields.parsed("precision", precision)? {
        measuring.precision = precision;
    }
    if let Some(point_time) = fields.parsed("point_time", point_time)? {
        measuring.point_time = point_time;
    }
    if let Some(budget) = fields.parsed("budget", budget)? {
        measuring.budget = Some(budget);
    }
    if let Some(bytes) = fields.parsed("max_write", size)? {
        measuring.write_bytes_max = Some(bytes);
    }
    if let Some(traced) = fields.parsed("trace", switch)? {
        measuring.traced = traced;
    }
    if let Some(hz) = fields.parsed("profile_hz", hertz)? {
        measuring.profile_hz = hz;
    }
    if let Some(seed) = fields.parsed("seed", seed)? {
        measuring.seed = seed;
    }
    Ok(())
}

fn replicates(text: &str) -> Result<u32, Refusal> {
    match text.parse::<u32>() {
        Ok(count) if (1..=REPLICATES_MAX).contains(&count) => Ok(count),
        _ => refuse("is no number of replicates", &format!("use 1 to {REPLICATES_MAX}")),
    }
}

fn precision(text: &str) -> Result<f64, Refusal> {
    let (number, whole) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    match number.parse::<f64>().map(|number| number / whole) {
        Ok(share) if precision_fits(share) => Ok(share),
        _ => refuse("is no precision", "use for example 0.05 or \"5%\", below 100 %"),
    }
}

/// Whether a precision is a valid target.
pub(in crate::study) fn precision_fits(share: f64) -> bool {
    share > 0.0 && share < 1.0
}

fn point_time(text: &str) -> Result<Duration, Refusal> {
    match parse_duration(text) {
        Ok(time) if point_time_fits(time) => Ok(time),
        Ok(_) => refuse("out of range", "use 50ms to 1d"),
        Err(error) => refuse(&error.to_string(), "write a time such as 500ms, 2s or 1m"),
    }
}

/// Whether a window can be this long: a shorter one has too few samples.
pub(in crate::study) fn point_time_fits(time: Duration) -> bool {
    (Duration::from_millis(50)..=Duration::from_secs(86_400)).contains(&time)
}

fn budget(text: &str) -> Result<Duration, Refusal> {
    match parse_duration(text) {
        Ok(time) if budget_fits(time) => Ok(time),
        Ok(_) => refuse("out of range", "use 1s to 365d"),
        Err(error) => refuse(&error.to_string(), "write a time such as 20m or 2h"),
    }
}

/// Whether a whole study can be given this long.
pub(in crate::study) fn budget_fits(time: Duration) -> bool {
    (Duration::from_secs(1)..=Duration::from_secs(31_536_000)).contains(&time)
}

fn size(text: &str) -> Result<u64, Refusal> {
    parse_size(text).map_err(|error| (error.to_string(), "write a size such as 100G".to_owned()))
}

fn switch(text: &str) -> Result<bool, Refusal> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => refuse("is neither true nor false", "write true or false"),
    }
}

fn hertz(text: &str) -> Result<u32, Refusal> {
    match text.parse::<u32>() {
        Ok(hz) if hz <= 10_000 => Ok(hz),
        _ => refuse("is no sampling rate", "use 0 (no profile) to 10000 per second"),
    }
}

fn seed(text: &str) -> Result<u64, Refusal> {
    text.parse().or_else(|_| refuse("is no seed", "use a whole number from 0"))
}
