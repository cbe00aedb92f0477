//! What happened in the pool, counted.
//!
//! Invariant: counting a hit costs no atomic read-modify-write: each thread has a cell of its own.
//! With more than 64 threads two of them may share a cell and lose a count now and then.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const CELLS: usize = 64;

/// Numbers since the pool was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Pages asked for (`buffer_pool_read_requests`).
    pub read_requests: u64,
    /// Pages that the asking thread had to read (`buffer_pool_reads`).
    pub reads: u64,
    /// Reads that failed.
    pub reads_failed: u64,
    /// Times a thread found a page that another was loading or evicting.
    pub read_waits: u64,
    /// Times no frame was free and the supply was asked (`buffer_pool_wait_free`).
    pub wait_free: u64,
    /// Pages that proved to be used again (`buffer_pool_pages_made_young`).
    pub pages_made_young: u64,
    /// Pages read ahead (`buffer_pool_read_ahead`).
    pub read_ahead: u64,
    /// Of these, evicted unused (`buffer_pool_read_ahead_evicted`).
    pub read_ahead_evicted: u64,
    /// Pages made without reading (`buffer_pool_pages_created`).
    pub pages_created: u64,
    /// Pages read (`buffer_pool_pages_read`): by demand and ahead.
    pub pages_read: u64,
    /// Clean pages evicted.
    pub pages_evicted: u64,
    /// Pages written and told so (`buffer_pool_pages_flushed`).
    pub pages_flushed: u64,
}

#[repr(align(64))]
#[derive(Default)]
struct Padded(AtomicU64);

/// The counters while the pool lives.
#[derive(Default)]
pub struct Counting {
    requests: Box<[Padded]>,
    pub reads: AtomicU64,
    pub reads_failed: AtomicU64,
    pub read_waits: AtomicU64,
    pub wait_free: AtomicU64,
    pub made_young: AtomicU64,
    pub read_ahead: AtomicU64,
    pub read_ahead_evicted: AtomicU64,
    pub created: AtomicU64,
    pub evicted: AtomicU64,
    pub flushed: AtomicU64,
}

impl Counting {
    pub fn new() -> Self {
        Self { requests: (0..CELLS).map(|_| Padded::default()).collect(), ..Self::default() }
    }

    /// A page was asked for.
    #[inline]
    pub fn request(&self) {
        let cell = &self.requests[own_cell() % CELLS].0;
        // No other thread writes this cell, or its count is allowed to be lost.
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    pub fn read(&self) -> PoolCounters {
        let of = |one: &AtomicU64| one.load(Ordering::Relaxed);
        PoolCounters {
            read_requests: self.requests.iter().map(|cell| of(&cell.0)).sum(),
            reads: of(&self.reads),
            reads_failed: of(&self.reads_failed),
            read_waits: of(&self.read_waits),
            wait_free: of(&self.wait_free),
            pages_made_young: of(&self.made_young),
            read_ahead: of(&self.read_ahead),
            read_ahead_evicted: of(&self.read_ahead_evicted),
            pages_created: of(&self.created),
            pages_read: of(&self.reads) + of(&self.read_ahead),
            pages_evicted: of(&self.evicted),
            pages_flushed: of(&self.flushed),
        }
    }
}

/// One more of these.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A number of this thread.
#[inline]
fn own_cell() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<usize> = const { Cell::new(usize::MAX) });
    let own = OWN.get();
    if own != usize::MAX {
        return own;
    }
    let own = THREADS.fetch_add(1, Ordering::Relaxed) % CELLS;
    OWN.set(own);
    own
}
