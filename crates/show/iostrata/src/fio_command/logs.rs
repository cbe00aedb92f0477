//! Logs of bandwidth, requests per second and latency in fio's format.
//!
//! One line: milliseconds from the start of the job, value, direction (0 reads, 1 writes), block
//! size and, where fio 3 has it, the priority. Lines are averages over the series of the run, so
//! that the block size is 0, as in fio's averaged logs.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use iostrata_run::{OpFigures, Series};
use iostrata_spec::OpKind;
use iostrata_spec::fio::FioPlan;

use super::measured::{MeasuredStream, MeasuredWave};
use crate::exit_error::ExitError;

/// What a log holds.
#[derive(Clone, Copy)]
enum LogKind {
    /// KiB per second.
    Bandwidth,
    /// Requests per second.
    Iops,
    /// Mean latency in nanoseconds.
    Latency,
}

/// Writes the logs that the jobs ask for.
///
/// # Errors
/// When a log cannot be written.
pub fn write(plan: &FioPlan, waves: &[MeasuredWave]) -> Result<(), ExitError> {
    let mut number = 0;
    for wave in waves {
        for stream in wave.streams(&plan.waves[wave.number]) {
            number += 1;
            let logs = &stream.job.logs;
            for (kind, word, prefix) in [
                (LogKind::Bandwidth, "bw", &logs.bandwidth),
                (LogKind::Iops, "iops", &logs.iops),
                (LogKind::Latency, "lat", &logs.latency),
                (LogKind::Latency, "clat", &logs.latency),
            ] {
                let Some(prefix) = prefix else { continue };
                let path = match logs.per_job {
                    true => format!("{prefix}_{word}.{number}.log"),
                    false => format!("{prefix}_{word}.log"),
                };
                append(PathBuf::from(path), &lines(&stream, kind), number > 1 && !logs.per_job)?;
            }
        }
    }
    Ok(())
}

fn append(path: PathBuf, text: &str, after_another: bool) -> Result<(), ExitError> {
    let mut whole = match after_another {
        true => std::fs::read_to_string(&path).unwrap_or_default(),
        false => String::new(),
    };
    whole.push_str(text);
    std::fs::write(&path, whole).map_err(|error| {
        ExitError::NotHere(format!("the log {} cannot be written: {error}", path.display()))
    })
}

fn lines(stream: &MeasuredStream<'_>, kind: LogKind) -> String {
    let figures = stream.figures;
    let mut text = String::new();
    let kinds = [(0, OpKind::Read), (1, OpKind::Write)]
        .map(|(direction, kind)| (direction, &figures.ops[kind], figures.series.of(kind)));
    let Some(count) = kinds.iter().map(|(_, _, counts)| counts.len()).max() else { return text };
    let series = &figures.series;
    let group = slices(series.width_s, stream.job.logs.every);
    for first in (0..count).step_by(group) {
        let behind = (first + group).min(count);
        let seconds = (behind - first) as f64 * series.width_s;
        let ms = (behind as f64 * series.width_s * 1000.0).round() as u64;
        for (direction, op, counts) in kinds {
            let (Some(op), Some(counts)) = (op, counts.get(first..behind)) else { continue };
            let value = value(kind, op, counts, series, first, seconds);
            let _never_fails = writeln!(text, "{ms}, {value}, {direction}, 0, 0");
        }
    }
    text
}

fn value(
    kind: LogKind,
    op: &OpFigures,
    counts: &[u32],
    series: &Series,
    first: usize,
    seconds: f64,
) -> u64 {
    let ios: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let block_bytes = if op.ios > 0 { op.bytes as f64 / op.ios as f64 } else { 0.0 };
    let value = match kind {
        LogKind::Iops => ios / seconds,
        LogKind::Bandwidth => ios * block_bytes / 1024.0 / seconds,
        LogKind::Latency => {
            let means = series.latency_mean_us.iter().skip(first).zip(counts);
            let sum_us: f64 = means.map(|(mean, count)| f64::from(*mean) * f64::from(*count)).sum();
            sum_us * 1000.0 / ios.max(1.0)
        }
    };
    value.round() as u64
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
