//! What can go wrong with the log.
//!
//! Invariant: each error names the thing, the value found and the fix; errors are plain data, so
//! that the first cause reaches everyone who waited.

use iostrata_io::disk::DiskError;
use thiserror::Error;

/// Why a call on the log failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RedoError {
    /// A write or sync of the log failed. Nothing succeeds after it: what was not durable before
    /// may be lost. The same cause is given to everyone.
    #[error("the redo log is closed because it could not {doing}: {cause}; mend it and reopen")]
    Failed {
        /// What was tried.
        doing: &'static str,
        /// The disk's answer.
        cause: DiskError,
    },
    /// There is no room for the wanted capacity; nothing was changed.
    #[error("no space for {bytes} bytes of redo segments ({cause}); free space or ask for less")]
    NoSpace {
        /// Bytes of the segments that were to be made.
        bytes: u64,
        /// The disk's answer.
        cause: DiskError,
    },
    /// Another failure of the disk, which changed nothing.
    #[error("cannot {doing} the redo log: {cause}")]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// The disk's answer.
        cause: DiskError,
    },
    /// There is a log already.
    #[error("there is a redo log here already; open it, or remove its files")]
    Exists,
    /// There is none.
    #[error(
        "the redo log cannot be found: {file} is missing, or both of its copies are damaged; put \
         all files of a backup back, redo and data of the same moment, or load the data anew into \
         an empty directory"
    )]
    NotFound {
        /// The control file.
        file: &'static str,
    },
    /// A setting outside its range.
    #[error("{name} = {value} is not possible: use {range}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What was asked for.
        value: u64,
        /// What is possible.
        range: &'static str,
    },
    /// A file of another version of the format.
    #[error("{file} has format version {found}, this program knows {known}; use a newer program")]
    Version {
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The newest known.
        known: u32,
    },
    /// The log ends before a point that was durable.
    #[error(
        "the redo log ends at {end} but was durable up to {durable}: \
         a segment is damaged or missing; restore the files or a backup"
    )]
    Truncated {
        /// Where valid frames end.
        end: u64,
        /// What the control file knows.
        durable: u64,
    },
    /// A segment is damaged that may hold what follows in the log.
    #[error(
        "{file} is a damaged segment of the redo log: its header is not valid or the file is cut, \
         and no other file holds LSN {lsn}, where the log goes on; restore {file} from a backup \
         (without it, what was committed from LSN {lsn} on is lost)"
    )]
    Damaged {
        /// The segment's file.
        file: String,
        /// Where the log goes on, or recovery begins.
        lsn: u64,
    },
    /// The segment where recovery begins is not there.
    #[error("no redo segment holds LSN {lsn}, where recovery begins; restore the files")]
    NoSegment {
        /// The checkpoint's LSN.
        lsn: u64,
    },
    /// The log is full to its last byte; only damage can bring that about.
    #[error("the redo log is full at {lsn}; raise its capacity")]
    Full {
        /// Its end.
        lsn: u64,
    },
    /// A valid frame of a kind that is not known.
    #[error("the frame at {lsn} has the unknown kind {kind}; use a newer program")]
    UnknownFrame {
        /// Its LSN.
        lsn: u64,
        /// Its kind.
        kind: u8,
    },
}

impl RedoError {
    pub(crate) fn disk(doing: &'static str) -> impl Fn(DiskError) -> Self {
        move |cause| Self::Disk { doing, cause }
    }
}
