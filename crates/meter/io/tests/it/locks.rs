//! One use of a directory at a time.

use std::process::{Command, Stdio};

use iostrata_io::disk::{DiskError, FileName, RealDisk};

use crate::place::directory;

/// Names the directory to the child that takes its lock.
const CHILD: &str = "IOSTRATA_TEST_LOCK_CHILD";

fn name() -> FileName {
    FileName::new("lock").unwrap()
}

#[test]
fn a_second_open_in_the_same_process_is_refused() {
    let directory = directory();
    let disk = RealDisk::new(directory.path(), false).unwrap();
    let lock = disk.lock(&name()).unwrap();
    for disk in [disk.clone(), RealDisk::new(directory.path(), true).unwrap()] {
        let refused = disk.lock(&name()).unwrap_err();
        let text = refused.to_string();
        let DiskError::Locked { holder, .. } = refused else { panic!("{text}") };
        assert_eq!(holder, Some(std::process::id()));
        assert!(text.contains(&format!("by process {}", std::process::id())), "{text}");
    }
    disk.lock(&FileName::new("other").unwrap()).unwrap();
    drop(lock);
    drop(disk.lock(&name()).unwrap());
    disk.lock(&name()).unwrap();
}

#[test]
fn what_the_file_holds_does_not_lock() {
    let directory = directory();
    std::fs::write(directory.path().join("lock"), "4711 and more that is no number\n").unwrap();
    let disk = RealDisk::new(directory.path(), false).unwrap();
    let lock = disk.lock(&name()).unwrap();
    std::fs::write(directory.path().join("lock"), "no number").unwrap();
    let refused = disk.lock(&name()).unwrap_err();
    assert!(matches!(refused, DiskError::Locked { holder: None, .. }), "{refused:?}");
    assert!(refused.to_string().ends_with("is in use; close it there first"), "{refused}");
    drop(lock);
}

#[test]
fn a_process_that_dies_holds_nothing() {
    let directory = directory();
    let disk = RealDisk::new(directory.path(), false).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "locks::the_child_holds_it", "--nocapture"])
        .env(CHILD, directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !directory.path().join("held").exists() {
        assert_eq!(child.try_wait().unwrap(), None, "the child ended early");
        std::thread::yield_now();
    }
    match disk.lock(&name()).unwrap_err() {
        DiskError::Locked { holder, .. } => assert_eq!(holder, Some(child.id())),
        other => panic!("{other}"),
    }
    child.kill().unwrap();
    child.wait().unwrap();
    disk.lock(&name()).unwrap();
}

/// No test of its own: it is the child of the one above.
#[test]
fn the_child_holds_it() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let directory = std::path::Path::new(&directory);
    let disk = RealDisk::new(directory, false).unwrap();
    let _lock = disk.lock(&name()).unwrap();
    std::fs::write(directory.join("held"), "").unwrap();
    // Until it is killed, or its parent is gone.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}
