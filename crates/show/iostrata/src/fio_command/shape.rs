//! Results in the shape of fio's JSON, as far as they are known.
//!
//! Invariant: nothing is invented: what was not measured is null, as submission latency and context
//! switches of a job. Latency is one, from the start of a request to its completion, so `clat_ns`
//! and `lat_ns` are the same.

use std::collections::BTreeMap;

use iostrata_run::OpFigures;
use iostrata_spec::OpKind;
use iostrata_spec::fio::FioPlan;
use iostrata_stats::LatencyHistogram;
use serde_json::{Value, json};

use super::measured::{MeasuredStream, MeasuredWave};

/// Window of fio's own samples of bandwidth and requests, in seconds.
const SAMPLE_S: f64 = 0.5;

/// The whole document.
pub fn document(plan: &FioPlan, waves: &[MeasuredWave]) -> Value {
    let now = jiff::Zoned::now();
    let jobs: Vec<Value> = waves
        .iter()
        .flat_map(|wave| {
            reported(&wave.streams(&plan.waves[wave.number])).into_iter().map(|unit| unit.json())
        })
        .collect();
    let mut document = json!({
        "fio version": format!("iostrata-{} (fio shape)", env!("CARGO_PKG_VERSION")),
        "timestamp": now.timestamp().as_second(),
        "timestamp_ms": now.timestamp().as_millisecond(),
        "time": now.strftime("%a %b %e %H:%M:%S %Y").to_string(),
        "jobs": jobs,
        "disk_util": waves.iter().filter_map(disk).collect::<Vec<_>>(),
    });
    if !plan.global_options.is_empty() {
        document["global options"] = json!(plan.global_options);
    }
    document
}

/// Streams that are reported as one.
struct Unit<'a>(Vec<MeasuredStream<'a>>);

/// Streams of jobs with group_reporting by group; all others one by one.
fn reported<'a>(streams: &[MeasuredStream<'a>]) -> Vec<Unit<'a>> {
    let mut units: Vec<Unit<'a>> = Vec::new();
    let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
    for stream in streams {
        if !stream.job.group_reporting {
            units.push(Unit(vec![*stream]));
            continue;
        }
        let at = *groups.entry(stream.job.group).or_insert_with(|| {
            units.push(Unit(Vec::new()));
            units.len() - 1
        });
        units[at].0.push(*stream);
    }
    units
}

impl<'a> Unit<'a> {
    fn json(&self) -> Value {
        let Some(first) = self.0.first() else { return Value::Null };
        let duration_s = self.duration_s();
        let cpu = |of: fn(&iostrata_run::Cpu) -> f64| {
            let workers: f64 = self.0.iter().map(|one| f64::from(one.stream.spec.jobs)).sum();
            let seconds: f64 = self.0.iter().map(|one| of(&one.figures.cpu)).sum();
            100.0 * seconds / (duration_s * workers).max(f64::MIN_POSITIVE)
        };
        let errno = self.0.iter().flat_map(|one| &one.figures.errors).map(|error| error.errno);
        let percentiles = &first.job.percentiles;
        let op = |kind| self.direction(kind, percentiles);
        json!({
            "jobname": first.job.name,
            "desc": first.job.description,
            "groupid": first.job.group,
            "error": errno.max().unwrap_or(0),
            "eta": 0,
            "elapsed": duration_s.ceil() as u64,
            "job options": first.job.options,
            "read": op(OpKind::Read),
            "write": op(OpKind::Write),
            "trim": Unit(Vec::new()).direction(OpKind::Read, &[]),
            "sync": self.sync(percentiles),
            "job_runtime": (duration_s * 1000.0).round() as u64,
            "usr_cpu": cpu(|cpu| cpu.user_s),
            "sys_cpu": cpu(|cpu| cpu.sys_s),
            "ctx": null,
            "majf": null,
            "minf": null,
            "iodepth_level": null,
            "latency_depth": first.stream.spec.depth,
        })
    }

    fn duration_s(&self) -> f64 {
        self.0.iter().filter_map(|one| one.figures.duration_s).fold(0.0, f64::max)
    }

    /// Requests of one kind with the time their stream ran.
    fn ops(&self, kind: OpKind) -> impl Iterator<Item = (&'a OpFigures, f64)> {
        self.0.iter().filter_map(move |one| {
            one.figures.ops[kind]
                .as_ref()
                .map(|op| (op, one.figures.duration_s.unwrap_or_default()))
        })
    }

    fn service(&self, kind: OpKind) -> LatencyHistogram {
        let mut all = LatencyHistogram::default();
        self.ops(kind).for_each(|(op, _)| all.merge(&op.latencies.service));
        all
    }

    fn direction(&self, kind: OpKind, percentiles: &[f64]) -> Value {
        let sums = self.ops(kind).fold((0, 0, 0.0_f64), |(ios, bytes, seconds), (op, its)| {
            (ios + op.ios, bytes + op.bytes, seconds.max(its))
        });
        let (ios, bytes, duration_s) = sums;
        let seconds = duration_s.max(f64::MIN_POSITIVE);
        let latency = latency(&self.service(kind), percentiles);
        let mut value = json!({
            "io_bytes": bytes,
            "io_kbytes": bytes / 1024,
            "bw_bytes": (bytes as f64 / seconds).round() as u64,
            "bw": (bytes as f64 / 1024.0 / seconds).round() as u64,
            "iops": ios as f64 / seconds,
            "runtime": if ios > 0 { (duration_s * 1000.0).round() as u64 } else { 0 },
            "total_ios": ios,
            "short_ios": 0,
            "slat_ns": null,
            "clat_ns": latency,
            "lat_ns": latency,
        });
        let block_bytes = if ios > 0 { bytes as f64 / ios as f64 } else { 0.0 };
        let rates = self.samples(kind);
        merge(&mut value, spread("iops", "iops_stddev", &rates, 1.0));
        merge(&mut value, spread("bw", "bw_dev", &rates, block_bytes / 1024.0));
        value
    }

    fn sync(&self, percentiles: &[f64]) -> Value {
        let service = self.service(OpKind::Sync);
        json!({ "total_ios": service.count(), "lat_ns": latency(&service, percentiles) })
    }

    /// Requests per second in windows of half a second, or of the series where that is wider; each
    /// stream by itself, as fio samples each job by itself.
    fn samples(&self, kind: OpKind) -> Vec<f64> {
        let mut samples = Vec::new();
        for one in &self.0 {
            let series = &one.figures.series;
            let group = ((SAMPLE_S / series.width_s.max(1e-9)).round() as usize).max(1);
            let seconds = group as f64 * series.width_s;
            let rate =
                |slices: &[u32]| slices.iter().map(|one| f64::from(*one)).sum::<f64>() / seconds;
            samples.extend(series.of(kind).chunks_exact(group).map(rate));
        }
        samples
    }
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// Least, largest, mean and deviation of samples, each `factor` times as large.
fn spread(name: &str, deviation: &str, samples: &[f64], factor: f64) -> Value {
    let n = samples.len() as f64;
    let known = |value: f64| if samples.is_empty() { Value::Null } else { json!(value * factor) };
    let mean = samples.iter().sum::<f64>() / n.max(1.0);
    let square = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    let stddev = (square / (n - 1.0).max(1.0)).sqrt();
    let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
    let most = samples.iter().copied().fold(0.0, f64::max);
    json!({
        format!("{name}_min"): known(least),
        format!("{name}_max"): known(most),
        format!("{name}_mean"): known(mean),
        deviation: known(stddev),
        format!("{name}_samples"): samples.len(),
    })
}

/// A distribution in nanoseconds, with its percentiles.
fn latency(histogram: &LatencyHistogram, percentiles: &[f64]) -> Value {
    let Some(summary) = histogram.summary() else { return json!({ "N": 0 }) };
    let ns = |us: f64| (us * 1000.0).round() as u64;
    let least = histogram.iter_buckets().next().map_or(0.0, |bucket| bucket.low_us);
    let percentile: BTreeMap<String, u64> = percentiles
        .iter()
        .filter_map(|p| Some((format!("{p:.6}"), ns(histogram.percentile_us(*p)?))))
        .collect();
    json!({
        "min": ns(least),
        "max": ns(summary.max),
        "mean": summary.mean * 1000.0,
        "stddev": histogram.stddev_us().unwrap_or(0.0) * 1000.0,
        "N": histogram.count(),
        "percentile": percentile,
    })
}

/// What the device did meanwhile, from its own counters.
fn disk(wave: &MeasuredWave) -> Option<Value> {
    let evidence = wave.replicate.evidence.as_ref()?;
    let (name, delta) = (evidence.device_name.as_ref()?, evidence.device_delta?);
    let counters = delta.counters;
    Some(json!({
        "name": name,
        "read_ios": counters.reads,
        "write_ios": counters.writes,
        "read_merges": counters.reads_merged,
        "write_merges": counters.writes_merged,
        "read_ticks": counters.read_ms,
        "write_ticks": counters.write_ms,
        "in_queue": counters.queue_ms,
        "util": evidence.device.map(|device| device.util_pct),
    }))
}
