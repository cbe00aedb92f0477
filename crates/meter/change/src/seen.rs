//! What a machine shows of its files, devices, mounts and servers, the tokens by which things are
//! named and found again, and the process that keeps a journal.
//!
//! Invariant: a number that the kernel may give out again later counts only together with what it
//! does not: the path, the inode, the sequence number of a disk.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use serde::{Deserialize, Serialize};

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A block device.
    BlockDevice,
    /// Something else.
    Other,
}

/// What is at a path, links not followed for the last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEntry {
    /// What.
    pub kind: SeenKind,
    /// Major and minor number of the file system that it is on.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
    /// Major and minor number of a device.
    pub number: (u32, u32),
    /// Bytes of a file.
    pub bytes: u64,
    /// It belongs to this user, and no other may read or write it.
    pub is_private: bool,
    /// When it was created, in us since 1970, where the file system records it.
    pub born_us: Option<u64>,
}

/// A loop device that is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    /// As in `/sys/block`: `loop3`.
    pub name: String,
    /// Over which file.
    pub backing: FileToken,
    /// Whether it does direct I/O on the file.
    pub direct: bool,
    /// Its logical block, in bytes.
    pub block_bytes: u32,
}

impl LoopDevice {
    /// Its node.
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }
}

/// What a device is in use for, or holds; the first that applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// It, one of its partitions or its disk is mounted or swapped on; where.
    Mounted(String),
    /// Another device or an exclusive opener holds it; which.
    Held(String),
    /// It has partitions.
    Partitioned,
    /// It holds something: the name of a known signature, or where the first bytes are not zero.
    Signed(String),
    /// Nothing known, and the first MiB is zero.
    Empty,
}

impl fmt::Display for DeviceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted(by) => f.write_str(by),
            Self::Held(by) => f.write_str(by),
            Self::Partitioned => f.write_str("it has partitions"),
            Self::Signed(what) => write!(f, "it holds {what}"),
            Self::Empty => f.write_str("it is empty"),
        }
    }
}

/// The result of a query of a served file, within a bounded time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is there, and its server answered just now.
    There(PathEntry),
    /// Its server answers, or there is none, and the file is not there.
    NotThere,
    /// Its server is gone.
    Dead,
    /// No answer came.
    Stuck,
}

/// Number of a change within its journal, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeId(pub u32);

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// By what a file is known: a file that took its place has another inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileToken {
    /// Where it is.
    pub path: PathBuf,
    /// Major and minor number of its file system.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
}

impl FileToken {
    /// Whether this very file is what was seen.
    pub(crate) fn is(&self, seen: &PathEntry) -> bool {
        (self.device, self.inode) == (seen.device, seen.inode)
    }
}

/// A block device, named by what stays the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceRef {
    /// The loop device over a backing file.
    Loop {
        /// The file.
        backing: PathBuf,
    },
    /// A device that the user named.
    Named {
        /// Its path.
        path: PathBuf,
        /// The user's flag named this very device as one whose contents may be lost.
        overwrite: bool,
    },
}

impl DeviceRef {
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named { path, .. }, Self::Named { path: other, .. }) => path == other,
            _ => self == other,
        }
    }
}

impl fmt::Display for DeviceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loop { backing } => write!(f, "the loop device over {}", backing.display()),
            Self::Named { path, .. } => write!(f, "{}", path.display()),
        }
    }
}

/// By what a device is found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeviceToken {
    Loop(FileToken),
    Named { path: PathBuf, number: (u32, u32), sequence: Option<String> },
}

// The owner of a journal: a process, distinguished from a later one with the same number.
//
// Invariant: number, start time and boot together name one process for ever.

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub start_ticks: u64,
    /// Which boot of the machine.
    pub boot_id: String,
}

impl Owner {
    /// This process.
    pub fn this() -> Self {
        of_process(std::process::id())
    }

    /// Whether it still lives; a zombie does not.
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// The process that has this number now; one that is gone never lived.
pub(crate) fn of_process(pid: u32) -> Owner {
    Owner { pid, start_ticks: start_ticks(pid).unwrap_or(0), boot_id: boot_id() }
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Start of a living process.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command in brackets may hold anything, brackets and blanks too.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let threads: u32 = fields.nth(16)?.parse().ok()?;
    // The others of a killed process may still be ending, with its files open.
    let has_ended = state == "X" || state == "Z" && threads <= 1;
    if has_ended {
        return None;
    }
    fields.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_another_of_its_number_does_not() {
        let this = Owner::this();
        assert!(this.start_ticks > 0 && !this.boot_id.is_empty());
        assert!(this.is_alive());
        assert!(!Owner { start_ticks: this.start_ticks + 1, ..this.clone() }.is_alive());
        assert!(!Owner { boot_id: "another".to_owned(), ..this }.is_alive());
    }

    #[test]
    fn a_process_that_has_ended_does_not_live_before_it_is_reaped_either() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = of_process(child.id());
        assert!(process.is_alive());
        child.kill().unwrap();
        let ended = std::time::Instant::now();
        while process.is_alive() && ended.elapsed() < std::time::Duration::from_secs(30) {
            std::thread::yield_now();
        }
        assert!(!process.is_alive(), "it was killed and not reaped");
        child.wait().unwrap();
    }
}
