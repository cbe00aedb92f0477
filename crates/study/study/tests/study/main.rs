//! One point on a real disk: figures, evidence and verdicts of the same window. And whole studies.
#![allow(clippy::unwrap_used)]

mod factorial;
mod transactions;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_diagnose::ProbeEnd;
use iostrata_io::{FileSet, FileSetPlan, Fill, Place};
use iostrata_linux::host::{Root, describe_path};
use iostrata_load::{IoLoad, Load, LoadError, Surroundings, WindowFigures, WindowObserver};
use iostrata_plan::{
    Better, IoApi, IoSpec, Layer, Metric, MetricKind, OpKind, Point, Preparation, Stream,
};
use iostrata_run::host::PathKind;
use iostrata_run::{Event, Manifest, OpFigures, RunKind, RunReader, RunWriter, StreamFigures};
use iostrata_stats::{Latencies, Measured, Verdict, Verdicts};
use iostrata_study::{
    FileRole, FileSetCache, Listener, Meter, Pipeline, StudyError, WantedFiles, extent_verdicts,
};

const SIZE_BYTES: u64 = 32 << 20;

fn files(dir: &Path, fill: Fill) -> FileSet {
    let place = Place::Directory(dir.to_owned());
    let plan = FileSetPlan { fill, ..FileSetPlan::new(place, SIZE_BYTES, 4096) };
    FileSet::prepare(&plan, &AtomicBool::new(false), &mut |_| ()).unwrap()
}

fn reads(dir: &Path) -> Point {
    let mut spec = IoSpec::new(dir);
    (spec.direct, spec.api, spec.depth) = (true, IoApi::Libaio, 4);
    spec.size_bytes = SIZE_BYTES;
    spec.runtime = Some(Duration::from_millis(500));
    Point {
        id: "reads".to_owned(),
        title: "4 KiB random reads".to_owned(),
        layer: Layer::Device,
        streams: vec![Stream { name: "data".to_owned(), spec }],
        metric: Metric {
            stream: 0,
            op: OpKind::Read,
            kind: MetricKind::Iops,
            unit: "reads/s".to_owned(),
            better: Better::Higher,
        },
        curve: None,
        block: "reads".to_owned(),
        levels: Vec::new(),
        transactions: None,
    }
}

#[test]
fn a_replicate_carries_the_evidence_of_its_own_window() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (files, point) = (files(dir.path(), Fill::Written), reads(dir.path()));
    let facts = describe_path(&Root::system(), dir.path()).unwrap();
    if facts.kind != PathKind::Disk || !files.takes_direct() {
        eprintln!("skipped: the target directory is on no disk with direct I/O");
        return;
    }
    let never = AtomicBool::new(false);
    let mut meter = Meter::new(&Root::system(), Some(&facts), &never, None);
    let load = IoLoad::new(&point.streams, vec![files.specs().to_vec()]);
    let mut apart = Vec::new();
    // On a busy machine the counters may be read when the window is over for a while.
    let is_its_own = (0..3).any(|replicate| {
        let measurement = meter.measure(&point, replicate, &load, &mut |_| (), &mut []).unwrap();
        assert!(measurement.error.is_none() && !measurement.interrupted);
        let replicate = measurement.replicate;
        assert!(!replicate.verdicts.has(Verdict::Cached) && replicate.duration_s > 0.49);
        let read = replicate.streams[0].ops[OpKind::Read].as_ref().unwrap();
        let device = replicate.evidence.as_ref().and_then(|evidence| evidence.device).unwrap();
        let device_us = device.read_await_ms.unwrap() * 1e3;
        apart.push(format!("{device:?} against {read:?}"));
        // The device counted at least what was issued, and saw it no later than the application.
        device.reads_per_s > 0.9 * read.iops.value && device_us < 2.0 * read.latency_us.mean
    });
    assert!(is_its_own, "{}", apart.join("\n"));
}

/// Terminals of a made-up database: five kinds of transactions, no file.
struct Terminals;

impl Load for Terminals {
    fn reaches_storage(&self) -> bool {
        false
    }

    fn run(
        &self,
        _: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
    ) -> Result<WindowFigures, LoadError> {
        observer.opened();
        observer.open(0.5);
        observer.closed();
        let mut latencies = Latencies::new(true);
        (1..=1_000).for_each(|us| latencies.record(us * 1_000, us * 2_000));
        let mean = Measured::new(500.5, [490.0, 511.0], 40, Verdicts::none());
        let op = OpFigures {
            ios: 1_000,
            bytes: 0,
            iops: Measured::new(1_000.0, [990.0, 1_010.0], 40, Verdicts::none()),
            latency_us: latencies.service.summary().unwrap(),
            latency_mean_us: mean.clone(),
            response_us: latencies.response.as_ref().and_then(|response| response.summary()),
            response_mean_us: Some(mean.scaled(2.0)),
            latencies,
        };
        let stream = StreamFigures {
            name: "terminals".to_owned(),
            ops: TRANSACTIONS.map(|kind| (kind, op.clone())).into_iter().collect(),
            ..StreamFigures::default()
        };
        Ok(WindowFigures { duration_s: 1.0, streams: vec![stream], ..WindowFigures::default() })
    }
}

const TRANSACTIONS: [OpKind; 5] =
    [OpKind::NewOrder, OpKind::Payment, OpKind::OrderStatus, OpKind::Delivery, OpKind::StockLevel];

/// Records what it gets.
struct Writer(RunWriter, Vec<f64>);

impl Listener for Writer {
    fn progress(&mut self, share: f64, _text: &str) {
        self.1.push(share);
    }

    fn store(&mut self, event: &Event) -> Result<(), StudyError> {
        Ok(self.0.append(event)?)
    }
}

#[test]
fn a_load_of_transactions_is_measured_kept_and_followed_like_requests() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut point = reads(dir.path());
    (point.metric.op, point.metric.kind) = (OpKind::NewOrder, MetricKind::ResponseMeanUs);
    let manifest = Manifest::new(RunKind::Study, "0", &[], "2026-01-02T03:04:05Z".parse().unwrap());
    let mut listener = Writer(RunWriter::create(dir.path(), &manifest).unwrap(), Vec::new());
    let mut run = RunReader::open(dir.path()).unwrap();
    let never = AtomicBool::new(false);
    let meter = Meter::new(&Root::system(), None, &never, None);
    let files = FileSetCache::default();
    let mut pipeline = Pipeline::new(&mut listener, meter, files, &never);
    pipeline.before_s = 100.0;
    for number in 0..2 {
        let share = |elapsed_s: f64| 0.5 + elapsed_s;
        let measured = pipeline.measure(&point, number, &Terminals, &share, "", &mut []).unwrap();
        assert!(measured.replicate.evidence.is_none() && measured.replicate.started_s > 100.0);
        pipeline.store(Event::Replicate(Box::new(measured.replicate))).unwrap();
        assert_eq!(run.follow().unwrap().len(), 1, "replicate {number} is there at once");
    }
    let outcome = pipeline.finish(&[], false).unwrap();
    let end = ProbeEnd::of(&outcome.events);
    assert!(end.duration_s > 100.0 && !end.interrupted && end.bytes_written == 0);
    assert!(matches!(run.follow().unwrap(), [Event::Finished { .. }]));
    assert_eq!(listener.1, [1.0, 1.0]);

    run.read_histograms().unwrap();
    assert_eq!(run.events(), outcome.events);
    let Event::Replicate(replicate) = &run.events()[0] else { unreachable!() };
    assert_eq!(replicate.streams[0].ops.kinds().collect::<Vec<_>>(), TRANSACTIONS);
    assert_eq!(iostrata_diagnose::metric_of(replicate).unwrap().value, 1_001.0);
}

#[test]
fn equal_wants_share_files_and_what_is_used_up_is_made_again() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let wanted = |role, fill| {
        let plan = FileSetPlan::new(Place::Directory(dir.path().to_owned()), 1 << 20, 4096);
        WantedFiles { role, plan: FileSetPlan { fill, ..plan } }
    };
    let never = AtomicBool::new(false);
    let mut cache = FileSetCache::default();
    let mut paths = |wanted: &WantedFiles| {
        let set = cache.prepare(wanted, &never, &mut |_| ()).unwrap();
        let paths = set.specs().iter().map(|file| file.path.clone()).collect::<Vec<_>>();
        (paths, cache.filled_bytes())
    };
    let data = wanted(FileRole::Data, Fill::Written);
    let first = paths(&data);
    assert_eq!(first.1, 1 << 20);
    assert_eq!(paths(&data), first, "nothing is written twice");
    let (log, filled_bytes) = paths(&wanted(FileRole::Log, Fill::Written));
    assert!(log != first.0 && filled_bytes == 2 << 20, "a log never shares a file with data");
    let used_up = wanted(FileRole::Log, Fill::Empty);
    let before = paths(&used_up).0;
    assert_ne!(paths(&used_up).0, before, "it is no longer as it was");
    let left = || std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left(), 3);
    cache.clear();
    assert_eq!(left(), 0);
}

#[test]
fn files_that_were_never_written_are_told() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut point = reads(dir.path());
    let unwritten = files(dir.path(), Fill::Fallocated);
    let verdicts = extent_verdicts(&unwritten, &point);
    assert!(verdicts.has(Verdict::UnwrittenExtents), "{verdicts:?}");
    point.streams[0].spec.preparation = Preparation::Fallocated;
    assert!(extent_verdicts(&unwritten, &point).is_sound(), "it was meant to be like that");
    point.streams[0].spec.preparation = Preparation::Written;
    assert!(extent_verdicts(&files(dir.path(), Fill::Written), &point).is_sound());
}
