//! Logs of bandwidth, requests per second and latency in fio's format, one of each kind per clone;
//! and whether logs of requests, which workers write, may be appended to.
//!
//! One line: milliseconds from the start of the job, value, direction (0 reads, 1 writes), block
//! size, offset where requested, and the priority. Lines are averages over the series of the run,
//! so that block size and offset are 0, as in fio's averaged logs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iostrata_load::{CloneDetail, Tally};
use iostrata_plan::OpKind;
use iostrata_plan::fio::{FioLogs, FioPlan, FioStream, LOG_HEAD};

use super::measured::{MeasuredStream, MeasuredWave};
use crate::exit_error::ExitError;

/// What a log holds.
#[derive(Clone, Copy, PartialEq)]
enum LogKind {
    /// KiB per second.
    Bandwidth,
    /// Requests per second.
    Iops,
    /// Mean latency in nanoseconds.
    Latency,
    /// Its part until the request was submitted; no line where that is not apart.
    Submission,
    /// Its part from there on.
    Completion,
}

impl LogKind {
    const ALL: [Self; 5] =
        [Self::Bandwidth, Self::Iops, Self::Latency, Self::Submission, Self::Completion];

    /// Its name in the names of files.
    fn word(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
            Self::Latency => "lat",
            Self::Submission => "slat",
            Self::Completion => "clat",
        }
    }

    fn prefix(self, logs: &FioLogs) -> Option<&str> {
        match self {
            Self::Bandwidth => logs.bandwidth.as_deref(),
            Self::Iops => logs.iops.as_deref(),
            Self::Latency | Self::Submission | Self::Completion => logs.latency.as_deref(),
        }
    }

    /// Of the requests of so many bytes that came in so many seconds; `None` where there is nothing
    /// to log.
    fn value(self, sum: &Tally, block_bytes: f64, seconds: f64) -> Option<f64> {
        let mean = |ns: u64| (sum.count > 0).then(|| ns as f64 / sum.count as f64);
        match self {
            Self::Iops => Some(sum.count as f64 / seconds),
            Self::Bandwidth => Some(sum.count as f64 * block_bytes / 1024.0 / seconds),
            Self::Latency => mean(sum.service_ns),
            Self::Submission => mean(sum.submission_ns).filter(|_| sum.submission_ns > 0),
            Self::Completion => mean(sum.service_ns - sum.submission_ns.min(sum.service_ns)),
        }
    }
}

/// Refuses logs of requests that would be appended to something else, and those that have no place.
///
/// # Errors
/// What is no log, a directory that is not there, or a file that a job of the plan uses itself.
pub fn check_request_logs(plan: &FioPlan) -> Result<(), ExitError> {
    let log = |stream: &FioStream| Some(stream.spec.variation.request_log.as_ref()?.path.clone());
    let asked: BTreeSet<PathBuf> = plan.streams().filter_map(log).collect();
    for path in &asked {
        let is_used = plan.streams().any(|stream| stream.paths.contains(path));
        let why = match std::fs::metadata(path) {
            _ if is_used => "a job uses this file itself",
            Ok(meta) if meta.is_file() && begins_a_log(path) => continue,
            Ok(_) => "the file exists and is not a request log, so nothing is appended",
            Err(_) if directory_is_there(path) => continue,
            Err(_) => "its directory does not exist",
        };
        let path = path.display();
        return Err(ExitError::Usage(format!("write_iolog={path}: {why}; name another file")));
    }
    Ok(())
}

/// Whether a file is empty or begins as logs of requests do.
fn begins_a_log(path: &Path) -> bool {
    let mut head = Vec::new();
    let most = LOG_HEAD.len() as u64;
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut head));
    read.is_ok() && (head.is_empty() || head == LOG_HEAD.as_bytes())
}

fn directory_is_there(path: &Path) -> bool {
    path.parent().is_none_or(|parent| parent.as_os_str().is_empty() || parent.is_dir())
}

/// Writes the logs that the jobs request.
///
/// # Errors
/// When a log cannot be written.
pub fn write(plan: &FioPlan, waves: &[MeasuredWave]) -> Result<(), ExitError> {
    let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut number = 0;
    for wave in waves {
        for stream in wave.streams(&plan.waves[wave.number]) {
            let logs = &stream.job.logs;
            for clone in &stream.detail.clones {
                number += 1;
                for kind in LogKind::ALL {
                    let (Some(prefix), word) = (kind.prefix(logs), kind.word()) else { continue };
                    let path = match logs.per_job {
                        true => format!("{prefix}_{word}.{number}.log"),
                        false => format!("{prefix}_{word}.log"),
                    };
                    let text = texts.entry(PathBuf::from(path)).or_default();
                    text.push_str(&lines(&stream, clone, kind, wave.began_ms));
                }
            }
        }
    }
    texts.into_iter().try_for_each(|(path, text)| {
        std::fs::write(&path, text).map_err(|error| {
            ExitError::NotHere(format!("the log {} cannot be written: {error}", path.display()))
        })
    })
}

fn lines(stream: &MeasuredStream<'_>, clone: &CloneDetail, kind: LogKind, began_ms: i64) -> String {
    let mut text = String::new();
    let (logs, variation) = (&stream.job.logs, &stream.stream.spec.variation);
    let uncounted = variation.start_delay + variation.ramp_time;
    let start_ms = match logs.unix_epoch {
        true => began_ms.max(0) as u64 + uncounted.as_millis() as u64,
        false => 0,
    };
    let offset = if logs.offset { ", 0" } else { "" };
    let priority = if logs.priority { "0x0000" } else { "0" };
    let columns =
        [(0, OpKind::Read), (1, OpKind::Write), (2, OpKind::Trim)].map(|(direction, kind)| {
            let op = stream.figures.ops[kind].as_ref();
            let block_bytes = op.map_or(0.0, |op| op.bytes as f64 / op.ios.max(1) as f64);
            (direction, block_bytes, clone.series[kind].as_deref().unwrap_or_default())
        });
    let longest = columns.iter().map(|(.., series)| series.len()).max().unwrap_or(0);
    let behind_last = (clone.duration_s / clone.width_s.max(1e-9) - 1e-6).ceil().max(0.0) as usize;
    let count = longest.min(behind_last);
    let group = slices(clone.width_s, logs.every);
    for first in (0..count).step_by(group) {
        let behind = (first + group).min(count);
        let seconds = (behind - first) as f64 * clone.width_s;
        let ms = start_ms + (behind as f64 * clone.width_s * 1000.0).round() as u64;
        for (direction, block_bytes, series) in columns {
            let Some(slices) = series.get(first..behind) else { continue };
            let mut sum = Tally::default();
            slices.iter().for_each(|one| sum.add(*one));
            if let Some(value) = kind.value(&sum, block_bytes, seconds) {
                let _never_fails =
                    writeln!(text, "{ms}, {value:.0}, {direction}, 0{offset}, {priority}");
            }
        }
    }
    text
}

/// Slices of the series in one line.
fn slices(width_s: f64, every: Option<Duration>) -> usize {
    let every = every.map_or(width_s.max(0.1), |every| every.as_secs_f64());
    ((every / width_s.max(1e-9)).round() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_wide_as_asked_for_but_no_narrower_than_the_series() {
        for (width_s, every_ms, expected) in
            [(0.1, None, 1), (0.01, None, 10), (0.1, Some(500), 5), (0.25, Some(100), 1)]
        {
            let every = every_ms.map(Duration::from_millis);
            assert_eq!(slices(width_s, every), expected, "{width_s} {every:?}");
        }
    }
}
