//! The numbers of doublewrite batches.
//!
//! Invariant: numbers rise; a batch is settled once it is durable in place, and never when it
//! failed.

use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct Running {
    next: u64,
    unsettled: Vec<u64>,
}

/// Numbers of batches over all files.
#[derive(Debug, Default)]
pub(crate) struct Order(Mutex<Running>);

impl Order {
    /// Numbers from here on are above `sequence`.
    pub(crate) fn continue_after(&self, sequence: u64) {
        let mut running = self.lock();
        running.next = running.next.max(sequence.saturating_add(1));
    }

    /// A new batch: its number, and the number below which all batches are durable in place.
    pub(crate) fn begin(&self) -> (u64, u64) {
        let mut running = self.lock();
        let sequence = running.next;
        running.next += 1;
        running.unsettled.push(sequence);
        (sequence, running.unsettled.iter().copied().min().unwrap_or(sequence))
    }

    /// This batch is durable in place.
    pub(crate) fn settle(&self, sequence: u64) {
        self.lock().unsettled.retain(|running| *running != sequence);
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
