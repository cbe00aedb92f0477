//! Where causes are planted: file systems on emulated disks and loop devices, control groups.
//!
//! Invariant: what was made is taken away again in reverse order, also when a test fails.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::disk::Disks;
use crate::harness::{Bench, stderr};

/// A file system of this ground's own, and everything that was made for it.
pub struct Ground {
    disks: Disks,
    device: Option<String>,
    dir: PathBuf,
    mounted: bool,
    is_loop: bool,
    groups: Vec<PathBuf>,
    memory: Option<TempDir>,
    /// Where the device is mounted, where `dir` is an overlay above it.
    overlaid: Option<PathBuf>,
}

impl Ground {
    /// A directory on the disk that holds the build.
    pub fn on_disk() -> Self {
        Self::bare()
    }

    /// ext4 on an emulated disk.
    pub fn emulated(model: &str, size: &str) -> Self {
        let mut ground = Self::bare();
        let (device, _) =
            ground.disks.start(&format!("--model {model} --size {size} --store-limit 8G"));
        ground.device = Some(device.clone());
        // Tables that are written behind the probe's back would be foreign I/O.
        let words = ["-q", "-N", "512", "-J", "size=64", "-E", "nodiscard,lazy_itable_init=0"];
        run("mkfs.ext4", &[&words[..], &[&device]].concat());
        ground.mount(&["-o", "noinit_itable"]);
        ground
    }

    /// A file system made by a program, `mkfs.xfs -q`, on a loop device over a file.
    pub fn on_loop(bytes: u64, mkfs: &str, mount_options: &[&str]) -> Self {
        Self::on_loop_at("0", bytes, mkfs, mount_options)
    }

    /// The same on a loop device that begins at a byte of its file.
    pub fn on_loop_at(offset: &str, bytes: u64, mkfs: &str, mount_options: &[&str]) -> Self {
        let ground = Self::bare();
        let file = ground.bench().path("volume");
        ground.over(&file, "on", offset, bytes, mkfs, mount_options)
    }

    /// The same on a loop device that goes through the page cache.
    pub fn on_buffered_loop(bytes: u64, mkfs: &str) -> Self {
        let ground = Self::bare();
        let file = ground.bench().path("volume");
        ground.over(&file, "off", "0", bytes, mkfs, &[])
    }

    /// An overlay whose upper directory is on ext4.
    pub fn overlay(bytes: u64, mkfs: &str) -> Self {
        let mut ground = Self::on_loop(bytes, mkfs, &[]);
        let below = ground.dir.clone();
        for name in ["lower", "upper", "work"] {
            std::fs::create_dir(below.join(name)).unwrap();
        }
        let dir = ground.bench().path("overlay");
        std::fs::create_dir(&dir).unwrap();
        let at = |name: &str| below.join(name).display().to_string();
        let layers =
            format!("lowerdir={},upperdir={},workdir={}", at("lower"), at("upper"), at("work"));
        run("mount", &["-t", "overlay", "overlay", "-o", &layers, dir.to_str().unwrap()]);
        ground.overlaid = Some(std::mem::replace(&mut ground.dir, dir));
        ground
    }

    /// The same over a file in memory.
    pub fn in_memory(bytes: u64, mkfs: &str) -> Self {
        let mut ground = Self::bare();
        let memory = TempDir::with_prefix_in("planted-", "/dev/shm").unwrap();
        let file = memory.path().join("volume");
        ground.memory = Some(memory);
        ground.over(&file, "on", "0", bytes, mkfs, &[])
    }

    fn over(
        mut self,
        file: &Path,
        direct: &str,
        offset: &str,
        bytes: u64,
        mkfs: &str,
        mount_options: &[&str],
    ) -> Self {
        let ground = &mut self;
        std::fs::File::create(file).unwrap().set_len(bytes).unwrap();
        let file = file.to_str().unwrap();
        let direct = format!("--direct-io={direct}");
        let words = ["--find", "--show", &direct, "--offset", offset, file];
        let device = run("losetup", &words).trim().to_owned();
        (ground.device, ground.is_loop) = (Some(device.clone()), true);
        let mut words: Vec<&str> = mkfs.split_whitespace().collect();
        let program = words.remove(0);
        words.push(&device);
        run(program, &words);
        ground.mount(mount_options);
        self
    }

    fn bare() -> Self {
        let disks = Disks::new();
        let dir = disks.0.path("data");
        std::fs::create_dir(&dir).unwrap();
        let (device, mounted, is_loop, groups) = (None, false, false, Vec::new());
        Self { disks, device, dir, mounted, is_loop, groups, memory: None, overlaid: None }
    }

    fn mount(&mut self, options: &[&str]) {
        let device = self.device.clone().unwrap();
        run("mount", &[options, &[&device, self.dir.to_str().unwrap()]].concat());
        self.mounted = true;
    }

    pub fn bench(&self) -> &Bench {
        &self.disks.0
    }

    /// The directory to be probed.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The device that was made for it.
    pub fn device(&self) -> &str {
        self.device.as_deref().unwrap()
    }

    /// `major:minor` of the device below the directory, as limits are written.
    pub fn device_number(&self) -> String {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata(&self.dir).unwrap().dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        // Limits are set on whole devices; a partition's device is the one above it.
        let whole = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/../dev"));
        whole.map_or(format!("{major}:{minor}"), |text| text.trim().to_owned())
    }

    /// Sets a fault of the emulated disk: `--stall 50ms/1s`, `--none`.
    pub fn fault(&self, words: &str) {
        let device = self.device.as_deref().unwrap();
        let output = self.bench().line(&format!("disk fault {device} {words}"));
        assert!(output.status.success(), "{}", stderr(&output));
    }

    /// A control group of a version 1 controller; `None` with a word where there is none.
    pub fn group(&mut self, controller: &str, test: &str) -> Option<PathBuf> {
        let name = format!("iostrata-planted-{}-{}", std::process::id(), self.groups.len());
        let group = Path::new("/sys/fs/cgroup").join(controller).join(name);
        if std::fs::create_dir(&group).is_err() {
            eprintln!("skipped: {test}: needs the version 1 control groups of {controller}");
            return None;
        }
        self.groups.push(group.clone());
        Some(group)
    }

    /// The same command, begun inside a control group.
    pub fn enter(&self, command: Command, group: &Path) -> Command {
        let mut inside = Command::new("sh");
        let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        inside.args(["-c", script, group.to_str().unwrap()]);
        inside.arg(command.get_program()).args(command.get_args());
        inside.current_dir(command.get_current_dir().unwrap());
        for (name, value) in command.get_envs() {
            value.map(|value| inside.env(name, value));
        }
        inside
    }
}

/// Runs a program that must succeed; what it printed.
pub fn run(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

impl Drop for Ground {
    fn drop(&mut self) {
        let until = Instant::now() + Duration::from_secs(10);
        while self.mounted && Instant::now() < until {
            let gone = Command::new("umount").arg(&self.dir).status();
            if gone.is_ok_and(|status| status.success()) {
                match self.overlaid.take() {
                    Some(below) => self.dir = below,
                    None => self.mounted = false,
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        if let (true, Some(device)) = (self.is_loop, &self.device) {
            let _ = Command::new("losetup").args(["-d", device]).status();
        }
        for group in &self.groups {
            let _ = std::fs::remove_dir(group);
        }
    }
}
