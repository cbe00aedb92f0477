//! Why a directory cannot be opened.
//!
//! Invariant: what is refused with one of these is left as it was found.

use crate::pool::Failure;

/// Why a directory cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the directory, or this one has it open already.
    #[error("{0}")]
    Locked(Failure),
    /// A directory that holds something else.
    #[error(
        "{directory} holds {found:?}, which is not iostrata's, and no engine: choose an empty \
         directory"
    )]
    NotOurs {
        /// The directory.
        directory: String,
        /// A file in it.
        found: String,
    },
    /// A file that the data need is missing or damaged.
    #[error("{0}")]
    Damaged(Failure),
    /// A disk without the room that a new engine takes; nothing is left of it.
    #[error(
        "no space for a new engine: it needs {needed_bytes} bytes and {free_bytes} are free; free \
         some, or choose a smaller redo_log_capacity and autoextend_increment"
    )]
    NoRoom {
        /// Bytes of its files.
        needed_bytes: u64,
        /// Bytes that the disk can take.
        free_bytes: u64,
    },
    /// Redo of another engine beside the data.
    #[error(
        "the redo log is that of another engine: it is of {redo:#018x}, the data are of \
         {data:#018x}; put the redo-* files of this engine back"
    )]
    OtherRedo {
        /// The engine that the data are of.
        data: u64,
        /// The engine that the redo is of.
        redo: u64,
    },
    /// Data of another version.
    #[error("the data are of format {found}, this program knows {known}")]
    Format {
        /// What the data say.
        found: String,
        /// What is known.
        known: u32,
    },
}
