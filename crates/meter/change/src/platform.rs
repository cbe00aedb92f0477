//! The few things that can be done to a machine, so that a stand-in can take its place.
//!
//! Invariant: every alteration of the system by this crate is one call of this trait, small enough
//! that a crash falls before or after it. No decision is made below it: what to write where, what
//! is ours and what is left is decided above, and tested with the stand-in.

use std::io;
use std::path::{Path, PathBuf};

use iostrata_io::Mount;
use thiserror::Error;

use crate::error::ChangeError;
use crate::names::{FilesystemKind, Prewrite};
use crate::seen::{Answer, DeviceState, FileToken, LoopDevice, Owner, PathEntry};
use crate::server::{Ending, Greeting, ServerCommand, Tie};
use crate::variables::Servers;

/// What to mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountRequest {
    /// The device, or a name if none.
    pub source: PathBuf,
    /// Where.
    pub at: PathBuf,
    /// Type of the file system.
    pub kind: &'static str,
    /// Options, one per element.
    pub options: Vec<String>,
}

impl MountRequest {
    /// A request for a file system on a device.
    pub fn new(source: &Path, at: &Path, kind: FilesystemKind, options: &[String]) -> Self {
        let (source, at) = (source.to_owned(), at.to_owned());
        Self { source, at, kind: kind.name(), options: options.to_vec() }
    }
}

/// Why a file system was not mounted.
#[derive(Debug, Error)]
#[error("{said}")]
pub struct Refusal {
    /// The kernel's reason in words, or its error.
    pub said: String,
    /// The error.
    pub source: io::Error,
}

/// Why a program did not do its work.
#[derive(Debug, Error)]
pub enum RunError {
    /// It is not installed.
    #[error("it is not installed")]
    Missing,
    /// It failed; the last lines of its output.
    #[error("{0}")]
    Failed(String),
    /// It could not be started.
    #[error("it cannot be started: {0}")]
    Start(io::Error),
}

/// A machine. Paths are absolute; errors are the kernel's own, a refused value included.
pub trait Platform {
    /// The text of a file of `/proc`, `/sys` or a control group, without blanks around it.
    fn read(&self, cell: &Path) -> io::Result<String>;

    /// Writes such a file.
    fn write(&self, cell: &Path, text: &str) -> io::Result<()>;

    /// The names in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// What is at a path; `None` when nothing is.
    fn look(&self, path: &Path) -> io::Result<Option<PathEntry>>;

    /// The path with all links in its existing part followed.
    fn real(&self, path: &Path) -> PathBuf;

    /// Name of the whole disk that a device is or lies on, as in `/sys/block`.
    fn disk_of(&self, device: &Path) -> io::Result<String>;

    /// What a device is used for and holds.
    fn state(&self, device: &Path) -> io::Result<DeviceState>;

    /// Makes one directory.
    fn make_dir(&self, dir: &Path) -> io::Result<()>;

    /// Removes an empty directory, or a group or trace buffer that is not in use.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes a file that does not exist, of this size.
    ///
    /// # Errors
    /// As [`iostrata_io::FileSet::prepare`]; a file system that does not keep what is written in
    /// place is not available.
    fn make_file(&self, path: &Path, bytes: u64, prewrite: Prewrite) -> Result<(), ChangeError>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory with all that is in it; links in it are removed, not followed.
    fn remove_tree(&self, dir: &Path) -> io::Result<()>;

    /// The loop devices over exactly this file, whether or not its path still leads to it.
    fn loops_over(&self, file: &FileToken) -> io::Result<Vec<LoopDevice>>;

    /// Attaches a free loop device.
    fn attach(
        &self,
        backing: &FileToken,
        direct: bool,
        block_bytes: Option<u32>,
    ) -> io::Result<LoopDevice>;

    /// Detaches a loop device, provided that it is still over the same file. One in use is
    /// detached by the kernel when its last user ends.
    fn detach(&self, device: &LoopDevice) -> io::Result<()>;

    /// All mounts, in the order in which they were made.
    fn mounts(&self) -> io::Result<Vec<Mount>>;

    /// Mounts.
    fn mount(&self, request: &MountRequest) -> Result<(), Refusal>;

    /// Sets options of a mount.
    fn remount(&self, at: &Path, options: &[String]) -> Result<(), Refusal>;

    /// Unmounts; `lazily` takes it out of sight and leaves the rest to its last user.
    fn unmount(&self, at: &Path, lazily: bool) -> io::Result<()>;

    /// Runs a program to its end. It dies with this process.
    ///
    /// # Errors
    /// When it is missing or fails.
    fn run(&self, program: &str, arguments: &[String]) -> Result<(), RunError>;

    /// Starts a server in a session of its own.
    ///
    /// # Errors
    /// When it is missing or cannot be started.
    fn start(&self, server: &ServerCommand, tie: Tie<'_>) -> Result<Owner, RunError>;

    /// How a database server greets on a socket, within a bounded time.
    fn greeting(&self, socket: &Path) -> Greeting;

    /// The output of a server that this process started; `None` while it lives.
    fn said(&self, process: &Owner) -> Option<String>;

    /// The living processes of exactly this command line.
    fn servers(&self, server: &ServerCommand) -> io::Result<Vec<Owner>>;

    /// Ends a process, if it still lives.
    fn end(&self, process: &Owner, how: Ending) -> io::Result<()>;

    /// Queries a file that a server may show, within a bounded time.
    fn ask(&self, file: &Path) -> Answer;

    /// By whom or what a device is used, other than by a program that merely opened it; checked
    /// within a bounded time.
    fn in_use(&self, device: &Path) -> io::Result<Option<DeviceState>>;

    /// Other processes that have a device open, as `dd (process 12)`.
    fn openers(&self, device: &Path) -> Vec<String>;

    /// Other processes that have a file open for writing, in the same words. Copying it merely
    /// reads it.
    fn writers(&self, file: &Path) -> Vec<String>;

    /// Database servers.
    fn servers_at(&self) -> &dyn Servers;

    /// Whether the program was asked to end, so that waiting has no point.
    fn is_stopping(&self) -> bool;

    /// Writes everything dirty.
    fn sync(&self);

    /// This process.
    fn owner(&self) -> Owner;

    /// Whether a process lives.
    fn is_alive(&self, owner: &Owner) -> bool;

    /// The present, in us since 1970.
    fn now_us(&self) -> u64;

    /// Waits a little for something that is still busy.
    fn pause(&self);
}

/// Tries of a busy thing, [`Platform::pause`] apart: about three seconds on a real machine.
pub(crate) const TRIES: u32 = 60;

/// Tries until the thing is not busy any more, or patience ends.
pub(crate) fn while_busy(
    platform: &dyn Platform,
    mut act: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    for _ in 1..TRIES {
        match act() {
            Err(error) if is_busy(&error) => platform.pause(),
            done => return done,
        }
    }
    act()
}

/// Waits until something holds, or the time is up; returns whether it holds.
pub(crate) fn until(
    platform: &dyn Platform,
    tries: u32,
    mut holds: impl FnMut() -> io::Result<bool>,
) -> io::Result<bool> {
    for _ in 1..tries {
        if holds()? {
            return Ok(true);
        }
        platform.pause();
    }
    holds()
}

pub(crate) fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::ENOTEMPTY | libc::EAGAIN | libc::EINTR))
}

pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO))
}
