//! Whether a block device over the served file is in use: a mounted file system, a swap area, a
//! device mapper target.
//!
//! Invariant: nothing is read or written. A device is opened for an instant as its exclusive owner,
//! and only while the disk has no power, because a mount in that instant is refused.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Block devices over this file.
fn devices(file: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file"));
        if backing.is_ok_and(|backing| Path::new(backing.trim_end()) == file) {
            found.push(Path::new("/dev").join(entry.file_name()));
        }
    }
    found
}

/// Whether one of the devices over this file is held.
pub(crate) fn is_held(file: &Path) -> bool {
    let exclusive = |device: &PathBuf| {
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_EXCL | libc::O_NONBLOCK).open(device)
    };
    let is_busy = |device: PathBuf| {
        exclusive(&device).is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
    };
    devices(file).into_iter().any(is_busy)
}
