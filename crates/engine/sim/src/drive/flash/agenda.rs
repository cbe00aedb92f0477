//! What is to happen, by time.
//!
//! Invariant: what was noted first comes first among things of the same moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events with their moments.
pub(in crate::drive) struct Agenda<E> {
    entries: BinaryHeap<Reverse<Entry<E>>>,
    noted: u64,
}

struct Entry<E> {
    at_ns: u64,
    order: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.order) == (other.at_ns, other.order)
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

impl<E> Agenda<E> {
    pub(in crate::drive) fn new() -> Self {
        Self { entries: BinaryHeap::new(), noted: 0 }
    }

    pub(in crate::drive) fn note(&mut self, at_ns: u64, event: E) {
        self.entries.push(Reverse(Entry { at_ns, order: self.noted, event }));
        self.noted += 1;
    }

    /// The moment of the next event.
    pub(in crate::drive) fn next_ns(&self) -> Option<u64> {
        self.entries.peek().map(|Reverse(entry)| entry.at_ns)
    }

    /// The next event, if it comes at or before `until_ns`.
    pub(in crate::drive) fn due(&mut self, until_ns: u64) -> Option<(u64, E)> {
        if self.next_ns()? > until_ns {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| (entry.at_ns, entry.event))
    }
}
