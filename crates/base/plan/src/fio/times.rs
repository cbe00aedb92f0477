//! When a job's requests start, and when it ends: delay, ramp, runtime, rate, pauses.

use std::time::Duration;

use crate::Words;
use crate::variation::{Flow, MinimumRate, MinimumRates, Pause, Steady, SteadyLimit, SteadyOf};
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

/// When the job has become steady, after which it ends; with group_reporting that is when the jobs
/// of its group are, taken together.
pub(super) fn steady(settings: &Settings, group: u32) -> Option<Steady> {
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
    // As in fio: it counts whole seconds, and with 0 nothing is checked.
    let duration = Duration::from_secs(duration.as_secs());
    let in_group = settings.switch("group_reporting").unwrap_or(false);
    let group = in_group.then_some(group);
    (!duration.is_zero()).then_some(Steady { of, limit, duration, ramp, group })
}

/// The schedule that `rate` or `rate_iops` give each clone; `mean_bytes` are the means of reads and
/// of writes.
pub(super) fn schedule(settings: &Settings, mix: Mix, mean_bytes: [f64; 2]) -> Pacing {
    let base = settings.base();
    let [bytes, requests] =
        ["rate", "rate_iops"].map(|name| settings.value(name, |text| rates(text, mix, base)));
    let per_request = if bytes.is_some() { mean_bytes } else { [1.0, 1.0] };
    let Some([read, write]) = bytes.or(requests) else { return Pacing::Closed };
    if let (Some(_), Some(_), Some(later)) = (bytes, requests, settings.later("rate", "rate_iops"))
    {
        settings.refuse(later, Why::new("rate and rate_iops are both given; use one of them"));
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

/// The rates that a job must reach, by `rate_min` or `rate_iops_min`.
pub(super) fn minimum_rates(settings: &Settings, mix: Mix) -> Option<MinimumRates> {
    let base = settings.base();
    let [bytes, requests] = ["rate_min", "rate_iops_min"]
        .map(|name| settings.value(name, |text| rates(text, mix, base)));
    if let (Some(_), Some(_), Some(later)) =
        (bytes, requests, settings.later("rate_min", "rate_iops_min"))
    {
        let why = "rate_min and rate_iops_min are both given; use one of them";
        settings.refuse(later, Why::new(why));
    }
    let [read, write] = bytes.or(requests)?;
    for (rate, minimum) in [("rate", "rate_min"), ("rate_iops", "rate_iops_min")] {
        refuse_above(settings, rate, minimum, base);
    }
    let unit = if bytes.is_some() { MinimumRate::Bytes } else { MinimumRate::Requests };
    let of = |rate: f64, occurs: bool| (occurs && rate > 0.0).then(|| unit(rate as u64));
    let cycle_ms = settings.value("rate_cycle", value::count).unwrap_or(1000);
    Some(MinimumRates {
        read: of(read, mix.reads()),
        write: of(write, mix.writes() || mix.trims()),
        cycle: Duration::from_millis(u64::from(cycle_ms)),
        ends_window: settings.switch("exitall_on_error").unwrap_or(false),
    })
}

/// Refuses a minimum rate above the rate limit, of any direction, as fio does.
fn refuse_above(settings: &Settings, rate: &str, minimum: &str, base: Base) {
    let each = |name| {
        let asked = settings.peek(name)?;
        Some((asked, by_direction(&asked.value).map(|part| bytes(part, base).unwrap_or(0.0))))
    };
    let (Some((kept, rates)), Some((asked, minima))) = (each(rate), each(minimum)) else { return };
    let is_above = |(rate, minimum): (&f64, &f64)| *rate > 0.0 && rate < minimum;
    if rates.iter().zip(&minima).any(is_above) {
        let why = format!("it is never reached under {}; use at most that", kept.shown());
        settings.refuse(asked, Why::new(why));
    }
}

fn rates(text: &str, mix: Mix, base: Base) -> Result<[f64; 2], Why> {
    let [read, write, trim] = by_direction(text);
    Ok([bytes(read, base)?, bytes(if mix.trims() { trim } else { write }, base)?])
}

fn bytes(part: Option<&str>, base: Base) -> Result<f64, Why> {
    part.map_or(Ok(0.0), |part| value::size(part, base).map(|rate| rate as f64))
}
