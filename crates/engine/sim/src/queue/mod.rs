//! The kernel's block queue above a drive, in virtual time.
//!
//! Purpose: who may put a request into the queue, which requests become one, and which goes to the
//! drive next.
//! Invariants: every byte offered and taken is completed exactly once; the requests held never pass
//! the bound of the kernel; the drive never holds more than its queue depth.
//! There is no plug: a request is offered to the scheduler at once. Flushes and writes through the
//! cache are not queued here (the file systems of 2009 sent none), nor are priorities and cgroups.

mod block;
mod by_address;
mod elevator;
mod kernel;
mod limit;
mod slots;
#[cfg(test)]
pub(crate) mod standin;
#[cfg(test)]
mod tests;
mod waiting;

pub use block::{Bio, BlockQueue, Completed, Offered, QueuePlan};
pub use elevator::{READ_EXPIRE_NS, REQUESTS_PER_BATCH, WRITE_EXPIRE_NS, WRITES_STARVED_MAX};
pub use kernel::{
    REQUESTS_DEFAULT, REQUESTS_MIN, SCHEDULED_REQUESTS_MAX, Scheduler, requests_taken,
};
pub use limit::{BATCH_NS, BATCH_REQUESTS, Submitter};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the drive.
    Read,
    /// To the drive.
    Write,
}

impl Direction {
    /// Both, reads first.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Read => Self::Write,
            Self::Write => Self::Read,
        }
    }
}
