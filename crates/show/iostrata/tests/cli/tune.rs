//! `tune` on a private MariaDB with a small redo: tuned under load, and as before afterwards,
//! whether it was asked to end or killed.

use std::collections::BTreeMap;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use iostrata_server::{Credentials, ServerAddress, ServerTarget};
use iostrata_target::Target;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Bench, document, stderr, stdout};
use crate::server::Private;

/// A redo that goes round within seconds.
const OPTIONS: [&str; 3] = [
    "--innodb-log-file-size=10M",
    "--innodb-buffer-pool-size=128M",
    "--innodb-flush-log-at-trx-commit=0",
];

/// The settings of the server's engine, as it tells them.
pub fn settings(private: &Private) -> BTreeMap<String, String> {
    let address: ServerAddress = private.target("root", "").parse().unwrap();
    let address = Credentials::default().complete(address).unwrap();
    let facts = ServerTarget::open(address, None).unwrap().facts().unwrap();
    facts.settings.into_iter().filter(|(name, _)| name.starts_with("innodb_")).collect()
}

/// A program that is ended with its value at the latest, so that a test that fails leaves none.
pub struct Running(Option<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::TERM).unwrap();
            child.wait().unwrap();
        }
    }
}

pub fn start(bench: &Bench, line: &str) -> Running {
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    Running(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
}

pub fn end(mut running: Running, signal: Signal) -> Output {
    let child = running.0.take().unwrap();
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(pid, signal).unwrap();
    child.wait_with_output().unwrap()
}

/// A server with a load for so many seconds.
pub fn loaded(bench: &Bench, seconds: u32) -> Option<(Private, Running)> {
    let private = Private::start(&OPTIONS)?;
    let load = load(bench, &private, seconds);
    Some((private, load))
}

/// Loads a server for so many seconds.
pub fn load(bench: &Bench, private: &Private, seconds: u32) -> Running {
    let target = private.target("root", "oltp");
    let tables = "--tables 1 --table-size 20000";
    let made = bench.line(&format!("oltp update_index prepare --target {target} {tables} --quiet"));
    assert!(made.status.success(), "{}", stderr(&made));
    let run = format!("oltp update_index run --target {target} {tables} --threads 4 --quiet");
    let load = start(bench, &format!("{run} --warmup-time 0 --time {seconds}"));
    std::thread::sleep(Duration::from_secs(2));
    load
}

#[test]
fn a_tuned_server_is_as_before_after_a_signal_and_after_a_kill() {
    let bench = Bench::new();
    let Some((private, load)) = loaded(&bench, 26) else { return };
    let before = settings(&private);
    let target = private.target("root", "oltp");
    let tune = start(&bench, &format!("tune {target} --json --out tuned"));
    std::thread::sleep(Duration::from_secs(7));
    assert_ne!(settings(&private), before, "the server is tuned");
    let second = bench.line(&format!("tune {target} --time 1"));
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    let ended = end(tune, Signal::TERM);
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert_eq!(settings(&private), before);
    // How a person puts it back: the bound first, so that nothing is clamped.
    let value = |name: &str| format!("SET GLOBAL {name} = {};", before[name]);
    let (low, high) = (value("innodb_io_capacity"), value("innodb_io_capacity_max"));
    assert!(said.contains(&format!("\n  {high}\n  {low}\n  {high}\n")), "{said}");
    assert!(said.contains("iostrata restore --target 'mysql://root@"), "{said}");
    let tuned: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let changes = tuned["settings"].as_array().unwrap();
    assert!(changes.iter().any(|one| one["name"] == "innodb_io_capacity"), "{changes:?}");
    assert!(changes.iter().all(|one| one["why"].as_str().is_some_and(|why| why.len() > 10)));
    assert!(tuned["pages_written_per_txn"].as_f64().unwrap() > 0.0);
    let report = bench.line("report tuned");
    assert!(report.status.success(), "{}", stderr(&report));

    let tune = start(&bench, &format!("tune {target} --quiet --out killed"));
    std::thread::sleep(Duration::from_secs(7));
    assert_ne!(settings(&private), before, "the server is tuned");
    end(tune, Signal::KILL);
    assert_ne!(settings(&private), before, "nobody puts back what a killed one left");
    let restored = bench.line(&format!("restore --target {target}"));
    assert!(restored.status.success(), "{}{}", stdout(&restored), stderr(&restored));
    assert_eq!(settings(&private), before);
    // What it did until then is kept.
    let killed = document(&bench.line("report killed --json"), "watch");
    assert!(killed["samples"].as_array().unwrap().len() >= 3, "{killed}");
    assert!(!killed["settings"].as_array().unwrap().is_empty(), "{killed}");
    end(load, Signal::TERM);
}

#[test]
fn a_dry_run_changes_nothing_and_an_idle_server_is_left_alone() {
    let bench = Bench::new();
    let Some((private, load)) = loaded(&bench, 12) else { return };
    let before = settings(&private);
    let target = private.target("root", "oltp");
    let dry = bench.line(&format!("tune {target} --dry-run --time 6 --out dry"));
    assert!(dry.status.success(), "{}", stderr(&dry));
    assert!(stdout(&dry).contains("not set: --dry-run"), "{}", stdout(&dry));
    assert_eq!(settings(&private), before);
    end(load, Signal::TERM);
    std::thread::sleep(Duration::from_secs(1));
    let other = Private::start(&[]).unwrap();
    let target = other.target("root", "");
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
        ("tune engine:db".to_owned(), "holds its checkpoint age by itself"),
        ("tune mysql://a@h1:1,h2:2".to_owned(), "one tune controls one server"),
        (format!("tune {server} --config odd.toml"), "innodb_io_capacity.min: 5 is out of range"),
        (format!("tune {server} --config none.toml"), "none.toml"),
        (format!("tune {server} --set-point 99"), "use 10 to 95"),
        (format!("tune {server} --interval 10ms"), "--interval"),
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
