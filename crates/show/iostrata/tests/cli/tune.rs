//! `tune` on a private MariaDB: one that is started again, one without work, those that are
//! refused.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use iostrata_change::spawn_for_life;
use iostrata_database::target::Target;
use iostrata_server::private::ServerProgram;
use iostrata_server::{Credentials, ServerAddress, ServerTarget};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Bench, is_soak, stderr, stdout, usual_or_soak, wait_for_end, wait_until};
use crate::server::{Private, programs};

/// A server that has to be tuned under [`load`], also on a slow machine: its redo goes round within
/// some ten seconds, more pages become dirty meanwhile than it writes by itself.
pub fn pressed_of(program: ServerProgram, more: &[&str]) -> Private {
    let redo = match (program.version.is_mariadb, program.version.number.0) {
        // It makes more redo of the same.
        (false, 8..) => "--innodb-redo-log-capacity=64M",
        // It has two files.
        (false, _) => "--innodb-log-file-size=26M",
        (true, _) => "--innodb-log-file-size=24M",
    };
    let options = [
        redo,
        "--innodb-buffer-pool-size=128M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-io-capacity=100",
        "--innodb-io-capacity-max=100",
    ];
    Private::of(program, tempfile::tempdir().unwrap(), &[&options, more].concat(), &[])
}

/// Such a server of the first installed program; none where none is installed, which it prints.
pub fn pressed(more: &[&str]) -> Option<Private> {
    let program = programs().into_iter().next()?;
    Some(pressed_of(ServerProgram::find(&program).unwrap(), more))
}

/// The settings of the server's engine, as it reports them.
pub fn settings(private: &Private) -> BTreeMap<String, String> {
    let address: ServerAddress = private.target("root", "").parse().unwrap();
    let address = Credentials::default().complete(address).unwrap();
    let facts = ServerTarget::open(address, None).unwrap().facts().unwrap();
    facts.settings.into_iter().filter(|(name, _)| name.starts_with("innodb_")).collect()
}

/// A program that is ended with its value at the latest, so that a test that fails leaves none.
/// What it prints goes to files, which take any amount: on a pipe that nothing reads a program
/// would wait for ever once it is full.
pub struct Running {
    child: Child,
    /// Its stdout and its stderr, where the test has not named a file for it.
    printed: [Option<File>; 2],
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
            let until = Instant::now() + Duration::from_secs(30);
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
                sleep(Duration::from_millis(5));
            }
            let _gone = self.child.kill();
            let _reaped = self.child.wait();
        }
    }
}

/// Starts the program, which ends with this process at the latest: the load of a server that tests
/// share outlives the thread of the first.
pub fn start(bench: &Bench, line: &str) -> Running {
    start_with(bench, line, [None, None])
}

/// The same, with its stderr in a file of this name, to be read while it runs.
pub fn start_told(bench: &Bench, line: &str, said: &str) -> Running {
    start_with(bench, line, [None, Some(said)])
}

/// The same, with what it prints in a file of this name.
pub fn start_printing(bench: &Bench, line: &str, printed: &str) -> Running {
    start_with(bench, line, [Some(printed), None])
}

fn start_with(bench: &Bench, line: &str, named: [Option<&str>; 2]) -> Running {
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    let printed = named.map(|name| name.is_none().then(|| tempfile::tempfile().unwrap()));
    let file = |at: usize| match (named[at], &printed[at]) {
        (Some(name), _) => File::create(bench.path(name)).unwrap(),
        (None, own) => own.as_ref().unwrap().try_clone().unwrap(),
    };
    command.stdout(file(0)).stderr(file(1));
    Running { child: spawn_for_life(command).unwrap(), printed }
}

impl Running {
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// How it ended, by itself.
    pub fn wait(mut self) -> Output {
        let status = wait_for_end(&mut self.child, "it ends by itself");
        let [stdout, stderr] = self.printed.each_mut().map(|file| {
            let mut text = Vec::new();
            if let Some(file) = file {
                file.rewind().unwrap();
                file.read_to_end(&mut text).unwrap();
            }
            text
        });
        Output { status, stdout, stderr }
    }
}

pub fn end(running: Running, signal: Signal) -> Output {
    running.signal(signal);
    running.wait()
}

/// Changes 600 of 200,000 rows per second until it is ended: most of their pages within the time in
/// which the redo of [`pressed`] goes round.
pub fn load(bench: &Bench, private: &Private) -> Running {
    load_at(bench, &private.target("root", "oltp"), 200_000, 600)
}

/// Changes so many of so many rows in the database of a server.
pub fn load_at(bench: &Bench, target: &str, rows: u32, per_s: u32) -> Running {
    let tables = format!("--tables 1 --table-size {rows}");
    let made = bench.line(&format!("oltp update_index prepare --target {target} {tables} --quiet"));
    assert!(made.status.success(), "{}", stderr(&made));
    let run = format!("oltp update_index run --target {target} {tables} --threads 4 --quiet");
    let rate = format!("--rate {per_s} --max-queue 100 --on-overload drop");
    start(bench, &format!("{run} --warmup-time 0 --time 3600 {rate}"))
}

/// Waits until the settings of a server differ from those before; in the long form they are moved
/// some more times.
pub fn wait_until_tuned(private: &Private, before: &BTreeMap<String, String>) {
    wait_until("the server is tuned", 100, || settings(private) != *before);
    if is_soak() {
        sleep(Duration::from_secs(6));
        assert_ne!(settings(private), *before, "it is still tuned");
    }
}

#[test]
fn another_server_has_its_own_settings_and_is_tuned_anew() {
    let bench = Bench::new();
    let Some(mut private) = pressed(&[]) else { return };
    let load = load(&bench, &private);
    let before = settings(&private);
    let target = private.target("root", "oltp");
    let said = || std::fs::read_to_string(bench.path("said")).unwrap_or_default();
    let tune = start_told(&bench, &format!("tune {target} --json --out killed"), "said");
    wait_until_tuned(&private, &before);
    private.kill();
    // A server reports its start in whole seconds.
    sleep(Duration::from_millis(usual_or_soak(1_100, 4_000)));
    private.start_again();
    wait_until("it is said that it is another one", 100, || said().contains("started again"));
    let samples = || {
        let events = std::fs::read_to_string(bench.path("killed/events.jsonl"));
        events.unwrap_or_default().lines().count()
    };
    let before_anew = samples();
    wait_until("the other server is sampled", 100, || samples() > before_anew + 3);
    sleep(Duration::from_secs(usual_or_soak(0, 4)));
    let ended = end(tune, Signal::TERM);
    let said = said();
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert!(said.contains("waiting for the server"), "{said}");
    assert_eq!(settings(&private), before, "{said}");
    let tuned: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(!tuned["settings"].as_array().unwrap().is_empty());
    // Nothing is left to be put back.
    let restored = bench.line(&format!("restore --target {target}"));
    assert!(restored.status.success(), "{}", stderr(&restored));
    end(load, Signal::TERM);
}

#[test]
fn what_somebody_sets_while_nothing_is_tuned_is_what_comes_back() {
    let bench = Bench::new();
    let Some(private) = pressed(&[]) else { return };
    let target = private.target("root", "");
    let said = || std::fs::read_to_string(bench.path("said")).unwrap_or_default();
    let tune = start_told(&bench, &format!("tune {target} --json --out RUN"), "said");
    wait_until("it has begun", 50, || said().contains("Every setting goes back"));
    private.hold_in("", &["SET GLOBAL innodb_io_capacity = 110"], || {});
    let before = settings(&private);
    let load = load(&bench, &private);
    let is_led = || {
        let now = settings(&private);
        let differs = |name: &str| now[name] != before[name];
        differs("innodb_io_capacity") && differs("innodb_adaptive_flushing")
    };
    wait_until("it is tuned, the capacity too", 100, is_led);
    end(tune, Signal::KILL);
    assert_eq!(said().matches("innodb_io_capacity is 110, was 100").count(), 1, "{}", said());
    let restored = bench.line(&format!("restore --target {target}"));
    assert!(restored.status.success(), "{}{}", stdout(&restored), stderr(&restored));
    assert_eq!(settings(&private), before);
    end(load, Signal::TERM);
}

/// What becomes another's to write to while it is tuned: what is set, what ends it, and what is
/// printed about it.
#[test]
fn a_server_that_is_demoted_while_tuned_is_put_back() {
    let become_replica = |is_mariadb: bool| match is_mariadb {
        // Its source does not answer, which it goes on trying.
        true => ["CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1", "START SLAVE"],
        false => [
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1",
            "START REPLICA",
        ],
    };
    for program in programs() {
        let program = ServerProgram::find(&program).unwrap();
        let is_mariadb = program.version.is_mariadb;
        let private = pressed_of(program, &["--server-id=7"]);
        let bench = Bench::new();
        let load = load(&bench, &private);
        let before = settings(&private);
        let stop = if is_mariadb { "STOP SLAVE" } else { "STOP REPLICA" };
        for (run, demote, says, promote) in [
            ("read_only", &["SET GLOBAL read_only = 1"][..], "read_only is ON", None),
            ("replica", &become_replica(is_mariadb), "it replicates from", Some(stop)),
        ] {
            let said = || std::fs::read_to_string(bench.path(run)).unwrap_or_default();
            let line = format!("tune {} --json --out run-{run}", private.target("root", ""));
            let mut tune = start_told(&bench, &line, run);
            wait_until_tuned(&private, &before);
            private.hold_in("oltp", demote, || {});
            wait_until("tune ends", 100, || tune.has_ended());
            private.hold_in("oltp", &[promote.unwrap_or("SET GLOBAL read_only = 0")], || {});
            assert_eq!(settings(&private), before, "{}", said());
            assert_eq!(tune.wait().status.code(), Some(3), "{}", said());
            assert_eq!(said().matches(says).count(), 1, "{}", said());
        }
        end(load, Signal::TERM);
        private.end();
    }
}

#[test]
fn an_idle_server_is_left_alone() {
    let bench = Bench::new();
    let Some(private) = Private::start(&[]) else { return };
    let target = private.target("root", "");
    let idle = bench.line(&format!("tune {target} --time 3 --json --quiet --out idle"));
    assert!(idle.status.success(), "{}", stderr(&idle));
    let idle: Value = serde_json::from_slice(&idle.stdout).unwrap();
    assert_eq!(idle["settings"].as_array().unwrap().len(), 0);
}

#[test]
fn what_cannot_be_tuned_is_refused_with_the_reason() {
    let bench = Bench::new();
    std::fs::write(bench.path("odd.toml"), "[innodb_io_capacity]\nmin = 5\n").unwrap();
    let server = "mysql://root@127.0.0.1:1";
    for (line, says) in [
        ("tune engine:db".to_owned(), "controls its checkpoint age itself"),
        ("tune mysql://a@h1:1,h2:2".to_owned(), "one tune controls one server"),
        (format!("tune {server} --config odd.toml"), "innodb_io_capacity.min = 5: it takes 100 to"),
        (format!("tune {server} --config none.toml"), "none.toml"),
        (format!("tune {server} --set-point 99"), "use 10 to 95"),
        (format!("tune {server} --interval 10ms"), "--interval"),
        (format!("tune {server} --interval 100s"), "use 200ms to 10s"),
    ] {
        let output = bench.line(&line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(says), "{line}: {said}");
    }
    let Some(private) = Private::start(&["--read-only=ON"]) else { return };
    let output = bench.line(&format!("tune {} --time 1", private.target("root", "")));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("read_only is ON"), "{}", stderr(&output));
}
