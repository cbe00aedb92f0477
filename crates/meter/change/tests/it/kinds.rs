//! Each kind of change, applied and undone on the machine.

use std::fs;
use std::path::Path;

use iostrata_change::{
    BackingFile, ChangeError, CpuGroup, DropCaches, Effect, EnterGroup, FilesystemKind, Governor,
    GroupEffect, How, InstanceEffect, IoGroup, LoopEffect, MakeFilesystem, MemoryGroup, Mount,
    MountEffect, MountTracefs, Prewrite, Queue, QueueAttribute, Remount, Sysctl, TraceInstance,
    VmSetting, restore, touched_unwritten_bytes,
};
use iostrata_plan::study::IoLimits;

use crate::machine::{MIB, Place, disk, has, queue};

fn set(device: &iostrata_change::DeviceRef, attribute: QueueAttribute, value: &str) -> Queue {
    Queue { device: device.clone(), attribute, value: value.to_owned() }
}

#[test]
fn a_loop_device_comes_and_goes() {
    let Some(place) = Place::new("a_loop_device_comes_and_goes") else { return };
    let before = place.snapshot();
    let mut session = place.session();
    let (file, attach, device) = disk(&place, "disk", 16);
    session.apply(file.clone()).unwrap();
    let attached = session.apply(attach.clone()).unwrap();
    let Effect::Loop(LoopEffect { device: node, direct, .. }) = &attached.effect else { panic!() };
    assert!(*direct && node.starts_with("/dev"));
    assert_eq!(touched_unwritten_bytes(&place.path("disk"), &[(0, 16 * MIB)]).unwrap(), 0);
    let twice = session.apply(attach).unwrap_err();
    assert!(matches!(twice, ChangeError::Taken { .. }), "{twice}");
    let taken = session.apply(file).unwrap_err();
    assert!(matches!(taken, ChangeError::Taken { .. }), "{taken}");
    let later = session.apply(set(&device, QueueAttribute::Scheduler, "bfq")).unwrap();
    let early = session.undo(attached.id).unwrap_err();
    assert!(matches!(early, ChangeError::DependedOn { .. }), "{early}");
    assert_eq!(session.undo(later.id).unwrap().how, How::PutBack);
    assert_eq!(session.undo(attached.id).unwrap().how, How::PutBack);
    assert!(matches!(session.undo(attached.id), Err(ChangeError::NotInPlace { .. })));
    let report = session.undo_all();
    assert!(report.is_settled() && report.left.is_empty(), "{report:?}");
    assert_eq!(fs::read_dir(place.path("state")).unwrap().count(), 0, "the journal is removed");
    before.assert_same(&place.snapshot(), "undoing");
}

#[test]
fn a_queue_is_put_back_whole() {
    let Some(place) = Place::new("a_queue_is_put_back_whole") else { return };
    let mut session = place.session();
    let (file, attach, device) = disk(&place, "disk", 8);
    session.apply(file).unwrap();
    let attached = session.apply(attach).unwrap();
    let Effect::Loop(attached) = &attached.effect else { panic!() };
    let name = attached.device.strip_prefix("/dev").unwrap();
    let name = name.to_str().unwrap();
    let before = queue(name);
    let mut ids = Vec::new();
    for (attribute, value) in [
        (QueueAttribute::NrRequests, "77"),
        (QueueAttribute::Scheduler, "mq-deadline"),
        (QueueAttribute::NrRequests, "100000"),
        (QueueAttribute::ReadAheadKb, "5"),
        (QueueAttribute::Scheduler, "bfq"),
        (QueueAttribute::WbtLatUsec, "1000"),
        (QueueAttribute::Nomerges, "2"),
        (QueueAttribute::RqAffinity, "2"),
        (QueueAttribute::AddRandom, "1"),
        (QueueAttribute::Iostats, "0"),
    ] {
        match session.apply(set(&device, attribute, value)) {
            Ok(applied) => {
                let (asked, took) = applied.asked_and_took().unwrap();
                assert_eq!(asked, value);
                if attribute == QueueAttribute::Scheduler {
                    assert_eq!(took, value);
                }
                ids.push(applied.id);
            }
            // Kernels differ in which attributes a loop device has.
            Err(error) => assert!(matches!(error, ChangeError::Unavailable { .. }), "{error}"),
        }
    }
    assert!(ids.len() >= 6, "{ids:?}");
    for id in ids.into_iter().rev() {
        let undone = session.undo(id).unwrap();
        assert!(undone.left.is_empty(), "{undone:?}");
    }
    assert_eq!(queue(name), before);
    let refused = session.apply(set(&device, QueueAttribute::Scheduler, "anticipatory"));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("mq-deadline"), "what there is instead is named: {refused}");
    assert_eq!(queue(name), before);
}

#[test]
fn what_others_set_is_left_and_reported() {
    let Some(place) = Place::new("what_others_set_is_left_and_reported") else { return };
    let mut session = place.session();
    let (file, attach, device) = disk(&place, "disk", 8);
    session.apply(file).unwrap();
    let attached = session.apply(attach).unwrap();
    let Effect::Loop(attached) = &attached.effect else { panic!() };
    let name = attached.device.file_name().unwrap();
    let cell = Path::new("/sys/block").join(name).join("queue/nr_requests");
    session.apply(set(&device, QueueAttribute::NrRequests, "60")).unwrap();
    fs::write(&cell, "50").unwrap();
    let report = session.undo_all();
    assert!(report.is_settled());
    assert_eq!(report.left.len(), 1, "{report:?}");
    assert_eq!(report.left[0].found, "50");
    assert_eq!(fs::read_to_string(&cell).unwrap().trim(), "50");
    fs::write(&cell, "128").unwrap();
}

#[test]
fn file_systems_are_made_mounted_and_gone() {
    let Some(place) = Place::new("file_systems_are_made_mounted_and_gone") else { return };
    let before = place.snapshot();
    let mut session = place.session();
    let (file, attach, device) = disk(&place, "disk", 320);
    session.apply(file).unwrap();
    session.apply(attach).unwrap();
    for kind in FilesystemKind::ALL {
        if !has(kind.program()) {
            eprintln!("skipped: {}: {} is not installed", kind.name(), kind.program());
            continue;
        }
        let label = Some("layer".to_owned());
        let make = MakeFilesystem { device: device.clone(), kind, options: vec![], label };
        session.apply(make.clone()).unwrap();
        let at = place.path("deep/mnt");
        let options = vec!["noatime".to_owned()];
        let mount = Mount { device: device.clone(), at: at.clone(), kind, options };
        let mounted = session.apply(mount).unwrap();
        let Effect::Mounted(MountEffect { options, .. }) = &mounted.effect else { panic!() };
        assert!(options.iter().any(|option| option == "noatime"), "{options:?}");
        fs::write(at.join("file"), "x").unwrap();
        let refused = session.apply(make).unwrap_err();
        assert!(refused.to_string().contains("mounted at"), "{refused}");
        let remount = Remount { at: at.clone(), options: vec!["strictatime".to_owned()] };
        let remounted = session.apply(remount).unwrap();
        let Effect::Mounted(MountEffect { options, .. }) = &remounted.effect else { panic!() };
        assert!(!options.iter().any(|option| option == "noatime"), "{options:?}");
        let undone = session.undo(remounted.id).unwrap();
        assert!(undone.left.is_empty(), "{undone:?}");
        assert_eq!(session.undo(mounted.id).unwrap().how, How::PutBack);
        assert!(!place.path("deep").exists());
    }
    assert!(session.undo_all().is_settled());
    before.assert_same(&place.snapshot(), "undoing");
}

#[test]
fn an_option_that_a_kernel_has_not_is_a_result() {
    let Some(place) = Place::new("an_option_that_a_kernel_has_not_is_a_result") else { return };
    if !has("mkfs.xfs") {
        eprintln!("skipped: mkfs.xfs is not installed");
        return;
    }
    let before = place.snapshot();
    let mut session = place.session();
    let (file, attach, device) = disk(&place, "disk", 320);
    session.apply(file).unwrap();
    session.apply(attach).unwrap();
    let kind = FilesystemKind::Xfs;
    let options = vec![];
    session.apply(MakeFilesystem { device: device.clone(), kind, options, label: None }).unwrap();
    let at = place.path("mnt");
    let options = vec!["no_such_option".to_owned()];
    let refused = session.apply(Mount { device, at: at.clone(), kind, options });
    let Err(ChangeError::Unavailable { why, .. }) = refused else { panic!("{refused:?}") };
    assert!(why.contains("no_such_option") && why.contains("nknown"), "the kernel's words: {why}");
    assert!(!at.exists());
    drop(session);
    before.assert_same(&place.snapshot(), "dropping the session");
}

#[test]
fn write_back_settings_are_put_back() {
    let Some(place) = Place::new("write_back_settings_are_put_back") else { return };
    let before = place.snapshot();
    let mut session = place.session();
    for (which, value) in [
        (VmSetting::DirtyBytes, 256 * MIB),
        (VmSetting::DirtyRatio, 33),
        (VmSetting::DirtyBackgroundBytes, 64 * MIB),
        (VmSetting::DirtyExpireCentisecs, 1500),
        (VmSetting::DirtyWritebackCentisecs, 250),
    ] {
        let applied = session.apply(Sysctl { which, value }).unwrap();
        assert_eq!(applied.asked_and_took().unwrap().1, value.to_string());
    }
    let refused = session.apply(Sysctl { which: VmSetting::DirtyRatio, value: 101 });
    assert!(matches!(refused, Err(ChangeError::Unavailable { .. })), "{refused:?}");
    session.apply(DropCaches).unwrap();
    let report = session.undo_all();
    assert!(report.is_settled() && report.left.is_empty(), "{report:?}");
    before.assert_same(&place.snapshot(), "undoing");
}

#[test]
fn groups_limit_and_let_go() {
    let Some(place) = Place::new("groups_limit_and_let_go") else { return };
    let before = place.snapshot();
    let home = fs::read_to_string("/proc/self/cgroup").unwrap();
    let mut session = place.session();
    let (file, attach, device) = disk(&place, "disk", 8);
    session.apply(file).unwrap();
    session.apply(attach).unwrap();
    let name = || "small".to_owned();
    let limits = IoLimits { write_iops: Some(500), ..IoLimits::default() };
    let memory = session.apply(MemoryGroup { name: name(), limit_bytes: 512 * MIB });
    let io = session.apply(IoGroup { name: name(), device, limits });
    let cpu = session.apply(CpuGroup { name: name(), milli_cpus: 1_250 });
    for (made, limit) in [(&memory, "536870912"), (&io, "500"), (&cpu, "125000")] {
        match made {
            Ok(made) => {
                let Effect::Group(GroupEffect { limits, .. }) = &made.effect else { panic!() };
                let limits: String = limits.values().cloned().collect();
                assert!(limits.contains(limit), "{limits}");
            }
            Err(error @ ChangeError::Unavailable { .. }) => eprintln!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        }
    }
    if memory.is_ok() || io.is_ok() || cpu.is_ok() {
        for _ in 0..2 {
            let entered = session.apply(EnterGroup { name: name() }).unwrap();
            let inside = fs::read_to_string("/proc/self/cgroup").unwrap();
            assert!(inside.contains("iostrata-"), "{inside}");
            session.undo(entered.id).unwrap();
            assert_eq!(fs::read_to_string("/proc/self/cgroup").unwrap(), home);
        }
        session.apply(EnterGroup { name: name() }).unwrap();
    }
    drop(session);
    assert_eq!(fs::read_to_string("/proc/self/cgroup").unwrap(), home);
    before.assert_same(&place.snapshot(), "dropping the session");
}

#[test]
fn a_trace_buffer_comes_and_goes() {
    let Some(place) = Place::new("a_trace_buffer_comes_and_goes") else { return };
    let mut session = place.session();
    match session.apply(MountTracefs) {
        Ok(_) => {}
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    }
    let instance = |events: &[&str]| TraceInstance {
        name: "test".to_owned(),
        events: events.iter().map(|&event| event.to_owned()).collect(),
        buffer_kib: 64,
        clock: "mono".to_owned(),
    };
    let unknown = session.apply(instance(&["block:no_such_event"])).unwrap_err();
    assert!(matches!(unknown, ChangeError::Unavailable { .. }), "{unknown}");
    let made = session.apply(instance(&["block:block_rq_issue"])).unwrap();
    let Effect::Instance(InstanceEffect { dir, clock, .. }) = &made.effect else { panic!() };
    assert_eq!(clock, "mono");
    let enabled = dir.join("events/block/block_rq_issue/enable");
    assert_eq!(fs::read_to_string(enabled).unwrap().trim(), "1");
    session.undo(made.id).unwrap();
    assert!(!dir.exists());
    let report = session.undo_all();
    assert!(report.is_settled(), "{report:?}");
}

#[test]
fn a_governor_is_set_or_is_not_available() {
    let Some(place) = Place::new("a_governor_is_set_or_is_not_available") else { return };
    let mut session = place.session();
    let value = "performance".to_owned();
    match session.apply(Governor { cpu: 0, value: value.clone() }) {
        Ok(applied) => assert_eq!(applied.asked_and_took().unwrap().1, value),
        Err(ChangeError::Unavailable { fix, .. }) => assert!(fix.contains("host"), "{fix}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_panic_undoes_and_a_busy_mount_goes_lazily() {
    let Some(place) = Place::new("a_panic_undoes_and_a_busy_mount_goes_lazily") else { return };
    let before = place.snapshot();
    let at = place.path("mnt");
    let mut open = None;
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut session = place.session();
        let (file, attach, device) = disk(&place, "disk", 64);
        session.apply(file).unwrap();
        session.apply(attach).unwrap();
        let kind = FilesystemKind::Ext4;
        let options = vec![];
        let label = None;
        session.apply(MakeFilesystem { device: device.clone(), kind, options, label }).unwrap();
        session.apply(Mount { device, at: at.clone(), kind, options: vec![] }).unwrap();
        open = Some(fs::File::create(at.join("held")).unwrap());
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(ended.is_err());
    assert!(!at.exists() && !place.path("disk").exists());
    drop(open);
    // The kernel detaches the loop device when the last user is gone, a moment later.
    for _ in 0..100 {
        if iostrata_change::leftovers(&place.state()).is_empty()
            && place.snapshot().loops_are_gone()
        {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(restore(&place.state(), &iostrata_change::System::new()).journals.is_empty());
    before.assert_same(&place.snapshot(), "a panic");
}

#[test]
fn what_is_only_allocated_is_told_from_what_is_written() {
    let test = "what_is_only_allocated_is_told_from_what_is_written";
    let Some(place) = Place::new(test) else { return };
    let mut session = place.session();
    let path = place.path("sparse");
    let file = BackingFile { path: path.clone(), bytes: 8 * MIB, prewrite: Prewrite::None };
    session.apply(file).unwrap();
    assert_eq!(touched_unwritten_bytes(&path, &[(0, MIB)]).unwrap(), MIB);
}
