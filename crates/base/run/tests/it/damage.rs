//! Killed runs, newer versions, damaged files.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use iostrata_run::{Event, RunReadError, RunReader, RunWriter, layout};

use crate::sample;

fn written(dir: &Path) {
    let mut run = RunWriter::create(dir, &sample::manifest()).unwrap();
    run.append(&Event::Replicate(Box::new(sample::replicate(0)))).unwrap();
}

fn add(dir: &Path, name: &str, bytes: &[u8]) {
    OpenOptions::new().append(true).open(dir.join(name)).unwrap().write_all(bytes).unwrap();
}

fn edit(dir: &Path, name: &str, from: &str, to: &str) {
    let text = std::fs::read_to_string(dir.join(name)).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    std::fs::write(dir.join(name), text.replace(from, to)).unwrap();
}

#[test]
fn a_torn_line_is_left_out_and_named_wherever_the_kill_came() {
    let root = tempfile::tempdir().unwrap();
    written(root.path());
    let path = root.path().join(layout::EVENTS);
    let line = std::fs::read(&path).unwrap();
    for cut in 1..line.len() {
        std::fs::write(&path, [&line[..], &line[..cut]].concat()).unwrap();
        let read = RunReader::open(root.path()).unwrap();
        assert_eq!(read.events(), [Event::Replicate(Box::new(sample::replicate(0)))]);
        assert!(read.notes()[0].contains("cut off"), "{:?}", read.notes());
    }
}

#[test]
fn a_resumed_run_follows_the_last_whole_line() {
    let root = tempfile::tempdir().unwrap();
    written(root.path());
    for name in [layout::EVENTS, layout::SERIES, layout::HISTOGRAMS] {
        add(root.path(), name, b"{\"half a li\xc3");
    }
    let mut run = RunWriter::resume(root.path(), &sample::manifest()).unwrap();
    run.append(&Event::Replicate(Box::new(sample::replicate(1)))).unwrap();
    let mut read = RunReader::open(root.path()).unwrap();
    let replicates = [0, 1].map(|number| Event::Replicate(Box::new(sample::replicate(number))));
    assert_eq!(read.events(), replicates);
    read.read_histograms().unwrap();
    assert_eq!(read.events(), replicates);
}

#[test]
fn a_newer_format_is_refused_by_name_and_a_newer_addition_is_skipped() {
    let root = tempfile::tempdir().unwrap();
    written(root.path());
    add(root.path(), layout::EVENTS, b"{\"event\":\"of_the_future\",\"x\":1}\n");
    let damaged = RunReader::open(root.path()).unwrap_err();
    assert!(matches!(damaged, RunReadError::Damaged { line: 2, .. }), "{damaged}");

    edit(
        root.path(),
        layout::MANIFEST,
        &format!("\"minor\": {}", layout::FORMAT_MINOR),
        "\"minor\": 7",
    );
    let read = RunReader::open(root.path()).unwrap();
    assert_eq!(read.events().len(), 1);
    assert!(read.notes().iter().any(|note| note.contains("newer version")), "{:?}", read.notes());

    edit(root.path(), layout::MANIFEST, "\"major\": 1", "\"major\": 2");
    edit(
        root.path(),
        layout::MANIFEST,
        "\"program_version\": \"0.1.0\"",
        "\"program_version\": \"9.0\"",
    );
    let newer = RunReader::open(root.path()).unwrap_err().to_string();
    assert!(newer.contains("format 2.7") && newer.contains("use iostrata 9.0"), "{newer}");
}

#[test]
fn damage_names_file_and_line() {
    let root = tempfile::tempdir().unwrap();
    written(root.path());
    add(root.path(), layout::SERIES, b"nonsense\n");
    let error = RunReader::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("series.jsonl line 3"), "{error}");

    written(root.path());
    edit(root.path(), layout::SERIES, "\"n\":5", "\"n\":6");
    let error = RunReader::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("series.jsonl line 1") && error.contains("column"), "{error}");

    written(root.path());
    add(root.path(), layout::HISTOGRAMS, b"Tag=p/0/s/read,0.0,1.0,1.0,????\n");
    let error = RunReader::open(root.path()).unwrap().read_histograms().unwrap_err().to_string();
    assert!(error.contains("histograms.hlog line 5"), "{error}");
}

#[test]
fn another_directory_is_not_a_run() {
    let root = tempfile::tempdir().unwrap();
    let error = RunReader::open(root.path()).unwrap_err();
    assert!(matches!(error, RunReadError::NotARun { .. }), "{error}");
}
