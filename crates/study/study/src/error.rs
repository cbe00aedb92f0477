//! Why a point or a study could not be measured.

use iostrata_change::ChangeError;
use iostrata_database::target::{TargetError, Trouble};
use iostrata_io::FileSetError;
use iostrata_linux::host::HostError;
use iostrata_load::{FailedRequest, LoadError, LoadFailure, MissedRate};
use iostrata_plan::{MinimumRate, OpKind};
use iostrata_run::Unavailable;
use rustix::io::Errno;

/// What the kernel answers where a device fails: errors of the medium and of the way to it, a
/// device that is gone, a file system that gave up.
const BROKEN: [Errno; 12] = [
    Errno::IO,
    Errno::NXIO,
    Errno::NODEV,
    Errno::ROFS,
    Errno::NODATA,
    Errno::BADMSG,
    Errno::NOTCONN,
    Errno::SHUTDOWN,
    Errno::TIMEDOUT,
    Errno::STALE,
    Errno::UCLEAN,
    Errno::REMOTEIO,
];

/// Why a point or a study could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The files could not be prepared.
    #[error(transparent)]
    Files(#[from] FileSetError),
    /// The load could not be run.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// What lies under the directory could not be found out.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A request failed.
    #[error("{doing} {path} at offset {offset} failed: {why}")]
    Request {
        /// Reading, writing or flushing.
        doing: &'static str,
        /// The file.
        path: String,
        /// Where in it.
        offset: u64,
        /// What the kernel answered, with the fix where there is one.
        why: String,
        /// The error number; absent where fewer bytes were moved than requested.
        errno: Option<i32>,
    },
    /// A file was removed while it was measured.
    #[error("{path} was removed while it was measured; leave the files alone until the run ends")]
    Removed {
        /// The file.
        path: String,
    },
    /// Jobs ended since they missed rates that they must reach.
    #[error("{}", missed.iter().map(missed_in_words).collect::<Vec<_>>().join("\n"))]
    RatesMissed {
        /// The jobs, each with the first rate that it missed.
        missed: Vec<(String, MissedRate)>,
    },
    /// Every session was gone, and the window ended before its time.
    #[error(
        "all {sessions} sessions were gone for {seconds} s, the last error was {code}; what was \
         measured before is kept; see whether the target still runs"
    )]
    SessionsGone {
        /// How many there were.
        sessions: u32,
        /// For how long, in whole seconds.
        seconds: u64,
        /// The last error of the target.
        code: String,
    },
    /// More transactions arrived than could wait.
    #[error(
        "{queue_max} transactions were waiting for a session when one more arrived; use a lower \
         --rate, more --threads, a larger --max-queue, or --on-overload drop"
    )]
    Overloaded {
        /// How many could wait.
        queue_max: u32,
    },
    /// A request to a database failed.
    #[error(transparent)]
    Database(#[from] TargetError),
    /// Every further transaction would fail, too.
    #[error("{text}")]
    Refused {
        /// Under what the failure is counted.
        code: String,
        /// The error of the target, and the fix.
        text: String,
    },
    /// So many transactions failed that the others are no measurement.
    #[error("{failed} of {} transactions failed, most of them with {code}: {text}", failed + done)]
    TransactionsFailed {
        /// How many did.
        failed: u64,
        /// How many were done.
        done: u64,
        /// Under what most of them are counted.
        code: String,
        /// The first error of the target, and the fix.
        text: String,
    },
    /// A database that a point requires is not there, or lacks one of its settings.
    #[error("{why}; {fix}")]
    NotHere {
        /// What was found, or the error of the database.
        why: String,
        /// What would help.
        fix: String,
    },
    /// A database ended by itself.
    #[error("{error}; the server had ended: {said}")]
    Died {
        /// What was noticed of it.
        error: Box<StudyError>,
        /// The end of its error log.
        said: String,
    },
    /// A server does not start under the settings of a point.
    #[error("{version} does not start with these settings: {said}")]
    NotStarted {
        /// Which server.
        version: String,
        /// The end of its error log.
        said: String,
    },
    /// The second of two databases on one volume failed at a request.
    #[error("the second engine: {0}")]
    Second(Box<StudyError>),
    /// A system setting could not be changed or put back.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// An emulated disk cannot be served.
    #[error("an emulated disk cannot be served: {why}")]
    Disk {
        /// What is wrong, with the fix.
        why: String,
    },
    /// A device could not be filled.
    #[error(
        "{device} could not be filled: {source}; use a smaller size in the study, or another device"
    )]
    Fill {
        /// The device.
        device: String,
        /// What the kernel answered.
        source: std::io::Error,
    },
    /// The volumes do not fit.
    #[error(
        "{dir}: a volume of {} is needed and {} may be used there; free some space, use a smaller \
         size in the study, or name another place with --dir",
        iostrata_stats::units::bytes(*needed_bytes as f64),
        iostrata_stats::units::bytes(*room_bytes as f64)
    )]
    NoRoom {
        /// The directory.
        dir: String,
        /// Bytes of the volume.
        needed_bytes: u64,
        /// Bytes that may be used.
        room_bytes: u64,
    },
    /// The run directory could not be written.
    #[error(transparent)]
    Run(#[from] iostrata_run::RunWriteError),
}

/// In fio's words, which scripts look for, and what follows.
fn missed_in_words((job, missed): &(String, MissedRate)) -> String {
    let MissedRate { kind, asked, found } = missed;
    let of = match kind {
        OpKind::Read => "reads",
        OpKind::Trim => "trims",
        _ => "writes",
    };
    let rates = match asked {
        MinimumRate::Bytes(asked) => format!("rate_min={asked}B/s not met, got {found}B/s of {of}"),
        MinimumRate::Requests(asked) => {
            format!("rate_iops_min={asked} not met, got {found} IOPS of {of}")
        }
    };
    let fix = "ask for less, or see with iostrata probe what slows it";
    format!("{job}: {rates}; the job ended there: {fix}")
}

impl From<LoadFailure> for StudyError {
    fn from(failure: LoadFailure) -> Self {
        match failure {
            LoadFailure::Request { request, path } => Self::request(&request, path),
            LoadFailure::Removed { path } => Self::Removed { path },
            LoadFailure::RatesMissed { missed } => Self::RatesMissed { missed },
            LoadFailure::SessionsGone { sessions, seconds, code } => {
                Self::SessionsGone { sessions, seconds, code }
            }
            LoadFailure::Overloaded { queue_max } => Self::Overloaded { queue_max },
            LoadFailure::Refused { code, text } => Self::Refused { code, text },
            LoadFailure::TransactionsFailed { failed, done, code, text } => {
                Self::TransactionsFailed { failed, done, code, text }
            }
        }
    }
}

impl StudyError {
    /// Whether the file system, or a quota on it, had no room left.
    pub(crate) fn is_full(&self) -> bool {
        use std::io::{Error, ErrorKind};
        let full = |kind| matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        match self {
            Self::Files(FileSetError::NoSpace { .. } | FileSetError::Full { .. }) => true,
            Self::Files(
                FileSetError::System { source, .. } | FileSetError::NoFallocate { source, .. },
            ) => full(source.kind()),
            Self::Database(error) => error.trouble == Trouble::NoSpace,
            // In the engine's words.
            Self::Refused { code, .. } | Self::TransactionsFailed { code, .. } => {
                code == "no_space"
            }
            Self::Second(error) | Self::Died { error, .. } => error.is_full(),
            Self::Request { errno: Some(errno), .. } => {
                full(Error::from_raw_os_error(*errno).kind())
            }
            _ => false,
        }
    }

    /// Whether the device gave an error, went away, or left its file system read-only.
    pub(crate) fn is_broken(&self) -> bool {
        let broken = |errno: i32| BROKEN.iter().any(|one| one.raw_os_error() == errno);
        match self {
            Self::Request { errno: Some(errno), .. } => broken(*errno),
            Self::Files(error) => {
                let mut source = std::error::Error::source(error);
                let mut found = false;
                while let Some(error) = source {
                    let error_io = error.downcast_ref::<std::io::Error>();
                    found |= error_io.and_then(std::io::Error::raw_os_error).is_some_and(broken);
                    source = error.source();
                }
                found
            }
            _ => false,
        }
    }

    /// A point that could not be measured because of this.
    pub(crate) fn missing(&self, what: &str) -> Unavailable {
        if self.is_full() {
            Unavailable::without_room(what, self.to_string())
        } else if self.is_broken() {
            Unavailable::broken(what, self.to_string())
        } else {
            Unavailable::failed(what, self.to_string())
        }
    }

    /// A failed request in a user's words.
    pub(crate) fn request(failed: &FailedRequest, path: String) -> Self {
        let doing = match failed.kind {
            OpKind::Read => "reading",
            OpKind::Write => "writing",
            OpKind::Trim => "discarding",
            _ => "flushing",
        };
        let why = match failed.errno() {
            None => format!(
                "{} of {} bytes were moved: the file is shorter than it was (was it truncated?)",
                failed.result, failed.asked_bytes
            ),
            Some(iostrata_load::CONTENT_ERRNO) => {
                "its contents are not those that were written there".to_owned()
            }
            Some(errno) => {
                let error = std::io::Error::from_raw_os_error(errno);
                format!("{error}{}", fix(error.kind(), failed))
            }
        };
        StudyError::Request { doing, path, offset: failed.offset, why, errno: failed.errno() }
    }
}

fn fix(kind: std::io::ErrorKind, failed: &FailedRequest) -> String {
    use std::io::ErrorKind;
    match kind {
        ErrorKind::InvalidInput => format!(
            "; direct I/O here may need larger blocks than {} bytes: use a larger --bs or --direct=0",
            failed.asked_bytes
        ),
        ErrorKind::StorageFull => "; free some space or use a smaller --size".to_owned(),
        _ => String::new(),
    }
}
