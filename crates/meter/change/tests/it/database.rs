//! Database servers on the machine: started, found, ended, and killed with their starter.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use iostrata_change::{
    Change, ChangeError, DatabaseServer, DatabaseServerEffect, Effect, How, MemoryGroup, Owner,
    Platform, ServerCommand, ServerDirectory, Session, StateDir, System, end_with_starter,
    leftovers, restore,
};
use rustix::process::Signal;

use crate::machine::{MIB, Place};

/// Where the child works; absent in the parent.
const PLACE: &str = "IOSTRATA_TEST_DATABASE";
/// The program that the child starts.
const PROGRAM: &str = "IOSTRATA_TEST_DATABASE_PROGRAM";

/// A server's program; without one the reason is printed.
fn program(test: &str) -> Option<PathBuf> {
    let found = ["/usr/sbin/mariadbd", "/usr/sbin/mysqld"].map(PathBuf::from);
    let found = found.into_iter().find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: {test}: mariadbd is not installed");
    }
    found
}

/// A directory, and a server on it that needs no tables of its own.
fn server(place: &Path, program: &Path, group: Option<&str>) -> (ServerDirectory, DatabaseServer) {
    let path = place.join("private");
    let socket = path.join("socket");
    let arguments = [
        "--no-defaults".to_owned(),
        format!("--datadir={}", path.display()),
        format!("--socket={}", socket.display()),
        format!("--tmpdir={}", path.display()),
        format!("--pid-file={}", path.join("pid").display()),
        "--skip-networking".to_owned(),
        "--skip-grant-tables".to_owned(),
        "--user=root".to_owned(),
        "--innodb-buffer-pool-size=8M".to_owned(),
        "--innodb-log-file-size=4M".to_owned(),
    ];
    let server = DatabaseServer {
        data_dir: path.clone(),
        is_named: false,
        socket,
        program: program.to_owned(),
        arguments: arguments.to_vec(),
        group: group.map(str::to_owned),
        run_as: None,
    };
    (ServerDirectory { path }, server)
}

/// The living processes of the server.
fn living(server: &DatabaseServer) -> Vec<Owner> {
    let DatabaseServer { program, arguments, .. } = server;
    let arguments = arguments.iter().map(Into::into).collect();
    let command = ServerCommand { program: program.clone(), arguments, may_be_wrapped: true };
    System::new().servers(&command).unwrap()
}

#[test]
fn a_server_comes_and_goes_with_its_directory() {
    let test = "a_server_comes_and_goes_with_its_directory";
    let (Some(place), Some(program)) = (Place::new(test), program(test)) else { return };
    let before = place.snapshot();
    let mut session = place.session();
    let name = "small".to_owned();
    let limited = session.apply(MemoryGroup { name, limit_bytes: 1024 * MIB });
    let group = limited.as_ref().ok().map(|_| "small");
    let (directory, server) = server(&place.path(""), &program, group);
    session.apply(directory.clone()).unwrap();
    let started = session.apply(server.clone()).unwrap();
    let Effect::DatabaseServer(running) = &started.effect else { panic!() };
    let DatabaseServerEffect { process, version } = running;
    assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
    assert_eq!(living(&server), std::slice::from_ref(process));
    if let Ok(limited) = &limited {
        let Effect::Group(group) = &limited.effect else { panic!() };
        let inside = group.dir.join("cgroup.procs");
        let inside = fs::read_to_string(inside).unwrap();
        assert_eq!(inside.trim(), process.pid.to_string());
    }
    let session_id = fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap();
    let fields: Vec<&str> = session_id.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!(fields[3], process.pid.to_string(), "a session of its own");
    // Another session must not start a second one on the same data.
    let mut other = place.session();
    let second = |is_named| DatabaseServer { is_named, group: None, ..server.clone() };
    let refused = other.apply(second(true)).unwrap_err().to_string();
    assert!(refused.contains(&format!("(process {})", process.pid)), "{refused}");
    let refused = other.apply(second(false)).unwrap_err().to_string();
    assert!(refused.contains("this run did not make it"), "{refused}");
    assert_eq!(session.undo(started.id).unwrap().how, How::PutBack);
    assert!(living(&server).is_empty() && !process.is_alive());
    let report = session.undo_all();
    assert!(report.is_settled() && report.left.is_empty(), "{report:?}");
    before.assert_same(&place.snapshot(), "undoing");
}

#[test]
fn what_a_server_said_is_the_error() {
    let test = "what_a_server_said_is_the_error";
    let (Some(place), Some(program)) = (Place::new(test), program(test)) else { return };
    let before = place.snapshot();
    let mut session = place.session();
    let (directory, mut server) = server(&place.path(""), &program, None);
    session.apply(directory).unwrap();
    server.arguments.push("--no-such-option-anywhere=1".to_owned());
    let error = session.apply(server.clone()).unwrap_err();
    assert!(matches!(&error, ChangeError::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("no-such-option-anywhere"), "{error}");
    assert!(!server.socket.exists() && living(&server).is_empty());
    let report = session.undo_all();
    assert!(report.is_settled(), "{report:?}");
    before.assert_same(&place.snapshot(), "a server that did not start");
}

#[test]
fn another_directory_in_the_place_of_ours_is_left() {
    let Some(place) = Place::new("another_directory_in_the_place_of_ours_is_left") else { return };
    let mut session = place.session();
    let path = place.path("private");
    session.apply(ServerDirectory { path: path.clone() }).unwrap();
    let taken = session.apply(ServerDirectory { path: path.clone() }).unwrap_err();
    assert!(matches!(taken, ChangeError::Taken { .. }), "{taken}");
    fs::rename(&path, place.path("ours")).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("theirs"), "kept").unwrap();
    let report = session.undo_all();
    assert_eq!(report.left.len(), 1, "{report:?}");
    assert_eq!(fs::read_to_string(path.join("theirs")).unwrap(), "kept");
}

/// The program that is killed: starts and stops servers until then.
#[test]
fn start_until_killed() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let program = PathBuf::from(std::env::var_os(PROGRAM).unwrap());
    let state = StateDir::at(place.join("state"));
    loop {
        let mut session = Session::begin(&state, System::new()).unwrap();
        let (directory, server) = server(&place, &program, None);
        for change in [Change::from(directory), server.into()] {
            session.apply(change).unwrap();
        }
        std::thread::sleep(Duration::from_millis(200));
        assert!(session.undo_all().is_settled());
    }
}

/// When the program is killed: so many milliseconds after so many lines of the journal. The second
/// records the directory, the fourth the coming start of the server, the sixth its coming end.
const KILLS: [(usize, u64); 5] = [(2, 0), (4, 0), (4, 150), (5, 0), (6, 0)];

#[test]
fn a_killed_starter_leaves_no_server() {
    let test = "a_killed_starter_leaves_no_server";
    let (Some(place), Some(program)) = (Place::new(test), program(test)) else { return };
    let before = place.snapshot();
    let plain = [(program.clone(), true)];
    let programs = plain.into_iter().chain(deaf(&place, &program).map(|deaf| (deaf, false)));
    for (program, dies_with_us) in programs {
        let mut in_place = 0;
        for (lines, later_ms) in KILLS {
            let kill = format!("{later_ms} ms after line {lines}");
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "database::start_until_killed", "--nocapture"]);
            child.env(PLACE, place.path("")).env(PROGRAM, &program);
            child.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = end_with_starter(&mut child, Signal::KILL).spawn().unwrap();
            place.await_lines(lines);
            std::thread::sleep(Duration::from_millis(later_ms));
            child.kill().unwrap();
            child.wait().unwrap();
            in_place += leftovers(&place.state()).len();
            let (_, server) = server(&place.path(""), &program, None);
            if dies_with_us {
                let is_gone = |_| {
                    std::thread::sleep(Duration::from_millis(10));
                    living(&server).is_empty()
                };
                assert!((0..3000).any(is_gone), "kill {kill}: the server lives on");
            }
            let report = restore(&place.state(), &System::new());
            assert!(report.is_settled(), "kill {kill}: {report:#?}");
            let left: Vec<_> = report.journals.iter().flat_map(|one| &one.left).collect();
            assert!(left.is_empty(), "kill {kill}: {left:?}");
            assert!(living(&server).is_empty(), "kill {kill}");
            assert!(!place.path("private").exists(), "kill {kill}");
        }
        assert!(in_place > 2, "{in_place} kills hit a run with changes in place");
    }
    let _was_not_made = fs::remove_file(place.path("deaf"));
    before.assert_same(&place.snapshot(), "kills");
}

/// A script that runs the server without the signal that it gets when its starter dies, as one has
/// it that changes its user.
fn deaf(place: &Place, program: &Path) -> Option<PathBuf> {
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("setpriv is not installed; servers that lose the signal are left out");
        return None;
    }
    let script = place.path("deaf");
    let text = format!("#!/bin/sh\nexec setpriv --pdeathsig clear {} \"$@\"\n", program.display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    Some(script)
}
