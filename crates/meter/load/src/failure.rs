//! Requests that failed: the first one whole, the others counted.
//!
//! Invariant: a failed request is never in a histogram. It allocates only when something failed,
//! and then at most once per error number.

use iostrata_plan::OpKind;
use iostrata_run::IoErrorCount;
use serde::{Deserialize, Serialize};

/// A request that failed or moved fewer bytes than asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRequest {
    /// Read, write or flush.
    pub kind: OpKind,
    /// Index of the file.
    pub file: u32,
    /// Offset in it.
    pub offset: u64,
    /// Bytes asked for.
    pub asked_bytes: u32,
    /// `-errno`, or the bytes that were moved.
    pub result: i32,
}

impl FailedRequest {
    /// The error number; `None` when the request merely moved too few bytes.
    pub fn errno(&self) -> Option<i32> {
        (self.result < 0).then_some(-self.result)
    }
}

/// Why a window ended early, though figures came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFailure {
    /// A request failed.
    Request {
        /// The first one that did.
        request: FailedRequest,
        /// Its file.
        path: String,
    },
    /// A file was removed meanwhile.
    Removed {
        /// The file.
        path: String,
    },
    /// Every session was gone, and none could be opened again.
    SessionsGone {
        /// How many there were.
        sessions: u32,
        /// For how long, in whole seconds.
        seconds: u64,
        /// What the target said last.
        code: String,
    },
    /// More transactions arrived than could wait.
    Overloaded {
        /// How many could.
        queue_max: u32,
    },
    /// A transaction failed after which every other one would fail, too.
    Refused {
        /// Under what it is counted.
        code: String,
        /// What the target said, and the fix.
        text: String,
    },
    /// So many transactions failed that the others are no measurement.
    TransactionsFailed {
        /// How many did.
        failed: u64,
        /// How many were done.
        done: u64,
        /// Under what most of them are counted.
        code: String,
        /// What the target said the first time, and the fix.
        text: String,
    },
}

/// What failed in one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The first failed request.
    pub first: Option<FailedRequest>,
    /// How often each error number came; 0 stands for too few bytes.
    pub counts: Vec<IoErrorCount>,
}

impl Failure {
    pub(crate) fn is_set(&self) -> bool {
        self.first.is_some()
    }

    pub(crate) fn add(&mut self, request: FailedRequest) {
        self.first.get_or_insert(request);
        self.add_count(request.errno().unwrap_or(0), 1);
    }

    fn add_count(&mut self, errno: i32, count: u64) {
        match self.counts.iter_mut().find(|entry| entry.errno == errno) {
            Some(entry) => entry.count += count,
            None => self.counts.push(IoErrorCount { errno, count }),
        }
    }

    /// Adds another worker's.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.first = self.first.or(other.first);
        for entry in &other.counts {
            self.add_count(entry.errno, entry.count);
        }
    }
}
