//! What can go wrong with a run directory.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a run directory could not be written.
#[derive(Debug, Error)]
pub enum RunWriteError {
    /// Something else exists there.
    #[error(
        "{} is not empty and is not a run directory (it has no run.json); give --out a new or \
         empty directory", dir.display()
    )]
    NotARun {
        /// The directory.
        dir: PathBuf,
    },
    /// A name that the histogram file cannot hold.
    #[error("the name {name:?} cannot tag a histogram; use letters, digits, _, - and .")]
    BadName {
        /// Name of a point or stream.
        name: String,
    },
    /// A histogram could not be encoded.
    #[error("the histogram {tag} could not be kept")]
    Histogram {
        /// Its tag.
        tag: String,
        /// Why.
        #[source]
        source: iostrata_stats::HistogramEncodeError,
    },
    /// A value has no JSON form.
    #[error("{what} has no JSON form")]
    Json {
        /// What was to be written.
        what: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {source}; check space and permissions", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Why a run directory could not be read.
#[derive(Debug, Error)]
pub enum RunReadError {
    /// Not a run directory.
    #[error(
        "{} is not a run directory: {found}; name one, as in iostrata-runs or as --out named it",
        dir.display()
    )]
    NotARun {
        /// The directory.
        dir: PathBuf,
        /// What is there instead.
        found: &'static str,
    },
    /// Written by a newer program in a layout that this one does not know.
    #[error(
        "{} is in format {major}.{minor}, written by iostrata {program_version}; this program \
         reads up to {}.x: use iostrata {program_version} or newer",
        dir.display(), crate::layout::FORMAT_MAJOR
    )]
    Newer {
        /// The directory.
        dir: PathBuf,
        /// Format found.
        major: u32,
        /// Format found.
        minor: u32,
        /// The program that wrote it.
        program_version: String,
    },
    /// A file is damaged.
    #[error("{} line {line} is damaged: {reason}; restore the file from a copy", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}
