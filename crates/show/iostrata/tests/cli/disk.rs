//! Emulated disks through the command line: started, listed, hurt, stopped.

use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Bench, document, stderr, stdout};

/// Whether disks can be emulated here; prints it when they cannot.
pub fn can_emulate(test: &str) -> bool {
    let is_ready = rustix::process::geteuid().is_root()
        && Path::new("/dev/fuse").exists()
        && Path::new("/dev/loop-control").exists();
    if !is_ready {
        eprintln!("skipped: {test}: emulated disks need root, /dev/fuse and loop devices");
    }
    is_ready
}

/// A bench whose disks go with it, also when a test fails.
pub struct Disks(pub Bench, Vec<PathBuf>);

impl Disks {
    pub fn new() -> Self {
        Self(Bench::new(), out_of_sight())
    }

    /// Starts one; its device and its server.
    pub fn start(&self, options: &str) -> (String, i32) {
        let output = self.0.line(&format!("disk start {options} --json"));
        let started = document(&output, "disk-start");
        let pid = started["pid"].as_i64().unwrap() as i32;
        (started["device"].as_str().unwrap().to_owned(), pid)
    }

    pub fn list(&self) -> Vec<Value> {
        let listed = document(&self.0.line("disk list --json"), "disk-list");
        listed["disks"].as_array().unwrap().clone()
    }

    /// What is left of this bench's disks anywhere on the machine, after others had a moment.
    pub fn left(&self) -> Vec<String> {
        let mut left = self.left_now();
        for _ in 0..40 {
            if left.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
            left = self.left_now();
        }
        left
    }

    pub fn left_now(&self) -> Vec<String> {
        let state = std::fs::canonicalize(self.0.path("state"));
        let Ok(state) = state.map(|path| path.display().to_string()) else { return Vec::new() };
        let read = |path: PathBuf| std::fs::read(path).unwrap_or_default();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\0', " ");
        let names = |dir: &str| std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut left: Vec<String> =
            names(&state).map(|entry| entry.path().display().to_string()).collect();
        let mounts = text(read("/proc/self/mountinfo".into()));
        left.extend(mounts.lines().filter(|line| line.contains(&state)).map(str::to_owned));
        for entry in names("/sys/block") {
            let over = text(read(entry.path().join("loop/backing_file")));
            left.extend(over.contains(&state).then_some(over));
        }
        let unseen = out_of_sight().into_iter().filter(|path| !self.1.contains(path));
        left.extend(unseen.map(|path| format!("{} is over an unmounted file", path.display())));
        for entry in names("/proc") {
            let line = text(read(entry.path().join("cmdline")));
            left.extend(line.contains(&state).then_some(line));
        }
        left
    }
}

/// Loop devices over a served file the file system of which is unmounted.
fn out_of_sight() -> Vec<PathBuf> {
    let blocks = std::fs::read_dir("/sys/block").unwrap().flatten().map(|entry| entry.path());
    let backing = |path: &PathBuf| std::fs::read_to_string(path.join("loop/backing_file"));
    blocks.filter(|path| backing(path).is_ok_and(|backing| backing.trim() == "/disk")).collect()
}

impl Drop for Disks {
    fn drop(&mut self) {
        self.0.line("disk stop --all");
        self.0.line("restore");
    }
}

pub fn dd(words: &str) -> Output {
    let mut command = Command::new("dd");
    command.args(words.split_whitespace()).output().unwrap()
}

pub fn signal(pid: i32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_disk_is_started_listed_and_stopped() {
    if !can_emulate("a_disk_is_started_listed_and_stopped") {
        return;
    }
    let disks = Disks::new();
    let bench = &disks.0;
    assert!(stdout(&bench.line("disk list")).contains("There is no emulated disk"));
    let started =
        document(&bench.line("disk start --model hdd-15k --size 2G --json"), "disk-start");
    let keys: Vec<&String> = started.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 4, "{started}");
    let device = started["device"].as_str().unwrap();
    assert_eq!(
        (&started["model"], &started["size_bytes"]),
        (&"hdd-15k".into(), &(2u64 << 30).into())
    );
    let name = device.strip_prefix("/dev/").unwrap();
    let sectors = std::fs::read_to_string(format!("/sys/block/{name}/size")).unwrap();
    assert_eq!(sectors.trim(), (4 << 20).to_string());
    assert_eq!(stderr(&bench.line("disk list")), "", "it is not left over");
    assert!(stdout(&bench.line("restore")).contains("left alone"));
    let read = dd(&format!("if={device} of=/dev/null bs=4k count=16 iflag=direct"));
    assert!(read.status.success(), "{}", stderr(&read));
    let row = &disks.list()[0];
    assert_eq!((&row["device"], &row["pid"]), (&started["device"], &started["pid"]));
    assert!(row["reads"].as_u64().unwrap() >= 16 && row["writes"] == 0, "{row}");
    assert_eq!((&row["merged"], &row["in_use"]), (&0.into(), &Value::Null));
    assert!(stdout(&bench.line("disk list")).contains("reads, 0 writes"));
    let stopped = bench.run(&["disk", "stop", device]);
    assert!(stopped.status.success(), "{}", stderr(&stopped));
    assert_eq!(disks.left(), Vec::<String>::new());
    let again = bench.run(&["disk", "stop", device]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("is no emulated disk; there is none"), "{}", stderr(&again));
}

#[test]
fn what_is_wrong_is_said_before_anything_happens() {
    let bench = Bench::new();
    std::fs::write(bench.path("no-probe"), "{}").unwrap();
    for (line, said) in [
        ("disk start --model hdd-15 --size 1G", "did you mean `hdd-15k`"),
        ("disk start --model floppy --size 1G", "models: hdd-7k2"),
        ("disk start --model nvme --size 0", "too small"),
        ("disk start --model nvme --size 900T", "too large for the model"),
        ("disk start --model nvme --size 5000000", "not a multiple of 4096"),
        ("disk start --model nvme --size big", "big"),
        ("disk start --model nvme --size 15T", "of memory are available now"),
        ("disk start --model nvme --size 15T --store .", "--store-limit SIZE"),
        ("disk start --model nvme --size 1G --store nowhere", "--store nowhere"),
        ("disk start --model nvme --size 1G --store no-probe", "is not a directory"),
        ("disk start --model probe:none.json --size 1G", "iostrata probe DIR --json"),
        ("disk start --model probe:no-probe --size 1G", "not what a probe prints"),
        ("disk start --model hdd-15k,spindles=4 --size 1G", "raid10-hdd takes"),
        ("disk start --size 1G", "--model"),
        ("disk fault /dev/null --slow 5", "is no emulated disk"),
        ("disk fault loop77", "--power-cut"),
        ("disk fault loop77 --slow 5 --power-cut", "cannot be used with"),
        ("disk fault loop77 --slow 5 --tear 512", "--power-cut"),
        ("disk fault loop77 --power-cut --tear 1024", "512"),
        ("disk fault loop77 --eio 2M-1M", "the first below the second"),
        ("disk fault loop77 --eio-rate 2000000", "of a million"),
        ("disk stop /dev/null", "is no emulated disk"),
        ("disk stop", "--all"),
        ("disk serve --size 1 /nowhere", "`--disk` is missing"),
    ] {
        let output = bench.line(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{line}: {}", stderr(&output));
    }
    assert!(bench.line("disk stop --all").status.success(), "nothing to stop is no error");
    let nothing = document(&bench.line("disk stop --all --json"), "disk-stop");
    assert_eq!(nothing["stopped"], Value::Array(vec![]));
    assert!(!bench.path("state").exists());
    assert!(!stdout(&bench.line("disk --help")).contains("serve"), "it is not for users");
}

#[test]
fn what_is_mounted_or_open_is_not_stopped() {
    if !can_emulate("what_is_mounted_or_open_is_not_stopped") {
        return;
    }
    let disks = Disks::new();
    let (device, _) = disks.start("--model nvme --size 64M");
    let made = Command::new("mkfs.ext4").args(["-q", "-E", "nodiscard", &device]).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: what_is_mounted_or_open_is_not_stopped: needs mkfs.ext4");
        return;
    }
    let at = disks.0.path("mnt");
    std::fs::create_dir(&at).unwrap();
    assert!(Command::new("mount").arg(&device).arg(&at).status().unwrap().success());
    let refused = disks.0.run(&["disk", "stop", &device]);
    let all = disks.0.line("disk stop --all --json");
    let row = disks.list()[0].clone();
    std::fs::write(at.join("file"), "still works").unwrap();
    assert!(Command::new("umount").arg(&at).status().unwrap().success());
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains(at.to_str().unwrap()), "{}", stderr(&refused));
    assert_eq!(all.status.code(), Some(2));
    assert!(row["in_use"].as_str().unwrap().contains("mounted at"), "{row}");
    let all: Value = serde_json::from_str(&stdout(&all)).unwrap();
    assert_eq!(all["refused"][0]["device"].as_str(), Some(device.as_str()));
    let open = std::fs::File::open(&device).unwrap();
    let refused = disks.0.run(&["disk", "stop", &device]);
    drop(open);
    assert_eq!(refused.status.code(), Some(2));
    let this = format!("(process {}) has it open", std::process::id());
    assert!(stderr(&refused).contains(&this), "{}", stderr(&refused));
    assert!(disks.0.run(&["disk", "stop", &device]).status.success());
    assert_eq!(disks.left(), Vec::<String>::new());
}

#[test]
fn what_goes_wrong_on_request_is_seen_by_programs() {
    if !can_emulate("what_goes_wrong_on_request_is_seen_by_programs") {
        return;
    }
    let disks = Disks::new();
    let (device, _) = disks.start("--model nvme-no-plp --size 64M");
    let fault = |words: &str| {
        let line = format!("disk fault {device} {words} --json");
        document(&disks.0.line(&line), "disk-fault")["faults"].clone()
    };
    let read = |at: u32| {
        let from = format!("if={device} of=/dev/null bs=4k count=1 iflag=direct skip={at}");
        dd(&from).status.success()
    };
    let write = |from: &str, flags: &str| {
        dd(&format!("if={from} of={device} bs=4k count=1 seek=3 oflag=direct {flags}"))
    };
    fault("--eio 1M-2M");
    assert!(read(255) && !read(256) && !read(511) && read(512));
    assert!(disks.list()[0]["errors_injected"].as_u64().unwrap() >= 2);
    let beyond = disks.0.run(&["disk", "fault", &device, "--eio", "64M-65M"]);
    assert_eq!(beyond.status.code(), Some(2));
    assert!(stderr(&beyond).contains("beyond the end"), "{}", stderr(&beyond));
    fault("--eio-rate 1000000");
    assert!(!read(0));
    fault("--none");
    assert!(read(256) && read(0));
    // What was not flushed is lost.
    std::fs::write(disks.0.path("ones"), [1; 4096]).unwrap();
    std::fs::write(disks.0.path("twos"), [2; 4096]).unwrap();
    assert!(write(disks.0.path("ones").to_str().unwrap(), "conv=fdatasync").status.success());
    let mut exclusive = std::fs::File::options();
    // As a mounted file system: without a holder the power comes back by itself.
    let exclusive = exclusive.read(true).custom_flags(rustix::fs::OFlags::EXCL.bits() as i32);
    let held = exclusive.open(&device).unwrap();
    assert!(write(disks.0.path("twos").to_str().unwrap(), "").status.success());
    assert_eq!(fault("--power-cut --tear 512"), serde_json::json!(["power-cut tear 512"]));
    assert!(!read(3));
    assert_eq!(disks.list()[0]["has_power"], false);
    assert_eq!(fault("--none").as_array().unwrap().last().unwrap(), "power-on");
    drop(held);
    let mut found = vec![0; 4096];
    let file = std::fs::File::open(&device).unwrap();
    file.read_exact_at(&mut found, 3 * 4096).unwrap();
    assert!(found.chunks(512).all(|sector| sector == [1; 512] || sector == [2; 512]));
    drop(file);
    assert_eq!(fault("--slow 20"), serde_json::json!(["slow 20"]));
    assert!(read(9));
}

#[test]
fn disks_are_told_apart_and_all_are_stopped() {
    if !can_emulate("disks_are_told_apart_and_all_are_stopped") {
        return;
    }
    let disks = Disks::new();
    std::fs::create_dir(disks.0.path("store")).unwrap();
    let (first, _) = disks.start("--model ssd-sata,queue=1 --size 32M");
    let (second, _) = disks.start("--model raid10-hdd --size 64M --store store --seed 9");
    assert_ne!(first, second);
    let models: Vec<Value> = disks.list().iter().map(|row| row["model"].clone()).collect();
    assert!(models.contains(&"ssd-sata,queue=1".into()) && models.contains(&"raid10-hdd".into()));
    let text = stdout(&disks.0.line("disk start --model hdd-7k2,cache=off --size 32M"));
    assert!(text.contains("7,200 turns a minute, its write cache off"), "{text}");
    assert!(text.contains("iostrata disk stop /dev/loop"), "{text}");
    assert!(disks.0.run(&["disk", "stop", &first]).status.success());
    assert_eq!(disks.list().len(), 2);
    let all = document(&disks.0.line("disk stop --all --json"), "disk-stop");
    assert_eq!(all["stopped"].as_array().unwrap().len(), 2);
    assert_eq!(disks.left(), Vec::<String>::new());
    let left: Vec<_> = std::fs::read_dir(disks.0.path("store")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
