//! A server in a process of its own, and the loop device over it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use iostrata_change::end_with_starter;
use iostrata_sim::emudisk::{
    Client, DiskStats, Fault, ServeArguments, ServeOptions, Store, disk_file, serve,
};
use rustix::process::Signal;
use tempfile::TempDir;

pub const MIB: u64 = 1 << 20;

/// The words of the server's command line, one per line; absent in the parent.
const WORDS: &str = "IOSTRATA_TEST_SERVE";

/// The process that serves.
#[test]
fn child() {
    let Ok(words) = std::env::var(WORDS) else { return };
    let words: Vec<&str> = words.lines().skip(2).collect();
    let arguments = ServeArguments::parse(&words).unwrap();
    let options = ServeOptions {
        disk: arguments.disk,
        size_bytes: arguments.size_bytes,
        store: arguments.store,
        store_limit_bytes: arguments.store_limit_bytes,
        seed: arguments.seed,
        measured: None,
    };
    serve(&arguments.at, options, &AtomicBool::new(false)).unwrap();
}

/// One disk.
pub struct Served {
    dir: TempDir,
    server: Child,
    /// The loop device over it.
    pub device: PathBuf,
    pub client: Client,
}

pub fn run(program: &str, words: &[&str]) -> Output {
    Command::new(program).args(words).stdin(Stdio::null()).output().unwrap()
}

/// Runs a program that must succeed.
pub fn done(program: &str, words: &[&str]) -> String {
    let output = run(program, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Waits for something, at most 20 s.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "{what}: not after 20 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether nothing is missing for a test; prints what is.
pub fn can_serve(test: &str, programs: &[&str]) -> bool {
    let lacks = |why: &str| {
        eprintln!("skipped: {test}: {why}");
        false
    };
    if !rustix::process::geteuid().is_root() {
        return lacks("serving a disk needs root");
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if !Path::new(device).exists() {
            return lacks(&format!("there is no {device}"));
        }
    }
    for program in ["losetup"].iter().chain(programs) {
        if Command::new(program).arg("-V").output().is_err() {
            return lacks(&format!("there is no {program}"));
        }
    }
    true
}

impl Served {
    pub fn start(disk: &str, size_bytes: u64) -> Self {
        Self::with(disk, size_bytes, Store::Memory)
    }

    pub fn with(disk: &str, size_bytes: u64, store: Store) -> Self {
        let dir = TempDir::with_prefix("emudisk-").unwrap();
        let at = dir.path().join("at");
        fs::create_dir(&at).unwrap();
        let disk = disk.parse().unwrap();
        let arguments = ServeArguments {
            at: at.clone(),
            disk,
            size_bytes,
            store,
            store_limit_bytes: None,
            seed: 3,
        };
        let mut words = arguments.to_vector().unwrap();
        words.push(at.to_str().unwrap().to_owned());
        let mut server = Command::new(std::env::current_exe().unwrap());
        server
            .args(["--exact", "emudisk::served::child", "--nocapture"])
            .env(WORDS, words.join("\n"));
        server.stdout(Stdio::null());
        let server = end_with_starter(&mut server, Signal::KILL).spawn().unwrap();
        let file = disk_file(&at);
        wait_for("the disk is served", || file.exists());
        let file = file.to_str().unwrap();
        let device = done("losetup", &["--find", "--show", "--direct-io=on", file]);
        Self { dir, server, device: device.into(), client: Client::at(&at) }
    }

    pub fn at(&self) -> PathBuf {
        self.dir.path().join("at")
    }

    /// An empty directory to mount the disk's file system at.
    pub fn mount_point(&self) -> PathBuf {
        let path = self.dir.path().join("mnt");
        fs::create_dir_all(&path).unwrap();
        path
    }

    pub fn stats(&self) -> DiskStats {
        self.client.stats().unwrap()
    }

    pub fn control(&self, line: &str) {
        self.client.control(&line.parse::<Fault>().unwrap()).unwrap();
    }

    /// The disk's own file, by which no loop device merges or caches anything.
    pub fn file(&self) -> File {
        File::options().read(true).write(true).open(disk_file(&self.at())).unwrap()
    }

    /// A sector of the disk.
    pub fn sector(&self, number: u64) -> Vec<u8> {
        let mut sector = vec![0; 512];
        self.file().read_exact_at(&mut sector, number * 512).unwrap();
        sector
    }

    pub fn kill(&mut self) {
        // By its own handle, so that no other process is hit.
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }

    pub fn has_ended(&mut self) -> bool {
        self.server.try_wait().unwrap().is_some()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        run("umount", &["--quiet", &text(self.dir.path().join("mnt"))]);
        run("losetup", &["--detach", self.device.to_str().unwrap()]);
        let at = text(self.at());
        let is_unmounted = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            run("umount", &["--quiet", &at]).status.success() || self.has_ended()
        });
        if !is_unmounted {
            run("umount", &["--lazy", &at]);
            let _ = self.server.kill();
        }
        let _ = self.server.wait();
    }
}
