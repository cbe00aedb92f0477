//! When a job's requests start, and when it ends: delay, ramp, runtime, rate, pauses.

use std::time::Duration;

use crate::Words;
use crate::variation::{Flow, Pause, Steady, SteadyLimit, SteadyOf};
use crate::{Mix, Pacing, RateProcess};

use super::error::Why;
use super::plan::LatencyTarget;
use super::settings::Settings;
use super::value::{self, Base, by_direction, range};

const SECOND: Duration = Duration::from_secs(1);
const MICROSECOND: Duration = Duration::from_micros(1);
/// The options whose value is a time.
pub(super) const TIMES: [&str; 9] = [
    "runtime",
    "ramp_time",
    "startdelay",
    "thinktime",
    "latency_target",
    "latency_window",
    "steadystate_duration",
    "steadystate_ramp_time",
    "log_avg_msec",
];
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

pub(super) fn times(settings: &Settings) -> Times {
    let seconds = |text: &str| value::time(text, SECOND);
    let runtime = settings.value("runtime", seconds).filter(|time| !time.is_zero());
    let time_based = match runtime {
        Some(_) => settings.switch("time_based").unwrap_or(false),
        None => false,
    };
    let delay = settings.value("startdelay", |text| {
        let (low, high) = range(text);
        let (low, high) = (seconds(low)?, seconds(high)?);
        Ok((low.min(high), low.max(high)))
    });
    Times {
        runtime,
        time_based,
        ramp: settings.value("ramp_time", seconds).unwrap_or_default(),
        delay: delay.unwrap_or_default(),
    }
}

/// The pauses between requests.
pub(super) fn pause(settings: &Settings) -> Option<Pause> {
    let length = settings.value("thinktime", |text| value::time(text, MICROSECOND));
    let length = length.filter(|length| !length.is_zero())?;
    let every = settings.value("thinktime_blocks", value::count).unwrap_or(1);
    Some(Pause { every: every.max(1), length })
}

/// The share of a flow's requests.
pub(super) fn flow(settings: &Settings) -> Option<Flow> {
    let weight = settings.value("flow", |text| {
        value::count(text).map_err(|_| Why::new("a weight is a count, such as 8"))
    });
    let weight = weight.filter(|weight| *weight > 0)?;
    let wait = settings.value("flow_sleep", |text| value::time(text, MICROSECOND));
    let id = settings.value("flow_id", value::count).unwrap_or(0);
    Some(Flow { id, weight, wait: wait.unwrap_or_default() })
}

/// The latency by which the job's depth is chosen.
pub(super) fn latency_target(settings: &Settings) -> Option<LatencyTarget> {
    let micros = |text: &str| value::time(text, MICROSECOND);
    let latency = settings.value("latency_target", micros).filter(|time| !time.is_zero())?;
    let window = settings.value("latency_window", micros).filter(|time| !time.is_zero());
    let percentile = settings.value("latency_percentile", |text| match value::decimal(text)? {
        share if share > 0.0 && share <= 100.0 => Ok(share),
        _ => Err(Why::new("it is a share of the requests; use above 0 and up to 100")),
    });
    Some(LatencyTarget {
        latency,
        window: window.unwrap_or(SECOND),
        percentile: percentile.unwrap_or(100.0),
        goes_on: settings.switch("latency_run").unwrap_or(false),
    })
}

/// When the job has become steady, after which it ends.
pub(super) fn steady(settings: &Settings) -> Option<Steady> {
    let seconds = |text: &str| value::time(text, SECOND);
    let duration = settings.value("steadystate_duration", seconds).unwrap_or_default();
    let (of, limit) = settings.value("steadystate", |text| {
        let wrong = || Why::new("write for example iops:2% or bw_slope:0.1%");
        let (word, limit) = text.split_once(':').ok_or_else(wrong)?;
        let of = SteadyOf::of(word.trim()).ok_or_else(wrong)?;
        let limit = limit.trim();
        let is_pct = limit.ends_with('%');
        let limit = value::decimal(limit.trim_end_matches('%')).map_err(|_| wrong())?;
        match limit >= 0.0 && (is_pct || matches!(of, SteadyOf::Iops | SteadyOf::IopsSlope)) {
            true => {
                Ok((of, if is_pct { SteadyLimit::Pct(limit) } else { SteadyLimit::Plain(limit) }))
            }
            false => Err(Why::new("a limit of bandwidth is a share here, such as bw:1%")),
        }
    })?;
    let ramp = settings.value("steadystate_ramp_time", seconds).unwrap_or_default();
    // As in fio: it counts whole seconds, and without any nothing is looked at.
    let duration = Duration::from_secs(duration.as_secs());
    (!duration.is_zero()).then_some(Steady { of, limit, duration, ramp })
}

/// What `rate` or `rate_iops` ask of each clone; `mean_bytes` are those of reads and of writes.
pub(super) fn schedule(settings: &Settings, mix: Mix, mean_bytes: [f64; 2]) -> Pacing {
    let base = settings.base();
    let [bytes, requests] =
        ["rate", "rate_iops"].map(|name| settings.value(name, |text| rates(text, mix, base)));
    let per_request = if bytes.is_some() { mean_bytes } else { [1.0, 1.0] };
    let Some([read, write]) = bytes.or(requests) else { return Pacing::Closed };
    if let (Some(_), Some(_), Some(both)) = (bytes, requests, settings.get("rate_iops")) {
        settings.note(both, "rate is given too, and counts, as in fio");
    }
    let process = settings.value("rate_process", |text| {
        RateProcess::of(text).ok_or_else(|| Why::new("use linear or poisson"))
    });
    let process = process.unwrap_or_default();
    let bound = |rate: f64, at: usize| (rate > 0.0).then_some(rate / per_request[at]);
    let (read_iops, write_iops) = (bound(read, 0), bound(write, 1));
    let open = |rate: Option<f64>| {
        rate.map_or(Pacing::Closed, |rate_iops| Pacing::Open { rate_iops, process })
    };
    match mix {
        Mix::Read => open(read_iops),
        Mix::Write | Mix::FlushOnly(_) | Mix::Trim | Mix::TrimWrite => open(write_iops),
        Mix::Both { .. } if read_iops.or(write_iops).is_none() => Pacing::Closed,
        Mix::Both { .. } => Pacing::Directions { read_iops, write_iops, process },
    }
}

fn rates(text: &str, mix: Mix, base: Base) -> Result<[f64; 2], Why> {
    let one = |part: Option<&str>| match part {
        None => Ok(0.0),
        Some(part) => value::size(part, base).map(|rate| rate as f64),
    };
    let [read, write, trim] = by_direction(text);
    Ok([one(read)?, one(if mix.trims() { trim } else { write })?])
}
