//! Why an API could not be started or used, and why a file could not be opened.
//!
//! Invariant: every message names the thing, what was found and the fix. A request that fails is
//! not an error here: it is a [`Completion`](crate::Completion) with a negative result.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a file API could not be started, or had to stop.
#[derive(Debug, Error)]
pub enum IoError {
    /// The kernel or a sandbox does not offer the API at all.
    #[error("{api} is not available here: {why}; {fix}")]
    Unavailable {
        /// The API's name as users write it.
        api: &'static str,
        /// What the kernel answered.
        why: String,
        /// What would help.
        fix: &'static str,
    },
    /// The API cannot hold that many requests in flight.
    #[error(
        "{api} cannot hold {depth} requests in flight (at most {most}); use a smaller --iodepth{hint}"
    )]
    Depth {
        /// The API's name as users write it.
        api: &'static str,
        /// Requests to be in flight at once.
        depth: u32,
        /// Requests possible.
        most: u32,
        /// A further way out, or nothing.
        hint: &'static str,
    },
    /// Memory for the request buffers could not be had.
    #[error(
        "cannot map {bytes} bytes of request buffers: {source}; use a smaller depth or block size"
    )]
    Memory {
        /// Bytes requested.
        bytes: u64,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A call that should not fail did.
    #[error("{api}: {call} failed: {source}")]
    System {
        /// The API's name as users write it.
        api: &'static str,
        /// The system call.
        call: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Why a file of a set could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The file system refuses O_DIRECT.
    #[error(
        "{path} refuses direct I/O (O_DIRECT); measure it buffered, or choose another file system"
    )]
    DirectRefused {
        /// The file.
        path: PathBuf,
    },
    /// Another error of opening it or of reading its properties.
    #[error("cannot open or look at {path}: {source}")]
    System {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}
