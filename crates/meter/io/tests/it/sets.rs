//! File sets: made, filled, kept, refused and removed.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use iostrata_io::{FileSet, FileSetError, FileSetPlan, Place};

use crate::place::{directory, plan, prepare};

const MIB: u64 = 1 << 20;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn zero_share(content: &[u8]) -> f64 {
    content.iter().filter(|byte| **byte == 0).count() as f64 / content.len() as f64
}

#[test]
fn a_new_file_is_filled_with_noise_and_removed() {
    let directory = directory();
    let path = directory.path().join("new");
    let mut told = Vec::new();
    let set = FileSet::prepare(&plan(&path, 3 * MIB + 4096), &AtomicBool::new(false), &mut |at| {
        told.push(at.done_bytes);
    })
    .unwrap();
    assert_eq!(told, [MIB, 2 * MIB, 3 * MIB, 3 * MIB + 4096]);
    let content = fs::read(&path).unwrap();
    assert_eq!(content.len() as u64, 3 * MIB + 4096);
    assert!(content.chunks(4096).all(|page| zero_share(page) < 0.02));
    drop(set);
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn a_directory_gets_own_files_of_equal_size() {
    let directory = directory();
    let mut plan = plan(directory.path(), 10 * MIB);
    plan.files = 3;
    let set = prepare(&plan).unwrap();
    let sizes: Vec<u64> =
        set.specs().iter().map(|spec| fs::metadata(&spec.path).unwrap().len()).collect();
    assert_eq!(sizes, [10 * MIB / 3 / 4096 * 4096; 3]);
    assert!(names(directory.path()).iter().all(|name| name.starts_with("iostrata-")));
    drop(set);
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn a_kept_file_is_used_again_only_when_whole() {
    let directory = directory();
    let path = directory.path().join("kept");
    let keeping = |bytes| FileSetPlan { keep: true, ..plan(&path, bytes) };
    drop(prepare(&keeping(2 * MIB)).unwrap());
    let before = fs::read(&path).unwrap();
    let again = prepare(&keeping(2 * MIB)).unwrap();
    assert!(again.is_reused());
    drop(again);
    assert!(fs::read(&path).unwrap() == before);

    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(MIB).unwrap();
    file.set_len(2 * MIB).unwrap();
    let whole = prepare(&keeping(2 * MIB)).unwrap();
    assert!(!whole.is_reused());
    assert!(zero_share(&fs::read(&path).unwrap()) < 0.02);

    drop(whole);
    assert!(!prepare(&keeping(3 * MIB)).unwrap().is_reused());
    assert_eq!(fs::metadata(&path).unwrap().len(), 3 * MIB);
}

#[test]
fn somebody_elses_file_is_only_read() {
    let directory = directory();
    let path = directory.path().join("theirs");
    fs::write(&path, [1; 8192]).unwrap();
    let mut plan = plan(&path, 8192);
    assert!(matches!(prepare(&plan), Err(FileSetError::NotOurs { .. })));
    plan.write = false;
    assert!(!prepare(&plan).unwrap().is_writable());
    plan.write = true;
    plan.overwrite_contents = true;
    drop(prepare(&plan).unwrap());
    assert_eq!(fs::read(&path).unwrap(), [1; 8192]);
    plan.total_bytes = Some(16384);
    assert!(matches!(prepare(&plan), Err(FileSetError::ExistingTooSmall { .. })));
}

#[test]
fn a_copy_of_a_kept_file_is_not_ours() {
    let directory = directory();
    let (kept, copy) = (directory.path().join("kept"), directory.path().join("copy"));
    drop(prepare(&FileSetPlan { keep: true, ..plan(&kept, MIB) }).unwrap());
    let copied = std::process::Command::new("cp").args(["-a", "--"]).args([&kept, &copy]).status();
    if !copied.is_ok_and(|status| status.success()) {
        eprintln!("skipped: cp -a is not available");
        return;
    }
    assert!(matches!(prepare(&plan(&copy, MIB)), Err(FileSetError::NotOurs { .. })));
}

#[test]
fn stopping_removes_everything() {
    let directory = directory();
    let mut plan = plan(directory.path(), 8 * MIB);
    plan.files = 2;
    let stop = AtomicBool::new(false);
    let stopped = FileSet::prepare(&plan, &stop, &mut |at| {
        stop.store(at.done_bytes >= 6 * MIB, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(matches!(stopped, Err(FileSetError::Stopped { .. })));
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn too_large_is_refused_before_writing() {
    let directory = directory();
    let refused = prepare(&plan(directory.path(), 1 << 60)).unwrap_err();
    assert!(matches!(refused, FileSetError::NoSpace { .. }), "{refused}");
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn a_path_without_a_directory_is_refused() {
    let refused = Place::find(Path::new("/no/such/directory/file")).unwrap_err();
    assert!(refused.to_string().contains("/no/such/directory"), "{refused}");
}
