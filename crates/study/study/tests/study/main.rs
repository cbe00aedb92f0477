//! One point on a real disk: figures, evidence and verdicts of the same window. And whole studies.
#![allow(clippy::unwrap_used)]

mod factorial;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_host::{Root, describe_path};
use iostrata_io::{FileSet, FileSetPlan, Fill, Place};
use iostrata_run::host::PathKind;
use iostrata_spec::{
    Better, IoApi, IoSpec, Layer, Metric, MetricKind, OpKind, Point, Preparation, Stream,
};
use iostrata_stats::Verdict;
use iostrata_study::{Meter, extent_verdicts};

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
    let measurement = meter.measure(&point, 0, &[Some(&files)], &mut |_| ()).unwrap();
    assert!(measurement.error.is_none() && !measurement.interrupted);
    let replicate = measurement.replicate;
    let read = replicate.streams[0].read.as_ref().unwrap();
    let device = replicate.evidence.as_ref().and_then(|evidence| evidence.device).unwrap();
    // The device counted at least what was issued, and saw it no later than the application did.
    assert!(device.reads_per_s > 0.9 * read.iops.value, "{device:?} against {read:?}");
    let device_us = device.read_await_ms.unwrap() * 1e3;
    assert!(device_us < 2.0 * read.latency_us.mean, "{device_us} against {read:?}");
    assert!(!replicate.verdicts.has(Verdict::Cached) && replicate.duration_s > 0.49);
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
