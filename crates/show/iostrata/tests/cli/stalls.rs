//! Stalls that were planted, and the causes that are named for them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::disk::{Disks, can_emulate};
use crate::harness::{Bench, document, stderr, usual_or_soak};

/// A file system on an emulated disk, unmounted before the disk is stopped.
struct Mounted {
    at: PathBuf,
    device: String,
    disks: Disks,
}

impl Mounted {
    /// None where it cannot be made, which it prints.
    fn on(model: &str) -> Option<Self> {
        let has_mkfs = ["/sbin/mkfs.ext4", "/usr/sbin/mkfs.ext4"];
        if !has_mkfs.iter().any(|path| Path::new(path).exists()) {
            eprintln!("skipped: mkfs.ext4 is not installed");
            return None;
        }
        if !can_emulate("stalls") {
            return None;
        }
        let disks = Disks::new();
        let (device, _) = disks.start(&format!("--model {model} --size 1G"));
        let at = disks.0.path("mounted");
        std::fs::create_dir(&at).unwrap();
        let mounted = Self { at, device, disks };
        let made = Command::new("mkfs.ext4").args(["-q", "-F", &mounted.device]).output().unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        let done = Command::new("mount").arg(&mounted.device).arg(&mounted.at).output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        Some(mounted)
    }

    /// An engine with a table on it; the words that name both.
    fn prepared(&self) -> String {
        let on = format!(
            "--target engine:{} --engine buffer_pool_size=256M --engine redo_log_capacity=64M \
             --tables 1 --table-size 10000",
            self.at.join("db").display()
        );
        let output = self.disks.0.line(&format!("oltp update_index prepare {on} --quiet"));
        assert!(output.status.success(), "{}", stderr(&output));
        on
    }

    fn fault(&self, fault: &str) {
        let output = self.disks.0.line(&format!("disk fault {} {fault}", self.device));
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.at).status();
        let is_gone = unmounted.is_ok_and(|status| status.success());
        assert!(is_gone || std::thread::panicking(), "{} is still mounted", self.at.display());
    }
}

fn by_cause<'d>(run: &'d Value, cause: &str) -> Vec<&'d Value> {
    let stalls = run["stalls"].as_array().unwrap();
    stalls.iter().filter(|stall| stall["cause"] == cause).collect()
}

fn start(bench: &Bench, line: &str) -> Child {
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_disk_that_stands_still_is_named() {
    let Some(mounted) = Mounted::on("nvme") else { return };
    let on = mounted.prepared();
    let [time, before] = usual_or_soak([12, 4], [16, 6]);
    let line = format!("oltp update_index run {on} --threads 4 --time {time} --warmup-time 0");
    let child = start(&mounted.disks.0, &format!("{line} --json"));
    std::thread::sleep(Duration::from_secs(before));
    mounted.fault("--slow 5000");
    std::thread::sleep(Duration::from_secs(2));
    mounted.fault("--none");
    let run = document(&child.wait_with_output().unwrap(), "tpcc");
    let found = by_cause(&run, "device");
    assert!(!found.is_empty(), "{}", run["stalls"]);
    // A busy machine has short ones in addition; none of them is given another cause.
    let all = run["stalls"].as_array().unwrap();
    assert_eq!(found.len() + by_cause(&run, "unknown").len(), all.len(), "{all:?}");
}
