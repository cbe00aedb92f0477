//! How many leaves wide batches hold together.
//!
//! Invariant: never more than the limit; whoever waits for room is woken when some is given back.
//! Nobody makes a system call for others while none of them waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use crate::sync::locked;

/// Leaves that are held, and who waits to hold some.
#[derive(Debug, Default)]
pub(crate) struct HeldLeaves {
    held: AtomicUsize,
    /// Threads that wait or are about to.
    waiters: AtomicUsize,
    changing: Mutex<()>,
    given_back: Condvar,
}

impl HeldLeaves {
    /// Takes so many, if all together are at most `most` then.
    pub fn try_take(&self, leaves: usize, most: usize) -> bool {
        let step = |held: usize| held.checked_add(leaves).filter(|sum| *sum <= most);
        self.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step).is_ok()
    }

    pub fn take(&self, leaves: usize, most: usize) {
        if !self.try_take(leaves, most) {
            self.wait(leaves, most);
        }
    }

    #[cold]
    fn wait(&self, leaves: usize, most: usize) {
        let changing = locked(&self.changing);
        // Before the look: whoever gives back after it sees a waiter.
        self.waiters.fetch_add(1, Ordering::SeqCst);
        drop(self.given_back.wait_while(changing, |()| !self.try_take(leaves, most)));
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn give_back(&self, leaves: usize) {
        self.held.fetch_sub(leaves, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            // Under the lock: who has looked in vain sleeps by now.
            let _changing = locked(&self.changing);
            self.given_back.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn there_are_never_more_than_the_limit_and_nobody_waits_for_ever() {
        let (held, inside) = (HeldLeaves::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (held, inside) = (&held, &inside);
                scope.spawn(move || {
                    for round in 0..2_000 {
                        let leaves = 2 + (thread + round) % 4;
                        held.take(leaves, 7);
                        let now = inside.fetch_add(leaves, Ordering::SeqCst) + leaves;
                        assert!(now <= 7, "{now} leaves are held");
                        inside.fetch_sub(leaves, Ordering::SeqCst);
                        held.give_back(leaves);
                    }
                });
            }
        });
        assert!(held.try_take(7, 7) && !held.try_take(1, 7));
    }
}
