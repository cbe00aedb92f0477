//! Private servers of every program that is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use iostrata_change::{
    ChangeError, Session, StateDir, System, end_with_starter, leftovers, restore,
};
use iostrata_server::private::{
    DataSource, PrivateError, PrivatePlan, PrivateServer, ServerProgram,
};
use rustix::process::Signal;

use crate::fleet::{Place, ask, programs};

/// Small, so that many fit at the same time.
fn small() -> Vec<String> {
    vec!["--innodb-buffer-pool-size=32M".to_owned()]
}

#[test]
fn fresh_data_are_made_once_and_copied_where_no_option_fixes_their_layout() {
    let programs: Vec<ServerProgram> =
        programs("fresh_data_are_made_once").into_iter().take(2).collect();
    let Some(program) = programs.first() else { return };
    let place = Place::new();
    let with = |program: &ServerProgram, options: &[&str]| {
        let mut plan = PrivatePlan::new(program.clone(), place.path("a"));
        plan.options = options.iter().map(|&option| option.to_owned()).collect();
        plan.on_fresh_data_in(&place.path("shared")).unwrap().data
    };
    // Several threads ask for them at the same time, of two versions if there are.
    let made: Vec<[DataSource; 2]> = std::thread::scope(|scope| {
        let ask = |program| scope.spawn(move || with(program, &["--innodb-buffer-pool-size=32M"]));
        let asked: Vec<_> = programs.iter().map(|program| [program; 2].map(ask)).collect();
        asked.into_iter().map(|both| both.map(|one| one.join().unwrap())).collect()
    });
    for [one, other] in &made {
        assert_eq!(one, other);
    }
    let DataSource::CopyOf(data) = &made[0][0] else { panic!("{made:?}") };
    let modified = || fs::metadata(data).unwrap().modified().unwrap();
    let before = modified();
    assert_eq!(with(program, &[]), made[0][0]);
    assert_eq!(modified(), before);
    for fixed in ["--innodb-page-size=8k", "--innodb_data_file_path=ibdata1:12M:autoextend"] {
        assert_eq!(with(program, &[fixed]), DataSource::Fresh, "{fixed}");
    }
    let mut session = place.session();
    let mut plan = PrivatePlan::new(program.clone(), place.path("a"));
    (plan.options, plan.data) = (small(), DataSource::CopyOf(data.clone()));
    let server = PrivateServer::start(&mut session, &plan).unwrap();
    let databases = ask(&server.socket(), "SELECT COUNT(*) FROM mysql.db WHERE Db = 'shop'");
    assert!(databases.is_none_or(|count| count == "0"));
}

/// A fresh server serves, and a copy of its data does.
fn serves(program: ServerProgram) {
    let place = Place::new();
    let mut session = place.session();
    let name = program.version.to_string();
    let mut plan = PrivatePlan::new(program, place.path("a"));
    plan.options = small();
    plan.first_statements = vec!["CREATE DATABASE IF NOT EXISTS shop".to_owned()];
    let begin = Instant::now();
    let mut server = PrivateServer::prepare(&mut session, &plan).unwrap();
    let made = begin.elapsed();
    let begin = Instant::now();
    server.run(&mut session, &[]).unwrap();
    let first = begin.elapsed();
    let (major, minor, _) = server.program().version.number;
    let version = server.version().unwrap();
    assert!(version.contains(&format!("{major}.{minor}.")), "{version}");
    assert!(server.process().unwrap().is_alive());
    let table = "CREATE TABLE shop.t (a INT PRIMARY KEY) ENGINE=InnoDB; \
                 INSERT INTO shop.t VALUES (1), (2)";
    if ask(&server.socket(), table).is_none() {
        return;
    }
    let twice = server.run(&mut session, &[]).unwrap_err();
    assert!(matches!(twice, PrivateError::OutOfOrder { .. }), "{twice}");

    let mut copy = PrivatePlan::new(server.program().clone(), place.path("b"));
    copy.data = DataSource::CopyOf(server.data_dir().to_owned());
    copy.options = small();
    let refused = PrivateServer::prepare(&mut session, &copy).unwrap_err();
    assert!(refused.to_string().contains("runs on it"), "{refused}");
    assert!(!copy.dir.exists());

    let process = server.process().unwrap().clone();
    let begin = Instant::now();
    server.stop(&mut session).unwrap();
    let stopped = begin.elapsed();
    assert!(!process.is_alive() && server.process().is_none());
    let begin = Instant::now();
    let second = PrivateServer::start(&mut session, &copy).unwrap();
    let copied = begin.elapsed();
    assert_eq!(ask(&second.socket(), "SELECT SUM(a) FROM shop.t").unwrap(), "3");
    // Both at once, and the first with another option than before.
    server.run(&mut session, &["--innodb_io_capacity=321".to_owned()]).unwrap();
    let capacity = ask(&server.socket(), "SELECT @@innodb_io_capacity").unwrap();
    assert_eq!(capacity, "321");
    eprintln!(
        "{name}: data made in {made:.2?}, first start {first:.2?}, stop {stopped:.2?}, copy \
         and start {copied:.2?}"
    );
    server.remove(&mut session).unwrap();
    second.remove(&mut session).unwrap();
    place.assert_empty(&name);
}

/// The same by the program of a series, if it is there; without one the reason is printed.
fn series_serves(test: &str, is_mariadb: bool, series: (u32, u32)) {
    let is_it = |program: &ServerProgram| {
        let (major, minor, _) = program.version.number;
        program.version.is_mariadb == is_mariadb && (major, minor) == series
    };
    match programs(test).into_iter().find(is_it) {
        Some(program) => serves(program),
        None => {
            let name = if is_mariadb { "MariaDB" } else { "MySQL" };
            let (major, minor) = series;
            eprintln!("skipped: {test}: no {name} {major}.{minor}: see cargo xtask servers");
        }
    }
}

#[test]
fn the_installed_server_serves() {
    for program in programs("the_installed_server_serves").into_iter().take(1) {
        serves(program);
    }
}

#[test]
fn mariadb_11_4_serves() {
    series_serves("mariadb_11_4_serves", true, (11, 4));
}

#[test]
fn mariadb_11_8_serves() {
    series_serves("mariadb_11_8_serves", true, (11, 8));
}

#[test]
fn mysql_5_6_serves() {
    series_serves("mysql_5_6_serves", false, (5, 6));
}

#[test]
fn mysql_9_7_serves() {
    series_serves("mysql_9_7_serves", false, (9, 7));
}

#[test]
fn options_that_a_server_does_not_know_are_refused_in_its_words() {
    for program in programs("options_that_a_server_does_not_know_are_refused_in_its_words") {
        let place = Place::new();
        let mut session = place.session();
        let name = program.version.to_string();
        let mut plan = PrivatePlan::new(program, place.path("a"));
        for option in ["--innodb-no-such-thing=1", "--no-such-thing=1"] {
            plan.options = vec![option.to_owned()];
            let refused = PrivateServer::start(&mut session, &plan).unwrap_err();
            assert!(matches!(refused, PrivateError::UnknownOption { .. }), "{name}: {refused}");
            assert!(refused.to_string().contains("no-such-thing"), "{refused}");
            place.assert_empty(&name);
        }
        plan.options = vec!["--datadir=/var/lib/mysql".to_owned()];
        let refused = PrivateServer::start(&mut session, &plan).unwrap_err();
        assert!(matches!(refused, PrivateError::Reserved { .. }), "{refused}");
    }
}

#[test]
fn a_killed_server_is_stopped_and_recovers() {
    for program in programs("a_killed_server_is_stopped_and_recovers") {
        let place = Place::new();
        let mut session = place.session();
        let mut plan = PrivatePlan::new(program, place.path("a"));
        plan.options = small();
        let mut server = PrivateServer::start(&mut session, &plan).unwrap();
        if ask(&server.socket(), "CREATE DATABASE shop").is_none() {
            return;
        }
        let process = server.process().unwrap().clone();
        server.kill(&session).unwrap();
        server.stop(&mut session).unwrap();
        assert!(!process.is_alive());
        let none = server.kill(&session).unwrap_err();
        assert!(matches!(none, PrivateError::OutOfOrder { .. }), "{none}");
        // By now another process may have its number, which MySQL's lock names.
        let lock = format!("{}.lock", server.socket().display());
        assert!(!Path::new(&lock).exists());
        server.run(&mut session, &[]).unwrap();
        let shops = ask(&server.socket(), "SHOW DATABASES LIKE 'shop'").unwrap();
        assert_eq!(shops, "shop");
        // Dropping the session undoes the rest.
        drop(session);
        place.assert_empty("the session was dropped");
    }
}

#[test]
fn a_named_directory_is_used_and_stays() {
    let Some(program) = programs("a_named_directory_is_used_and_stays").into_iter().next() else {
        return;
    };
    let place = Place::new();
    let mut session = place.session();
    let mut plan = PrivatePlan::new(program, place.path("a"));
    plan.options = small();
    let made = PrivateServer::prepare(&mut session, &plan).unwrap();
    let kept = place.path("kept");
    fs::rename(made.data_dir(), &kept).unwrap();
    made.remove(&mut session).unwrap();
    plan.data = DataSource::InPlace(kept.clone());
    let server = PrivateServer::start(&mut session, &plan).unwrap();
    let mut other = plan.clone();
    other.dir = place.path("b");
    let refused = PrivateServer::start(&mut session, &other).unwrap_err();
    let is_refused = matches!(refused, PrivateError::Change(ChangeError::Refused { .. }));
    assert!(is_refused, "{refused}");
    server.remove(&mut session).unwrap();
    assert!(kept.join("ibdata1").is_file());
    assert!(!place.path("a").exists() && !place.path("b").exists());
}

#[test]
fn a_server_runs_as_the_user_who_owns_its_data() {
    let test = "a_server_runs_as_the_user_who_owns_its_data";
    let Some(program) = programs(test).into_iter().next() else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: {test}: becoming another user needs root");
        return;
    }
    let place = Place::new();
    // The other user has to get there.
    std::os::unix::fs::chown(place.path(""), Some(65534), Some(65534)).unwrap();
    let mut session = place.session();
    let mut plan = PrivatePlan::new(program, place.path("a"));
    plan.options = small();
    plan.run_as = Some(iostrata_change::RunAs { uid: 65534, gid: 65534 });
    let mut server = PrivateServer::start(&mut session, &plan).unwrap();
    let uid = |server: &PrivateServer| {
        let status = format!("/proc/{}/status", server.process().unwrap().pid);
        let status = fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("Uid:")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(uid(&server), "65534");
    server.stop(&mut session).unwrap();
    let mut copy = plan.clone();
    copy.dir = place.path("b");
    copy.data = DataSource::CopyOf(server.data_dir().to_owned());
    copy.run_as = None;
    let copied = PrivateServer::start(&mut session, &copy).unwrap();
    assert_eq!(uid(&copied), "65534");
    copied.remove(&mut session).unwrap();
    server.remove(&mut session).unwrap();
    assert!(leftovers(&StateDir::at(place.path("state"))).is_empty());
}

/// Where the child works; absent in the parent.
const PLACE: &str = "IOSTRATA_TEST_PRIVATE";

/// The program that is killed: makes, starts and removes servers until then.
#[test]
fn start_until_killed() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let program = programs("start_until_killed").remove(0);
    let state = StateDir::at(place.join("state"));
    loop {
        let mut session = Session::begin(&state, System::new()).unwrap();
        let mut plan = PrivatePlan::new(program.clone(), place.join("a"));
        plan.options = small();
        let server = PrivateServer::start(&mut session, &plan).unwrap();
        server.remove(&mut session).unwrap();
    }
}

/// Processes that have a path in their command line.
fn naming(path: &Path) -> Vec<String> {
    let path = path.to_string_lossy();
    let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(&*path)).collect()
}

/// When the program is killed: so many milliseconds after so many lines of the journal. After the
/// third the data are made; the fourth is the start of the server, the sixth its end.
const KILLS: [(usize, u64); 8] =
    [(3, 300), (4, 0), (4, 200), (6, 0), (2, 0), (4, 400), (5, 0), (8, 0)];

#[test]
fn a_killed_run_leaves_neither_server_nor_data() {
    let test = "a_killed_run_leaves_neither_server_nor_data";
    if programs(test).is_empty() {
        return;
    }
    let place = Place::new();
    let mut in_place = 0;
    let is_long = std::env::var_os("IOSTRATA_SOAK").is_some();
    for (lines, later_ms) in KILLS.into_iter().take(if is_long { 8 } else { 4 }) {
        let kill = format!("{later_ms} ms after line {lines}");
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "private::start_until_killed", "--nocapture"]);
        child.env(PLACE, place.path("")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = end_with_starter(&mut child, Signal::KILL).spawn().unwrap();
        place.await_lines(lines);
        std::thread::sleep(Duration::from_millis(later_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        let state = StateDir::at(place.path("state"));
        in_place += leftovers(&state).len();
        let report = restore(&state, &System::new());
        assert!(report.is_settled(), "kill {kill}: {report:#?}");
        place.assert_empty(&format!("kill {kill}"));
        let is_gone = |_| {
            std::thread::sleep(Duration::from_millis(10));
            naming(&place.path("a")).is_empty()
        };
        assert!((0..3000).any(is_gone), "kill {kill}: {:?}", naming(&place.path("a")));
    }
    assert!(in_place > 2, "{in_place} kills hit a run with changes in place");
}
