//! Everything that is exported: names, meanings, and where the values come from.
//!
//! Invariant: base units, named last as Prometheus asks: bytes, seconds, ratio; counters end in
//! `_total`. The order here is the order of the text.

use iostrata_run::{WatchSample, WatchTarget};

use crate::file_totals::{FileOpTotals, FileTotals};
use crate::totals::{DeviceTotals, Totals};

/// What a metric is to Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Rises and falls.
    Gauge,
    /// Only rises while the program runs.
    Counter,
}

/// What is known of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Known {
    /// What it is.
    pub(crate) target: WatchTarget,
    /// Its last sample.
    pub(crate) last: Option<WatchSample>,
    /// What its samples amount to.
    pub(crate) totals: Totals,
}

/// A value with the labels that it has besides its target.
pub(crate) type Valued = (Vec<(&'static str, String)>, f64);

/// One metric.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: MetricKind,
    pub(crate) help: &'static str,
    pub(crate) values: fn(&Known) -> Vec<Valued>,
}

/// The name, kind and meaning of every metric that is exported.
pub fn metrics() -> impl Iterator<Item = (&'static str, MetricKind, &'static str)> {
    METRICS.iter().map(|metric| (metric.name, metric.kind, metric.help))
}

macro_rules! gauge {
    ($name:literal, $help:literal, $values:expr) => {
        Metric { name: $name, kind: MetricKind::Gauge, help: $help, values: $values }
    };
}

macro_rules! counter {
    ($name:literal, $help:literal, $values:expr) => {
        Metric { name: $name, kind: MetricKind::Counter, help: $help, values: $values }
    };
}

/// Every metric.
pub(crate) const METRICS: &[Metric] = &[
    gauge!("iostrata_target_info", "What the target is; always 1.", |one| {
        let label = |name, text: &String| (name, text.clone());
        let target = &one.target;
        vec![(vec![label("flavour", &target.flavour), label("version", &target.version)], 1.0)]
    }),
    gauge!(
        "iostrata_target_up",
        "Whether the target answered the last time it was asked.",
        |one| { told(one.last.as_ref().map(|last| f64::from(u8::from(last.error.is_none())))) }
    ),
    counter!("iostrata_samples_total", "Times that the target was asked.", |one| {
        told(Some(one.totals.samples as f64))
    }),
    counter!("iostrata_sample_errors_total", "Times that the target did not answer.", |one| {
        told(Some(one.totals.errors as f64))
    }),
    gauge!("iostrata_sample_duration_seconds", "Time that the last answer took.", |one| {
        last(one, |last| Some(last.sample_us / 1e6))
    }),
    counter!("iostrata_transactions_total", "Transactions that ended.", |one| {
        told(one.totals.transactions)
    }),
    gauge!("iostrata_stalled", "Whether the target stalls.", |one| {
        last(one, |last| Some(f64::from(u8::from(last.stalled))))
    }),
    counter!("iostrata_stalls_total", "Stalls that began.", |one| {
        told(one.last.as_ref().map(|_| one.totals.stalls as f64))
    }),
    counter!("iostrata_stalled_seconds_total", "Time in stalls, by what was waited for.", |one| {
        let of = |(cause, seconds): (&&str, &f64)| (vec![("cause", (*cause).to_owned())], *seconds);
        one.totals.stalled_s.iter().map(of).collect()
    }),
    gauge!("iostrata_checkpoint_age_bytes", "Redo that recovery would read.", |one| {
        last(one, |last| Some(last.checkpoint_age_bytes? as f64))
    }),
    gauge!(
        "iostrata_checkpoint_age_limit_bytes",
        "The checkpoint age at which writers wait for a checkpoint.",
        |one| last(one, |last| Some(last.checkpoint_age_limit_bytes? as f64))
    ),
    gauge!(
        "iostrata_checkpoint_age_async_bytes",
        "The checkpoint age from which pages are flushed as fast as possible.",
        |one| last(one, |last| Some(last.checkpoint_age_async_bytes? as f64))
    ),
    gauge!(
        "iostrata_checkpoint_age_sync_bytes",
        "The checkpoint age from which flushing goes before everything else.",
        |one| last(one, |last| Some(last.checkpoint_age_sync_bytes? as f64))
    ),
    gauge!("iostrata_checkpoint_age_ratio", "Checkpoint age as a share of its limit.", |one| {
        last(one, |last| Some(last.checkpoint_age_pct? / 100.0))
    }),
    counter!("iostrata_redo_bytes_total", "Redo made.", |one| told(one.totals.redo_bytes)),
    gauge!(
        "iostrata_redo_left_seconds",
        "Time until the limit if redo is made as now and no checkpoint follows.",
        |one| last(one, |last| last.redo_seconds_left)
    ),
    gauge!("iostrata_dirty_pages", "Pages of the pool that are newer than on disk.", |one| {
        last(one, |last| Some(last.dirty_pages? as f64))
    }),
    gauge!("iostrata_dirty_ratio", "Dirty pages as a share of the pool.", |one| {
        last(one, |last| Some(last.dirty_pct? / 100.0))
    }),
    counter!("iostrata_flushed_pages_total", "Pages written, for whatever reason.", |one| {
        told(one.totals.flushed_pages)
    }),
    counter!(
        "iostrata_flushed_pages_by_kind_total",
        "Pages written, by the reason; what a target does not tell apart is missing.",
        |one| {
            let kinds = ["adaptive", "lru", "background", "sync"];
            let of = |(kind, total): (&str, Option<f64>)| {
                Some((vec![("kind", kind.to_owned())], total?))
            };
            kinds.into_iter().zip(one.totals.flushed_by_kind).filter_map(of).collect()
        }
    ),
    counter!(
        "iostrata_furious_flushes_total",
        "Times that pages had to be written at any price.",
        { |one| last(one, |last| Some(last.furious_flushes? as f64)) }
    ),
    gauge!(
        "iostrata_history_list_length",
        "Commits whose old row versions are not purged yet.",
        |one| last(one, |last| Some(last.history_list_length? as f64))
    ),
    gauge!(
        "iostrata_oldest_transaction_seconds",
        "For how long the oldest open transaction is open; 0 where none is open.",
        |one| last(one, |last| last.oldest_transaction_s)
    ),
    counter!(
        "iostrata_purged_commits_total",
        "Commits whose old row versions were purged.",
        |one| told(one.totals.purged)
    ),
    gauge!("iostrata_pending_requests", "Requests of files in flight.", |one| {
        let Some(last) = answered(one) else { return Vec::new() };
        let all = [
            ("read", last.pending_reads),
            ("write", last.pending_writes),
            ("sync", last.pending_syncs),
        ];
        let of =
            |(op, count): (&str, Option<u64>)| Some((vec![("op", op.to_owned())], count? as f64));
        all.into_iter().filter_map(of).collect()
    }),
    gauge!("iostrata_row_locks_waiting", "Row locks that are waited for.", |one| {
        last(one, |last| Some(last.row_locks_waiting? as f64))
    }),
    counter!("iostrata_device_reads_total", "Reads of the device below the data.", |one| {
        devices(one, |device| device.reads)
    }),
    counter!("iostrata_device_writes_total", "Writes of the device below the data.", |one| {
        devices(one, |device| device.writes)
    }),
    counter!("iostrata_device_flushes_total", "Flushes of the device below the data.", |one| {
        devices(one, |device| device.flushes)
    }),
    counter!("iostrata_device_read_seconds_total", "Time that its reads took together.", |one| {
        devices(one, |device| device.read_s)
    }),
    counter!("iostrata_device_write_seconds_total", "Time that its writes took together.", |one| {
        devices(one, |device| device.write_s)
    }),
    gauge!("iostrata_device_requests_in_flight", "Mean number of its requests in flight.", |one| {
        let device = answered(one).and_then(|last| last.device.as_ref());
        let of = |device: &iostrata_run::WatchDevice| {
            (vec![("device", device.name.clone())], device.in_flight)
        };
        device.map(of).into_iter().collect()
    }),
    counter!(
        "iostrata_pressure_seconds_total",
        "Time in which some or all tasks waited for a resource.",
        |one| {
            let of = |((resource, kind), seconds): (&(&str, &str), &f64)| {
                let labels = [("resource", *resource), ("kind", *kind)];
                (labels.map(|(name, word)| (name, word.to_owned())).to_vec(), *seconds)
            };
            one.totals.pressure_s.iter().map(of).collect()
        }
    ),
    gauge!(
        "iostrata_io_limit_used_ratio",
        "Use of the tightest I/O limit of the target's control groups as a share of it.",
        |one| last(one, |last| Some(last.throttle.as_ref()?.io_limit_used_pct? / 100.0))
    ),
    counter!(
        "iostrata_cpu_throttled_seconds_total",
        "Time that a processor quota held tasks back.",
        |one| told(one.totals.throttled_s)
    ),
    counter!("iostrata_file_requests_total", "Requests on files of a class.", |one| {
        files(one, |op| op.requests)
    }),
    counter!("iostrata_file_bytes_total", "Bytes read from and written to them.", |one| {
        files(one, |op| op.bytes)
    }),
    counter!("iostrata_file_seconds_total", "Time that these requests took together.", |one| {
        files(one, |op| op.seconds)
    }),
];

fn told(value: Option<f64>) -> Vec<Valued> {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

/// The last sample, where it has figures.
fn answered(one: &Known) -> Option<&WatchSample> {
    one.last.as_ref().filter(|last| last.error.is_none())
}

fn last(one: &Known, value: fn(&WatchSample) -> Option<f64>) -> Vec<Valued> {
    told(answered(one).and_then(value))
}

fn devices(one: &Known, value: fn(&DeviceTotals) -> Option<f64>) -> Vec<Valued> {
    let of = |(name, totals): (&String, &DeviceTotals)| {
        Some((vec![("device", name.clone())], value(totals)?))
    };
    one.totals.devices.iter().filter_map(of).collect()
}

fn files(one: &Known, value: fn(&FileOpTotals) -> Option<f64>) -> Vec<Valued> {
    let mut out = Vec::new();
    for (class, totals) in &one.totals.files {
        for (op, told) in FileTotals::OPS.iter().zip(&totals.ops) {
            let labels = [("class", *class), ("op", *op)];
            let labels = labels.map(|(name, word)| (name, word.to_owned())).to_vec();
            out.extend(value(told).map(|value| (labels, value)));
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
        assert_eq!(names.len(), METRICS.len());
        for (name, kind, help) in metrics() {
            assert!(name.starts_with("iostrata_"), "{name}");
            assert_eq!(name.ends_with("_total"), kind == MetricKind::Counter, "{name}");
            assert!(help.ends_with('.') || help.contains("; "), "{name}: {help}");
        }
    }
}
