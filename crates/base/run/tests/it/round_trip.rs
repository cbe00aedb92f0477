//! What is written is read.

use iostrata_plan::{OpKind, TransactionSpec};
use iostrata_run::{
    Event, Manifest, OpFigures, RunKind, RunReader, RunResult, RunWriteError, RunWriter,
    StallCause, TransactionDocument, TransactionFigures, TransactionStall, TunedSetting,
    WatchDocument, WatchSample, layout,
};
use iostrata_stats::{Latencies, LatencyUs};

use crate::sample;

#[test]
fn a_whole_run_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("not/yet/there");
    let whole = Event::Replicate(Box::new(sample::replicate_with_histogram(0)));
    let mut run = RunWriter::create(&dir, &sample::manifest()).unwrap();
    run.append(&sample::unavailable()).unwrap();
    run.append(&whole).unwrap();
    run.append(&Event::Replicate(Box::new(sample::replicate(1)))).unwrap();
    run.append(&Event::Finished { at_s: 4.5, bytes_written: 4096 }).unwrap();
    run.write_result(&sample::document()).unwrap();
    run.write_report("<!doctype html>").unwrap();

    let mut read = RunReader::open(&dir).unwrap();
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
    read.read_histograms().unwrap();
    assert_eq!(read.events()[1], whole);
    let log = std::fs::read_to_string(dir.join(layout::HISTOGRAMS)).unwrap();
    assert!(log.contains("\nTag=read_4k_depth_1/0/reads/read,1.500000,1.000000,"), "{log}");
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
    for bad in ["a,b\n", "a/b", ""] {
        let mut replicate = sample::replicate_with_histogram(0);
        replicate.streams[0].name = bad.to_owned();
        let refused = run.append(&Event::Replicate(Box::new(replicate)));
        assert!(matches!(refused, Err(RunWriteError::BadName { .. })));
    }
    assert!(RunReader::open(root.path()).unwrap().events().is_empty());
}

#[test]
fn a_run_is_followed_while_it_is_written() {
    let root = tempfile::tempdir().unwrap();
    let mut run = RunWriter::create(root.path(), &sample::manifest()).unwrap();
    let mut read = RunReader::open(root.path()).unwrap();
    assert!(read.events().is_empty() && read.follow().unwrap().is_empty());
    let mut manifest = sample::manifest();
    manifest.plan = None;
    run.write_manifest(&manifest).unwrap();
    let replicates = [0, 1].map(|number| Event::Replicate(Box::new(sample::replicate(number))));
    for (number, replicate) in replicates.iter().enumerate() {
        run.append(replicate).unwrap();
        assert_eq!(read.follow().unwrap(), std::slice::from_ref(replicate));
        assert_eq!(read.events().len(), number + 1);
    }
    assert_eq!(read.manifest(), &manifest, "what became known later");
    // Half a line is being written: it comes when it is whole.
    let path = root.path().join(layout::EVENTS);
    let whole = std::fs::read_to_string(&path).unwrap();
    let line = "{\"event\":\"finished\",\"at_s\":4.5,\"bytes_written\":4096}\n";
    for cut in [1, line.len() - 1] {
        std::fs::write(&path, format!("{whole}{}", &line[..cut])).unwrap();
        assert!(read.follow().unwrap().is_empty());
    }
    std::fs::write(&path, format!("{whole}{line}")).unwrap();
    assert!(matches!(read.follow().unwrap(), [Event::Finished { .. }]));
    assert!(read.result().is_none());
    run.write_result(&sample::document()).unwrap();
    assert!(read.follow().unwrap().is_empty() && read.result().is_some());
    assert!(read.notes().is_empty(), "{:?}", read.notes());
    assert_eq!(read.events(), RunReader::open(root.path()).unwrap().events());
}

#[test]
fn runs_are_listed_without_being_read() {
    let root = tempfile::tempdir().unwrap();
    for (name, started_at) in [("b", "2026-01-02T03:04:05Z"), ("a", "2026-03-02T03:04:05Z")] {
        let mut manifest = sample::manifest();
        manifest.started_at = started_at.parse().unwrap();
        drop(RunWriter::create(&root.path().join(name), &manifest).unwrap());
        std::fs::write(root.path().join(name).join(layout::EVENTS), "damaged\n").unwrap();
    }
    std::fs::create_dir(root.path().join("something else")).unwrap();
    let found = RunReader::list(root.path(), 100);
    let names: Vec<_> = found.iter().filter_map(|run| run.dir.file_name()).collect();
    assert_eq!(names, ["a", "b"], "the newest first");
    assert!(RunReader::list(&root.path().join("not there"), 100).is_empty());
}

#[test]
fn transactions_are_kept_like_requests() {
    let root = tempfile::tempdir().unwrap();
    let mut replicate = sample::replicate_with_histogram(0);
    let stream = &mut replicate.streams[0];
    let read = stream.ops[OpKind::Read].clone().unwrap();
    stream.ops = [OpKind::NewOrder, OpKind::StockLevel]
        .map(|kind| {
            let response = Some(sample::histogram());
            let latencies = Latencies { response, ..read.latencies.clone() };
            (kind, OpFigures { latencies, ..read.clone() })
        })
        .into_iter()
        .collect();
    stream.series.counts = [(OpKind::NewOrder, vec![4, 5])].into_iter().collect();
    let mut counts =
        TransactionFigures { retries: 3, arrivals: 9, ..TransactionFigures::default() };
    (0..2).for_each(|_| counts.add_errors("1213", 1));
    stream.transactions = Some(counts);
    replicate.point.streams.clear();
    replicate.point.transactions = Some(TransactionSpec::new("tpcc", "engine:/data"));
    let event = Event::Replicate(Box::new(replicate));
    RunWriter::create(root.path(), &sample::manifest()).unwrap().append(&event).unwrap();
    let mut read = RunReader::open(root.path()).unwrap();
    read.read_histograms().unwrap();
    assert_eq!(read.events(), [event]);
    let log = std::fs::read_to_string(root.path().join(layout::HISTOGRAMS)).unwrap();
    assert!(log.contains("Tag=read_4k_depth_1/0/reads/new_order_response,"), "{log}");
}

#[test]
fn types_of_transactions_are_names_in_their_document() {
    let latency_us = LatencyUs { mean: 2.0, p50: 1.0, p95: 3.0, p99: 4.0, p99_9: 5.0, max: 6.0 };
    let document = TransactionDocument {
        tps: 4_500.0,
        mix: [(OpKind::NewOrder, 0.45), (OpKind::Payment, 0.43)].into_iter().collect(),
        latency_us: [(OpKind::NewOrder, latency_us)].into_iter().collect(),
        ..TransactionDocument::default()
    };
    let json = serde_json::to_value(&document).unwrap();
    assert_eq!(json["latency_us"]["new_order"]["p99_9"], 5.0, "{json}");
    assert!(json["mix"].get("read").is_none() && json["response_us"].is_null(), "{json}");
    let root = tempfile::tempdir().unwrap();
    let manifest = Manifest { kind: RunKind::Tpcc, ..sample::manifest() };
    RunWriter::create(root.path(), &manifest).unwrap().write_result(&document).unwrap();
    let read = RunReader::open(root.path()).unwrap();
    assert_eq!(read.result(), Some(&RunResult::Transactions(Box::new(document))));
}

#[test]
fn watched_and_tuned_targets_come_back() {
    let stall = TransactionStall { cause: StallCause::RedoFull, ..TransactionStall::default() };
    let name = "innodb_io_capacity".to_owned();
    let document = WatchDocument {
        samples: vec![WatchSample { tps: Some(400.0), ..WatchSample::default() }],
        stalls: vec![stall],
        stalled_s: 4.0,
        checkpoint_age_pct_max: Some(99.0),
        settings: vec![TunedSetting { name, ..TunedSetting::default() }],
        ..WatchDocument::default()
    };
    for kind in [RunKind::Watch, RunKind::Tune] {
        let root = tempfile::tempdir().unwrap();
        let manifest = Manifest { kind, ..sample::manifest() };
        RunWriter::create(root.path(), &manifest).unwrap().write_result(&document).unwrap();
        let read = RunReader::open(root.path()).unwrap();
        assert!(read.manifest().format_version.minor >= 4, "1.4 added them");
        assert_eq!(read.result(), Some(&RunResult::Watch(Box::new(document.clone()))));
        // What a document of an older program lacks is absent.
        let path = root.path().join(layout::RESULT);
        let mut older: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let fields = older.as_object_mut().unwrap();
        for name in ["stalled_s", "checkpoint_age_pct_max", "sampler", "verifications"] {
            assert!(fields.remove(name).is_some(), "{name}");
        }
        std::fs::write(&path, older.to_string()).unwrap();
        let read = RunReader::open(root.path()).unwrap();
        let Some(RunResult::Watch(found)) = read.result() else { panic!("{:?}", read.result()) };
        assert_eq!((found.checkpoint_age_pct_max, &found.stalls), (None, &document.stalls));
    }
}
