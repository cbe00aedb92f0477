//! Threads that are ahead of the redo's pace, one behind the other.
//!
//! Invariant: only the first asks the rule again, so that whoever came first goes on first. Those
//! behind it are woken one by one.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Thread, ThreadId};
use std::time::Duration;

use crate::sync::locked;

/// How long one behind the first sleeps at most before it looks again.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct PaceQueue {
    waiting: Mutex<VecDeque<Thread>>,
    has_waiting: AtomicBool,
}

/// The first place in the queue, until it is dropped.
#[derive(Debug)]
pub(crate) struct FirstPlace<'q> {
    queue: &'q PaceQueue,
    of: ThreadId,
}

impl PaceQueue {
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.has_waiting.load(Ordering::Relaxed)
    }

    /// Joins at the end and waits to be the first.
    pub fn wait_first(&self) -> FirstPlace<'_> {
        let me = std::thread::current();
        let of = me.id();
        let mut waiting = locked(&self.waiting);
        waiting.push_back(me);
        self.has_waiting.store(true, Ordering::Relaxed);
        while waiting.front().is_some_and(|first| first.id() != of) {
            drop(waiting);
            std::thread::park_timeout(LOOK);
            waiting = locked(&self.waiting);
        }
        FirstPlace { queue: self, of }
    }
}

impl Drop for FirstPlace<'_> {
    fn drop(&mut self) {
        let mut waiting = locked(&self.queue.waiting);
        let first = waiting.pop_front();
        assert!(first.is_some_and(|first| first.id() == self.of), "the first leaves first");
        self.queue.has_waiting.store(!waiting.is_empty(), Ordering::Relaxed);
        if let Some(next) = waiting.front() {
            next.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn whoever_came_first_goes_first() {
        let (queue, went) = (PaceQueue::default(), Mutex::new(Vec::new()));
        let first = queue.wait_first();
        std::thread::scope(|scope| {
            for number in 0..8_usize {
                let (queue, went) = (&queue, &went);
                scope.spawn(move || {
                    let _first = queue.wait_first();
                    went.lock().unwrap().push(number);
                });
                while locked(&queue.waiting).len() < number + 2 {
                    std::thread::yield_now();
                }
            }
            assert!(queue.has_waiting() && went.lock().unwrap().is_empty());
            drop(first);
        });
        assert_eq!(*went.lock().unwrap(), (0..8).collect::<Vec<_>>());
        assert!(!queue.has_waiting());
    }
}
