//! What stands on what, and changes in words.

use std::path::PathBuf;

use iostrata_plan::study::IoLimits;

use crate::kind::stands_on;
use crate::{
    BackingFile, Change, DeviceRef, FilesystemKind, FuseServer, IoGroup, Loop, MakeFilesystem,
    Mount, Prewrite, Queue, QueueAttribute, Sysctl, VmSetting,
};

fn queue(attribute: QueueAttribute, backing: &str) -> Change {
    let device = DeviceRef::Loop { backing: backing.into() };
    Queue { device, attribute, value: "1".into() }.into()
}

fn vm(which: VmSetting) -> Change {
    Sysctl { which, value: 1 }.into()
}

#[test]
fn devices_stand_on_what_they_are_over() {
    let file: Change = BackingFile { path: "/a".into(), bytes: 1, prewrite: Prewrite::None }.into();
    let attached: Change = Loop { backing: "/a".into(), direct: true, block_bytes: None }.into();
    let kind = FilesystemKind::Ext4;
    let device = DeviceRef::Loop { backing: "/a".into() };
    let mount: Change =
        Mount { device: device.clone(), at: "/m".into(), kind, options: vec![] }.into();
    let made: Change = MakeFilesystem { device, kind, options: vec![], label: None }.into();
    let inner: Change =
        BackingFile { path: "/m/b".into(), bytes: 1, prewrite: Prewrite::All }.into();
    assert!(stands_on(&attached, &file) && !stands_on(&file, &attached));
    assert!(stands_on(&mount, &attached) && stands_on(&mount, &file));
    assert!(stands_on(&inner, &mount));
    assert!(!stands_on(&made, &attached), "nothing to put back");
    assert!(!stands_on(&queue(QueueAttribute::Iostats, "/b"), &attached));
}

#[test]
fn a_loop_device_stands_on_the_server_of_its_file() {
    let at = PathBuf::from("/m/served");
    let server: Change = FuseServer {
        at: at.clone(),
        program: "/bin/program".into(),
        arguments: vec![],
        holds_journal: false,
    }
    .into();
    let attached: Change =
        Loop { backing: at.join("disk"), direct: true, block_bytes: None }.into();
    let other: Change = Loop { backing: "/m/disk".into(), direct: true, block_bytes: None }.into();
    let device = DeviceRef::Loop { backing: "/a".into() };
    let kind = FilesystemKind::Ext4;
    let below: Change = Mount { device, at: "/m".into(), kind, options: vec![] }.into();
    assert!(stands_on(&attached, &server) && !stands_on(&server, &attached));
    assert!(!stands_on(&other, &server));
    assert!(stands_on(&server, &below) && !stands_on(&below, &server));
}

#[test]
fn settings_stand_on_what_resets_them() {
    use QueueAttribute::{Iostats, NrRequests, Scheduler};
    assert!(stands_on(&queue(NrRequests, "/a"), &queue(Scheduler, "/a")));
    assert!(stands_on(&queue(Scheduler, "/a"), &queue(NrRequests, "/a")));
    assert!(stands_on(&queue(NrRequests, "/a"), &queue(Iostats, "/a")));
    assert!(!stands_on(&queue(NrRequests, "/a"), &queue(Scheduler, "/b")));
    assert!(stands_on(&vm(VmSetting::DirtyBytes), &vm(VmSetting::DirtyRatio)));
    assert!(!stands_on(&vm(VmSetting::DirtyBytes), &vm(VmSetting::DirtyBackgroundRatio)));
}

#[test]
fn a_change_is_one_line() {
    let device = DeviceRef::Named { path: "/dev/vdb".into(), overwrite: false };
    let attribute = QueueAttribute::Scheduler;
    let set = Change::from(Queue { device, attribute, value: "bfq".into() });
    assert_eq!(set.describe(), "set scheduler of vdb to bfq");
    let limits = IoLimits { write_iops: Some(1500), ..IoLimits::default() };
    let device = DeviceRef::Loop { backing: "/a".into() };
    let group = Change::from(IoGroup { name: "slow".into(), device, limits });
    assert_eq!(
        group.describe(),
        "make the group slow with at most 1500 writes/s on the loop device over /a"
    );
}
