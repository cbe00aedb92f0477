//! Why metrics are not served.

use std::io;

use thiserror::Error;

/// Why metrics are not served.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// The address is none.
    #[error("\"{address}\" is no address to listen at; write a port such as 9187, or HOST:PORT")]
    Address {
        /// As it was given.
        address: String,
    },
    /// The system does not let the program listen there.
    #[error("cannot listen at {address}: {source}; choose another port")]
    Listen {
        /// Where.
        address: String,
        /// The system's answer.
        source: io::Error,
    },
    /// No thread could be started.
    #[error("cannot start a thread that answers: {source}")]
    Thread {
        /// The system's answer.
        source: io::Error,
    },
}
