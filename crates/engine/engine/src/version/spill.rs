//! The spill file: where segments of the version log go when memory is short.
//!
//! Invariant: a slot is given out once until it is given back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Mutex, PoisonError};

/// A file of slots of `segment_bytes` each. It is never synced: after a restart nobody reads it.
pub trait SpillFile: Send + Sync {
    /// Writes `bytes`, at most `segment_bytes`, to the beginning of a slot. Slots are numbered from
    /// 0, the lowest free one is taken first.
    ///
    /// # Errors
    /// What the file says. The segment stays in memory then.
    fn write(&self, slot: u64, bytes: &[u8]) -> io::Result<()>;

    /// Fills `into` from the bytes of a slot that begin at `at`. All of them were written before.
    ///
    /// # Errors
    /// What the file says.
    fn read(&self, slot: u64, at: usize, into: &mut [u8]) -> io::Result<()>;
}

/// What came back from the spill file is no record.
#[derive(Debug, thiserror::Error)]
#[error("the spill file gave back other bytes than were written")]
struct NotWhatWasWritten;

/// The error for bytes that are no record.
pub(crate) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, NotWhatWasWritten)
}

/// Which slots are free: the lowest first, so that the file stays short.
#[derive(Debug, Default)]
pub(crate) struct FreeSlots {
    state: Mutex<SlotNumbers>,
}

#[derive(Debug, Default)]
struct SlotNumbers {
    given_back: BinaryHeap<Reverse<u64>>,
    next: u64,
}

impl FreeSlots {
    pub(crate) fn take(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Reverse(slot)) = state.given_back.pop() {
            return slot;
        }
        state.next += 1;
        state.next - 1
    }

    pub(crate) fn give_back(&self, slot: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.given_back.push(Reverse(slot));
    }
}
