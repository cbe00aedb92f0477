//! The lock table: takes, waits, hands over.
//!
//! Invariant: the mutex of the wait graph is taken before that of a shard, never after, and no
//! thread sleeps or is woken while one of them is held. A shard's mutex is held for a lookup only,
//! so it may be taken under page latches.

use std::time::Duration;

use crate::lock::border::{Granted, LockFailure, LockOwner, LockStats};
use crate::lock::id::LockId;
use crate::lock::shard::{Released, Shard};
use crate::lock::sync::{Mutex, Patience, locked};
use crate::lock::waits::Waits;

/// A model checker pays for each of them in every run.
const SHARDS: usize = if cfg!(feature = "model") { 2 } else { 256 };

/// Exclusive locks, first come, first served.
pub struct LockTable {
    shards: Box<[Shard]>,
    waits: Mutex<Waits>,
}

impl Default for LockTable {
    fn default() -> Self {
        Self::new()
    }
}

impl LockTable {
    pub fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Self { shards, waits: Mutex::default() }
    }

    /// Takes a lock, or waits for it until those who came before have had it. The calling thread
    /// sleeps by parking; what is left of its park token afterwards may wake its next park early.
    ///
    /// # Errors
    /// [`LockFailure::Deadlock`] at once when the holder waits for a lock of `owner`, directly or
    /// through others; [`LockFailure::Timeout`] when the patience is over, at once when it is zero.
    /// In both cases the owner keeps what it holds and waits for nothing.
    #[inline]
    pub fn acquire(
        &self,
        owner: &LockOwner,
        id: LockId,
        patience: Duration,
    ) -> Result<Granted, LockFailure> {
        match self.shard(id).take(id, owner.number()) {
            Ok(granted) => Ok(granted),
            Err(holder) if patience.is_zero() => {
                Err(LockFailure::Timeout { holder, waited: Duration::ZERO })
            }
            Err(_) => self.wait(owner.number(), id, Patience::new(patience)),
        }
    }

    #[cold]
    fn wait(
        &self,
        number: u64,
        id: LockId,
        mut patience: Patience,
    ) -> Result<Granted, LockFailure> {
        if let Some(granted) = self.enter_queue(number, id)? {
            return Ok(granted);
        }
        loop {
            patience.sleep();
            // A wake-up proves nothing: it may be an old one, or one of somebody else's.
            if self.shard(id).holder(id) == Some(number) {
                locked(&self.waits).end(number, patience.waited(), true);
                return Ok(Granted::Now);
            }
            if patience.is_over() {
                return self.give_up(number, id, &patience);
            }
        }
    }

    /// Enters the queue of a lock; nothing when the caller has to wait now.
    fn enter_queue(&self, number: u64, id: LockId) -> Result<Option<Granted>, LockFailure> {
        let mut waits = locked(&self.waits);
        let holder_of = |id| self.shard(id).holder(id);
        if let Some(holder) = holder_of(id)
            && waits.closes_cycle(number, holder, holder_of)
        {
            waits.refused();
            return Err(LockFailure::Deadlock { holder });
        }
        // Another may hold it by now, but none that waits: nobody begins to wait meanwhile.
        match self.shard(id).take_or_queue(id, number) {
            Ok(granted) => Ok(Some(granted)),
            Err(_) => {
                waits.begin(number, id);
                Ok(None)
            }
        }
    }

    /// Leaves queue and graph in one step as searches see it, unless the lock came meanwhile.
    fn give_up(
        &self,
        number: u64,
        id: LockId,
        patience: &Patience,
    ) -> Result<Granted, LockFailure> {
        let mut waits = locked(&self.waits);
        let holder = self.shard(id).leave(id, number);
        // A lock with a queue is held.
        let holder = holder.unwrap_or(number);
        let (is_granted, waited) = (holder == number, patience.waited());
        waits.end(number, waited, is_granted);
        if is_granted { Ok(Granted::Now) } else { Err(LockFailure::Timeout { holder, waited }) }
    }

    /// Gives locks back, each to its longest waiter. Those that the owner does not hold are passed
    /// over, so it does no harm to name one twice.
    #[inline]
    pub fn release(&self, owner: &LockOwner, ids: &[LockId]) {
        for id in ids {
            if let Released::To(thread) = self.shard(*id).release(*id, owner.number()) {
                thread.unpark();
            }
        }
    }

    /// Whether anybody but `owner` holds the lock; with no owner, whether anybody does. One atomic
    /// load when no lock of the same shard is held, hence when none is held at all; otherwise a
    /// lookup under a mutex that nobody holds for long.
    ///
    /// Of a thread that acquired a lock and after that latched a page, before the caller latched
    /// the same page, the caller sees the lock until it is released: the count that is loaded
    /// here was stored before the page was unlatched, and latching makes that visible. In turn,
    /// who is told that a lock is free sees all that was done before it was released.
    #[inline]
    pub fn is_held_by_another(&self, owner: Option<&LockOwner>, id: LockId) -> bool {
        let shard = self.shard(id);
        if shard.held() == 0 {
            return false;
        }
        let own = owner.map(LockOwner::number);
        shard.holder(id).is_some_and(|holder| own != Some(holder))
    }

    /// The counts. Those of what is held and of who waits are not taken at one moment.
    pub fn stats(&self) -> LockStats {
        let held = self.shards.iter().map(|shard| shard.held() as u64).sum();
        LockStats { held, ..locked(&self.waits).stats() }
    }

    #[inline]
    fn shard(&self, id: LockId) -> &Shard {
        &self.shards[id.shard(SHARDS)]
    }
}
