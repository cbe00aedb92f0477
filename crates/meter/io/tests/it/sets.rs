//! File sets: made, filled, kept, refused and removed.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use iostrata_io::{
    ApiConfig, Buffers, ExtentReport, FileApi, FileCall, FileSet, FileSetError, FileSetPlan,
    FileSpec, Fill, LibaioApi, Op, OpKind, OpenFiles, OpenMode, Place, SyncApi, UringApi,
};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

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
    assert!(told.is_sorted() && told.last() == Some(&(3 * MIB + 4096)), "{told:?}");
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
fn a_file_that_grows_keeps_what_it_holds() {
    let directory = directory();
    let path = directory.path().join("grows");
    let growing = |bytes| FileSetPlan { keep: true, fill: Fill::Grown, ..plan(&path, bytes) };
    drop(prepare(&growing(8192)).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().len(), 8192, "there was none");
    fs::write(&path, [7; 8192]).unwrap();
    drop(prepare(&growing(20_480)).unwrap());
    let found = fs::read(&path).unwrap();
    assert_eq!((found.len(), &found[..8192]), (20_480, &[7; 8192][..]));

    let theirs = directory.path().join("theirs");
    fs::write(&theirs, [1; 8192]).unwrap();
    let mut plan = FileSetPlan { fill: Fill::Grown, ..plan(&theirs, 16_384) };
    assert!(matches!(prepare(&plan), Err(FileSetError::NotOurs { .. })));
    plan.overwrite_contents = true;
    drop(prepare(&plan).unwrap());
    let found = fs::read(&theirs).unwrap();
    assert_eq!((found.len(), &found[..8192]), (16_384, &[1; 8192][..]));
}

#[test]
fn a_foreign_file_is_only_read() {
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
    let mut plan = plan(directory.path(), 128 * MIB);
    plan.files = 2;
    let stop = AtomicBool::new(false);
    let stopped = FileSet::prepare(&plan, &stop, &mut |at| {
        stop.store(at.done_bytes >= 80 * MIB, std::sync::atomic::Ordering::Relaxed);
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

fn extents(set: &FileSet) -> ExtentReport {
    set.open(OpenMode::default()).unwrap().extents().unwrap()
}

#[test]
fn the_fill_shows_in_the_extents() {
    let directory = directory();
    let mut plan = plan(directory.path(), 4 * MIB);
    let written = extents(&prepare(&plan).unwrap());
    assert_eq!((written.written_bytes, written.hole_bytes), (4 * MIB, 0));
    assert_eq!(written.unwritten_bytes, 0);

    plan.fill = Fill::Empty;
    let empty = prepare(&plan).unwrap();
    assert_eq!(fs::metadata(&empty.specs()[0].path).unwrap().len(), 0);
    fs::File::options().write(true).open(&empty.specs()[0].path).unwrap().set_len(MIB).unwrap();
    assert_eq!(extents(&empty).hole_bytes, 4 * MIB);

    plan.fill = Fill::Fallocated;
    match prepare(&plan) {
        Ok(set) if extents(&set).supported => {
            assert_eq!(extents(&set).unwritten_bytes, 4 * MIB);
        }
        Ok(_) => eprintln!("skipped: no FIEMAP on this file system"),
        Err(FileSetError::NoFallocate { .. }) => eprintln!("skipped: no fallocate"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn files_that_requests_make_are_ours_afterwards_or_removed() {
    let directory = directory();
    let path = directory.path().join("made");
    let mut plan = plan(&path, MIB);
    (plan.fill, plan.keep) = (Fill::Absent, true);
    let make = |set: &FileSet| {
        assert!(!path.exists(), "nothing is made ahead");
        let files = OpenFiles::named(set.specs());
        let config = ApiConfig { call: Some(FileCall::Create), ..ApiConfig::default() };
        let (mut api, _caps) = SyncApi::start(&config, &files, &Buffers::none()).unwrap();
        let one = Op { kind: OpKind::Read, file: 0, offset: 0, len: 512, buffer: 0, tag: 0 };
        for _ in 0..2 {
            api.queue(one);
            let mut result = None;
            api.reap(1, None, |done| result = Some(done.result)).unwrap();
            assert_eq!(result, Some(512));
        }
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((meta.len(), meta.mode() & 0o777), (0, 0o600));
    };
    // Kept, and made again by the next run.
    for _ in 0..2 {
        let set = prepare(&plan).unwrap();
        make(&set);
        drop(set);
        assert!(path.exists());
    }
    assert_eq!(FileSet::remove_kept(std::slice::from_ref(&path)).unwrap(), 1);
    plan.keep = false;
    let set = prepare(&plan).unwrap();
    make(&set);
    drop(set);
    assert!(!path.exists());
    // What is not ours stays as it is.
    fs::write(&path, "mine").unwrap();
    plan.place = Place::find(&path).unwrap();
    assert!(matches!(prepare(&plan), Err(FileSetError::NotOurs { .. })));
    plan.overwrite_contents = true;
    drop(prepare(&plan).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn parts_of_a_file_are_told_apart() {
    let directory = directory();
    let path = directory.path().join("parts");
    let file = fs::File::create(&path).unwrap();
    for block in 0..300 {
        file.write_all_at(&[1; 4096], block * 3 * 4096).unwrap();
    }
    file.set_len(900 * 4096).unwrap();
    file.sync_all().unwrap();
    let spec = FileSpec { path, bytes: 900 * 4096 };
    let report = OpenFiles::open(&[spec], OpenMode::default()).unwrap().extents().unwrap();
    assert_eq!(report.written_bytes + report.unwritten_bytes, 300 * 4096);
    assert_eq!(report.hole_bytes, 600 * 4096);
}

#[test]
fn residency_sees_what_was_read_through_the_cache() {
    let directory = directory();
    let set = prepare(&plan(directory.path(), 4 * MIB)).unwrap();
    let files = set.open(OpenMode::default()).unwrap();
    files.drop_cached();
    let before = files.residency().unwrap();
    assert!(before.share() < 0.1, "{before:?}");
    fs::read(&set.specs()[0].path).unwrap();
    let after = files.residency().unwrap();
    assert!(after.share() > 0.9, "{after:?}");
}

/// Takes a mount down even when an assertion fails.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _left_behind = unmount(self.0, UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_is_named_and_leaves_nothing() {
    let directory = directory();
    let mounted = mount("tmpfs", directory.path(), "tmpfs", MountFlags::empty(), c"size=8m");
    if let Err(errno) = mounted {
        eprintln!("skipped: mounting a tmpfs: {errno}");
        return;
    }
    let _mounted = Mounted(directory.path());
    let refused = prepare(&plan(directory.path(), 16 * MIB));
    let eaten = directory.path().join("eaten");
    let full =
        FileSet::prepare(&plan(directory.path(), 6 * MIB), &AtomicBool::new(false), &mut |_| {});
    drop(full);
    fs::write(&eaten, vec![1; 7 << 20]).unwrap();
    let spec = FileSpec { path: eaten, bytes: 16 * MIB };
    let results = write_past_the_room(&spec);
    let left = names(directory.path());
    let refused = refused.unwrap_err();
    assert!(matches!(refused, FileSetError::NoSpace { .. }), "{refused}");
    assert_eq!(left, ["eaten"]);
    assert!(results.iter().all(|result| *result == -libc::ENOSPC), "{results:?}");
}

/// What each API answers to a write for which there is no room.
fn write_past_the_room(spec: &FileSpec) -> Vec<i32> {
    fn one<A: FileApi>(spec: &FileSpec) -> i32 {
        let mode = OpenMode { write: true, ..OpenMode::default() };
        let files = OpenFiles::open(std::slice::from_ref(spec), mode).unwrap();
        let buffers = Buffers::new(1, 1 << 20, 1).unwrap();
        let (mut api, _caps) = A::start(&ApiConfig::default(), &files, &buffers).unwrap();
        let mut results = Vec::new();
        for block in 8..16 {
            let (kind, len) = (OpKind::Write, 1 << 20);
            api.queue(Op { kind, file: 0, offset: block * MIB, len, buffer: 0, tag: 0 });
            api.reap(1, None, |done| results.push(done.result)).unwrap();
        }
        *results.last().unwrap()
    }
    vec![one::<SyncApi>(spec), one::<LibaioApi>(spec), one::<UringApi>(spec)]
}
