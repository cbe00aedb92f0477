//! What the engine refuses to open is left as it was found.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use iostrata_engine::{Engine, EngineError, OpenError, RequestError, Settings};
use iostrata_io::disk::{Disk, MemDisk};

use crate::common::engine::How;
use crate::common::failing::{EIO, ENOSPC, arm};

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
fn a_pool_that_memory_cannot_have_makes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for size in ["1T", "4T", "16T"] {
        for page in ["4K", "16K"] {
            let redo = ("redo_log_capacity", "1M");
            let settings = [("page_size", page), ("buffer_pool_size", size), redo];
            let error = refused(home, "new", small(&settings));
            let EngineError::Request(RequestError::SettingRange { name, .. }) = &error else {
                panic!("{size}: {error}")
            };
            assert_eq!(*name, "buffer_pool_size");
            let memory = MemDisk::new();
            let opened = How::with(&settings).open(Arc::new(memory.clone()));
            assert!(opened.is_err() && memory.list().unwrap().is_empty(), "{size}");
        }
    }
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

#[test]
fn an_engine_that_a_disk_is_too_small_for_leaves_nothing() {
    let memory = MemDisk::with_capacity(200 << 10);
    let Err(error) = How::with(&[]).open(Arc::new(memory.clone())) else { panic!("it has room") };
    let EngineError::Open(OpenError::NoRoom { needed_bytes, free_bytes }) = error else {
        panic!("{error}")
    };
    assert!(error.is_full() && needed_bytes > free_bytes && free_bytes == 200 << 10, "{error}");
    assert_eq!(memory.list().unwrap(), []);
    memory.set_capacity(Some(needed_bytes));
    How::with(&[]).open(Arc::new(memory)).unwrap().close().unwrap();
}

#[test]
fn a_making_that_fails_at_any_call_leaves_nothing() {
    for fault in [EIO, ENOSPC] {
        let (mut number, mut failures) = (0, 0);
        loop {
            let memory = MemDisk::new();
            let (armed, failed) = arm(&memory, number, fault);
            let opened = How::with(&[]).open(Arc::new(memory.clone()));
            armed.store(false, Ordering::Relaxed);
            let Some(call) = failed.lock().unwrap().clone() else { break };
            if let Err(error) = opened {
                failures += 1;
                let names: Vec<String> =
                    memory.list().unwrap().iter().map(|name| name.to_string()).collect();
                let is_whole = names.iter().any(|name| name == "engine.settings");
                assert!(names.is_empty() || is_whole, "{call:?}, {error}: {names:?} are left");
            }
            How::with(&[]).open(Arc::new(memory)).unwrap().close().unwrap();
            number += 1;
        }
        assert!(failures > 40, "only {failures} of {number} calls failed");
    }
}

/// A file system of its own, gone when it is dropped.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", size, "tmpfs"])
            .arg(directory.path())
            .output();
        let is_mounted = mounted.is_ok_and(|output| output.status.success());
        if !is_mounted {
            eprintln!("skipped: no tmpfs can be mounted (needs root)");
        }
        is_mounted.then_some(Self(directory))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn an_engine_on_a_full_file_system_opens_and_one_that_has_no_room_leaves_nothing() {
    let Some(mounted) = Mounted::new("size=4m") else { return };
    let home = mounted.0.path();
    let engine = Engine::open(home.join("db"), small(&[])).unwrap();
    let table = engine.create_table("rows").unwrap();
    let mut batch = engine.batch();
    batch.put(&table, b"k", b"v").unwrap();
    batch.commit().unwrap();
    engine.close().unwrap();
    let before = contents(home);
    let large = small(&[("redo_log_capacity", "64M")]);
    for directory in ["new", "new-again"] {
        let error = refused(home, directory, large.clone());
        assert!(matches!(error, EngineError::Open(OpenError::NoRoom { .. })), "{error}");
    }
    assert!(contents(home) == before);
    let mut filler = std::fs::File::create(home.join("filler")).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
    let engine = Engine::open(home.join("db"), small(&[])).unwrap();
    let table = engine.table("rows").unwrap().unwrap();
    assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    let mut batch = engine.batch();
    batch.put(&table, b"k", b"w").unwrap();
    batch.commit().unwrap();
    engine.close().unwrap();
}

/// Two engines that have had the same history, so that each would take the other's redo for
/// its own.
#[test]
fn the_redo_of_another_engine_is_refused_and_that_of_an_earlier_program_is_taken() {
    let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (home, value) in homes.iter().zip([b"one", b"two"]) {
        let engine = Engine::open(home.path(), small(&[])).unwrap();
        let table = engine.create_table("rows").unwrap();
        let mut batch = engine.batch();
        batch.put(&table, b"k", value).unwrap();
        batch.commit().unwrap();
        engine.close().unwrap();
    }
    let copy_redo = |from: &Path, to: &Path| {
        for entry in std::fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            if name.to_str().unwrap().starts_with("redo-") {
                std::fs::copy(from.join(&name), to.join(&name)).unwrap();
            }
        }
    };
    let kept = tempfile::tempdir().unwrap();
    copy_redo(homes[0].path(), kept.path());
    copy_redo(homes[1].path(), homes[0].path());
    let error = refused(homes[0].path(), ".", small(&[]));
    assert!(matches!(error, EngineError::Open(OpenError::OtherRedo { .. })), "{error}");
    copy_redo(kept.path(), homes[0].path());
    let opened = || Engine::open(homes[0].path(), small(&[])).unwrap();
    opened().close().unwrap();
    // As a program without identities writes the control file.
    let control = homes[0].path().join("redo-control");
    let mut bytes = std::fs::read(&control).unwrap();
    for slot in bytes.chunks_mut(4096) {
        slot[68..].fill(0);
    }
    std::fs::write(&control, bytes).unwrap();
    let engine = opened();
    let table = engine.table("rows").unwrap().unwrap();
    assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"one"[..]));
    engine.close().unwrap();
    copy_redo(homes[1].path(), homes[0].path());
    let error = refused(homes[0].path(), ".", small(&[]));
    assert!(matches!(error, EngineError::Open(OpenError::OtherRedo { .. })), "{error}");
}
