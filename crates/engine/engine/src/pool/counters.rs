//! What is counted of the pool beside the catalogue's counters: hits, which cost no atomic
//! read-modify-write, and what shows how threads waited for a page.
//!
//! Invariant: each thread counts hits in a cell of its own. With more than 64 threads two of them
//! may share a cell and lose a count now and then.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

const CELLS: usize = 64;

/// Pages asked for.
pub struct Requests(Box<[CachePadded<AtomicU64>]>);

impl Requests {
    pub fn new() -> Self {
        Self((0..CELLS).map(|_| CachePadded::default()).collect())
    }

    /// A page was asked for.
    #[inline]
    pub fn count(&self) {
        let cell = &self.0[own_cell() % CELLS];
        // No other thread writes this cell, or its count is allowed to be lost.
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|cell| cell.load(Ordering::Relaxed)).sum()
    }
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
