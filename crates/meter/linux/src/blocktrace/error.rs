//! What can go wrong while tracing, each with its fix.

use std::io;
use std::path::PathBuf;

/// Why latency by layer could not be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is no tracing file system at this place.
    #[error(
        "{} is not a tracing file system; mount one: mount -t tracefs tracefs /sys/kernel/tracing",
        path.display()
    )]
    NoTracefs {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The trace instance is not there.
    #[error("there is no trace instance at {}; it has to be made before tracing", path.display())]
    NoInstance {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// This user may not trace.
    #[error("{} is closed to this user; run as root", path.display())]
    Denied {
        /// The file that was refused.
        path: PathBuf,
    },
    /// The kernel was built without these events.
    #[error(
        "this kernel has no event {}; one with CONFIG_BLK_DEV_IO_TRACE is needed", .events.join(", ")
    )]
    NoEvents {
        /// `system:event`.
        events: Vec<String>,
    },
    /// The instance is there, but does not record what is needed.
    #[error(
        "the trace instance {} does not record {}; enable these events in it",
        path.display(), .events.join(", ")
    )]
    EventsOff {
        /// The instance.
        path: PathBuf,
        /// `system:event`.
        events: Vec<String>,
    },
    /// The clock of the instance does not count nanoseconds that all processors agree on.
    #[error("the trace instance {} uses the clock {clock}; set mono", path.display())]
    WrongClock {
        /// The instance.
        path: PathBuf,
        /// The clock that is set.
        clock: String,
    },
    /// The kernel describes its events in a way that is not understood.
    #[error("{} is not understood: {what}; this kernel's trace format is unknown", path.display())]
    UnknownFormat {
        /// The description.
        path: PathBuf,
        /// What is missing in it.
        what: String,
    },
    /// Nothing to trace.
    #[error("no block device to trace was named; tmpfs and network file systems have none")]
    NoDevice,
    /// A file of the instance could not be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A setting of the instance could not be changed.
    #[error("{file} of the trace instance cannot be set to {value:?}: {source}")]
    NotSet {
        /// The file within the instance.
        file: String,
        /// The wanted value.
        value: String,
        /// What the system said.
        source: io::Error,
    },
    /// The steps of a trace came in the wrong order.
    #[error("a trace was asked to {asked} while it was {state}; the order is start, stop, take")]
    OutOfOrder {
        /// The step asked for.
        asked: &'static str,
        /// What the trace was doing.
        state: &'static str,
    },
}

impl TraceError {
    /// The error of reading `path`.
    pub(crate) fn reading(path: PathBuf, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied { path },
            _ => Self::Unreadable { path, source },
        }
    }
}
