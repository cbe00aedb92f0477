//! What callers of the lock table give and get.
//!
//! Invariant: plain data.

use std::time::Duration;

/// A transaction as the lock table sees it: one thread at a time acts for it.
#[derive(Debug)]
pub struct LockOwner {
    number: u64,
}

impl LockOwner {
    /// An owner without locks. The number is its identity: no other owner that holds a lock of the
    /// same table, or waits for one, may have it.
    pub fn new(number: u64) -> Self {
        Self { number }
    }

    pub fn number(&self) -> u64 {
        self.number
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// Taken by this request; to be released.
    Now,
    /// Held by this owner before. Releasing once gives it back, however often it was asked for.
    Already,
}

/// Why a lock was not got. The owner keeps the locks that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockFailure {
    /// The holder waits, directly or through others, for a lock of the requester. To be rolled
    /// back: waiting would never end.
    #[error("deadlock: the lock is held by transaction {holder}, which waits for this one")]
    Deadlock { holder: u64 },
    /// The lock was not free within the requester's patience.
    #[error("the lock is still held by transaction {holder} after waiting {waited:?}")]
    Timeout {
        holder: u64,
        /// How long the requester waited; zero when it had no patience.
        waited: Duration,
    },
}

/// What happens in a lock table, and what happened since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockStats {
    /// Locks that are held now.
    pub held: u64,
    /// Owners that wait now, or were handed a lock and have not noticed yet.
    pub waiting: u64,
    /// Requests that had to wait and do so no more.
    pub waits: u64,
    /// Their time, in nanoseconds.
    pub wait_ns: u64,
    /// The longest of them, in nanoseconds.
    pub wait_ns_max: u64,
    /// Requests refused because they would have closed a cycle.
    pub deadlocks: u64,
    /// Waits that ended without the lock. Requests without patience never wait and are not counted.
    pub timeouts: u64,
}
