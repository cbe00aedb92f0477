//! What can go wrong when a page is wanted.
//!
//! Invariant: every error is cheap to clone, because all who waited for one load get the same one.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use iostrata_innodb::PageNo;

/// What failed below, in its own words.
#[derive(Clone)]
pub struct Failure(Arc<dyn Error + Send + Sync>);

impl Failure {
    /// Wraps an error.
    pub fn new(cause: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(cause))
    }

    /// The error itself. What a disk said is found by
    /// `EngineError::disk_error`, whichever layer passed it on; the types of the layers between are
    /// not for programs.
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// The source gave another length than a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the source left {found} bytes in a buffer of {expected}; it must keep the length")]
pub struct WrongLength {
    /// Bytes of a page.
    pub expected: usize,
    /// Bytes found.
    pub found: usize,
}

/// Why a page could not be pinned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PoolError {
    /// The source failed. Everyone who waited for this load gets the same.
    #[error("page {page} cannot be read: {cause}")]
    Read {
        /// The page.
        page: PageNo,
        /// What the source said.
        cause: Failure,
    },
    /// No frame became free however often it was asked for.
    #[error(
        "no free frame for page {page}: {pinned} of {frames} frames are pinned, {dirty} are dirty; \
         let fewer threads work at once or give the pool more frames"
    )]
    PoolExhausted {
        /// The page that was wanted.
        page: PageNo,
        /// Frames of the pool.
        frames: usize,
        /// Frames with at least one pin.
        pinned: usize,
        /// Frames dirty or being written.
        dirty: usize,
    },
    /// More frames than the system has memory for.
    #[error(
        "{frames} frames need {bytes} bytes of memory, more than the system has; ask for fewer"
    )]
    Memory {
        /// Frames that were asked for.
        frames: u64,
        /// Bytes that they take.
        bytes: u64,
    },
    /// A page number that no file can hold: a broken link rather than a page.
    #[error(
        "no file can hold page {page}, the last possible one is {last}; the link to it is broken"
    )]
    NoSuchPage {
        /// The page that was wanted.
        page: PageNo,
        /// The last page number that the pool takes.
        last: PageNo,
    },
}
