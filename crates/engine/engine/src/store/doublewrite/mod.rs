//! The doublewrite files, one for each batch in flight.
//!
//! Invariant: a file is locked from before a batch's copies are written until that batch is durable
//! in place, so a copy is not overwritten while it may be needed. Nobody waits for one file while
//! holding another, except in their order.
//! Batches are numbered over all files, ever upwards; one is settled once it is durable in place,
//! and never when it failed. Each header holds the number below which all batches were
//! durable in place: repair does not believe older copies, which may be of older contents.

mod batch;
mod file;

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};

use crate::sync::locked;

pub(crate) use batch::{BatchKind, FoundBatch, Numbers};
pub(crate) use file::DoublewriteFile;

pub(crate) struct DoublewriteFiles {
    files: Vec<Mutex<DoublewriteFile>>,
    pub(crate) order: Order,
    turn: AtomicUsize,
    batch_pages: usize,
}

impl DoublewriteFiles {
    pub(crate) fn new(files: Vec<DoublewriteFile>) -> Self {
        let batch_pages = files[0].pages();
        let (order, turn) = (Order::default(), AtomicUsize::new(0));
        let files = files.into_iter().map(Mutex::new).collect();
        Self { files, order, turn, batch_pages }
    }

    pub(crate) fn batch_pages(&self) -> usize {
        self.batch_pages
    }

    /// A file that nobody uses; waits for one when all are in use.
    pub(crate) fn any(&self) -> MutexGuard<'_, DoublewriteFile> {
        let turn = self.turn.fetch_add(1, Relaxed);
        let at = |step: usize| &self.files[(turn + step) % self.files.len()];
        for step in 0..self.files.len() {
            match at(step).try_lock() {
                Ok(file) => return file,
                Err(std::sync::TryLockError::Poisoned(file)) => return file.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) => {}
            }
        }
        locked(at(0))
    }

    /// All files, once every batch is finished.
    pub(crate) fn all(&self) -> Vec<MutexGuard<'_, DoublewriteFile>> {
        self.files.iter().map(locked).collect()
    }
}

#[derive(Debug, Default)]
struct Running {
    next: u64,
    unsettled: Vec<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Order(Mutex<Running>);

impl Order {
    /// Numbers from here on are above `sequence`.
    pub(crate) fn continue_after(&self, sequence: u64) {
        let mut running = locked(&self.0);
        running.next = running.next.max(sequence.saturating_add(1));
    }

    /// A new batch: its number, and the number below which all batches are durable in place.
    pub(crate) fn begin(&self) -> (u64, u64) {
        let mut running = locked(&self.0);
        let sequence = running.next;
        running.next += 1;
        running.unsettled.push(sequence);
        (sequence, running.unsettled.iter().copied().min().unwrap_or(sequence))
    }

    /// This batch is durable in place.
    pub(crate) fn settle(&self, sequence: u64) {
        locked(&self.0).unsettled.retain(|running| *running != sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn a_batch_is_settled_only_with_all_before_it() {
        let order = Order::default();
        order.continue_after(9);
        order.continue_after(3);
        assert_eq!(order.begin(), (10, 10));
        assert_eq!(order.begin(), (11, 10));
        order.settle(11);
        assert_eq!(order.begin(), (12, 10));
        order.settle(10);
        assert_eq!(order.begin(), (13, 12));
    }
}
