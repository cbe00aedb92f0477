//! What the engine refuses to open is left as it was found.

use std::collections::BTreeMap;
use std::path::Path;

use iostrata_engine::{Engine, EngineError, OpenError, RequestError, Settings};

use crate::common::engine::How;

/// Every file below a directory with its bytes, and every directory.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let name = name.into_string().unwrap();
        if path.is_dir() {
            let below = contents(&path).into_iter();
            found.extend(below.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
            found.insert(name, Vec::new());
        } else {
            found.insert(name, std::fs::read(&path).unwrap());
        }
    }
    found
}

/// Opening fails and changes nothing in the home.
fn refused(home: &Path, directory: &str, settings: Settings) -> EngineError {
    let before = contents(home);
    let opened = Engine::open(home.join(directory), settings);
    let Err(error) = opened else { panic!("{directory} was opened") };
    let (after, names) = (contents(home), |of: &BTreeMap<String, _>| of.keys().cloned().collect());
    let (was, is): (Vec<String>, Vec<String>) = (names(&before), names(&after));
    assert_eq!(was, is, "{error}");
    assert!(before == after, "{error}");
    error
}

fn small(settings: &[(&'static str, &'static str)]) -> Settings {
    How::with(settings).settings()
}

fn with_redo(home: &Path, redo: &str) -> Settings {
    let mut settings = small(&[]);
    settings.redo_directory = Some(home.join(redo));
    settings
}

#[test]
fn a_foreign_directory_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for directory in ["photos", "empty"] {
        std::fs::create_dir(home.join(directory)).unwrap();
    }
    std::fs::write(home.join("photos/cat.jpg"), b"meow").unwrap();
    std::fs::write(home.join("file"), b"no directory").unwrap();

    let error = refused(home, "photos", small(&[]));
    assert!(matches!(error, EngineError::Open(OpenError::NotOurs { .. })), "{error}");
    let text = error.to_string();
    assert!(text.contains("cat.jpg") && text.contains("photos"), "{text}");
    // The redo's directory is foreign, or missing; the data's would have been made.
    for data in ["empty", "new"] {
        let error = refused(home, data, with_redo(home, "photos"));
        assert!(matches!(error, EngineError::Open(OpenError::NotOurs { .. })), "{error}");
        refused(home, data, with_redo(home, "missing"));
    }
    refused(home, "file", small(&[]));
    refused(home, "missing/below", small(&[]));
}

#[test]
fn settings_that_cannot_be_make_nothing() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut settings = small(&[]);
    settings.buffer_pool_size = 4096;
    let error = refused(home, "new", settings);
    assert!(matches!(error, EngineError::Request(RequestError::Setting(_))), "{error}");
}

#[test]
fn an_engine_that_is_opened_wrongly_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for directory in ["redo", "unmounted"] {
        std::fs::create_dir(home.join(directory)).unwrap();
    }
    Engine::open(home.join("db"), with_redo(home, "redo")).unwrap().close().unwrap();

    let mut other_page = with_redo(home, "redo");
    other_page.page_size = 8192;
    other_page.buffer_pool_size = 1 << 20;
    other_page.redo_log_capacity = 1 << 20;
    refused(home, "db", other_page);
    refused(home, "db", small(&[]));
    // What is mounted on the redo's directory is not there.
    std::fs::rename(home.join("redo"), home.join("redo-elsewhere")).unwrap();
    std::fs::rename(home.join("unmounted"), home.join("redo")).unwrap();
    refused(home, "db", with_redo(home, "redo"));
    std::fs::remove_dir(home.join("redo")).unwrap();
    std::fs::rename(home.join("redo-elsewhere"), home.join("redo")).unwrap();
    Engine::open(home.join("db"), with_redo(home, "redo")).unwrap().close().unwrap();
}
