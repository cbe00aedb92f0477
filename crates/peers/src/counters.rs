//! What the system counted meanwhile: processor time, bytes given to the block layer, bytes that
//! the device wrote.
//!
//! The device's sectors are exact where nothing else uses the device; they hold the file system's
//! journal too. `write_bytes` of `/proc/self/io` are this process's own, but where the page cache
//! holds files in large pieces the kernel counts a whole piece when any byte of it is changed: far
//! too much for small writes to a log. It only reads.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Bytes of a sector in the kernel's statistics, whatever the device has.
const SECTOR_BYTES: u64 = 512;

/// The counters of this process and of one device.
#[derive(Clone, Debug)]
pub struct Counters {
    device: Option<PathBuf>,
}

/// Counters at one time; differences mean something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Processor time of all threads, user and system.
    pub cpu: Duration,
    /// Bytes that this process sent towards storage, where the kernel reports it.
    pub written_bytes: Option<u64>,
    /// Bytes that the device under the directory wrote, where it has one of its own.
    pub device_bytes: Option<u64>,
}

impl Counters {
    /// For files in this directory.
    pub fn of(dir: &Path) -> Self {
        let stat_of = |number: u64| {
            let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
            PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"))
        };
        let device = fs::metadata(dir).ok().map(|data| stat_of(data.dev()));
        Self { device: device.filter(|path| path.exists()) }
    }

    /// The counters now.
    pub fn read(&self) -> Reading {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        Reading {
            cpu: Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32),
            written_bytes: written(&text(Path::new("/proc/self/io"))),
            device_bytes: self.device.as_deref().and_then(|path| sectors_written(&text(path))),
        }
    }
}

impl Reading {
    /// What passed since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        let difference = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            written_bytes: difference(self.written_bytes, earlier.written_bytes),
            device_bytes: difference(self.device_bytes, earlier.device_bytes),
        }
    }
}

fn written(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.trim().parse().ok()
}

/// The seventh column of a block device's `stat`.
fn sectors_written(text: &str) -> Option<u64> {
    let sectors: u64 = text.split_whitespace().nth(6)?.parse().ok()?;
    Some(sectors * SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(
            written("read_bytes: 3\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n"),
            Some(4096)
        );
        assert_eq!(written(""), None);
        assert_eq!(sectors_written("  1 2 3 4 5 6 16 8 9"), Some(8192));
        assert_eq!(sectors_written("1 2"), None);
    }

    #[test]
    fn differences_need_both_ends() {
        let early =
            Reading { cpu: Duration::from_secs(1), written_bytes: Some(5), device_bytes: None };
        let late =
            Reading { cpu: Duration::from_secs(3), written_bytes: Some(9), device_bytes: Some(1) };
        let passed = late.since(early);
        assert_eq!(passed.cpu, Duration::from_secs(2));
        assert_eq!((passed.written_bytes, passed.device_bytes), (Some(4), None));
    }

    #[test]
    fn processor_time_passes() {
        let counters = Counters::of(Path::new("/"));
        let before = counters.read();
        let mut sum = 0u64;
        while counters.read().cpu == before.cpu {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(counters.read().since(before).cpu > Duration::ZERO);
    }
}
