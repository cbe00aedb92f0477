//! A small made-up run, in code. None of its figures was measured.

use iostrata_plan::{Better, IoSpec, Layer, Metric, MetricKind, OpKind, Point, Stream};
use iostrata_run::host::{DeviceSeries, Evidence, HostFacts, PathFacts};
use iostrata_run::{
    Cpu, Event, Manifest, OpFigures, ProbeDocument, ProbeHost, Replicate, RunKind, Series,
    StreamFigures, Unavailable,
};
use iostrata_stats::{Latencies, LatencyHistogram, LatencyUs, Measured, Verdict, Verdicts};

pub fn manifest() -> Manifest {
    let arguments = ["probe", "/data", "--target", "mysql://b:hunter2@h/x"].map(str::to_owned);
    let started_at = "2026-01-02T03:04:05Z".parse().unwrap();
    let mut manifest = Manifest::new(RunKind::Probe, "0.1.0", &arguments, started_at);
    manifest.host = Some(host());
    manifest.plan = Some(vec![point()]);
    manifest
}

pub fn host() -> ProbeHost {
    let path: PathFacts = serde_json::from_value(serde_json::json!({
        "path": "/data", "mount_options": ["rw"], "kind": {"type": "disk"}, "block_stack": [],
        "devices": [], "limits": [], "direct_io": {"behaviour": "honoured"}, "notes": []
    }))
    .unwrap();
    let machine = HostFacts { kernel: Some("6.1".into()), cpus: Some(2), ..HostFacts::default() };
    ProbeHost { machine, path }
}

pub fn point() -> Point {
    Point {
        id: "read_4k_depth_1".into(),
        title: "4 KiB random reads, one at a time".into(),
        layer: Layer::Filesystem,
        streams: vec![Stream { name: "reads".into(), spec: IoSpec::new("/data/f") }],
        metric: Metric {
            stream: 0,
            op: OpKind::Read,
            kind: MetricKind::Iops,
            unit: "reads/s".into(),
            better: Better::Higher,
        },
        curve: None,
        block: "reads".into(),
        levels: Vec::new(),
        transactions: None,
    }
}

pub fn replicate(number: u32) -> Replicate {
    let latency_us =
        LatencyUs { mean: 23.5, p50: 22.0, p95: 30.0, p99: 41.5, p99_9: 80.0, max: 312.25 };
    let read = OpFigures {
        ios: 42_000,
        bytes: 42_000 * 4096,
        iops: Measured::new(42_000.0, [41_500.5, 42_499.5], 40, Verdicts::none()),
        latency_mean_us: Measured::new(23.5, [23.25, 23.75], 40, Verdicts::none()),
        latency_us,
        response_mean_us: None,
        response_us: None,
        latencies: Latencies::default(),
    };
    let device_series = DeviceSeries {
        t_s: vec![0.5, 1.0],
        reads_per_s: vec![Some(42_010.1), None],
        ..DeviceSeries::default()
    };
    let evidence =
        Evidence { seconds: 1.0, device_series: Some(device_series), ..Evidence::default() };
    Replicate {
        point: point(),
        replicate: number,
        started_s: 1.5 + f64::from(number),
        duration_s: 1.0,
        streams: vec![StreamFigures {
            name: "reads".into(),
            ops: [(OpKind::Read, read)].into_iter().collect(),
            total: None,
            duration_s: None,
            cpu: Cpu { user_s: 0.1, sys_s: 0.4, ns_per_io: Some(11_904.8) },
            depth_mean: 0.987,
            start_lateness_us_p99: None,
            errors: vec![],
            transactions: None,
            notes: vec![],
            series: Series {
                width_s: 0.1,
                counts: [(OpKind::Read, vec![4_200, 4_190, 4_210, 0, 8_400])].into_iter().collect(),
                latency_mean_us: vec![23.5, 23.1, 0.1, 0.0, 24.7],
            },
            verdicts: Verdicts::none(),
        }],
        evidence: Some(evidence),
        verdicts: [Verdict::Steal].into_iter().collect(),
    }
}

/// A replicate with the histogram behind its figures.
pub fn replicate_with_histogram(number: u32) -> Replicate {
    let mut replicate = replicate(number);
    let read = replicate.streams[0].ops.get_mut(OpKind::Read).unwrap();
    read.latencies.service = histogram();
    replicate
}

pub fn histogram() -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    (0..500_u64).for_each(|i| histogram.record_ns(20_000 + i * i));
    histogram
}

pub fn unavailable() -> Event {
    let fix = Some("run as root".into());
    Event::Unavailable(Unavailable::impossible("raw device", "it needs root", fix))
}

pub fn document() -> ProbeDocument {
    ProbeDocument {
        host: host(),
        headline: vec!["Nothing need change.".into()],
        rungs: vec![],
        unknown: vec![],
        losses: vec![],
        compared: 0,
        undecided: vec![],
        small_losses: vec![],
        loss_at_most_pct: None,
        loss_at_most_us: None,
        findings: vec![],
        advice: vec![],
        redo_table: vec![],
        curves: vec![],
        verifications: vec![],
        unavailable: vec![],
        bytes_written: 4096,
        duration_s: 4.5,
        interrupted: false,
        incomplete: None,
        verdicts: Verdicts::none(),
        report: None,
    }
}
