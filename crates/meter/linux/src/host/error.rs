//! What can go wrong while observing. Absent facts are not errors; these are.

use std::io;
use std::path::PathBuf;

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
        /// What the system said.
        source: io::Error,
    },
    /// The sampling thread could not be started.
    #[error("the thread that observes the host cannot be started: {0}; check the limit of tasks")]
    NoThread(io::Error),
    /// The steps of an observation came in the wrong order.
    #[error(
        "an observer was asked to {asked} while it was {state}; the order is arm, start, stop, take"
    )]
    OutOfOrder {
        /// The step asked for.
        asked: &'static str,
        /// What the observer was doing.
        state: &'static str,
    },
}
