//! What is to happen, by time.
//!
//! Invariant: what was noted first comes first among things of the same moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events with their moments, in ns.
#[derive(Debug)]
pub struct Agenda<E> {
    entries: BinaryHeap<Reverse<Scheduled<E>>>,
    noted: u64,
}

#[derive(Debug)]
struct Scheduled<E> {
    at_ns: u64,
    order: u64,
    event: E,
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.order) == (other.at_ns, other.order)
    }
}

impl<E> Eq for Scheduled<E> {}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Scheduled<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Agenda<E> {
    /// Without events.
    pub fn new() -> Self {
        Self { entries: BinaryHeap::new(), noted: 0 }
    }

    /// Adds an event.
    pub fn note(&mut self, at_ns: u64, event: E) {
        self.entries.push(Reverse(Scheduled { at_ns, order: self.noted, event }));
        self.noted += 1;
    }

    /// The moment of the next event.
    pub fn next_ns(&self) -> Option<u64> {
        self.entries.peek().map(|Reverse(entry)| entry.at_ns)
    }

    /// The next event, if it comes at or before `until_ns`.
    pub fn due(&mut self, until_ns: u64) -> Option<(u64, E)> {
        if self.next_ns()? > until_ns {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| (entry.at_ns, entry.event))
    }

    /// All events, in no order.
    pub fn drain(&mut self) -> impl Iterator<Item = E> {
        self.entries.drain().map(|Reverse(entry)| entry.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_at_their_moment_and_in_their_order() {
        let mut agenda = Agenda::new();
        for (at_ns, event) in [(20, 'c'), (10, 'a'), (10, 'b')] {
            agenda.note(at_ns, event);
        }
        assert_eq!((agenda.due(9), agenda.next_ns()), (None, Some(10)));
        assert_eq!(agenda.due(10), Some((10, 'a')));
        assert_eq!(agenda.due(19), Some((10, 'b')));
        assert_eq!((agenda.due(19), agenda.due(20)), (None, Some((20, 'c'))));
        assert_eq!(agenda.next_ns(), None);
    }
}
