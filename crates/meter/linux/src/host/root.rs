//! Where `/proc`, `/sys` and the rest are read from: the machine, or a directory that stands in;
//! and what the file system calls (stat, statx, statfs) return for a path there.
//!
//! Invariant: every read is bounded in size, and a missing or unreadable file is simply absent, as
//! is a fact that the kernel has no call for. Describing a location opens nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::{fs, io};

use iostrata_run::host::DeviceNumber;
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};

/// No file of `/proc` or `/sys` that is read here is larger than this, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The root directory that every reader starts from.
#[derive(Clone, Debug)]
pub struct Root {
    dir: PathBuf,
    /// Answers that stand in for the file system calls; used before them.
    placed: BTreeMap<PathBuf, Location>,
}

impl Root {
    /// The machine itself.
    pub fn system() -> Self {
        Self::at("/")
    }

    /// A directory that stands in for `/`.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), placed: BTreeMap::new() }
    }

    /// Sets what the file system calls return for `path` and everything below it.
    #[must_use]
    pub fn placing(mut self, path: impl Into<PathBuf>, location: Location) -> Self {
        self.placed.insert(path.into(), location);
        self
    }

    /// Where `path` really lies. `..` does not lead out of the root.
    pub(crate) fn real(&self, path: impl AsRef<Path>) -> PathBuf {
        let mut real = self.dir.clone();
        for part in path.as_ref().components() {
            match part {
                Component::Normal(name) => real.push(name),
                Component::ParentDir if real != self.dir => {
                    real.pop();
                }
                _ => {}
            }
        }
        real
    }

    /// The text of a file; absent when it cannot be read.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let file = File::open(self.real(path)).ok()?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The text of a file without surrounding blanks; absent when nothing is left.
    pub(crate) fn word(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let word = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// A file that holds one number.
    pub(crate) fn number<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.word(path)?.parse().ok()
    }

    /// A file that holds 0 or another number.
    pub(crate) fn flag(&self, path: impl AsRef<Path>) -> Option<bool> {
        self.number::<i64>(path).map(|number| number != 0)
    }

    /// Whether something is there.
    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.real(path).exists()
    }

    /// The names in a directory, sorted; empty when it cannot be read.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.real(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The path without symbolic links, as seen from the root.
    pub(crate) fn resolved(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let real = fs::canonicalize(self.real(path)).ok()?;
        let dir = fs::canonicalize(&self.dir).ok()?;
        Some(Path::new("/").join(real.strip_prefix(dir).ok()?))
    }

    /// What the file system calls return for `path`, or for the nearest directory above it when
    /// only its last part is missing.
    pub(crate) fn locate(&self, path: &Path) -> Result<Location, HostError> {
        if let Some(location) = self.placed_above(path) {
            return Ok(Location { path: path.to_owned(), ..location.clone() });
        }
        if self.dir == Path::new("/") {
            return Location::of(path);
        }
        Ok(Location { path: path.to_owned(), ..Location::of(&self.real(path))? })
    }

    fn placed_above(&self, path: &Path) -> Option<&Location> {
        path.ancestors().find_map(|above| self.placed.get(above))
    }
}

/// Where a path lies and how much space is free. Tests place their own with
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
    /// Alignment that direct I/O requires of memory, in bytes; 0 when it is refused; reported for
    /// regular files only (Linux 6.1 and later).
    pub direct_memory_align_bytes: Option<u64>,
    /// Alignment that direct I/O requires of offset and length, in bytes; 0 when it is refused.
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

    /// Queries the system about `path`, or about its directory when the path itself is missing.
    ///
    /// # Errors
    /// [`HostError::NoSuchPath`] when both are missing, [`HostError::Unreadable`] when the system
    /// does not report it.
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

/// Why something could not be observed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Neither the path nor the directory that it would be made in exists.
    #[error("{} does not exist, nor does its directory; create the directory first", path.display())]
    NoSuchPath {
        /// The path as given.
        path: PathBuf,
    },
    /// The path exists and the system refuses to describe it.
    #[error("{} cannot be examined: {source}; check the permissions of its directories", path.display())]
    Unreadable {
        /// The path as given.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The sampling thread could not be started.
    #[error("the thread that observes the host cannot be started: {0}; check the limit of tasks")]
    NoThread(io::Error),
    /// The steps of an observation came in the wrong order.
    #[error("cannot {asked} an observer that is {state}; the order is arm, start, stop, take")]
    OutOfOrder {
        /// The step requested.
        asked: &'static str,
        /// What the observer was doing.
        state: &'static str,
    },
}
