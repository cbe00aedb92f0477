//! What is printed when something is requested again, refused, or runs out of room.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Bench, document, stderr, stdout};

#[test]
fn a_report_prints_the_summary_and_last_its_path() {
    let bench = Bench::new();
    let run = "io --path F --ioengine null --runtime 200ms --out RUN";
    assert!(bench.line(run).status.success());
    let shown = bench.line("report RUN");
    let text = stdout(&shown);
    assert!(shown.status.success(), "{}", stderr(&shown));
    assert!(text.contains("reads") && text.contains("in flight"), "{text}");
    assert_eq!(text.lines().last(), Some("RUN/report.html"));
    assert!(bench.path("RUN/report.html").is_file());
    let json = document(&bench.line("report RUN --json"), "io");
    assert!(json["read"]["ios"].as_u64().unwrap() > 0);
}

#[test]
fn a_server_as_target_is_named_without_its_password() {
    let bench = Bench::new();
    let refused = bench.line("probe --target mysql://root:sesame@127.0.0.1:1/shop");
    assert_eq!(refused.status.code(), Some(3));
    let text = stderr(&refused);
    assert!(text.contains("127.0.0.1:1") && !text.contains("sesame"), "{text}");
}

/// A small file system in memory, unmounted at the end.
struct Small(PathBuf);

impl Small {
    /// Mounted on a new directory; `None` without root.
    fn mount(bench: &Bench, size: &str) -> Option<Self> {
        let dir = bench.path("small");
        std::fs::create_dir(&dir).unwrap();
        let options = format!("size={size}");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "iostrata-test"])
            .arg(&dir)
            .stderr(Stdio::null())
            .status();
        if mount.is_ok_and(|status| status.success()) {
            return Some(Self(dir));
        }
        eprintln!("skipped: a small file system needs root");
        None
    }

    /// Takes what room is left.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("filler")).unwrap();
        for bytes in [1 << 20, 4096, 1] {
            let block = vec![1; bytes];
            while file.write_all(&block).is_ok() {}
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn wait_for(path: &Path) {
    let start = Instant::now();
    while !path.exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(path.exists(), "{} never came", path.display());
}

#[test]
fn a_full_run_directory_loses_no_verdict() {
    let bench = Bench::new();
    let Some(small) = Small::mount(&bench, "1m") else { return };
    let run = small.0.join("RUN");
    let arguments = ["io", "--path", "F", "--ioengine", "null", "--runtime", "2", "--out"];
    let mut command = bench.command(&arguments);
    command.arg(&run).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for(&run.join("events.jsonl"));
    std::thread::sleep(Duration::from_millis(200));
    small.fill();
    let output = child.wait_with_output().unwrap();
    let (text, said) = (stdout(&output), stderr(&output));
    assert!(text.contains("reads") && text.contains("measured"), "{text}\n{said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("the run was not saved"), "{said}");
}

#[test]
fn an_interruption_hides_no_full_run_directory() {
    let bench = Bench::new();
    let Some(small) = Small::mount(&bench, "1m") else { return };
    let run = small.0.join("RUN");
    let arguments = ["io", "--path", "F", "--ioengine", "null", "--runtime", "60", "--out"];
    let mut command = bench.command(&arguments);
    command.arg(&run).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for(&run.join("events.jsonl"));
    std::thread::sleep(Duration::from_millis(500));
    small.fill();
    let interrupted = Command::new("kill").arg("-INT").arg(child.id().to_string()).status();
    assert!(interrupted.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let (text, said) = (stdout(&output), stderr(&output));
    assert!(text.contains("reads") && text.contains("measured"), "{text}\n{said}");
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("the run was not saved"), "{said}");
}

#[test]
fn a_disk_that_fills_up_during_a_probe_is_not_called_fine() {
    let bench = Bench::new();
    let Some(small) = Small::mount(&bench, "320m") else { return };
    let arguments = ["probe", "small", "--size", "16M", "--max-time", "20s", "--out", "RUN"];
    let mut command = bench.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for(&bench.path("RUN/events.jsonl"));
    std::thread::sleep(Duration::from_millis(1500));
    small.fill();
    let output = child.wait_with_output().unwrap();
    let (text, said) = (stdout(&output), stderr(&output));
    assert!(!text.contains("Nothing needs to change"), "{text}");
    assert!(text.contains("the file system filled up"), "{text}\n{said}");
    assert!(text.contains("The file system filled up while it was measured"), "{text}\n{said}");
    assert!(text.contains("Not measured here"), "what is missing is named: {text}\n{said}");
    assert_eq!(output.status.code(), Some(3), "the storage failed: {said}");
}
