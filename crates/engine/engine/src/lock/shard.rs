//! One part of the lock table: locks by their identity, each with its holder and its queue.
//!
//! Invariant: a lock is in the map while it is held, and only then. Who holds it is said by the
//! map alone: a waiter has the lock from the moment at which it is written there as the holder.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;

use crate::lock::border::Granted;
use crate::lock::id::{LockId, LockMap};
use crate::lock::sync::{AtomicUsize, Mutex, Thread, current, locked};

struct Waiter {
    number: u64,
    thread: Thread,
}

/// Those who wait for one lock: in the order in which they came, one at least.
struct Queue {
    waiters: VecDeque<Waiter>,
}

/// A lock that is held. Small, because most are never waited for.
struct HeldLock {
    holder: u64,
    queue: Option<Box<Queue>>,
}

impl HeldLock {
    /// Makes the longest waiting the holder.
    fn pass_on(&mut self) -> Option<Thread> {
        let queue = self.queue.as_mut()?;
        let heir = queue.waiters.pop_front()?;
        if queue.waiters.is_empty() {
            self.queue = None;
        }
        self.holder = heir.number;
        Some(heir.thread)
    }
}

pub(crate) enum Released {
    /// It is free, or another holds it still: there is nothing to do.
    Quietly,
    /// It was handed to an owner whose thread is to be woken, best without holding any lock.
    To(Thread),
}

/// A part of the table. Two cache lines, since processors load lines in pairs.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Shard {
    /// Locks in the map; written under its lock, read without.
    held: AtomicUsize,
    locks: Mutex<LockMap<HeldLock>>,
}

impl Shard {
    /// Locks held. When it is 0, the reader sees all that was done before the last release.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    pub(crate) fn holder(&self, id: LockId) -> Option<u64> {
        locked(&self.locks).get(&id).map(|lock| lock.holder)
    }

    /// Takes a lock that is free; otherwise says who holds it.
    #[inline]
    pub(crate) fn take(&self, id: LockId, number: u64) -> Result<Granted, u64> {
        self.take_or(id, number, |_| ())
    }

    /// Takes a lock that is free; otherwise puts the calling thread into its queue.
    pub(crate) fn take_or_queue(&self, id: LockId, number: u64) -> Result<Granted, u64> {
        self.take_or(id, number, |lock| {
            let empty = || Box::new(Queue { waiters: VecDeque::new() });
            let queue = lock.queue.get_or_insert_with(empty);
            queue.waiters.push_back(Waiter { number, thread: current() });
        })
    }

    #[inline]
    fn take_or(
        &self,
        id: LockId,
        number: u64,
        blocked: impl FnOnce(&mut HeldLock),
    ) -> Result<Granted, u64> {
        let mut locks = locked(&self.locks);
        match locks.entry(id) {
            Entry::Vacant(place) => {
                place.insert(HeldLock { holder: number, queue: None });
                self.held.store(locks.len(), Ordering::Release);
                Ok(Granted::Now)
            }
            Entry::Occupied(lock) if lock.get().holder == number => Ok(Granted::Already),
            Entry::Occupied(mut lock) => {
                blocked(lock.get_mut());
                Err(lock.get().holder)
            }
        }
    }

    /// Hands a lock of this owner to its longest waiter, or frees it.
    #[inline]
    pub(crate) fn release(&self, id: LockId, number: u64) -> Released {
        let mut locks = locked(&self.locks);
        let Entry::Occupied(mut lock) = locks.entry(id) else { return Released::Quietly };
        if lock.get().holder != number {
            return Released::Quietly;
        }
        if let Some(thread) = lock.get_mut().pass_on() {
            return Released::To(thread);
        }
        lock.remove();
        self.held.store(locks.len(), Ordering::Release);
        Released::Quietly
    }

    /// Takes a waiter out of its queue and says who holds the lock. Nothing is done when that is
    /// the waiter: it was handed the lock before it could leave.
    pub(crate) fn leave(&self, id: LockId, number: u64) -> Option<u64> {
        let mut locks = locked(&self.locks);
        let lock = locks.get_mut(&id)?;
        if lock.holder != number
            && let Some(queue) = &mut lock.queue
        {
            queue.waiters.retain(|waiter| waiter.number != number);
            if queue.waiters.is_empty() {
                lock.queue = None;
            }
        }
        Some(lock.holder)
    }
}
