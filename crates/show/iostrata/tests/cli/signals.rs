//! Ctrl-C and SIGTERM at any time: the files go, the partial run stays.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::Bench;

/// Waits until the file F is filled and a run directory exists: the window is open or about to be.
pub fn wait_for_window(bench: &Bench) {
    for _ in 0..2000 {
        let runs = std::fs::read_dir(bench.path("iostrata-runs"));
        if runs.is_ok_and(|mut runs| runs.next().is_some()) {
            std::thread::sleep(Duration::from_millis(300));
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no run began");
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Whether this process and what it starts ignore SIGHUP, as under nohup(1).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn io_ends_with_the_signals_code_and_removes_its_file() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        if name == "HUP" && ignores_hangup() {
            continue;
        }
        let bench = Bench::new();
        let mut child = bench
            .command(&["io", "--path", "F", "--size", "32M", "--runtime", "30s", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for_window(&bench);
        signal(child.id(), name);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(bench.data_files(), Vec::<String>::new());
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(document["read"]["ios"].as_u64().unwrap() > 0, "what was measured is kept");
        let run = std::path::Path::new(document["run"].as_str().unwrap());
        let events =
            std::fs::read_to_string(bench.path("").join(run).join("events.jsonl")).unwrap();
        let last: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
        assert_eq!(last["event"], "interrupted");
        assert_eq!(last["bytes_written"], 32 << 20, "the file was filled once and then only read");
    }
}

/// Whether a process has a handler of SIGINT; true of one that has ended.
fn catches_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_none_or(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0)
}

#[test]
fn a_probe_that_is_stopped_can_be_reported() {
    for delay_ms in [100, 1500, 5000] {
        let bench = Bench::new();
        std::fs::create_dir(bench.path("data")).unwrap();
        let mut child = bench
            .command(&["probe", "data", "--out", "RUN", "--size", "64M", "--max-write", "4G"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !catches_interrupts(child.id()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(delay_ms));
        signal(child.id(), "INT");
        assert_eq!(child.wait().unwrap().code(), Some(130), "after {delay_ms} ms");
        assert_eq!(std::fs::read_dir(bench.path("data")).unwrap().count(), 0, "files were left");
        if bench.path("RUN/run.json").exists() && delay_ms > 3000 {
            let report = bench.line("report RUN --format json");
            assert!(report.status.success());
        }
    }
}
