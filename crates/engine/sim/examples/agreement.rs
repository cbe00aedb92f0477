//! Serves disks in real time and sets what fio measures on their block device against what the
//! same model does in virtual time; without a disk it measures what the way to the server costs.
//!
//! Usage, as root, with fio: `agreement [DISK...]`, as `agreement hdd-15k cloud-burst`. Seconds per
//! figure in SECONDS_EACH, 5 when absent. Other work on the machine shows in every figure.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use iostrata_sim::bench::{BenchWindow, Load, run};
use iostrata_sim::drive::{Drive, DriveCompletion, DriveFacts, Request};
use iostrata_sim::emudisk::{Client, DiskStats, ServeOptions, Store, serve, serve_drive};

const SIZE_BYTES: u64 = 1 << 30;
const SEED: u64 = 1;
const DEPTHS: [u32; 3] = [1, 8, 32];

/// Takes the same time for everything, whatever else is in flight.
struct FixedDrive {
    service_ns: u64,
    done: VecDeque<DriveCompletion>,
}

impl Drive for FixedDrive {
    fn facts(&self) -> DriveFacts {
        DriveFacts {
            capacity_bytes: SIZE_BYTES,
            queue_depth: 1024,
            volatile_bytes: 0,
            is_rotational: false,
        }
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        self.done.push_back(DriveCompletion { id: request.id, at_ns: now_ns + self.service_ns });
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.done.front().map(|done| done.at_ns)
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<DriveCompletion>) {
        let due = self.done.partition_point(|done| done.at_ns <= now_ns);
        done.extend(self.done.drain(..due));
    }
}

/// How long a drive of a name like `fixed-100` takes, in us.
fn fixed_us(disk: &str) -> Option<u64> {
    disk.strip_prefix("fixed-")?.parse().ok()
}

fn options(disk: &str) -> ServeOptions {
    ServeOptions {
        disk: if fixed_us(disk).is_some() { "nvme" } else { disk }.parse().unwrap(),
        size_bytes: SIZE_BYTES,
        store: Store::Memory,
        store_limit_bytes: None,
        seed: SEED,
        measured: None,
    }
}

fn serve_here(at: &Path, disk: &str) {
    let stop = AtomicBool::new(false);
    let ended = if let Some(us) = fixed_us(disk) {
        let fixed = move || FixedDrive { service_ns: us * 1000, done: VecDeque::new() };
        serve_drive(at, options(disk), Box::new(move || Ok(Box::new(fixed()))), &stop)
    } else {
        serve(at, options(disk), &stop)
    };
    ended.unwrap();
}

/// A disk that is served, with a loop device over it.
struct ServedDisk {
    dir: tempfile::TempDir,
    server: Child,
    device: String,
}

impl ServedDisk {
    fn start(disk: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let server = Command::new(program).arg("serve").arg(dir.path()).arg(disk).spawn().unwrap();
        let file = dir.path().join("disk");
        let until = Instant::now() + Duration::from_secs(5);
        while !file.exists() {
            assert!(Instant::now() < until, "nothing is served");
            std::thread::sleep(Duration::from_millis(5));
        }
        let made = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .arg(&file)
            .output()
            .unwrap();
        let device = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        Self { dir, server, device }
    }

    fn stats(&self) -> DiskStats {
        Client::at(self.dir.path()).stats().unwrap()
    }

    /// IOPS and the mean latency in us.
    fn measure(&self, rw: &str, depth: u32, seconds: f64) -> (f64, f64) {
        let fio = Command::new("fio")
            .args(["--name=a", "--direct=1", "--bs=4k", "--ioengine=io_uring", "--norandommap"])
            .args(["--time_based", "--output-format=json", "--random_generator=tausworthe64"])
            .args([format!("--filename={}", self.device), format!("--rw={rw}")])
            .args([format!("--iodepth={depth}"), format!("--runtime={seconds}s")])
            .arg(format!("--ramp_time={}s", if seconds > 3.0 { 2 } else { 1 }))
            .output()
            .unwrap();
        let report: serde_json::Value = serde_json::from_slice(&fio.stdout).unwrap();
        let side = &report["jobs"][0][rw.trim_start_matches("rand")];
        (side["iops"].as_f64().unwrap(), side["lat_ns"]["mean"].as_f64().unwrap() / 1e3)
    }
}

impl Drop for ServedDisk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
        let _ = Command::new("umount").arg(self.dir.path()).status();
        let _ = self.server.wait();
    }
}

/// What the way costs: with a drive that takes no time, and with others as the difference.
fn overhead(seconds: f64) {
    println!("drives that take the same time for everything");
    println!("{:>9} {:>10} {:>6} {:>10} {:>9} {:>9}", "us", "", "depth", "IOPS", "us", "more, us");
    for us in [0, 100, 1000] {
        let served = ServedDisk::start(&format!("fixed-{us}"));
        for rw in ["randread", "randwrite"] {
            for depth in DEPTHS {
                let (iops, mean_us) = served.measure(rw, depth, seconds);
                let more = mean_us - us as f64;
                println!("{us:>9} {rw:>10} {depth:>6} {iops:>10.0} {mean_us:>9.1} {more:>9.1}");
            }
        }
        let stats = served.stats();
        println!(
            "late by {:.1} us, {} of {}",
            stats.late_us_mean,
            stats.late,
            stats.reads + stats.writes
        );
    }
}

fn agreement(disk: &str, seconds: f64) {
    println!("{disk}");
    println!(
        "{:>10} {:>6} {:>10} {:>10} {:>24} {:>7} {:>7} {:>7}",
        "", "depth", "measured", "model", "of the model, 95 %", "ratio", "arrived", "late us"
    );
    for rw in ["randread", "randwrite"] {
        for depth in DEPTHS {
            // Each on a disk that is new, as the drive of the virtual time is.
            let served = ServedDisk::start(disk);
            let (iops, _) = served.measure(rw, depth, seconds);
            let is_read = rw == "randread";
            let load = if is_read { Load::random_read(depth) } else { Load::random_write(depth) };
            let one = options(disk);
            let drive = iostrata_sim::model::drive(&one.disk, SIZE_BYTES, None, SEED);
            let window = BenchWindow::seconds(if seconds > 3.0 { 2.0 } else { 1.0 }, seconds);
            let model = run(&mut *drive.unwrap(), &load, window, SEED).unwrap().iops;
            let stats = served.stats();
            let interval =
                model.ci95.map_or(String::new(), |ci95| format!("{:.0}..{:.0}", ci95[0], ci95[1]));
            println!(
                "{rw:>10} {depth:>6} {iops:>10.0} {:>10.0} {interval:>24} {:>7.3} {:>7.1} {:>7.1}",
                model.value,
                iops / model.value,
                stats.depth_mean,
                stats.late_us_mean,
            );
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, at, disk] = &words[..]
        && word == "serve"
    {
        return serve_here(Path::new(at), disk);
    }
    let seconds = std::env::var("SECONDS_EACH").map_or(5.0, |text| text.parse().unwrap());
    if words.is_empty() {
        overhead(seconds);
    }
    for disk in &words {
        agreement(disk, seconds);
    }
}
