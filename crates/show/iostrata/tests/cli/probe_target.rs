//! `probe --target`: from the storage to transactions, and what it leaves behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use iostrata_change::{Session, StateDir, System};
use iostrata_server::private::{PrivatePlan, PrivateServer, ServerProgram};
use serde_json::Value;

use crate::harness::{self, Bench, is_soak, number, stderr, stdout, usual_or_soak};

/// Small enough for a test.
const SMALL: &str = "--size 64M --max-write 4G";

/// The rungs of transactions.
const TOP: [&str; 3] = ["commits_1", "commits_16", "tpcc_4"];
/// The same with the rung of the storage that bounds each of them.
const BOUND: [&str; 4] = ["commit_fdatasync", TOP[0], TOP[1], TOP[2]];

/// A short probe that has these rungs; two fifths of the time are for transactions, or all of it
/// where nothing below is measured.
fn probed(usual_s: u64, rungs: &[&str], probe: impl Fn(&str) -> Output) -> (Value, Output) {
    let probe = |max_time: &str| probe(&format!("{SMALL} {max_time}"));
    harness::probed(usual_or_soak(usual_s, 45), rungs, probe)
}

/// A private server that listens on a socket, with a user who has a password.
struct Private {
    session: Session<System>,
    server: PrivateServer,
    socket: PathBuf,
    _dir: tempfile::TempDir,
}

impl Private {
    /// None where no server is installed, which it prints.
    fn start() -> Option<Self> {
        let program = match ServerProgram::find("mariadbd") {
            Ok(program) => program,
            Err(missing) => {
                eprintln!("skipped: {missing}");
                return None;
            }
        };
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().join("state"));
        let mut session = Session::begin(&state, System::new()).unwrap();
        let mut plan = PrivatePlan::new(program, dir.path().join("s"));
        plan.options = vec!["--innodb-buffer-pool-size=64M".to_owned()];
        plan.first_statements = [
            "CREATE USER IF NOT EXISTS 'guest'@'localhost' IDENTIFIED BY 'sesame'",
            "GRANT SELECT ON mysql.* TO 'guest'@'localhost'",
        ]
        .map(str::to_owned)
        .to_vec();
        let plan = plan.on_shared_fresh_data().unwrap();
        let server = PrivateServer::start(&mut session, &plan).unwrap();
        let socket = server.socket();
        Some(Self { session, server, socket, _dir: dir })
    }

    fn address(&self, user: &str) -> String {
        format!("mysql://{user}@localhost/?socket={}", self.socket.display())
    }

    /// The names of its databases, as directories of its data.
    fn has(&self, database: &str) -> bool {
        self.server.data_dir().join(database).exists()
    }

    /// A user's database with the name of the program's own.
    fn order(&self, sql: &str) {
        let said = Command::new("mariadb").arg("-S").arg(&self.socket).args(["-e", sql]).output();
        let said = said.unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }

    fn end(mut self) {
        self.server.remove(&mut self.session).unwrap();
    }
}

fn rung<'d>(document: &'d Value, name: &str) -> &'d Value {
    let rungs = document["rungs"].as_array().unwrap();
    rungs.iter().find(|rung| rung["name"] == name).unwrap_or_else(|| panic!("no rung {name}"))
}

/// The rungs of transactions, each with a bound that holds together.
fn assert_top(document: &Value, is_measured_below: bool) {
    for name in TOP {
        let rung = rung(document, name);
        assert_eq!(rung["layer"], "transactions");
        assert!(number(rung, "/value") > 0.0, "{name}");
        let bound = &rung["bound"];
        if !is_measured_below {
            assert!(bound.is_null(), "nothing below is known: {bound}");
            continue;
        }
        let resources = bound["resources"].as_array().unwrap();
        let names: Vec<&str> =
            resources.iter().map(|resource| resource["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["syncs", "log_writes", "page_writes", "page_reads", "cpu"]);
        let allowed = resources.iter().filter_map(|resource| resource["allows_per_s"].as_f64());
        assert_eq!(allowed.reduce(f64::min), bound["value"].as_f64(), "{name}: the least binds");
        assert!(number(bound, "/reached_pct") > 0.0);
        let is_above_zero = |field: &str| resources[0][field].as_f64().is_some_and(|of| of > 0.0);
        assert!(["per_txn", "allows_per_s"].into_iter().all(is_above_zero), "{rung}");
    }
}

#[test]
fn an_engine_is_measured_beside_its_own_tables() {
    let bench = Bench::new();
    // The files of an engine that is soon made; in the long form it has those of its defaults.
    let small = "--engine buffer_pool_size=64M --engine redo_log_capacity=64M";
    let size = format!("--table-size 1000 {}", usual_or_soak(small, ""));
    let prepared = bench.line(&format!("oltp update_index prepare --target engine:db {size}"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    let before = files(&bench.path("db"));
    let rungs = [&BOUND[..], &["commits_1_unsynced"]].concat();
    let (found, output) = probed(12, &rungs, |how| {
        let _of_a_probe_that_was_too_short = std::fs::remove_dir_all(bench.path("R"));
        bench.line(&format!("probe --target engine:db {how} --json --out R"))
    });
    assert!(stderr(&output).contains("an engine of their own"), "{}", stderr(&output));
    assert_top(&found, true);
    assert!(number(&found, "/bytes_written") > 64e6);
    // One connection does not share its syncs.
    let syncs = number(rung(&found, "commits_1"), "/bound/resources/0/per_txn");
    assert!((0.9..1.2).contains(&syncs), "{syncs}");
    assert!(number(rung(&found, "commits_1_unsynced"), "/value") > 0.0);
    assert_eq!(files(&bench.path("db")), before, "the engine is as it was");
    let report = std::fs::read_to_string(bench.path("R/report.html")).unwrap();
    assert!(report.contains("one-row commits, 16 connections"));
}

/// Every file with its size.
fn files(dir: &Path) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let named = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()));
    let mut files: Vec<(String, u64)> = named.collect();
    files.sort();
    files
}

#[test]
fn a_server_is_measured_in_a_database_of_its_own() {
    let Some(private) = Private::start() else { return };
    let bench = Bench::new();
    let target = private.address("root");
    let probe = |how: &str| bench.line(&format!("probe --target {target} {how} --json"));
    let (found, output) = probed(12, &BOUND, probe);
    assert!(stderr(&output).contains("iostrata_probe"), "{}", stderr(&output));
    assert_top(&found, true);
    assert!(number(rung(&found, "commits_1"), "/bound/resources/4/per_txn") > 0.0, "processors");
    assert!(!private.has("iostrata_probe"));
    if !is_soak() {
        return private.end();
    }

    let (read, _) = probed(12, &[], |how| probe(&format!("{how} --read-only")));
    assert!(read["rungs"].as_array().unwrap().iter().all(|rung| rung["name"] != "commits_1"));
    let missing = read["unavailable"].as_array().unwrap();
    let missing = missing.iter().find(|one| one["what"] == "transactions").unwrap();
    assert!(missing["why"].as_str().unwrap().contains("--read-only"));
    private.end();
}

#[test]
fn who_may_not_see_the_data_gets_transactions_alone() {
    let Some(private) = Private::start() else { return };
    let bench = Bench::new();
    if !bench.admits_nobody() {
        return private.end();
    }
    private.order("CREATE USER 'open'@'localhost'; GRANT ALL ON *.* TO 'open'@'localhost'");
    for above in private.server.data_dir().ancestors().take(3).collect::<Vec<_>>() {
        let mode = if above == private.server.data_dir() { 0o700 } else { 0o755 };
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(above, mode).unwrap();
    }
    let target = private.address("open");
    let (found, _) = probed(8, &TOP, |how| {
        bench.as_nobody(&format!("probe --target {target} {how} --json")).output().unwrap()
    });
    assert_top(&found, false);
    let missing = found["unavailable"].as_array().unwrap();
    let missing = missing.iter().find(|one| one["what"] == "rungs of the storage").unwrap();
    assert!(missing["why"].as_str().unwrap().contains("ermission denied"), "{missing}");
    assert!(missing["fix"].as_str().unwrap().contains("server's machine"));
    private.end();
}

#[test]
fn what_cannot_be_measured_is_told_with_its_fix() {
    let bench = Bench::new();
    for (target, code, words) in [
        ("mysql://root@127.0.0.1:1/", 3, "127.0.0.1:1"),
        ("mysql://root@h1,h2:x/", 2, "port of host 2"),
        ("postgres://db/", 2, "mysql://"),
        ("engine:missing", 2, "name an existing directory"),
    ] {
        let output = bench.line(&format!("probe --target {target}"));
        assert_eq!(output.status.code(), Some(code), "{target}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{target}: {}", stderr(&output));
    }
    let Some(private) = Private::start() else { return };
    let wrong = bench.line(&format!("probe --target {}", private.address("guest:nonsense")));
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    assert!(stderr(&wrong).contains("guest") && !stderr(&wrong).contains("nonsense"));
    let unable = bench.line(&format!("probe --target {}", private.address("guest:sesame")));
    assert_eq!(unable.status.code(), Some(2), "{}", stderr(&unable));
    assert!(stdout(&unable).is_empty() && !private.has("iostrata_probe"));
    private.order("CREATE DATABASE iostrata_probe; CREATE TABLE iostrata_probe.kept (a INT)");
    let taken = bench.line(&format!("probe --target {}", private.address("root")));
    assert_eq!(taken.status.code(), Some(2), "{}", stderr(&taken));
    assert!(stderr(&taken).contains("iostrata did not create"), "{}", stderr(&taken));
    assert!(private.server.data_dir().join("iostrata_probe/kept.frm").exists());
    private.end();
}

/// Starts a probe and waits for its database, which is another one than a killed probe left.
fn begun(bench: &Bench, private: &Private) -> std::process::Child {
    let mark = private.server.data_dir().join("iostrata_probe/made_by_iostrata.frm");
    let made = || std::fs::metadata(&mark).and_then(|mark| mark.modified()).ok();
    let before = made();
    let target = private.address("root");
    let line = format!("probe --target {target} {SMALL} --max-time 12s --quiet");
    let mut child = bench
        .command(&line.split_whitespace().collect::<Vec<_>>())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..1000 {
        if made().is_some_and(|made| Some(made) != before) {
            return child;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    panic!("no database was made: {}", child.wait().unwrap());
}

#[test]
fn a_probe_that_is_ended_leaves_no_database() {
    let Some(private) = Private::start() else { return };
    let bench = Bench::new();
    for delay_ms in [0, 3_000] {
        let mut child = begun(&bench, &private);
        std::thread::sleep(Duration::from_millis(delay_ms));
        let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(143), "after {delay_ms} ms");
        assert!(!private.has("iostrata_probe"), "after {delay_ms} ms");
    }
    // One that is killed cannot clean up; the next one does, and does not mistake it for another's.
    let mut child = begun(&bench, &private);
    let second = bench.line(&format!("probe --target {}", private.address("root")));
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    assert!(stderr(&second).contains("another program measures"), "{}", stderr(&second));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(private.has("iostrata_probe"));
    let mut child = begun(&bench, &private);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    child.wait().unwrap();
    assert!(!private.has("iostrata_probe"));
    private.end();
}
