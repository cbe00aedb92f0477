//! Why a disk could not be served, or not be spoken to.
//!
//! Invariant: every message names the thing, the value that was found and the fix.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::ModelError;

/// Why a disk is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Too small.
    #[error("a disk of {bytes} bytes is too small; take at least 1M")]
    Small {
        /// The size.
        bytes: u64,
    },
    /// No multiple of a page.
    #[error("a disk of {bytes} bytes is not a multiple of 4096 bytes; round it to whole K of 4")]
    Uneven {
        /// The size.
        bytes: u64,
    },
    /// The model does not make a drive of this.
    #[error("{0}")]
    Model(#[from] ModelError),
    /// No directory to mount at.
    #[error("`{}` is no directory to serve a disk at: {found}; make it first", .at.display())]
    Directory {
        /// The directory.
        at: PathBuf,
        /// What is there.
        found: String,
    },
    /// No FUSE.
    #[error(
        "/dev/fuse is not there, so no disk can be served: load it with `modprobe fuse`, or start \
         the container with `--device /dev/fuse --cap-add SYS_ADMIN`"
    )]
    NoFuse,
    /// Not allowed.
    #[error(
        "mounting at `{}` is not allowed ({source}): run as root, in a container with \
         `--cap-add SYS_ADMIN --device /dev/fuse`",
        .at.display()
    )]
    Permission {
        /// The directory.
        at: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// Mounting failed for another reason.
    #[error("mounting at `{}` failed: {source}; look at the kernel's messages (dmesg)", .at.display())]
    Mount {
        /// The directory.
        at: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// No place for the contents.
    #[error("`{}` cannot hold the contents of the disk: {found}; {fix}", .dir.display())]
    Store {
        /// The directory.
        dir: PathBuf,
        /// What was found.
        found: String,
        /// What to do.
        fix: &'static str,
    },
    /// The disk is still open although it should end.
    #[error(
        "`{}` is still open although its server ends: detach the loop device over it \
         (losetup --detach); requests fail from now on",
        .at.display()
    )]
    Held {
        /// The directory.
        at: PathBuf,
    },
    /// A thread of the server died.
    #[error("a thread that served `{}` died; its requests fail from now on", .at.display())]
    Died {
        /// The directory.
        at: PathBuf,
    },
    /// The machine refused something that should work.
    #[error("{what} failed: {source}")]
    System {
        /// What was done.
        what: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
}

impl ServeError {
    /// The reason that a mount failed, as the kernel gave it.
    pub(crate) fn mounting(at: &Path, source: io::Error) -> Self {
        let at = at.to_owned();
        match source.raw_os_error() {
            _ if !Path::new("/dev/fuse").exists() => Self::NoFuse,
            Some(libc::ENODEV) => Self::NoFuse,
            Some(libc::EPERM | libc::EACCES) => Self::Permission { at, source },
            _ => Self::Mount { at, source },
        }
    }
}

/// Why a served disk cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No server there.
    #[error("no disk is served at `{}` ({source}); start one", .at.display())]
    NotServed {
        /// The directory.
        at: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// It answered with something else than statistics.
    #[error("the server at `{}` is of another version: {found}; restart the disk", .at.display())]
    Statistics {
        /// The directory.
        at: PathBuf,
        /// What was wrong with the text.
        found: String,
    },
    /// It refused a command.
    #[error("the disk at `{}` refused `{command}`: {source}", .at.display())]
    Refused {
        /// The directory.
        at: PathBuf,
        /// The line.
        command: String,
        /// Its error.
        source: io::Error,
    },
}
