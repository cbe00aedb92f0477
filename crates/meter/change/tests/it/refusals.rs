//! Devices that are not to be touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iostrata_change::{
    ChangeError, DeviceRef, DeviceState, EnterGroup, FilesystemKind, Loop, MakeFilesystem, Mount,
    Platform, Remount, System,
};

use crate::machine::{MIB, Place};

/// A loop device that a stranger attached.
struct Stranger(PathBuf);

impl Stranger {
    fn over(file: &Path) -> Option<Self> {
        fs::File::create(file).unwrap().set_len(64 * MIB).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        let node = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        output.status.success().then(|| Self(PathBuf::from(node)))
    }

    fn named(&self, overwrite: bool) -> DeviceRef {
        DeviceRef::Named { path: self.0.clone(), overwrite }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _left = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

fn make(device: DeviceRef) -> MakeFilesystem {
    MakeFilesystem { device, kind: FilesystemKind::Ext4, options: vec![], label: None }
}

#[test]
fn what_a_device_holds_is_not_lost_by_accident() {
    let Some(place) = Place::new("what_a_device_holds_is_not_lost_by_accident") else { return };
    let file = place.path("theirs");
    let Some(stranger) = Stranger::over(&file) else {
        eprintln!("skipped: losetup does not work here");
        return;
    };
    let mut session = place.session();
    let state = |stranger: &Stranger| System::new().state(&stranger.0).unwrap();
    assert_eq!(state(&stranger), DeviceState::Empty);
    session.apply(make(stranger.named(false))).unwrap();
    assert!(matches!(state(&stranger), DeviceState::Signed(what) if what.contains("ext4")));
    let refused = session.apply(make(stranger.named(false))).unwrap_err();
    assert!(matches!(refused, ChangeError::Refused { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains(stranger.0.to_str().unwrap()) && text.contains("ext4"), "{text}");
    session.apply(make(stranger.named(true))).unwrap();
    // The same device by its file is a stranger's all the same.
    let by_file = session.apply(make(DeviceRef::Loop { backing: file.clone() })).unwrap_err();
    assert!(matches!(by_file, ChangeError::Refused { .. }), "{by_file}");
    let attach = Loop { backing: file, direct: false, block_bytes: None };
    assert!(matches!(session.apply(attach), Err(ChangeError::Taken { .. })));
}

#[test]
fn a_device_in_use_is_refused_whatever_the_flag() {
    let Some(place) = Place::new("a_device_in_use_is_refused_whatever_the_flag") else { return };
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mut devices = mounts.lines().filter_map(|line| line.split(' ').next()).map(PathBuf::from);
    let Some(path) = devices.find(|path| path.starts_with("/dev") && path.exists()) else {
        eprintln!("skipped: no device is mounted");
        return;
    };
    let device = DeviceRef::Named { path, overwrite: true };
    let mut session = place.session();
    let refused = session.apply(make(device.clone())).unwrap_err();
    assert!(refused.to_string().contains("mounted at"), "{refused}");
    let at = place.path("mnt");
    let kind = FilesystemKind::Ext4;
    let mount = Mount { device, at, kind, options: vec![] };
    assert!(matches!(session.apply(mount), Err(ChangeError::Refused { .. })));
    assert!(!place.path("state").exists(), "a refusal leaves no trace");
}

#[test]
fn places_that_are_taken_are_left() {
    let Some(place) = Place::new("places_that_are_taken_are_left") else { return };
    let mut session = place.session();
    let nothing = DeviceRef::Loop { backing: place.path("nothing") };
    let refused = session.apply(make(nothing)).unwrap_err();
    assert!(matches!(refused, ChangeError::Unavailable { .. }), "{refused}");
    let remount = Remount { at: "/".into(), options: vec!["noatime".to_owned()] };
    assert!(matches!(session.apply(remount), Err(ChangeError::Refused { .. })));
    let enter = EnterGroup { name: "no-such".to_owned() };
    assert!(matches!(session.apply(enter), Err(ChangeError::Unavailable { .. })));
}
