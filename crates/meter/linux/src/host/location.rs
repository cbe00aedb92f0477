//! What the file system calls (stat, statx, statfs) say about one path.
//!
//! Invariant: it opens nothing; a call that the kernel lacks leaves its facts absent.

use std::io;
use std::path::{Path, PathBuf};

use iostrata_run::host::DeviceNumber;
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};

use crate::host::HostError;

/// Where a path lies and how much room there is. Tests place their own with
/// [`Root::placing`](crate::host::Root::placing).
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    /// The path, absolute and without symbolic links.
    pub path: PathBuf,
    /// Device number that stat reports.
    pub device: DeviceNumber,
    /// Number of the mount, the first column of mountinfo (Linux 5.8 and later).
    pub mount_id: Option<u64>,
    /// The device's own number when the path is a block device.
    pub block_device: Option<DeviceNumber>,
    /// Block size of the file system, in bytes.
    pub block_bytes: Option<u64>,
    /// Size of the file system, in bytes.
    pub total_bytes: Option<u64>,
    /// Bytes that any user may still write.
    pub free_bytes: Option<u64>,
    /// Files that the file system can hold; 0 where it has no fixed number.
    pub inodes_total: Option<u64>,
    /// Files that can still be made.
    pub inodes_free: Option<u64>,
    /// Alignment that direct I/O asks of memory, in bytes; 0 when it is refused; told for regular
    /// files only (Linux 6.1 and later).
    pub direct_memory_align_bytes: Option<u64>,
    /// Alignment that direct I/O asks of offset and length, in bytes; 0 when it is refused.
    pub direct_offset_align_bytes: Option<u64>,
}

impl Location {
    /// A location of which only path and device number are known.
    pub fn new(path: impl Into<PathBuf>, device: DeviceNumber) -> Self {
        Self {
            path: path.into(),
            device,
            mount_id: None,
            block_device: None,
            block_bytes: None,
            total_bytes: None,
            free_bytes: None,
            inodes_total: None,
            inodes_free: None,
            direct_memory_align_bytes: None,
            direct_offset_align_bytes: None,
        }
    }

    /// Asks the system about `path`, or about its directory when the path itself is missing.
    ///
    /// # Errors
    /// [`HostError::NoSuchPath`] when both are missing, [`HostError::Unreadable`] when the system
    /// refuses to tell.
    pub(crate) fn of(path: &Path) -> Result<Self, HostError> {
        let (existing, resolved) = resolve(path)?;
        let unreadable = |e: rustix::io::Errno| HostError::Unreadable {
            path: path.to_owned(),
            source: e.into(),
        };
        let stat = rustix::fs::stat(&existing).map_err(unreadable)?;
        let mut location = Self::new(resolved, number(stat.st_dev));
        if FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice {
            location.block_device = Some(number(stat.st_rdev));
        }
        location.add_room(&existing);
        location.add_statx(&existing);
        Ok(location)
    }

    fn add_room(&mut self, path: &Path) {
        let Ok(room) = rustix::fs::statvfs(path) else { return };
        self.block_bytes = Some(room.f_bsize);
        self.total_bytes = Some(room.f_blocks.saturating_mul(room.f_frsize));
        self.free_bytes = Some(room.f_bavail.saturating_mul(room.f_frsize));
        self.inodes_total = Some(room.f_files);
        self.inodes_free = Some(room.f_favail);
    }

    fn add_statx(&mut self, path: &Path) {
        let asked = StatxFlags::MNT_ID | StatxFlags::DIOALIGN;
        let Ok(told) = rustix::fs::statx(CWD, path, AtFlags::empty(), asked) else { return };
        let has = |flag: StatxFlags| told.stx_mask & flag.bits() != 0;
        if has(StatxFlags::MNT_ID) {
            self.mount_id = Some(told.stx_mnt_id);
        }
        if has(StatxFlags::DIOALIGN) {
            self.direct_memory_align_bytes = Some(told.stx_dio_mem_align.into());
            self.direct_offset_align_bytes = Some(told.stx_dio_offset_align.into());
        }
    }
}

/// The path that exists (the given one or its directory), and the given one without links.
fn resolve(path: &Path) -> Result<(PathBuf, PathBuf), HostError> {
    match std::fs::canonicalize(path) {
        Ok(resolved) => return Ok((resolved.clone(), resolved)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(HostError::Unreadable { path: path.to_owned(), source }),
    }
    let missing = || HostError::NoSuchPath { path: path.to_owned() };
    let name = path.file_name().ok_or_else(missing)?;
    let above = match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => return Err(missing()),
    };
    let above = std::fs::canonicalize(above).map_err(|_| missing())?;
    let resolved = above.join(name);
    Ok((above, resolved))
}

fn number(raw: u64) -> DeviceNumber {
    DeviceNumber { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
}
