//! What stands beside each other: figures, waits and latencies of both points, matched by name.
//!
//! Invariant: what one point lacks stays blank; no difference is made here.

use iostrata_run::StudyPoint;
use iostrata_run::host::{OffCpuWait, PathSegment, SegmentTimes};
use iostrata_spec::OpKind;
use iostrata_stats::Interval;

use crate::PointDiff;
use crate::words;

/// A figure of both points.
pub(super) struct Pair {
    /// What it is.
    pub(super) name: String,
    /// Of the first and the second, with half the interval where there is one.
    pub(super) both: [String; 2],
}

/// Figures, latencies, device and processors.
pub(super) fn figures(diff: &PointDiff<'_>, plus_minus: &str) -> Vec<Pair> {
    let mut all = Vec::new();
    let mut add = |name: &str, of: &dyn Fn(&StudyPoint) -> Option<String>| {
        let both = [diff.a.1, diff.b.1].map(|point| of(point).unwrap_or_default());
        if both.iter().any(|text| !text.is_empty()) {
            all.push(Pair { name: name.to_owned(), both });
        }
    };
    let with = |value: f64, ci95: Option<Interval>, unit: &str| {
        Some(words::shown(value, ci95, unit).with_spread(plus_minus))
    };
    add("value", &|p| with(p.value, p.value_ci95, &p.unit));
    add("95 % interval", &|p| Some(words::interval(p.value_ci95?, &p.unit)));
    add("n", &|p| Some(p.value_n.to_string()));
    for kind in OpKind::ALL {
        let name = kind.plural();
        add(&format!("{name}, mean"), &|p| {
            let op = p.ops[kind].as_ref()?;
            with(op.latency_us.mean, op.latency_us_mean_ci95, "us")
        });
        add(&format!("{name}, p99"), &|p| {
            Some(words::value(p.ops[kind].as_ref()?.latency_us.p99, "us"))
        });
    }
    add("CPU per request", &|p| Some(words::value(p.cpu_ns_per_io?, "ns")));
    add("switches per request", &|p| Some(words::value(p.switches_per_io?, "")));
    add("processors, system", &|p| Some(words::value(p.cpu.as_ref()?.system_pct, "percent")));
    add("processors, idle", &|p| Some(words::value(p.cpu.as_ref()?.idle_pct, "percent")));
    add("device, aqu-sz", &|p| Some(words::value(p.device.as_ref()?.queue_size, "")));
    add("device, %util", &|p| Some(words::value(p.device.as_ref()?.util_pct, "percent")));
    add("verdicts", &|p| Some(words::verdicts(&p.verdicts)));
    all
}

/// A wait in both points, the longest of either first.
pub(super) struct Wait<'a> {
    /// The function that waits.
    pub(super) symbol: &'a str,
    /// Who asked for it.
    pub(super) caller: Option<&'a str>,
    /// What it is for.
    pub(super) layer: &'static str,
    /// Of the first and the second.
    pub(super) both: [Option<&'a OffCpuWait>; 2],
}

/// Off-CPU waits of both points.
pub(super) fn waits<'a>(diff: &PointDiff<'a>) -> Vec<Wait<'a>> {
    let mut all: Vec<Wait<'a>> = Vec::new();
    for (side, point) in [diff.a.1, diff.b.1].into_iter().enumerate() {
        let off = point.profile.as_ref().and_then(|profile| profile.off_cpu.as_ref());
        for wait in off.iter().flat_map(|off| &off.waits) {
            let (symbol, caller) = (wait.symbol.as_str(), wait.caller.as_deref());
            let layer = wait.layer.title();
            let same = |one: &&mut Wait<'_>| {
                one.symbol == symbol && one.caller == caller && one.layer == layer
            };
            match all.iter_mut().find(same) {
                Some(known) => known.both[side] = Some(wait),
                None => {
                    let mut both = [None, None];
                    both[side] = Some(wait);
                    all.push(Wait { symbol, caller, layer, both });
                }
            }
        }
    }
    let longest =
        |wait: &Wait<'_>| wait.both.iter().flatten().map(|one| one.total_us).fold(0.0, f64::max);
    all.sort_by(|one, two| longest(two).total_cmp(&longest(one)));
    all
}

/// Mean latency by layer of reads or writes in both points.
pub(super) fn path(diff: &PointDiff<'_>) -> Vec<Pair> {
    let mut all = Vec::new();
    for (name, is_read) in [("reads", true), ("writes", false)] {
        for segment in PathSegment::ALL {
            let times = |point: &StudyPoint| -> Option<SegmentTimes> {
                let found = point.latency_by_layer.as_ref()?.segment(segment)?;
                if is_read { found.reads } else { found.writes }
            };
            let both = [diff.a.1, diff.b.1].map(times);
            if both.iter().any(Option::is_some) {
                let mean = |times: Option<SegmentTimes>| {
                    times.map_or(String::new(), |times| words::value(times.latency_us.mean, "us"))
                };
                let name = format!("{name}, {}", words::segment(segment));
                all.push(Pair { name, both: both.map(mean) });
            }
        }
    }
    all
}

/// A difference of shares in points: `+49.0`.
pub(super) fn points(points: f64) -> String {
    format!("{points:+.1}")
}

/// Its interval: `[+46.1, +51.7]`.
pub(super) fn points_range([low, high]: Interval) -> String {
    format!("[{low:+.1}, {high:+.1}]")
}
