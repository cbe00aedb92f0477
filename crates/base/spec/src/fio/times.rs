//! When a job's requests start, and when it ends: delay, ramp, runtime, rate, pauses.

use std::time::Duration;

use crate::Words;
use crate::variation::Pause;
use crate::{Mix, Pacing, RateProcess};

use super::error::{FioError, Why};
use super::settings::{Settings, refusal};
use super::value::{self, Base, by_direction, range};

const SECOND: Duration = Duration::from_secs(1);
const MICROSECOND: Duration = Duration::from_micros(1);
/// How long a job without a runtime may take to move its bytes.
pub(super) const LONGEST: Duration = Duration::from_secs(3600);

/// The times of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub runtime: Option<Duration>,
    pub time_based: bool,
    pub ramp: Duration,
    /// The shortest and the longest delay of its clones.
    pub delay: (Duration, Duration),
}

pub(super) fn times(settings: &Settings) -> Result<Times, FioError> {
    let seconds = |text: &str| value::time(text, SECOND);
    let runtime = settings.value("runtime", seconds)?.filter(|time| !time.is_zero());
    let time_based = match runtime {
        Some(_) => settings.value("time_based", value::switch)?.unwrap_or(false),
        None => false,
    };
    let delay = settings.value("startdelay", |text| {
        let (low, high) = range(text);
        let (low, high) = (seconds(low)?, seconds(high)?);
        Ok((low.min(high), low.max(high)))
    })?;
    Ok(Times {
        runtime,
        time_based,
        ramp: settings.value("ramp_time", seconds)?.unwrap_or_default(),
        delay: delay.unwrap_or_default(),
    })
}

/// The pauses between requests.
pub(super) fn pause(settings: &Settings) -> Result<Option<Pause>, FioError> {
    let length = settings.value("thinktime", |text| value::time(text, MICROSECOND))?;
    let Some(length) = length.filter(|length| !length.is_zero()) else { return Ok(None) };
    let every = settings.value("thinktime_blocks", value::count)?.unwrap_or(1);
    Ok(Some(Pause { every: every.max(1), length }))
}

/// A schedule, and the mix that it makes of a mixed job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Schedule {
    pub pacing: Pacing,
    pub mix: Mix,
}

/// What `rate` or `rate_iops` ask of each clone; `mean_bytes` are those of reads and of writes.
pub(super) fn schedule(
    settings: &Settings,
    mix: Mix,
    mean_bytes: [f64; 2],
) -> Result<Schedule, FioError> {
    let closed = Schedule { pacing: Pacing::Closed, mix };
    let (bytes, requests) = (settings.get("rate"), settings.get("rate_iops"));
    let assignment = match (bytes, requests) {
        (None, None) => return Ok(closed),
        (Some(one), None) | (None, Some(one)) => one,
        (Some(_), Some(both)) => {
            return Err(refusal(both, Why::new("rate is given too; use one of them")));
        }
    };
    let base = settings.base()?;
    let refuse = |why: Why| refusal(assignment, why);
    let [read, write] = rates(&assignment.value, base).map_err(refuse)?;
    let per_request = if bytes.is_some() { mean_bytes } else { [1.0, 1.0] };
    let [read, write] = [read / per_request[0], write / per_request[1]];
    let (rate_iops, mix) = match mix {
        Mix::Read => (read, mix),
        Mix::Write | Mix::FlushOnly(_) => (write, mix),
        Mix::Both { .. } if (read == 0.0) != (write == 0.0) => {
            let why = "one direction of a mixed job is not bounded by itself; use two jobs";
            return Err(refuse(Why::new(why)));
        }
        Mix::Both { .. } => {
            let read_pct = (100.0 * read / (read + write)).round() as u8;
            (read + write, Mix::Both { read_pct })
        }
    };
    if rate_iops == 0.0 {
        return Ok(closed);
    }
    let process = settings.value("rate_process", |text| {
        RateProcess::of(text).ok_or_else(|| Why::new("use linear or poisson"))
    })?;
    let process = process.unwrap_or_default();
    Ok(Schedule { pacing: Pacing::Open { rate_iops, process }, mix })
}

fn rates(text: &str, base: Base) -> Result<[f64; 2], Why> {
    let one = |part: &str| match part {
        "" => Ok(0.0),
        part => value::size(part, base).map(|rate| rate as f64),
    };
    let [read, write] = by_direction(text);
    Ok([one(read)?, one(write)?])
}
