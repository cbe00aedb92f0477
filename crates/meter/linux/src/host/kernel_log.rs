//! What the kernel logs of some devices while they are measured.
//!
//! Invariant: only lines that came after the log was opened and that name one of the devices, and
//! few of them. None where the log may not be read.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;

use crate::host::Root;

/// Lines that are kept.
const LINES_MAX: usize = 4;
/// Records that are read.
const RECORDS_MAX: usize = 20_000;
/// The kernel writes no longer record.
const RECORD_BYTES: usize = 8192;
/// Priorities up to this one are warnings and worse.
const WARNING: u32 = 4;

/// The kernel's log from one moment on.
#[derive(Debug)]
pub struct KernelLog {
    file: Option<File>,
}

impl KernelLog {
    /// From now on.
    pub fn from_now(root: &Root) -> Self {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
        let opened =
            OpenOptions::new().read(true).custom_flags(flags).open(root.real("/dev/kmsg")).ok();
        let at_end = |mut file: File| file.seek(SeekFrom::End(0)).is_ok().then_some(file);
        Self { file: opened.and_then(at_end) }
    }

    /// The first warnings and errors since then, or since the last call, that name a device.
    pub fn since(&mut self, devices: &[String]) -> Vec<String> {
        let Some(file) = &mut self.file else { return Vec::new() };
        let mut lines: Vec<String> = Vec::new();
        let mut record = vec![0; RECORD_BYTES];
        for _ in 0..RECORDS_MAX {
            let read = match file.read(&mut record) {
                Ok(0) => break,
                Ok(read) => read,
                // Records that were overwritten before they were read.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => continue,
                Err(_) => break,
            };
            let text = String::from_utf8_lossy(&record[..read]);
            let told = text.lines().filter_map(|line| warning(line, devices));
            lines.extend(told.map(str::to_owned));
        }
        lines.dedup();
        lines.truncate(LINES_MAX);
        lines
    }
}

/// The text of a record, `3,1234,56789,-;text`, where it is a warning that names a device.
fn warning<'l>(line: &'l str, devices: &[String]) -> Option<&'l str> {
    let (head, text) = line.split_once(';')?;
    let priority: u32 = head.split(',').next()?.parse().ok()?;
    let is_bad = priority & 7 <= WARNING;
    (is_bad && devices.iter().any(|device| names(text, device))).then_some(text)
}

/// Whether a text names a device: `loop1` is not named by `loop10`, and `sda` is by `sda1`.
fn names(text: &str, device: &str) -> bool {
    let ends_with_digit = device.ends_with(|c: char| c.is_ascii_digit());
    !device.is_empty()
        && text.match_indices(device).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + device.len()..].chars().next();
            before.is_none_or(|c| !c.is_alphanumeric())
                && after.is_none_or(|c| match ends_with_digit {
                    true => !c.is_ascii_digit(),
                    false => !c.is_alphabetic(),
                })
        })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn only_later_warnings_that_name_the_device_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("dev")).unwrap();
        let path = dir.path().join("dev/kmsg");
        fs::write(&path, "3,1,5,-;I/O error, dev loop1, sector 0\n").unwrap();
        let mut log = KernelLog::from_now(&Root::at(dir.path()));
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        let lines = "3,2,6,-;I/O error, dev loop1, sector 8\n SUBSYSTEM=block\n\
                     3,3,6,-;I/O error, dev loop10, sector 8\n\
                     6,4,6,-;EXT4-fs (loop1): mounted filesystem\n\
                     2,5,7,-;EXT4-fs (loop1): Remounting filesystem read-only\n";
        file.write_all(lines.as_bytes()).unwrap();
        let devices = ["loop1".to_owned()];
        let kept = log.since(&devices);
        assert_eq!(
            kept,
            ["I/O error, dev loop1, sector 8", "EXT4-fs (loop1): Remounting filesystem read-only"]
        );
        assert!(log.since(&devices).is_empty());
        assert!(KernelLog::from_now(&Root::at("/nowhere")).since(&devices).is_empty());
        assert!(names("Buffer I/O error on sda1", "sda") && !names("on sdaa", "sda"));
    }
}
