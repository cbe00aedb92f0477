//! Database servers on the stand-in: what is refused, what is left, and when they end.

use std::path::{Path, PathBuf};

use super::database;
use super::fake::{FakePlatform, Node, ServerWays};
use super::session::{assert_same, begin};
use crate::server::Ending;
use crate::{Change, ChangeError, Effect, GroupVersion, How, Platform, Session, Tie};

const VERSION: GroupVersion = GroupVersion::V1;

fn refused(error: &ChangeError, words: &str) {
    assert!(error.to_string().contains(words), "{error} does not say {words}");
}

#[test]
fn a_server_greets_and_is_ended() {
    let (_dir, state, first) = begin(VERSION);
    let platform = FakePlatform::on(first.clone(), &state, VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    let group = Change::MemoryGroup { name: "small".to_owned(), limit_bytes: 1 << 30 };
    let group = session.apply(group).unwrap();
    let [directory, server] = database(Some("small"));
    let directory = session.apply(directory).unwrap();
    let server = session.apply(server).unwrap();
    let Effect::DatabaseServer { version, process } = &server.effect else { panic!() };
    assert_eq!(version, "11.4.5-MariaDB");
    for below in [group.id, directory.id] {
        assert!(matches!(session.undo(below), Err(ChangeError::DependedOn { .. })));
    }
    assert_eq!(session.undo(server.id).unwrap().how, How::PutBack);
    assert!(!session.platform().is_alive(process));
    assert!(session.undo_all().is_settled());
    assert_same(&session.platform().machine.borrow(), &first, "it was stopped");
}

#[test]
fn data_directories_of_others_are_refused() {
    let (_dir, state, mut first) = begin(VERSION);
    first.nodes.insert("/data/mysql".into(), Node::Dir);
    let platform = FakePlatform::on(first.clone(), &state, VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    let [directory, server] = database(None);
    session.apply(directory).unwrap();
    let on = |dir: &str, named: bool, change: &Change| {
        let Change::DatabaseServer { socket, program, .. } = change.clone() else { panic!() };
        let arguments = vec![format!("--datadir={dir}"), format!("--socket={}", socket.display())];
        let (data_dir, group, run_as) = (PathBuf::from(dir), None, None);
        let is_named = named;
        Change::DatabaseServer { data_dir, is_named, socket, program, arguments, group, run_as }
    };
    let theirs = on("/data/mysql", false, &server);
    refused(&session.apply(theirs).unwrap_err(), "this run did not make it");
    let nowhere = on("/data/private/none", false, &server);
    refused(&session.apply(nowhere).unwrap_err(), "no such directory");
    let named = on("/data/mysql", true, &server);
    // Somebody's own server runs there.
    let command = named.server().unwrap();
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
    let (_dir, state, first) = begin(VERSION);
    let platform = FakePlatform::on(first, &state, VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    let [directory, server] = database(None);
    session.apply(directory).unwrap();
    let mut other = server.clone();
    if let Change::DatabaseServer { arguments, .. } = &mut other {
        arguments.remove(0);
    }
    refused(&session.apply(other).unwrap_err(), "--datadir");
    let mut other = server.clone();
    if let Change::DatabaseServer { socket, .. } = &mut other {
        *socket = Path::new("/data/private").join("s".repeat(100));
    }
    refused(&session.apply(other).unwrap_err(), "shorter path");
    let mut other = server;
    if let Change::DatabaseServer { group, .. } = &mut other {
        *group = Some("nobody's".to_owned());
    }
    refused(&session.apply(other).unwrap_err(), "made no group of that name");
}

#[test]
fn a_server_that_does_not_answer_or_turns_us_away_goes() {
    for (ways, words) in
        [(ServerWays::Mute, "five minutes"), (ServerWays::Stuck, "Too many connections")]
    {
        let (_dir, state, first) = begin(VERSION);
        let platform = FakePlatform::on(first.clone(), &state, VERSION);
        platform.server.set(ways);
        let mut session = Session::begin(&state, platform).unwrap();
        let [directory, server] = database(None);
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
        let (_dir, state, first) = begin(VERSION);
        let platform = FakePlatform::on(first, &state, VERSION);
        platform.server.set(ways);
        let mut session = Session::begin(&state, platform).unwrap();
        let [directory, mut server] = database(None);
        session.apply(directory).unwrap();
        if let Change::DatabaseServer { is_named, .. } = &mut server {
            *is_named = is_users;
        }
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
    // Looks at a killed server that takes half a minute, and at one that is there for good.
    for (looks, is_settled) in [(600, true), (u32::MAX, false)] {
        let (_dir, state, first) = begin(VERSION);
        let platform = FakePlatform::on(first.clone(), &state, VERSION);
        platform.server.set(ServerWays::Lingering);
        platform.busy.set(looks);
        let mut session = Session::begin(&state, platform).unwrap();
        for change in database(None) {
            session.apply(change).unwrap();
        }
        let report = session.undo_all();
        assert_eq!(report.is_settled(), is_settled, "{report:#?}");
    }
}

#[test]
fn a_directory_stays_while_something_is_mounted_below_it() {
    let (_dir, state, first) = begin(VERSION);
    let platform = FakePlatform::on(first.clone(), &state, VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    let [directory, _] = database(None);
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
    let (_dir, state, first) = begin(VERSION);
    let platform = FakePlatform::on(first, &state, VERSION);
    let mut session = Session::begin(&state, platform).unwrap();
    let [directory, server] = database(None);
    session.apply(directory).unwrap();
    let started = session.apply(server.clone()).unwrap();
    let ours = started.effect.process().unwrap().clone();
    session.platform().end(&ours, Ending::Forced).unwrap();
    let tie = Tie::Life { groups: &[], run_as: None };
    let theirs = session.platform().start(&server.server().unwrap(), tie).unwrap();
    assert_eq!(session.undo(started.id).unwrap().how, How::AsBefore);
    assert!(session.platform().is_alive(&theirs));
}
