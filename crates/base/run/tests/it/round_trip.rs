//! What is written is read.

use iostrata_run::{
    Event, LatencyKind, RunReader, RunResult, RunWriteError, RunWriter, StreamHistogram, layout,
};
use iostrata_spec::OpKind;

use crate::sample;

fn part(histogram: &iostrata_stats::LatencyHistogram) -> StreamHistogram<'_> {
    StreamHistogram { stream: "reads", op: OpKind::Read, kind: LatencyKind::Service, histogram }
}

#[test]
fn a_whole_run_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("not/yet/there");
    let histogram = sample::histogram();
    let mut run = RunWriter::create(&dir, &sample::manifest()).unwrap();
    run.append(&sample::unavailable()).unwrap();
    run.append_replicate(&sample::replicate(0), &[part(&histogram)]).unwrap();
    run.append(&Event::Replicate(Box::new(sample::replicate(1)))).unwrap();
    run.append(&Event::Finished { at_s: 4.5, bytes_written: 4096 }).unwrap();
    run.write_result(&sample::document()).unwrap();
    run.write_report("<!doctype html>").unwrap();

    let read = RunReader::open(&dir).unwrap();
    assert_eq!(read.manifest(), &sample::manifest());
    assert_eq!(read.result(), Some(&RunResult::Probe(Box::new(sample::document()))));
    assert_eq!(
        read.events(),
        [
            sample::unavailable(),
            Event::Replicate(Box::new(sample::replicate(0))),
            Event::Replicate(Box::new(sample::replicate(1))),
            Event::Finished { at_s: 4.5, bytes_written: 4096 },
        ]
    );
    assert!(read.notes().is_empty(), "{:?}", read.notes());
    let kept = read.histograms().unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].key.to_string(), "read_4k_depth_1/0/reads/read");
    assert_eq!(kept[0].histogram, histogram);
    assert_eq!((kept[0].started_s, kept[0].duration_s), (1.5, 1.0));
}

#[test]
fn series_stand_in_the_columns_and_not_in_the_events() {
    let root = tempfile::tempdir().unwrap();
    let mut run = RunWriter::create(root.path(), &sample::manifest()).unwrap();
    run.append(&Event::Replicate(Box::new(sample::replicate(0)))).unwrap();
    let events = std::fs::read_to_string(root.path().join(layout::EVENTS)).unwrap();
    assert!(!events.contains("8400") && !events.contains("42010.1"), "{events}");
    assert_eq!(
        std::fs::read_to_string(root.path().join(layout::SERIES)).unwrap().lines().count(),
        2
    );
}

#[test]
fn nothing_kept_holds_a_password() {
    let root = tempfile::tempdir().unwrap();
    drop(RunWriter::create(root.path(), &sample::manifest()).unwrap());
    let text = std::fs::read_to_string(root.path().join(layout::MANIFEST)).unwrap();
    assert!(text.contains("mysql://b:***@h/x") && !text.contains("hunter2"), "{text}");
}

#[test]
fn something_else_is_left_alone_and_an_older_run_is_replaced() {
    let root = tempfile::tempdir().unwrap();
    let mine = root.path().join("thesis.txt");
    std::fs::write(&mine, "x").unwrap();
    let refused = RunWriter::create(root.path(), &sample::manifest());
    assert!(matches!(refused, Err(RunWriteError::NotARun { .. })));
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);

    let dir = root.path().join("run");
    let mut run = RunWriter::create(&dir, &sample::manifest()).unwrap();
    run.append(&sample::unavailable()).unwrap();
    run.write_result(&sample::document()).unwrap();
    drop(RunWriter::create(&dir, &sample::manifest()).unwrap());
    let read = RunReader::open(&dir).unwrap();
    assert_eq!((read.events().len(), read.result()), (0, None));
}

#[test]
fn a_name_that_breaks_the_log_format_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut run = RunWriter::create(root.path(), &sample::manifest()).unwrap();
    let histogram = sample::histogram();
    let bad = StreamHistogram { stream: "a,b\n", ..part(&histogram) };
    let refused = run.append_replicate(&sample::replicate(0), &[bad]);
    assert!(matches!(refused, Err(RunWriteError::BadName { .. })));
    assert!(RunReader::open(root.path()).unwrap().events().is_empty());
}
