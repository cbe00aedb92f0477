//! Why a private server could not be had.
//!
//! Invariant: each message names the thing, what was found and the fix; a server's message is in it
//! in the server's own words.

use std::io;
use std::path::{Path, PathBuf};

use iostrata_change::{ChangeError, RunError};
use iostrata_stats::units;
use thiserror::Error;

/// Why a private server could not be had.
#[derive(Debug, Error)]
pub enum PrivateError {
    /// No such program exists.
    #[error(
        "no server program {asked}: looked in {looked}; install one (Debian: {package}) or give \
         its path"
    )]
    Missing {
        /// As it was requested.
        asked: String,
        /// Directories.
        looked: String,
        /// What brings it.
        package: &'static str,
    },
    /// The program is no server of the MySQL family, or does not run.
    #[error("{program} is not a server that can be used: {said}; name a mysqld or mariadbd")]
    NotAServer {
        /// Which.
        program: PathBuf,
        /// Its output for `--version`.
        said: String,
    },
    /// What a fresh data directory is made from is not installed.
    #[error(
        "{program} comes without {missing} (looked in {looked}); install the server's whole \
         package, or give a prepared data directory"
    )]
    NoTables {
        /// Which program.
        program: PathBuf,
        /// Which file.
        missing: String,
        /// Where.
        looked: String,
    },
    /// An option that is set for every private server.
    #[error("{option} cannot be chosen: {why}; leave it out")]
    Reserved {
        /// As it was given.
        option: String,
        /// By whom or what it is set.
        why: &'static str,
    },
    /// The server does not know an option, or its value.
    #[error("{version} refuses an option: {said}; see its manual for the name in this version")]
    UnknownOption {
        /// Which server.
        version: String,
        /// Its words.
        said: String,
    },
    /// Not enough space.
    #[error(
        "{dir} has {free} free, a server needs {needed} there; free some or choose another place"
    )]
    NoSpace {
        /// Where.
        dir: PathBuf,
        /// What is free.
        free: String,
        /// What is needed at least.
        needed: String,
    },
    /// A data directory that is to be copied is in use or none.
    #[error("{dir} cannot be copied: {found}; {fix}")]
    NotCopied {
        /// Which.
        dir: PathBuf,
        /// What was found.
        found: String,
        /// What would help.
        fix: &'static str,
    },
    /// No data directory could be made.
    #[error("{version} could not make a data directory in {dir}: {said}")]
    NotMade {
        /// Which server.
        version: String,
        /// Where.
        dir: PathBuf,
        /// Its output.
        said: RunError,
    },
    /// The request does not fit its state.
    #[error("the server in {dir} {found}; {fix}")]
    OutOfOrder {
        /// Which.
        dir: PathBuf,
        /// Its state.
        found: &'static str,
        /// What would help.
        fix: &'static str,
    },
    /// Galera is not there.
    #[error("a Galera cluster is not available here: {why}; {fix}")]
    NoGalera {
        /// What was found.
        why: String,
        /// What would help.
        fix: &'static str,
    },
    /// The directory could not be made, or the server not be started or stopped.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// Another error of the system.
    #[error("cannot {doing} {path}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl PrivateError {
    pub(super) fn system(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::System { doing, path: path.to_owned(), source }
    }

    pub(super) fn no_space(dir: &Path, free_bytes: u64, needed_bytes: u64) -> Self {
        let (free, needed) = (units::bytes(free_bytes as f64), units::bytes(needed_bytes as f64));
        Self::NoSpace { dir: dir.to_owned(), free, needed }
    }
}

/// Whether a server complains of an option rather than of anything else.
pub(super) fn is_about_options(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    [
        "unknown option",
        "unknown variable",
        "unknown suffix",
        "ambiguous option",
        "error while setting",
    ]
    .iter()
    .any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_of_options_are_told_apart() {
        for said in [
            "[ERROR] unknown variable 'innodb-no-such=1'",
            "[ERROR] mysqld: unknown option '--no-such'",
            "[ERROR] [MY-000067] [Server] unknown variable 'a=1'.",
            "Unknown suffix 'x' used for variable 'innodb-buffer-pool-size' (value '12x')",
            "[ERROR] mysqld: Error while setting value 'a' to 'innodb-flush-method'",
        ] {
            assert!(is_about_options(said), "{said}");
        }
        assert!(!is_about_options("[ERROR] InnoDB: Cannot allocate memory for the buffer pool"));
    }
}
