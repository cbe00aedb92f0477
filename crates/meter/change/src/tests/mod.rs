//! Sessions and restores on a machine that is only data, and the changes of every kind that they
//! make.

mod fake;
mod journals;
mod relations;
mod served;
mod settings;

use std::fs;
use std::path::{Path, PathBuf};

use iostrata_plan::study::IoLimits;

use super::{
    BackingFile, Change, CpuGroup, DatabaseServer, DeviceRef, DropCaches, EnterGroup,
    FilesystemKind, FuseServer, Governor, IoGroup, Loop, MakeFilesystem, MemoryGroup, Mount,
    MountTracefs, Prewrite, Queue, QueueAttribute, Remount, ServerDirectory, ServerSetting,
    ServerSettings, Sysctl, TraceInstance, VmSetting,
};
use crate::{
    ChangeError, ChangeId, GroupVersion, How, JournalState, Owner, Platform, RestoreReport,
    Session, StateDir, UndoOutcome, leftovers, restore,
};
use fake::{BOUNDED, FakePlatform, Machine, Moment, Node};

const SERVER: &str = "mysql://127.0.0.1:3306";

fn device() -> DeviceRef {
    DeviceRef::Loop { backing: "/data/disk".into() }
}

fn queue(attribute: QueueAttribute, value: &str) -> Change {
    Queue { device: device(), attribute, value: value.to_owned() }.into()
}

fn disk() -> [Change; 2] {
    let path = PathBuf::from("/data/disk");
    [
        BackingFile { path: path.clone(), bytes: 4096, prewrite: Prewrite::All }.into(),
        Loop { backing: path, direct: true, block_bytes: None }.into(),
    ]
}

/// A disk that a program serves, and the loop device over it.
fn served(holds_journal: bool) -> [Change; 2] {
    let at = PathBuf::from("/data/served/here");
    let (program, arguments) = ("/bin/program".into(), vec!["serve".to_owned()]);
    let server = FuseServer { at: at.clone(), program, arguments, holds_journal };
    [server.into(), Loop { backing: at.join("disk"), direct: true, block_bytes: None }.into()]
}

fn mount(options: &[&str]) -> Change {
    let options = options.iter().map(|&option| option.to_owned()).collect();
    let kind = FilesystemKind::Ext4;
    Mount { device: device(), at: "/data/deep/mnt".into(), kind, options }.into()
}

/// A group of settings, with others that may be adjusted.
fn settings(set: &[(&str, u64)], adjustable: &[&str]) -> Change {
    let adjustable = adjustable.iter().map(|&name| name.to_owned()).collect();
    ServerSettings { server: SERVER.to_owned(), settings: wanted(set), adjustable }.into()
}

/// What a group is adjusted to.
fn wanted(set: &[(&str, u64)]) -> Vec<ServerSetting> {
    set.iter().map(|&(name, value)| ServerSetting::new(name, value)).collect()
}

/// A directory for a database server, and the server on it.
fn database(group: Option<&str>) -> (ServerDirectory, DatabaseServer) {
    let path = PathBuf::from("/data/private");
    let socket = path.join("socket");
    let arguments =
        vec![format!("--datadir={}", path.display()), format!("--socket={}", socket.display())];
    let server = DatabaseServer {
        data_dir: path.clone(),
        is_named: false,
        socket,
        program: "/usr/sbin/mysqld".into(),
        arguments,
        group: group.map(str::to_owned),
        run_as: None,
    };
    (ServerDirectory { path }, server)
}

/// A trace buffer with one event.
fn instance() -> TraceInstance {
    let (name, events) = ("trace".to_owned(), vec!["block:block_rq_issue".to_owned()]);
    TraceInstance { name, events, buffer_kib: 64, clock: "mono".to_owned() }
}

/// Changes of every kind.
fn every_kind() -> Vec<Change> {
    let name = || "small".to_owned();
    let limits = IoLimits { write_iops: Some(9), read_bytes_per_s: Some(5), ..IoLimits::default() };
    let kind = FilesystemKind::Ext4;
    let mut changes = disk().to_vec();
    changes.extend([
        queue(QueueAttribute::NrRequests, "60"),
        queue(QueueAttribute::Scheduler, "none"),
        queue(QueueAttribute::Scheduler, "mq-deadline"),
        queue(QueueAttribute::NrRequests, "100000"),
        queue(QueueAttribute::ReadAheadKb, "5"),
        queue(QueueAttribute::Iostats, "0"),
        queue(QueueAttribute::Scheduler, "bfq"),
        MakeFilesystem { device: device(), kind, options: vec![], label: None }.into(),
        mount(&[]),
        Remount { at: "/data/deep/mnt".into(), options: vec!["noatime".to_owned()] }.into(),
        Sysctl { which: VmSetting::DirtyBytes, value: 1 << 20 }.into(),
        Sysctl { which: VmSetting::DirtyRatio, value: 5 }.into(),
        Sysctl { which: VmSetting::DirtyBackgroundBytes, value: 1 << 20 }.into(),
        Sysctl { which: VmSetting::DirtyExpireCentisecs, value: 7 }.into(),
        DropCaches.into(),
        IoGroup { name: name(), device: device(), limits }.into(),
        MemoryGroup { name: "other".to_owned(), limit_bytes: 1 << 30 }.into(),
        CpuGroup { name: "other".to_owned(), milli_cpus: 1500 }.into(),
        EnterGroup { name: name() }.into(),
        Governor { cpu: 3, value: "performance".to_owned() }.into(),
        MountTracefs.into(),
        instance().into(),
        settings(&[(BOUNDED[0], 9_999), (BOUNDED[1], 5_000)], &BOUNDED),
        settings(&[("buffer_pool_mib", 130)], &[]),
    ]);
    changes.extend(served(false));
    let (directory, server) = database(Some("other"));
    changes.extend([directory.into(), server.into()]);
    changes
}

// Sessions and restores on the stand-in: every moment of a run is a moment to be killed at.

const SCHEDULER: &str = "/sys/block/loop0/queue/scheduler";
const REQUESTS: &str = "/sys/block/loop0/queue/nr_requests";
const VERSIONS: [GroupVersion; 2] = [GroupVersion::V1, GroupVersion::V2];

/// A directory for journals, a machine, and its first state.
fn begin(version: GroupVersion) -> (tempfile::TempDir, StateDir, Machine) {
    // In memory where that is possible: thousands of journals are flushed.
    let memory = Path::new("/dev/shm");
    let dir = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap();
    let state = StateDir::at(dir.path().join("state"));
    let machine = FakePlatform::new(&state, version).machine.into_inner();
    (dir, state, machine)
}

/// Panics with what differs, and nothing else.
fn assert_same(now: &Machine, first: &Machine, when: &str) {
    let differs = |one: &Machine, other: &Machine| {
        let nodes = one.nodes.iter().filter(|(path, node)| other.nodes.get(*path) != Some(node));
        nodes.map(|(path, node)| format!("{} {node:?}", path.display())).collect::<Vec<_>>()
    };
    assert_eq!(differs(now, first), differs(first, now), "{when}");
    assert_eq!(now, first, "{when}");
}

/// Every moment of a run that applies and undoes everything.
fn moments(version: GroupVersion) -> Vec<Moment> {
    let (_dir, state, machine) = begin(version);
    let platform = FakePlatform::on(machine.clone(), &state, version);
    let mut session = Session::begin(&state, platform).unwrap();
    make_every_kind(&mut session);
    let report = session.undo_all();
    assert!(report.is_settled() && report.left.is_empty(), "{report:#?}");
    assert!(state.journals().is_empty());
    let last = session.platform().machine.borrow().clone();
    assert_same(&last, &machine, "undoing in the same process");
    session.platform().moments.take()
}

/// Changes of every kind, adjusted and entered again, all of them in place at the end.
fn make_every_kind(session: &mut Session<FakePlatform>) {
    for change in every_kind() {
        let is_entering = matches!(change, Change::EnterGroup(_));
        let is_adjusted =
            matches!(&change, Change::ServerSettings(group) if !group.adjustable.is_empty());
        let applied = session.apply(change).unwrap();
        if is_adjusted {
            for values in [[6_000, 9_000, 2, 5], [100, 150, 0, 60], [7_000, 300, 70, 60]] {
                let values: Vec<_> = BOUNDED.into_iter().zip(values).collect();
                session.adjust(applied.id, &wanted(&values)).unwrap();
            }
        }
        if is_entering {
            session.undo(applied.id).unwrap();
            session.apply(applied.change).unwrap();
        }
    }
}

/// Restores from these bytes on that machine, as another process; twice.
fn after_a_kill(
    journal: &[u8],
    machine: &Machine,
    version: GroupVersion,
) -> (Machine, RestoreReport) {
    let (_dir, state, first) = begin(version);
    fs::create_dir(state.path()).unwrap();
    fs::write(state.path().join("changes-77-7-0.jsonl"), journal).unwrap();
    let mut machine = machine.clone();
    // A dead process is in no group; its servers may live on.
    machine.groups.insert("/cg".into(), first.groups[Path::new("/cg")].clone());
    let platform = FakePlatform::on(machine, &state, version).without_owner();
    let report = restore(&state, &platform);
    assert!(restore(&state, &platform).journals.is_empty(), "{report:#?}");
    (platform.machine.into_inner(), report)
}

/// What a crash may leave of a journal: each end between two moments, whole lines or not.
fn ends(from: &[u8], to: &[u8]) -> Vec<usize> {
    if !to.starts_with(from) {
        return Vec::new();
    }
    let new = from.len()..=to.len();
    let is_near_line = |end: &usize| {
        let near = |at: usize| to.get(at) == Some(&b'\n');
        near(*end)
            || near(end.wrapping_sub(1))
            || near(end.wrapping_sub(2))
            || end.is_multiple_of(37)
    };
    new.filter(|end| *end == from.len() || *end == to.len() || is_near_line(end)).collect()
}

#[test]
fn killed_at_any_moment_everything_is_put_back() {
    for version in VERSIONS {
        let (_dir, _state, first) = begin(version);
        let moments = moments(version);
        let mut tried = 0;
        for pair in moments.windows(2) {
            let [(journal, machine), (next, _)] = pair else { panic!() };
            for end in ends(journal, next) {
                let (last, report) = after_a_kill(&next[..end], machine, version);
                let tail = String::from_utf8_lossy(&next[..end]);
                let tail = tail.lines().rev().take(3).collect::<Vec<_>>().join("\n");
                assert_same(&last, &first, &format!("{version:?}, after\n{tail}\n{report:#?}"));
                let left: Vec<_> = report.journals.iter().flat_map(|one| &one.left).collect();
                assert!(left.is_empty(), "{version:?}, after\n{tail}\n{left:#?}");
                tried += 1;
            }
        }
        assert!(tried > 500, "{tried} moments");
        eprintln!("{version:?}: {tried} moments");
    }
}

#[test]
fn killed_while_restoring_the_next_restore_ends_it() {
    let version = GroupVersion::V1;
    let (_dir, _state, first) = begin(version);
    let (journal, machine) = {
        let moments = moments(version);
        let full = |moment: &&Moment| moment.1.mounts.len();
        moments.iter().rev().max_by_key(full).unwrap().clone()
    };
    let (_dir, state, _) = begin(version);
    fs::create_dir(state.path()).unwrap();
    fs::write(state.path().join("changes-77-7-0.jsonl"), journal).unwrap();
    let platform = FakePlatform::on(machine, &state, version).without_owner();
    platform.machine.borrow_mut().groups = first.groups.clone();
    restore(&state, &platform);
    for (journal, machine) in platform.moments.take() {
        let (last, report) = after_a_kill(&journal, &machine, version);
        assert_same(&last, &first, &format!("{report:#?}"));
    }
}

#[test]
fn what_is_neither_ours_nor_as_before_is_left() {
    let (_dir, state, machine) = begin(GroupVersion::V1);
    let mut session =
        Session::begin(&state, FakePlatform::on(machine, &state, GroupVersion::V1)).unwrap();
    for change in disk() {
        session.apply(change).unwrap();
    }
    session.apply(queue(QueueAttribute::NrRequests, "60")).unwrap();
    session.apply(Sysctl { which: VmSetting::DirtyRatio, value: 5 }).unwrap();
    session.platform().set(REQUESTS, "99");
    session.platform().set("/proc/sys/vm/dirty_ratio", "44");
    session.platform().set("/proc/sys/vm/dirty_expire_centisecs", "1");
    let report = session.undo_all();
    assert!(report.is_settled());
    let left: Vec<&str> = report.left.iter().map(|left| left.found.as_str()).collect();
    assert_eq!(left, ["dirty_ratio 44", "1", "99"], "{report:#?}");
    assert_eq!(session.platform().cell(REQUESTS), "99");
    assert_eq!(session.platform().cell("/proc/sys/vm/dirty_ratio"), "44");
}

#[test]
fn another_file_or_mount_in_the_place_of_ours_is_left() {
    let (_dir, state, machine) = begin(GroupVersion::V1);
    let mut session =
        Session::begin(&state, FakePlatform::on(machine, &state, GroupVersion::V1)).unwrap();
    for change in disk() {
        session.apply(change).unwrap();
    }
    session.apply(mount(&[])).unwrap();
    {
        let mut machine = session.platform().machine.borrow_mut();
        let mut over = machine.mounts.last().unwrap().clone();
        over.source = "/dev/theirs".to_owned();
        machine.mounts.push(over);
    }
    let report = session.undo_all();
    // The mount below is in use, so its device cannot be detached either.
    assert_eq!(report.things[0].outcome, UndoOutcome::Undone(How::LeftAlone), "{report:#?}");
    session.platform().machine.borrow_mut().mounts.retain(|mount| mount.source == "cgroup");
    let file = Node::File { inode: 5, bytes: 1 };
    session.platform().machine.borrow_mut().nodes.insert("/data/disk".into(), file.clone());
    let report = session.undo_all();
    assert_eq!(report.left.len(), 1, "{report:#?}");
    assert_eq!(session.platform().machine.borrow().nodes[&PathBuf::from("/data/disk")], file);
}

#[test]
fn failures_hold_up_only_what_they_stand_on() {
    let (_dir, state, machine) = begin(GroupVersion::V1);
    let platform = FakePlatform::on(machine.clone(), &state, GroupVersion::V1);
    let mut session = Session::begin(&state, platform).unwrap();
    session.apply(Sysctl { which: VmSetting::DirtyRatio, value: 5 }).unwrap();
    for change in disk() {
        session.apply(change).unwrap();
    }
    session.apply(queue(QueueAttribute::Scheduler, "bfq")).unwrap();
    *session.platform().refuses.borrow_mut() = Some(SCHEDULER.into());
    let report = session.undo_all();
    let failed: Vec<ChangeId> = report
        .things
        .iter()
        .filter(|thing| matches!(thing.outcome, UndoOutcome::Failed(_)))
        .map(|thing| thing.id)
        .collect();
    assert_eq!(failed, [ChangeId(4), ChangeId(3), ChangeId(2)], "{report:#?}");
    assert_eq!(session.platform().cell("/proc/sys/vm/dirty_ratio"), "20");
    assert!(session.undo_all().is_settled(), "it can be tried again");
    assert_eq!(*session.platform().machine.borrow(), machine);
}

#[test]
fn a_change_that_fails_halfway_leaves_nothing() {
    let (_dir, state, machine) = begin(GroupVersion::V1);
    let platform = FakePlatform::on(machine.clone(), &state, GroupVersion::V1);
    let mut session = Session::begin(&state, platform).unwrap();
    for change in disk() {
        session.apply(change).unwrap();
    }
    let refused = session.apply(mount(&["nobarrier"])).unwrap_err();
    assert!(matches!(&refused, ChangeError::Unavailable { why, .. } if why.contains("nobarrier")));
    let kind = FilesystemKind::Btrfs;
    let make = MakeFilesystem { device: device(), kind, options: vec![], label: None };
    let missing = session.apply(make).unwrap_err().to_string();
    assert!(missing.contains("apt-get install btrfs-progs"), "{missing}");
    assert!(session.platform().look("/data/deep".as_ref()).unwrap().is_none());
    assert_eq!(session.in_place().count(), 2);
    drop(session);
    assert!(state.journals().is_empty());
}

#[test]
fn what_the_kernel_took_is_shown() {
    let (_dir, state, machine) = begin(GroupVersion::V1);
    let platform = FakePlatform::on(machine, &state, GroupVersion::V1);
    let mut session = Session::begin(&state, platform).unwrap();
    for change in disk() {
        session.apply(change).unwrap();
    }
    let change = queue(QueueAttribute::NrRequests, "100000");
    assert!(session.describe(&change).ends_with("to 100000 (now 128)"));
    let applied = session.apply(change).unwrap();
    assert_eq!(applied.asked_and_took(), Some(("100000", "2048")));
    // Setting this one resets the read-ahead, which was not requested.
    session.apply(queue(QueueAttribute::ReadAheadKb, "64")).unwrap();
    session.apply(queue(QueueAttribute::Iostats, "0")).unwrap();
    assert_eq!(session.platform().cell("/sys/block/loop0/queue/read_ahead_kb"), "64");
    assert!(matches!(session.undo(applied.id), Err(ChangeError::DependedOn { .. })));
}

#[test]
fn a_busy_mount_is_waited_for_and_then_goes_lazily() {
    for (busy, how) in [(5, How::PutBack), (1000, How::WhenUnused)] {
        let (_dir, state, machine) = begin(GroupVersion::V1);
        let platform = FakePlatform::on(machine.clone(), &state, GroupVersion::V1);
        let mut session = Session::begin(&state, platform).unwrap();
        for change in disk() {
            session.apply(change).unwrap();
        }
        let mounted = session.apply(mount(&[])).unwrap();
        session.platform().busy.set(busy);
        assert_eq!(session.undo(mounted.id).unwrap().how, how);
        assert!(session.undo_all().is_settled());
        assert_eq!(*session.platform().machine.borrow(), machine);
    }
}

#[test]
fn a_living_owner_is_left_alone() {
    let (_dir, state, machine) = begin(GroupVersion::V1);
    let platform = FakePlatform::on(machine.clone(), &state, GroupVersion::V1);
    let mut session = Session::begin(&state, platform).unwrap();
    session.apply(Sysctl { which: VmSetting::DirtyRatio, value: 5 }).unwrap();
    assert!(leftovers(&state).is_empty());
    let other = FakePlatform::on(machine, &state, GroupVersion::V1);
    let report = restore(&state, &other);
    assert_eq!(report.journals[0].state, JournalState::InUse);
    assert!(report.is_settled() && other.moments.borrow().is_empty(), "{report:#?}");
}

#[test]
fn after_a_reboot_only_files_are_removed() {
    let version = GroupVersion::V1;
    let (_dir, _state, first) = begin(version);
    let full = moments(version).into_iter().max_by_key(|moment| moment.1.mounts.len()).unwrap();
    let (_dir, state, _) = begin(version);
    fs::create_dir(state.path()).unwrap();
    fs::write(state.path().join("changes-77-7-0.jsonl"), &full.0).unwrap();
    assert!(!leftovers(&state)[0].changes.is_empty());
    // The kernel's part is new; the disk's is as it was, and another process chose our scheduler
    // again.
    let mut machine = first.clone();
    for (path, node) in full.1.nodes {
        // What was served was in no file.
        if path.starts_with("/data") && !path.ends_with("here/disk") {
            machine.nodes.insert(path, node);
        }
    }
    let mut platform = FakePlatform::on(machine, &state, version);
    platform.owner = Owner { boot_id: "second".to_owned(), ..platform.owner };
    platform.set(SCHEDULER, "none mq-deadline [bfq]");
    let report = restore(&state, &platform);
    assert!(report.is_settled(), "{report:#?}");
    assert_eq!(platform.cell(SCHEDULER), "none mq-deadline [bfq]");
    platform.set(SCHEDULER, "[none] mq-deadline bfq");
    assert_eq!(platform.machine.into_inner(), first);
}

#[test]
fn a_damaged_line_keeps_the_journal_but_not_the_rest() {
    let (_dir, state, machine) = begin(GroupVersion::V1);
    let platform = FakePlatform::on(machine, &state, GroupVersion::V1);
    let mut session = Session::begin(&state, platform).unwrap();
    session.apply(Sysctl { which: VmSetting::DirtyRatio, value: 5 }).unwrap();
    let journal = fs::read(&state.journals()[0]).unwrap();
    drop(session);
    let path = state.path().join("changes-77-7-9.jsonl");
    fs::write(&path, [b"not json\n".as_slice(), &journal].concat()).unwrap();
    let mut other = FakePlatform::new(&state, GroupVersion::V1);
    other.owner_lives = false;
    other.set("/proc/sys/vm/dirty_ratio", "5");
    let report = restore(&state, &other);
    assert_eq!(report.journals[0].damaged_lines, 1);
    assert_eq!(report.journals[0].state, JournalState::Unsettled);
    assert_eq!(other.cell("/proc/sys/vm/dirty_ratio"), "20");
    assert!(path.exists());
}
