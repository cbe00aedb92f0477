//! Served disks on the stand-in: left behind, stopped, killed at every moment, hanging.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::fake::{FakePlatform, Machine, Node, ServerWays};
use super::{assert_same, begin, database, served};
use crate::server::Ending;
use crate::{
    Change, ChangeError, DatabaseServer, DeviceRef, Effect, FilesystemKind, FuseServer,
    GroupVersion, How, JournalState, MemoryGroup, Owner, Platform, RestoreReport, Session,
    StateDir, StopError, Tie, leftovers, restore, served_disks, stop_served,
};

const VERSION: GroupVersion = GroupVersion::V2;

fn start(state: &StateDir, machine: &Machine, holds_journal: bool) -> Session<FakePlatform> {
    let platform = FakePlatform::on(machine.clone(), state, VERSION);
    let mut session = Session::begin(state, platform).unwrap();
    for change in served(holds_journal) {
        session.apply(change).unwrap();
    }
    session
}

/// The machine and the lock as they are once the starter of a disk that it left behind is gone.
fn left_behind(state: &StateDir, machine: &Machine) -> (FakePlatform, Owner) {
    let session = start(state, machine, true);
    let now = session.platform().machine.borrow().clone();
    let held = session.platform().held.take();
    let process = session.hand_over().unwrap();
    let platform = FakePlatform::on(now, state, VERSION).without_owner();
    *platform.held.borrow_mut() = held;
    (platform, process)
}

#[test]
fn a_disk_that_is_left_behind_is_in_use_until_its_server_is_killed() {
    let (_dir, state, first) = begin(VERSION);
    let (platform, process) = left_behind(&state, &first);
    let before = platform.machine.borrow().clone();
    let report = restore(&state, &platform);
    assert_eq!(report.journals[0].state, JournalState::InUse, "{report:#?}");
    assert_eq!(report.journals[0].owner.as_ref(), Some(&process));
    assert_same(&platform.machine.borrow(), &before, "looking");
    let disks = served_disks(&state, &platform);
    assert_eq!(disks.len(), 1);
    assert!(disks[0].is_served && disks[0].is_left_behind());
    assert_eq!(disks[0].device.to_str(), Some("/dev/loop0"));
    platform.end(&process, Ending::Forced).unwrap();
    assert_eq!(leftovers(&state).len(), 1);
    assert!(!served_disks(&state, &platform)[0].is_served);
    let report = restore(&state, &platform);
    assert!(report.is_settled(), "{report:#?}");
    assert_same(&platform.machine.borrow(), &first, "its server was killed");
    assert!(state.journals().is_empty() && served_disks(&state, &platform).is_empty());
}

/// Restores a moment as another process, with the lock where a living server holds it.
fn after_a_kill(journal: &[u8], machine: &Machine) -> (Machine, RestoreReport) {
    let (_dir, state, _) = begin(VERSION);
    fs::create_dir(state.path()).unwrap();
    let path = state.path().join("changes-77-7-0.jsonl");
    fs::write(&path, journal).unwrap();
    let platform = FakePlatform::on(machine.clone(), &state, VERSION).without_owner();
    if !machine.servers.is_empty() {
        let file = File::open(&path).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        *platform.held.borrow_mut() = Some(file.into());
    }
    let report = restore(&state, &platform);
    (platform.machine.into_inner(), report)
}

#[test]
fn killed_at_any_moment_of_its_start_nothing_of_a_disk_is_left() {
    let (_dir, state, first) = begin(VERSION);
    let session = start(&state, &first, true);
    let mut moments = session.platform().moments.take();
    let last = session.platform().machine.borrow().clone();
    let before_handing_over = fs::read(&state.journals()[0]).unwrap();
    moments.push((before_handing_over.clone(), last.clone()));
    session.hand_over().unwrap();
    let after = fs::read(&state.journals()[0]).unwrap();
    for end in before_handing_over.len()..after.len() {
        moments.push((after[..end].to_vec(), last.clone()));
    }
    assert!(moments.len() > 80, "{}", moments.len());
    for (journal, machine) in &moments {
        let (now, report) = after_a_kill(journal, machine);
        let tail = String::from_utf8_lossy(journal);
        assert!(report.is_settled(), "{tail}\n{report:#?}");
        assert_same(&now, &first, &format!("{tail}\n{report:#?}"));
    }
    let (now, report) = after_a_kill(&after, &last);
    assert_eq!(report.journals[0].state, JournalState::InUse);
    assert_same(&now, &last, "it was handed over");
}

#[test]
fn a_server_that_hangs_is_ended_before_anything_touches_it() {
    for undo_one in [false, true] {
        let (_dir, state, first) = begin(VERSION);
        let mut session = start(&state, &first, false);
        session.platform().server.set(ServerWays::Stuck);
        if undo_one {
            let attached = session.in_place().last().unwrap().0;
            session.undo(attached).unwrap();
        }
        let report = session.undo_all();
        assert!(report.is_settled(), "{report:#?}");
        assert_same(&session.platform().machine.borrow(), &first, "it hung");
    }
    let (_dir, state, first) = begin(VERSION);
    let (platform, _) = left_behind(&state, &first);
    platform.server.set(ServerWays::Stuck);
    let disks = served_disks(&state, &platform);
    let report = stop_served(&state, &platform, &disks[0]).unwrap();
    assert_eq!(report.state, JournalState::Settled, "{report:#?}");
    assert_same(&platform.machine.borrow(), &first, "it hung and was stopped");
}

#[test]
fn a_server_that_shows_nothing_is_an_error_and_goes() {
    let (_dir, state, first) = begin(VERSION);
    let platform = FakePlatform::on(first.clone(), &state, VERSION);
    platform.server.set(ServerWays::Mute);
    let mut session = Session::begin(&state, platform).unwrap();
    let [server, _] = served(false);
    let refused = session.apply(server).unwrap_err();
    assert!(
        matches!(&refused, ChangeError::Unavailable { why, .. } if why.contains("half a minute"))
    );
    assert_same(&session.platform().machine.borrow(), &first, "it showed nothing");
    assert!(matches!(session.hand_over(), Err(ChangeError::Unavailable { .. })));
    assert!(state.journals().is_empty());
}

#[test]
fn places_that_are_taken_are_refused() {
    let (_dir, state, first) = begin(VERSION);
    let mut session = start(&state, &first, false);
    let [server, _] = served(false);
    let refused = session.apply(server.clone()).unwrap_err().to_string();
    assert!(refused.contains("mount point already"), "{refused}");
    let Change::FuseServer(FuseServer { program, arguments, .. }) = server else { panic!() };
    let at = "/data".into();
    let other = FuseServer { at, program, arguments, holds_journal: false };
    let refused = session.apply(other).unwrap_err().to_string();
    assert!(refused.contains("is not empty"), "{refused}");
}

#[test]
fn only_what_is_unused_and_no_run_owns_is_stopped() {
    let (_dir, state, first) = begin(VERSION);
    let mut session = start(&state, &first, false);
    let disks = served_disks(&state, session.platform());
    assert!(!disks[0].is_left_behind());
    let refused = stop_served(&state, session.platform(), &disks[0]).unwrap_err();
    assert!(matches!(&refused, StopError::OfARun { owner, .. } if owner.pid == 77), "{refused}");
    assert!(session.undo_all().is_settled());
    drop(session);

    let (platform, _) = left_behind(&state, &first);
    let kind = FilesystemKind::Ext4;
    let request = crate::MountRequest::new("/dev/loop0".as_ref(), "/data".as_ref(), kind, &[]);
    platform.mount(&request).unwrap();
    let before = platform.machine.borrow().clone();
    let disks = served_disks(&state, &platform);
    let refused = stop_served(&state, &platform, &disks[0]).unwrap_err().to_string();
    assert!(refused.contains("mounted at /data"), "{refused}");
    assert_same(&platform.machine.borrow(), &before, "it was refused");
    platform.unmount("/data".as_ref(), false).unwrap();
    let report = stop_served(&state, &platform, &disks[0]).unwrap();
    assert_eq!(report.state, JournalState::Settled, "{report:#?}");
    assert_same(&platform.machine.borrow(), &first, "it was stopped");
    assert!(state.journals().is_empty());
}

#[test]
fn another_process_with_less_of_the_command_line_is_left() {
    let (_dir, state, first) = begin(VERSION);
    let mut session = start(&state, &first, false);
    let other = {
        let mut machine = session.platform().machine.borrow_mut();
        let (owner, mut command) = machine.servers[0].clone();
        command.arguments[0] = "look".into();
        let other = Owner { pid: 9999, ..owner };
        machine.servers.push((other.clone(), command));
        other
    };
    assert!(session.undo_all().is_settled());
    assert!(session.platform().is_alive(&other));
    let device = DeviceRef::Loop { backing: "/data/served/here/disk".into() };
    assert!(session.may_overwrite(&device).is_err(), "the device is gone");
}

#[test]
fn a_place_in_the_state_directory_may_be_the_first_thing_there() {
    let (_dir, state, first) = begin(VERSION);
    let platform = FakePlatform::on(first.clone(), &state, VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    // The journal makes the directory after it was looked for.
    session.platform().appears.replace(Some("/data/served".into()));
    for change in served(false) {
        session.apply(change).unwrap();
    }
    assert!(session.undo_all().is_settled());
    assert_same(
        &session.platform().machine.borrow(),
        &first,
        "a directory above was made meanwhile",
    );
}

// Database servers on the stand-in: what is refused, what is left, and when they end.

const FIRST_VERSION: GroupVersion = GroupVersion::V1;

fn refused(error: &ChangeError, words: &str) {
    assert!(error.to_string().contains(words), "{error} does not say {words}");
}

#[test]
fn a_server_greets_and_is_ended() {
    let (_dir, state, first) = begin(FIRST_VERSION);
    let platform = FakePlatform::on(first.clone(), &state, FIRST_VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    let group = MemoryGroup { name: "small".to_owned(), limit_bytes: 1 << 30 };
    let group = session.apply(group).unwrap();
    let (directory, server) = database(Some("small"));
    let directory = session.apply(directory).unwrap();
    let server = session.apply(server).unwrap();
    let Effect::DatabaseServer(started) = &server.effect else { panic!() };
    assert_eq!(started.version, "11.4.5-MariaDB");
    for below in [group.id, directory.id] {
        assert!(matches!(session.undo(below), Err(ChangeError::DependedOn { .. })));
    }
    assert_eq!(session.undo(server.id).unwrap().how, How::PutBack);
    assert!(!session.platform().is_alive(&started.process));
    assert!(session.undo_all().is_settled());
    assert_same(&session.platform().machine.borrow(), &first, "it was stopped");
}

#[test]
fn data_directories_of_others_are_refused() {
    let (_dir, state, mut first) = begin(FIRST_VERSION);
    first.nodes.insert("/data/mysql".into(), Node::Dir);
    let platform = FakePlatform::on(first.clone(), &state, FIRST_VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    let (directory, server) = database(None);
    session.apply(directory).unwrap();
    let on = |dir: &str, named: bool, server: &DatabaseServer| {
        let DatabaseServer { socket, program, .. } = server.clone();
        let arguments = vec![format!("--datadir={dir}"), format!("--socket={}", socket.display())];
        let (data_dir, group, run_as) = (PathBuf::from(dir), None, None);
        let is_named = named;
        DatabaseServer { data_dir, is_named, socket, program, arguments, group, run_as }
    };
    let theirs = on("/data/mysql", false, &server);
    refused(&session.apply(theirs).unwrap_err(), "this run did not make it");
    let nowhere = on("/data/private/none", false, &server);
    refused(&session.apply(nowhere).unwrap_err(), "no such directory");
    let named = on("/data/mysql", true, &server);
    // Another server runs there.
    let command = named.command();
    let tie = Tie::Life { groups: &[], run_as: None };
    let theirs = session.platform().start(&command, tie).unwrap();
    refused(&session.apply(named.clone()).unwrap_err(), "mysqld (process");
    session.platform().end(&theirs, Ending::Forced).unwrap();
    refused(&session.apply(named.clone()).unwrap_err(), "socket exists");
    session.platform().machine.borrow_mut().nodes.remove(Path::new("/data/private/socket"));
    let started = session.apply(named).unwrap();
    session.undo(started.id).unwrap();
    assert!(session.undo_all().is_settled());
    assert!(session.platform().look(Path::new("/data/mysql/ibdata1")).unwrap().is_some());
}

#[test]
fn arguments_and_sockets_are_checked() {
    let (_dir, state, first) = begin(FIRST_VERSION);
    let platform = FakePlatform::on(first, &state, FIRST_VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    let (directory, server) = database(None);
    session.apply(directory).unwrap();
    let mut other = server.clone();
    other.arguments.remove(0);
    refused(&session.apply(other).unwrap_err(), "--datadir");
    let mut other = server.clone();
    other.socket = Path::new("/data/private").join("s".repeat(100));
    refused(&session.apply(other).unwrap_err(), "shorter path");
    let mut other = server;
    other.group = Some("no-such".to_owned());
    refused(&session.apply(other).unwrap_err(), "made no group of that name");
}

#[test]
fn a_server_that_does_not_answer_or_turns_us_away_goes() {
    for (ways, words) in
        [(ServerWays::Mute, "five minutes"), (ServerWays::Stuck, "Too many connections")]
    {
        let (_dir, state, first) = begin(FIRST_VERSION);
        let platform = FakePlatform::on(first.clone(), &state, FIRST_VERSION);
        platform.server.set(ways);
        let mut session = Session::begin(&state, platform).unwrap();
        let (directory, server) = database(None);
        session.apply(directory).unwrap();
        refused(&session.apply(server).unwrap_err(), words);
        assert!(session.platform().machine.borrow().servers.is_empty(), "it was killed");
        assert!(session.undo_all().is_settled());
        assert_same(&session.platform().machine.borrow(), &first, words);
    }
}

#[test]
fn only_a_server_with_data_to_keep_is_asked_to_end() {
    let rows = [
        ("its directory stays", false, ServerWays::Well, false, Ending::Asked),
        ("its directory goes next", false, ServerWays::Well, true, Ending::Forced),
        ("it is not ready", false, ServerWays::Mute, false, Ending::Forced),
        ("its data are a user's", true, ServerWays::Well, true, Ending::Asked),
        ("a user's data, not ready", true, ServerWays::Mute, true, Ending::Asked),
    ];
    for (case, is_users, ways, all, ending) in rows {
        let (_dir, state, first) = begin(FIRST_VERSION);
        let platform = FakePlatform::on(first, &state, FIRST_VERSION);
        platform.server.set(ways);
        let mut session = Session::begin(&state, platform).unwrap();
        let (directory, mut server) = database(None);
        session.apply(directory).unwrap();
        server.is_named = is_users;
        // One that is not ready is ended by its failure.
        match session.apply(server) {
            Ok(_) if all => assert!(session.undo_all().is_settled()),
            Ok(applied) => drop(session.undo(applied.id).unwrap()),
            Err(_) => assert_eq!(ways, ServerWays::Mute),
        }
        assert_eq!(session.platform().first_ending.get(), Some(ending), "{case}");
    }
}

#[test]
fn a_killed_server_has_the_time_that_a_sync_of_a_slow_disk_takes() {
    // Checks a killed server that takes half a minute, and one that stays for good.
    for (looks, is_settled) in [(600, true), (u32::MAX, false)] {
        let (_dir, state, first) = begin(FIRST_VERSION);
        let platform = FakePlatform::on(first.clone(), &state, FIRST_VERSION);
        platform.server.set(ServerWays::Lingering);
        platform.busy.set(looks);
        let mut session = Session::begin(&state, platform).unwrap();
        let (directory, server) = database(None);
        for change in [Change::from(directory), server.into()] {
            session.apply(change).unwrap();
        }
        let report = session.undo_all();
        assert_eq!(report.is_settled(), is_settled, "{report:#?}");
    }
}

#[test]
fn a_directory_stays_while_something_is_mounted_below_it() {
    let (_dir, state, first) = begin(FIRST_VERSION);
    let platform = FakePlatform::on(first.clone(), &state, FIRST_VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    let (directory, _) = database(None);
    session.apply(directory).unwrap();
    let request = crate::MountRequest::new(
        "/dev/theirs".as_ref(),
        "/data/private/data".as_ref(),
        crate::FilesystemKind::Ext4,
        &[],
    );
    session.platform().mount(&request).unwrap();
    let report = session.undo_all();
    assert!(!report.is_settled(), "{report:#?}");
    session.platform().unmount(&request.at, false).unwrap();
    assert!(session.undo_all().is_settled());
    assert_same(&session.platform().machine.borrow(), &first, "it was unmounted");
}

#[test]
fn a_later_server_on_the_same_place_is_left() {
    let (_dir, state, first) = begin(FIRST_VERSION);
    let platform = FakePlatform::on(first, &state, FIRST_VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    let (directory, server) = database(None);
    session.apply(directory).unwrap();
    let started = session.apply(server.clone()).unwrap();
    let Effect::DatabaseServer(ours) = &started.effect else { panic!() };
    session.platform().end(&ours.process, Ending::Forced).unwrap();
    let tie = Tie::Life { groups: &[], run_as: None };
    let theirs = session.platform().start(&server.command(), tie).unwrap();
    assert_eq!(session.undo(started.id).unwrap().how, How::AsBefore);
    assert!(session.platform().is_alive(&theirs));
}
