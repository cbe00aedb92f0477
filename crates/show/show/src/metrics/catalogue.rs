//! Everything that is exported: names, meanings, and where the values come from.
//!
//! The figures of the target stand in the table of figures; here stands what Prometheus gets beyond
//! it: what the target is, whether it answers, and what devices, tasks and files amount to.
//! Invariant: base units, named last as Prometheus requires: bytes, seconds, ratio; counters end in
//! `_total`. What a target does not report has no value.

use iostrata_database::watch::{Totals, WatchStep};
use iostrata_run::{
    FIGURES, FigureMetric, FileOpCounts, StallCause, WatchDevice, WatchSample, WatchTarget,
    host::DeviceCounters,
};

/// What a metric is to Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Rises and falls.
    Gauge,
    /// Only rises while the program runs.
    Counter,
}

impl MetricKind {
    fn of(name: &str) -> Self {
        if name.ends_with("_total") { Self::Counter } else { Self::Gauge }
    }
}

/// What `tune` does with a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TuneState {
    /// Whether the server is tuned now; otherwise it has its own settings.
    pub is_active: bool,
    /// Where its age is held, as a share of the max checkpoint age.
    pub set_point_ratio: f64,
    /// Settings that were changed.
    pub changes: u64,
    /// Times that it got its own settings back.
    pub put_backs: u64,
    /// Whether it puts itself back when `tune` is silent.
    pub has_lease: bool,
    /// Its settings as they were last seen, by name.
    pub settings: Vec<(&'static str, f64)>,
}

/// What is known of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TargetState {
    /// What it is.
    pub(crate) target: WatchTarget,
    /// Its last sample, with what it did since watching began.
    pub(crate) last: Option<WatchStep>,
    /// What is done with it, where it is a server that `tune` is at work on.
    pub(crate) tune: Option<TuneState>,
}

impl TargetState {
    fn totals(&self) -> Option<&Totals> {
        Some(&self.last.as_ref()?.totals)
    }

    /// The last sample, where it has figures.
    fn answered(&self) -> Option<&WatchSample> {
        self.last.as_ref().map(|last| &last.sample).filter(|sample| sample.error.is_none())
    }
}

/// A value with the labels that it has besides its target.
pub(crate) type LabelledValue = (Vec<(&'static str, String)>, f64);

/// One metric that is no figure of the table.
struct OtherMetric {
    is: FigureMetric,
    values: fn(&TargetState) -> Vec<LabelledValue>,
}

const fn other(
    name: &'static str,
    help: &'static str,
    values: fn(&TargetState) -> Vec<LabelledValue>,
) -> OtherMetric {
    OtherMetric { is: FigureMetric { name, help }, values }
}

/// The name, kind and meaning of every metric that is exported.
pub fn metrics() -> impl Iterator<Item = (&'static str, MetricKind, &'static str)> {
    let figures = FIGURES.iter().filter_map(|figure| figure.metric);
    let mut all: Vec<FigureMetric> = OTHERS.iter().map(|other| other.is).chain(figures).collect();
    // Figures of one family stand next to each other.
    all.dedup();
    all.into_iter().map(|one| (one.name, MetricKind::of(one.name), one.help))
}

/// The values of a metric of this name for a target.
pub(crate) fn values(name: &str, one: &TargetState) -> Vec<LabelledValue> {
    if let Some(other) = OTHERS.iter().find(|other| other.is.name == name) {
        return (other.values)(one);
    }
    let is_of = |metric: Option<FigureMetric>| metric.is_some_and(|metric| metric.name == name);
    let all = FIGURES.iter().enumerate().filter(|(_, figure)| is_of(figure.metric));
    let value = |(place, figure): (usize, &iostrata_run::Figure)| {
        let value = match figure.counter() {
            Some(_) => one.totals()?.count(place)? as f64,
            None => (figure.of)(one.answered()?)?,
        };
        let label = figure.label.map(|(name, word)| (name, word.to_owned()));
        Some((label.into_iter().collect(), value / figure.metric_divisor))
    };
    all.filter_map(value).collect()
}

/// Every metric that is no figure of the table.
const OTHERS: &[OtherMetric] = &[
    other(
        "iostrata_tune_active",
        "Whether the server is tuned; otherwise it has its own settings.",
        |one| tuned(one, |tune| f64::from(u8::from(tune.is_active))),
    ),
    other(
        "iostrata_tune_set_point_ratio",
        "Set-point of the checkpoint age, as a share of its limit.",
        |one| tuned(one, |tune| tune.set_point_ratio),
    ),
    other("iostrata_tune_changes_total", "Changes of settings by tune.", |one| {
        tuned(one, |tune| tune.changes as f64)
    }),
    other("iostrata_tune_put_backs_total", "Times that all settings were restored.", |one| {
        tuned(one, |tune| tune.put_backs as f64)
    }),
    other(
        "iostrata_tune_lease",
        "Whether a lease on the server restores its settings without tune.",
        |one| tuned(one, |tune| f64::from(u8::from(tune.has_lease))),
    ),
    other("iostrata_tune_setting", "Values of the settings that tune may change.", |one| {
        let settings = one.tune.iter().flat_map(|tune| &tune.settings);
        let of = |(name, value): &(&str, f64)| (vec![("setting", (*name).to_owned())], *value);
        settings.map(of).collect()
    }),
    other("iostrata_target_info", "Flavour and version of the target; always 1.", |one| {
        let label = |name, text: &String| (name, text.clone());
        let target = &one.target;
        vec![(vec![label("flavour", &target.flavour), label("version", &target.version)], 1.0)]
    }),
    other("iostrata_target_up", "Whether the last sample succeeded.", |one| {
        let is_up = |last: &WatchStep| f64::from(u8::from(last.sample.error.is_none()));
        told(one.last.as_ref().map(is_up))
    }),
    other("iostrata_samples_total", "Samples taken.", |one| {
        told(Some(one.totals().map_or(0, |totals| totals.samples) as f64))
    }),
    other("iostrata_sample_errors_total", "Failed samples.", |one| {
        told(Some(one.totals().map_or(0, |totals| totals.errors) as f64))
    }),
    other("iostrata_stalls_total", "Stalls that began.", |one| {
        told(one.totals().map(|totals| totals.stalls as f64))
    }),
    other("iostrata_stalled_seconds_total", "Time in stalls, by cause.", |one| {
        // A target that never answered has none.
        let Some(totals) = one.totals().filter(|totals| totals.samples > totals.errors) else {
            return Vec::new();
        };
        let all = StallCause::ALL.iter().zip(totals.stalled_s);
        all.map(|((_, word), s)| (vec![("cause", (*word).to_owned())], s)).collect()
    }),
    other("iostrata_device_reads_total", "Reads of the device below the data.", |one| {
        devices(one, |device| Some(device.reads as f64))
    }),
    other("iostrata_device_writes_total", "Writes of the device below the data.", |one| {
        devices(one, |device| Some(device.writes as f64))
    }),
    other("iostrata_device_flushes_total", "Flushes of the device below the data.", |one| {
        devices(one, |device| Some(device.flushes? as f64))
    }),
    other("iostrata_device_read_seconds_total", "Total time of its reads.", |one| {
        devices(one, |device| Some(device.read_ms as f64 / 1e3))
    }),
    other("iostrata_device_write_seconds_total", "Total time of its writes.", |one| {
        devices(one, |device| Some(device.write_ms as f64 / 1e3))
    }),
    other("iostrata_device_requests_in_flight", "Mean number of its requests in flight.", |one| {
        let device = one.answered().and_then(|last| last.device.as_ref());
        let of = |device: &WatchDevice| (vec![("device", device.name.clone())], device.in_flight);
        device.map(of).into_iter().collect()
    }),
    other(
        "iostrata_pressure_seconds_total",
        "Time in which some or all tasks waited for a resource.",
        |one| {
            let of = |((resource, kind), us): (&(&str, &str), &u64)| {
                let labels = [("resource", *resource), ("kind", *kind)];
                (labels.map(|(name, word)| (name, word.to_owned())).to_vec(), *us as f64 / 1e6)
            };
            one.totals().into_iter().flat_map(|totals| &totals.pressure_us).map(of).collect()
        },
    ),
    other(
        "iostrata_cpu_throttled_seconds_total",
        "Time for which a CPU quota throttled tasks.",
        |one| told(one.totals().and_then(|totals| Some(totals.throttled_us? as f64 / 1e6))),
    ),
    other("iostrata_file_requests_total", "Requests on the files of a class.", |one| {
        files(one, |op| Some(op.requests? as f64))
    }),
    other("iostrata_file_bytes_total", "Bytes read and written.", |one| {
        files(one, |op| Some(op.bytes? as f64))
    }),
    other("iostrata_file_seconds_total", "Total time of these requests.", |one| {
        files(one, |op| Some(op.ns? as f64 / 1e9))
    }),
];

fn tuned(one: &TargetState, value: fn(&TuneState) -> f64) -> Vec<LabelledValue> {
    told(one.tune.as_ref().map(value))
}

fn told(value: Option<f64>) -> Vec<LabelledValue> {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

fn devices(one: &TargetState, value: fn(&DeviceCounters) -> Option<f64>) -> Vec<LabelledValue> {
    let of = |(name, counters): (&String, &DeviceCounters)| {
        Some((vec![("device", name.clone())], value(counters)?))
    };
    one.totals().into_iter().flat_map(|totals| &totals.devices).filter_map(of).collect()
}

fn files(one: &TargetState, value: fn(&FileOpCounts) -> Option<f64>) -> Vec<LabelledValue> {
    let mut out = Vec::new();
    for (class, counts) in one.totals().into_iter().flat_map(|totals| totals.files.iter()) {
        for op in counts.ops() {
            let labels = [("class", class.word()), ("op", op.op)];
            let labels = labels.map(|(name, word)| (name, word.to_owned())).to_vec();
            out.extend(value(&op).map(|value| (labels, value)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_say_what_they_are() {
        let names: BTreeSet<&str> = metrics().map(|(name, ..)| name).collect();
        assert_eq!(names.len(), metrics().count());
        for (name, _, help) in metrics() {
            assert!(name.starts_with("iostrata_"), "{name}");
            assert!(help.ends_with('.') || help.contains("; "), "{name}: {help}");
        }
    }
}
