//! The clock and the snapshots that are open.
//!
//! Invariant: from before a snapshot reads its number until it is dropped, a slot holds a value at
//! or below that number. Slots never move and are never given back, only used again; a chunk of
//! slots is there before the count of used slots reaches into it. It is independent of versions.
//! The argument why no snapshot is missed is in the module's documentation.

use crossbeam_utils::CachePadded;
#[cfg(feature = "model")]
pub(crate) use shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::cell::Cell;
#[cfg(not(feature = "model"))]
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What a free slot holds: above every number.
const FREE: u64 = u64::MAX;
/// Slots of the first chunk; each chunk has twice as many as the one before.
#[cfg(not(feature = "model"))]
const FIRST_CHUNK: usize = 64;
#[cfg(feature = "model")]
const FIRST_CHUNK: usize = 1;
const CHUNKS: usize = 24;

thread_local! {
    /// The slot that this thread used last. A hint: it may be of another registry.
    static HINT: Cell<usize> = const { Cell::new(0) };
}

/// One snapshot's place. Alone on its cache line, and with a count of references of its own, so
/// that threads which open snapshots share nothing that they write.
#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    /// At or below the number of the snapshot; `FREE` when there is none.
    at: AtomicU64,
    transaction: AtomicU64,
    /// When it was opened, in nanoseconds since the registry was made.
    since: AtomicU64,
}

impl Slot {
    fn new() -> Self {
        Self { at: AtomicU64::new(FREE), transaction: AtomicU64::new(0), since: AtomicU64::new(0) }
    }

    #[inline]
    fn claim(&self, lower: u64) -> bool {
        self.at.load(Ordering::Relaxed) == FREE
            && self.at.compare_exchange(FREE, lower, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }
}

/// A registered snapshot: until it is dropped, every version that it sees stays readable.
#[derive(Debug)]
#[must_use = "a snapshot that is dropped protects nothing"]
pub struct Snapshot {
    slot: Arc<Slot>,
    at: u64,
}

impl Snapshot {
    /// Its number: visible is what has this number or a lower one.
    #[inline]
    pub fn at(&self) -> u64 {
        self.at
    }
}

impl Drop for Snapshot {
    #[inline]
    fn drop(&mut self) {
        // Release: a thread that finds the slot free also finds this snapshot's reads done.
        self.slot.at.store(FREE, Ordering::Release);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldestSnapshot {
    /// The transaction that was named when it was opened.
    pub transaction: u64,
    pub at: u64,
    pub since: Instant,
    /// Versions that are kept behind it: those replaced by a number above it. Counted by whole
    /// segments, so it may be too high by the versions of one segment per shard.
    pub versions: u64,
}

type Chunk = Box<[Arc<Slot>]>;

#[derive(Debug)]
pub struct Registry {
    clock: CachePadded<AtomicU64>,
    /// Slots that were ever used.
    used: CachePadded<AtomicUsize>,
    chunks: [OnceLock<Chunk>; CHUNKS],
    made: Instant,
}

/// Chunk of a slot, and its place there.
#[inline]
fn place_of(index: usize) -> (usize, usize) {
    let from_first = index / FIRST_CHUNK + 1;
    let chunk = from_first.ilog2() as usize;
    (chunk, index - first_of(chunk))
}

#[inline]
fn first_of(chunk: usize) -> usize {
    FIRST_CHUNK * ((1 << chunk) - 1)
}

impl Registry {
    pub fn new(clock: u64) -> Self {
        Self {
            clock: CachePadded::new(AtomicU64::new(clock)),
            used: CachePadded::new(AtomicUsize::new(0)),
            chunks: [const { OnceLock::new() }; CHUNKS],
            made: Instant::now(),
        }
    }

    /// The number of the last commit that ticked.
    #[inline]
    pub fn now(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    /// The next number, for a commit that holds the latches of all its leaves.
    #[inline]
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Sets the clock to 0, as if an opening did not know where it stood.
    #[cfg(feature = "testing")]
    pub fn restart(&self) {
        self.clock.store(0, Ordering::SeqCst);
    }

    /// Opens a snapshot of now. `transaction` is only shown, in
    /// [`VersionStats`](super::VersionStats).
    #[inline]
    pub fn open(&self, transaction: u64) -> Snapshot {
        let lower = self.now();
        let slot = self.claim(lower);
        let at = self.now();
        if at != lower {
            slot.at.store(at, Ordering::Release);
        }
        slot.transaction.store(transaction, Ordering::Relaxed);
        slot.since.store(self.made.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Snapshot { slot, at }
    }

    #[inline]
    fn claim(&self, lower: u64) -> Arc<Slot> {
        let hint = HINT.get();
        match self.slot(hint) {
            Some(slot) if slot.claim(lower) => Arc::clone(slot),
            _ => self.claim_other(hint, lower),
        }
    }

    /// Takes the next free slot behind the hint, or a new one.
    #[cold]
    fn claim_other(&self, hint: usize, lower: u64) -> Arc<Slot> {
        loop {
            let used = self.used.load(Ordering::SeqCst);
            let start = hint.min(used);
            for index in (start..used).chain(0..start) {
                if let Some(slot) = self.slot(index).filter(|slot| slot.claim(lower)) {
                    HINT.set(index);
                    return Arc::clone(slot);
                }
            }
            self.grow(used);
        }
    }

    fn grow(&self, used: usize) {
        let (chunk, _) = place_of(used);
        let slots = || (0..FIRST_CHUNK << chunk).map(|_| Arc::new(Slot::new())).collect();
        self.chunks[chunk].get_or_init(slots);
        // If it fails, another thread has raised it.
        let _ = self.used.compare_exchange(used, used + 1, Ordering::SeqCst, Ordering::SeqCst);
    }

    #[inline]
    fn slot(&self, index: usize) -> Option<&Arc<Slot>> {
        if index >= self.used.load(Ordering::SeqCst) {
            return None;
        }
        let (chunk, place) = place_of(index);
        self.chunks[chunk].get()?.get(place)
    }

    #[inline]
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        let used = self.used.load(Ordering::SeqCst);
        let chunks = self.chunks.iter().map_while(OnceLock::get);
        chunks.flatten().take(used).map(|slot| &**slot)
    }

    /// After the tick that gave `number`: whether a snapshot below it may be registered, now or
    /// later. If not, what that commit replaces need not be kept.
    #[inline]
    pub fn is_any_below(&self, number: u64) -> bool {
        self.slots().any(|slot| slot.at.load(Ordering::SeqCst) < number)
    }

    /// Every snapshot that is or will be registered is at or above this number.
    pub fn oldest(&self) -> u64 {
        let now = self.now();
        self.slots().map(|slot| slot.at.load(Ordering::SeqCst)).fold(now, u64::min)
    }

    /// How many snapshots are open, and the oldest. Figures of one that is opened or closed
    /// meanwhile may be mixed.
    pub fn open_now(&self) -> (u64, Option<OldestSnapshot>) {
        let (mut count, mut oldest) = (0, None::<OldestSnapshot>);
        for slot in self.slots() {
            let at = slot.at.load(Ordering::SeqCst);
            if at == FREE {
                continue;
            }
            count += 1;
            if oldest.is_none_or(|oldest| at < oldest.at) {
                let since = Duration::from_nanos(slot.since.load(Ordering::Relaxed));
                oldest = Some(OldestSnapshot {
                    transaction: slot.transaction.load(Ordering::Relaxed),
                    at,
                    since: self.made + since,
                    versions: 0,
                });
            }
        }
        (count, oldest)
    }
}
