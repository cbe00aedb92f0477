//! A loop device of its own, taken down again when dropped, and a limit on it.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use iostrata_linux::blocktrace::{TraceScope, TracedDevice};
use tempfile::TempDir;

use crate::blocktrace::instance::run;

/// Bytes of the device; all of its file is written, so that nothing is allocated while traced.
pub const DISK_BYTES: u64 = 16 << 20;

pub struct Disk {
    _dir: TempDir,
    /// `/dev/loopN`.
    pub path: String,
}

impl Disk {
    pub fn make() -> Result<Self, String> {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).map_err(|e| e.to_string())?;
        let image = dir.path().join("image");
        let mut file = File::create(&image).map_err(|e| e.to_string())?;
        file.write_all(&vec![7; DISK_BYTES as usize]).map_err(|e| e.to_string())?;
        file.sync_all().map_err(|e| e.to_string())?;
        let image = image.to_string_lossy().into_owned();
        let path = run("losetup", &["--find", "--show", "--direct-io=on", &image])?;
        Ok(Self { _dir: dir, path })
    }

    pub fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }

    /// Reads and writes that are done, as the kernel counts them.
    pub fn requests(&self) -> u64 {
        let file = format!("/sys/class/block/{}/stat", self.name());
        let text = fs::read_to_string(file).unwrap();
        let fields: Vec<u64> = text.split_whitespace().map(|one| one.parse().unwrap()).collect();
        fields[0] + fields[4]
    }

    pub fn number(&self) -> String {
        let file = format!("/sys/class/block/{}/dev", self.name());
        fs::read_to_string(file).unwrap().trim().to_owned()
    }

    pub fn scope(&self, processes: Vec<u32>, is_limited: bool) -> TraceScope {
        let device = TracedDevice {
            name: self.name().to_owned(),
            number: self.number().parse().unwrap(),
            partitions: Vec::new(),
        };
        TraceScope { devices: vec![device], processes, is_limited }
    }

    /// Sets the device's scheduler; the error is why it is not there.
    pub fn schedule(&self, scheduler: &str) -> Result<(), String> {
        let file = format!("/sys/block/{}/queue/scheduler", self.name());
        fs::write(file, scheduler).map_err(|e| format!("{scheduler}: {e}"))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The next user of the number would inherit it.
        self.schedule("none").ok();
        run("losetup", &["--detach", &self.path]).ok();
    }
}

/// A control group of version 1 that limits the writes of threads that enter it.
pub struct WriteLimit(PathBuf);

impl WriteLimit {
    pub fn make(disk: &Disk, writes_per_s: u32) -> Result<Self, String> {
        let name = format!("iostrata-blocktrace-{}", std::process::id());
        let dir = PathBuf::from("/sys/fs/cgroup/blkio").join(name);
        fs::create_dir(&dir).map_err(|e| format!("no blkio control group can be made: {e}"))?;
        let limit = Self(dir);
        let value = format!("{} {writes_per_s}", disk.number());
        fs::write(limit.0.join("blkio.throttle.write_iops_device"), value)
            .map_err(|e| format!("no limit can be set: {e}"))?;
        Ok(limit)
    }

    /// Puts the calling thread under the limit.
    pub fn enter(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero();
        fs::write(self.0.join("tasks"), thread.to_string()).unwrap();
    }
}

impl Drop for WriteLimit {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).ok();
    }
}
