//! Block devices: read, overwritten with leave, and never written while in use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iostrata_io::{FileSetError, FileSetPlan, OpenMode, Place};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::place::{directory, prepare};

const MIB: u64 = 1 << 20;

/// A loop device over a file, taken down when dropped.
struct Loop(PathBuf);

impl Loop {
    fn new(file: &Path) -> Option<Self> {
        fs::File::create(file).unwrap().set_len(32 * MIB).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        match output {
            Ok(output) if output.status.success() => {
                Some(Self(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())))
            }
            Ok(output) => {
                eprintln!("skipped: losetup: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                eprintln!("skipped: losetup: {error}");
                None
            }
        }
    }

    fn plan(&self) -> FileSetPlan {
        let place = Place::find(&self.0).unwrap();
        assert!(matches!(place, Place::Device(_)));
        FileSetPlan { total_bytes: None, ..FileSetPlan::new(place, MIB, 4096) }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _left_behind = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

#[test]
fn a_free_device_needs_leave_and_a_mounted_one_is_held() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = Loop::new(&image) else { return };
    let leave = FileSetPlan { overwrite_contents: true, ..device.plan() };

    assert!(matches!(prepare(&device.plan()), Err(FileSetError::NotOurs { .. })));
    let reading = prepare(&FileSetPlan { write: false, ..device.plan() }).unwrap();
    assert_eq!(reading.total_bytes(), 32 * MIB);
    let files = reading.open(OpenMode { direct: true, ..OpenMode::default() }).unwrap();
    assert!(files.alignment().offset_bytes.is_power_of_two(), "{:?}", files.alignment());
    drop(files);
    assert!(prepare(&leave).unwrap().is_writable());
    let under = FileSetPlan { place: Place::find(&image).unwrap(), ..leave.clone() };
    let held = prepare(&under).unwrap_err();
    assert!(held.to_string().contains("loop"), "{held}");

    let made = Command::new("mkfs.ext4").arg("-q").arg(&device.0).output();
    if !made.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: mkfs.ext4 is not available");
        return;
    }
    let place = directory.path().join("mounted");
    fs::create_dir(&place).unwrap();
    if let Err(errno) = mount(&device.0, &place, "ext4", MountFlags::empty(), None) {
        eprintln!("skipped: mounting: {errno}");
        return;
    }
    let held = prepare(&leave);
    let read = prepare(&FileSetPlan { write: false, ..leave });
    unmount(&place, UnmountFlags::empty()).unwrap();
    let held = held.unwrap_err();
    assert!(held.to_string().contains("mounted at"), "{held}");
    assert!(!read.unwrap().is_writable());
}

#[test]
fn the_device_of_a_mounted_file_system_is_held() {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let device = mounts.lines().find_map(|line| {
        let device = line.split(' ').next()?;
        device.starts_with("/dev/").then(|| Place::find(Path::new(device)).ok()).flatten()
    });
    let Some(place @ Place::Device(_)) = device else {
        eprintln!("skipped: no mounted block device is to be seen");
        return;
    };
    let plan = FileSetPlan { overwrite_contents: true, ..FileSetPlan::new(place, MIB, 4096) };
    let held = prepare(&plan).unwrap_err();
    assert!(held.to_string().contains("mounted at"), "{held}");
}
