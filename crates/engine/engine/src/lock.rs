//! The row lock table of the embedded engine: exclusive locks, held by transactions.
//!
//! Purpose: a transaction locks each row before it changes it, and releases all its locks just
//! after its commit was appended to the log. Invariants: a lock has one holder, waiters get it in
//! the order in which they came, and an owner waits for one lock at a time. An owner that would
//! close a cycle is refused before it waits, so no cycle ever exists. What it deliberately does not
//! do: it has no thread, is independent of rows and transactions, and forgets nothing by itself.
//!
//! # Why it is enough to follow holders
//!
//! A search starts at the wanted lock and goes on: its holder, the lock that this one waits for,
//! that lock's holder, and so on. It never looks at those before others in a queue. They do block
//! those behind them, but they wait for the same lock, so for the same holder: whether they ever go
//! on depends on that holder alone. So every deadlock holds a cycle of holders. Such a cycle can be
//! closed in two ways only:
//! - An owner begins to wait. It searches just before, under one mutex with all others that begin
//!   to wait, so of several that close a cycle together the last one sees the others.
//! - A lock gets another holder. Its holder, at once or from a queue, waits for nothing at that
//! moment, so the new holder has no edge that could lead on. When it waits later, it searches, and
//! those behind it in the queue are already found to wait for it: an edge leads to a lock, not to
//! an owner.
//!
//! # Why no deadlock is reported that is none
//!
//! "Owner X waits for lock L" counts only while another owner holds L, which is read under the lock
//! of L's shard. The hand-over writes X into L under the same lock, so the edge vanishes with it,
//! although X removes it later. While a search goes on no edge comes or goes, since that takes the
//! mutex which the search holds, and a waiter that gives up leaves queue and graph under it.
//! Releases go on meanwhile, but only of owners that do not wait: every owner that the search has
//! passed was still waiting when the search read the next lock, so it released nothing up to then.
//! When the search comes back to the requester, all that it read before is therefore still true.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[cfg(feature = "model")]
pub(crate) use shuttle::sync::atomic::AtomicUsize;
#[cfg(feature = "model")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
#[cfg(feature = "model")]
pub(crate) use shuttle::thread::{Thread, current};
#[cfg(not(feature = "model"))]
pub(crate) use std::sync::atomic::AtomicUsize;
#[cfg(not(feature = "model"))]
pub(crate) use std::sync::{Mutex, MutexGuard};
#[cfg(not(feature = "model"))]
pub(crate) use std::thread::{Thread, current};

// What callers of the lock table give and get.
//
// Invariant: plain data.

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
pub enum Grant {
    /// Taken by this request; to be released.
    Now,
    /// Held by this owner before. Releasing once gives it back, however often it was requested.
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

// The identity of a row lock: a hash of table and key.
//
// Invariant: every bit of table, key and length reaches every bit of the hash, since its parts
// are used on their own: the lowest bits and the highest seven by the map inside a shard, bits
// between them choose the shard.

/// Odd numbers without a pattern.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

const WORD: u64 = 0xd6e8_feb8_6659_fd93;

const FINISH: u64 = 0xff51_afd7_ed55_8ccd;

/// Which lock: the hash of a row's table and key. Two rows with the same hash share a lock, which
/// costs waiting (now and then a deadlock that rows alone would not have made), never correctness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LockId(u64);

impl LockId {
    #[inline]
    pub fn of(table: u32, key: &[u8]) -> Self {
        let (words, rest) = key.as_chunks::<8>();
        let mut hash = folded(SEED ^ u64::from(table) ^ (key.len() as u64) << 32);
        for word in words {
            hash = folded(hash ^ u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            hash = folded(hash ^ u64::from_le_bytes(word));
        }
        hash = (hash ^ hash >> 32).wrapping_mul(FINISH);
        Self(hash ^ hash >> 29)
    }

    /// Which of so many shards; a power of two, 256 at most.
    #[inline]
    pub(crate) fn shard(self, shards: usize) -> usize {
        (self.0 >> 48) as usize & (shards - 1)
    }
}

/// The halves of a product of 128 bits. A plain product would carry high bits nowhere, and
/// differences between two words of a key could cancel.
#[inline]
fn folded(word: u64) -> u64 {
    let product = u128::from(word) * u128::from(WORD);
    product as u64 ^ (product >> 64) as u64
}

/// A map by locks, which are hashes already.
pub type LockMap<V> = HashMap<LockId, V, BuildHasherDefault<IdHasher>>;

#[derive(Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    #[inline]
    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = folded(self.0 ^ u64::from(*byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

// What the lock table needs of threads, locks and time.
//
// Invariant: nothing else in this module touches them, so that with the feature `model` a model
// checker tries interleavings. The checker has no time: there a wait with an end may end at any
// moment.

/// No code panics while it holds one of these locks, and what they guard is whole at every moment.
#[inline]
pub(crate) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One wait of the calling thread.
struct Patience {
    start: Instant,
    /// Nothing when it lies beyond the end of time.
    end: Option<Instant>,
    #[cfg(feature = "model")]
    is_over: bool,
}

impl Patience {
    pub(crate) fn new(patience: Duration) -> Self {
        let start = Instant::now();
        Self {
            start,
            end: start.checked_add(patience),
            #[cfg(feature = "model")]
            is_over: false,
        }
    }

    pub(crate) fn waited(&self) -> Duration {
        self.start.elapsed()
    }

    /// Sleeps until the thread is unparked or the patience is over; may wake for no reason.
    #[cfg(not(feature = "model"))]
    pub(crate) fn sleep(&mut self) {
        match self.end {
            Some(end) => {
                std::thread::park_timeout(end.saturating_duration_since(Instant::now()));
            }
            None => std::thread::park(),
        }
    }

    #[cfg(not(feature = "model"))]
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    #[cfg(feature = "model")]
    pub(crate) fn sleep(&mut self) {
        use shuttle::rand::Rng;

        if self.end.is_some() && shuttle::rand::thread_rng().gen_bool(0.5) {
            shuttle::thread::yield_now();
            self.is_over = true;
        } else {
            shuttle::thread::park();
        }
    }

    #[cfg(feature = "model")]
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

// Who waits for which lock, and what waiting cost.
//
// Invariant: an owner is here from before it enters a queue until its thread has noticed that it
// has left it. All of it is guarded by one mutex, which is taken only by waiters.

/// The edges of the wait graph and the counts of waits.
#[derive(Default)]
pub(crate) struct Waits {
    /// By the number of the owner that waits.
    edges: HashMap<u64, LockId>,
    stats: LockStats,
}

impl Waits {
    pub(crate) fn begin(&mut self, number: u64, id: LockId) {
        let before = self.edges.insert(number, id);
        debug_assert!(before.is_none(), "owner {number} waits for two locks");
    }

    pub(crate) fn end(&mut self, number: u64, waited: Duration, is_granted: bool) {
        self.edges.remove(&number);
        let ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.stats.waits += 1;
        self.stats.wait_ns = self.stats.wait_ns.saturating_add(ns);
        self.stats.wait_ns_max = self.stats.wait_ns_max.max(ns);
        self.stats.timeouts += u64::from(!is_granted);
    }

    /// Whether the requester would wait for itself if it waited for a lock of `holder`. `holder_of`
    /// returns who holds a lock now; others may release theirs during the search.
    fn closes_cycle(
        &self,
        requester: u64,
        mut holder: u64,
        holder_of: impl Fn(LockId) -> Option<u64>,
    ) -> bool {
        // Without a cycle each step takes another edge.
        for _ in 0..=self.edges.len() {
            if holder == requester {
                return true;
            }
            let Some(next) = self.edges.get(&holder).and_then(|id| holder_of(*id)) else {
                return false;
            };
            if next == holder {
                // It was handed the lock and has not noticed yet: it does not wait any more.
                return false;
            }
            holder = next;
        }
        debug_assert!(false, "a deadlock was missed when its cycle was closed");
        false
    }

    pub(crate) fn refused(&mut self) {
        self.stats.deadlocks += 1;
    }

    /// The counts; `held` is not known here.
    pub(crate) fn stats(&self) -> LockStats {
        LockStats { waiting: self.edges.len() as u64, ..self.stats }
    }
}

// One part of the lock table: locks by their identity, each with its holder and its queue.
//
// Invariant: a lock is in the map while it is held, and only then. Its holder is in the map alone:
// a waiter has the lock from the moment at which it is written there as the holder.

struct Waiter {
    number: u64,
    thread: Thread,
}

/// The waiters for one lock: in the order in which they came, one at least.
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

pub(crate) enum Release {
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

    /// Takes a lock that is free; otherwise returns its holder.
    #[inline]
    pub(crate) fn take(&self, id: LockId, number: u64) -> Result<Grant, u64> {
        self.take_or(id, number, |_| ())
    }

    /// Takes a lock that is free; otherwise puts the calling thread into its queue.
    fn take_or_queue(&self, id: LockId, number: u64) -> Result<Grant, u64> {
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
    ) -> Result<Grant, u64> {
        let mut locks = locked(&self.locks);
        match locks.entry(id) {
            Entry::Vacant(place) => {
                place.insert(HeldLock { holder: number, queue: None });
                self.held.store(locks.len(), Ordering::Release);
                Ok(Grant::Now)
            }
            Entry::Occupied(lock) if lock.get().holder == number => Ok(Grant::Already),
            Entry::Occupied(mut lock) => {
                blocked(lock.get_mut());
                Err(lock.get().holder)
            }
        }
    }

    /// Hands a lock of this owner to its longest waiter, or frees it.
    #[inline]
    pub(crate) fn release(&self, id: LockId, number: u64) -> Release {
        let mut locks = locked(&self.locks);
        let Entry::Occupied(mut lock) = locks.entry(id) else { return Release::Quietly };
        if lock.get().holder != number {
            return Release::Quietly;
        }
        if let Some(thread) = lock.get_mut().pass_on() {
            return Release::To(thread);
        }
        lock.remove();
        self.held.store(locks.len(), Ordering::Release);
        Release::Quietly
    }

    /// Takes a waiter out of its queue and returns the lock's holder. Nothing is done when that is
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

// The lock table: takes, waits, hands over.
//
// Invariant: the mutex of the wait graph is taken before the mutex of a shard, never after, and no
// thread sleeps or is woken while one of them is held. A shard's mutex is held for a lookup only,
// so it may be taken under page latches.

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

    /// Takes a lock, or waits for it until those that came before have had it. The calling thread
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
    ) -> Result<Grant, LockFailure> {
        match self.shard(id).take(id, owner.number()) {
            Ok(granted) => Ok(granted),
            Err(holder) if patience.is_zero() => {
                Err(LockFailure::Timeout { holder, waited: Duration::ZERO })
            }
            Err(_) => self.wait(owner.number(), id, Patience::new(patience)),
        }
    }

    #[cold]
    fn wait(&self, number: u64, id: LockId, mut patience: Patience) -> Result<Grant, LockFailure> {
        if let Some(granted) = self.enter_queue(number, id)? {
            return Ok(granted);
        }
        loop {
            patience.sleep();
            // A wake-up proves nothing: it may be an old one, or meant for another wait.
            if self.shard(id).holder(id) == Some(number) {
                locked(&self.waits).end(number, patience.waited(), true);
                return Ok(Grant::Now);
            }
            if patience.is_over() {
                return self.give_up(number, id, &patience);
            }
        }
    }

    /// Enters the queue of a lock; nothing when the caller has to wait now.
    fn enter_queue(&self, number: u64, id: LockId) -> Result<Option<Grant>, LockFailure> {
        let mut waits = locked(&self.waits);
        let holder_of = |id| self.shard(id).holder(id);
        if let Some(holder) = holder_of(id)
            && waits.closes_cycle(number, holder, holder_of)
        {
            waits.refused();
            return Err(LockFailure::Deadlock { holder });
        }
        // Another may hold it by now, but none that waits: no thread begins to wait meanwhile.
        match self.shard(id).take_or_queue(id, number) {
            Ok(granted) => Ok(Some(granted)),
            Err(_) => {
                waits.begin(number, id);
                Ok(None)
            }
        }
    }

    /// Leaves queue and graph in one step as searches see it, unless the lock came meanwhile.
    fn give_up(&self, number: u64, id: LockId, patience: &Patience) -> Result<Grant, LockFailure> {
        let mut waits = locked(&self.waits);
        let holder = self.shard(id).leave(id, number);
        // A lock with a queue is held.
        let holder = holder.unwrap_or(number);
        let (is_granted, waited) = (holder == number, patience.waited());
        waits.end(number, waited, is_granted);
        if is_granted { Ok(Grant::Now) } else { Err(LockFailure::Timeout { holder, waited }) }
    }

    /// Gives locks back, each to its longest waiter. Those that the owner does not hold are passed
    /// over, so it does no harm to name one twice.
    #[inline]
    pub fn release(&self, owner: &LockOwner, ids: &[LockId]) {
        for id in ids {
            if let Release::To(thread) = self.shard(*id).release(*id, owner.number()) {
                thread.unpark();
            }
        }
    }

    /// Whether another than `owner` holds the lock; with no owner, whether it is held. One atomic
    /// load when no lock of the same shard is held, so also when none is held at all; otherwise a
    /// lookup under a mutex that is held only briefly.
    ///
    /// Of a thread that acquired a lock and after that latched a page, before the caller latched
    /// the same page, the caller sees the lock until it is released: the count that is loaded
    /// here was stored before the page was unlatched, and latching makes that visible. In turn,
    /// a caller that finds a lock free sees all that was done before it was released.
    #[inline]
    pub fn is_held_by_another(&self, owner: Option<&LockOwner>, id: LockId) -> bool {
        let shard = self.shard(id);
        if shard.held() == 0 {
            return false;
        }
        let own = owner.map(LockOwner::number);
        shard.holder(id).is_some_and(|holder| own != Some(holder))
    }

    /// The counts. Those of locks held and of waiters are not taken at one moment.
    pub fn stats(&self) -> LockStats {
        let held = self.shards.iter().map(|shard| shard.held() as u64).sum();
        LockStats { held, ..locked(&self.waits).stats() }
    }

    #[inline]
    fn shard(&self, id: LockId) -> &Shard {
        &self.shards[id.shard(SHARDS)]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn nearby_keys_have_locks_of_their_own() {
        let mut seen = HashSet::new();
        let mut count = 0;
        let mut add = |table, key: &[u8]| {
            count += 1;
            seen.insert(LockId::of(table, key));
        };
        for number in 0..50_000_u64 {
            add(1, &number.to_be_bytes());
            add(2, &number.to_be_bytes());
            add(1, &number.to_le_bytes());
            add(1, &(number as u32).to_be_bytes());
            add(1, format!("user{number:010}").as_bytes());
            let pair = [number % 256 * 128, (number / 256) << 36].map(u64::to_be_bytes);
            add(3, pair.as_flattened());
        }
        // The little-endian number 0 is the big-endian one, and so are palindromes of bytes.
        let same = (0..50_000_u64).filter(|number| number.swap_bytes() < 50_000).count();
        assert_eq!((seen.len(), count), (300_000 - same, 300_000));
    }

    #[test]
    fn length_and_padding_count() {
        let keys: [&[u8]; 7] = [&[], &[0], &[0, 0], &[0; 7], &[0; 8], &[0; 9], &[0; 16]];
        let ids: HashSet<LockId> = keys.iter().map(|key| LockId::of(1, key)).collect();
        assert_eq!(ids.len(), keys.len());
        assert_ne!(LockId::of(0, &1_u64.to_le_bytes()), LockId::of(1, &0_u64.to_le_bytes()));
    }

    #[test]
    fn every_bit_of_the_key_flips_half_of_the_hash() {
        for bit in 0..128 {
            let mut flips = 0;
            for number in 0..64_u8 {
                let mut key = [number; 16];
                let before = LockId::of(7, &key).0;
                key[bit / 8] ^= 1 << (bit % 8);
                flips += (LockId::of(7, &key).0 ^ before).count_ones();
            }
            assert!((28 * 64..36 * 64).contains(&flips), "bit {bit}: {flips} of {}", 64 * 64);
        }
    }

    #[test]
    fn consecutive_keys_spread_over_the_shards() {
        let mut counts = [0_u32; 256];
        for number in 0..256_000_u64 {
            counts[LockId::of(1, &number.to_be_bytes()).shard(256)] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
