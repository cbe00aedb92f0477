//! A counter that costs a thread no atomic read-modify-write.
//!
//! Invariant: exact. Each of the first threads has a cell that it alone writes; those behind them
//! share cells, and add atomically.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Cells of one thread each, and as many that are shared.
const CELLS: usize = 64;

/// A line of the processor's cache, so that no thread waits for another one's.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Padded(AtomicU64);

/// What is counted by every read of a row.
#[derive(Debug)]
pub(crate) struct ThreadCount(Box<[Padded]>);

impl ThreadCount {
    pub fn new() -> Self {
        Self((0..2 * CELLS).map(|_| Padded::default()).collect())
    }

    #[inline]
    pub fn add(&self, more: u64) {
        let thread = thread_number();
        if thread < CELLS {
            let own = &self.0[thread].0;
            own.store(own.load(Relaxed) + more, Relaxed);
        } else {
            self.0[CELLS + thread % CELLS].0.fetch_add(more, Relaxed);
        }
    }

    pub fn get(&self) -> u64 {
        self.0.iter().map(|cell| cell.0.load(Relaxed)).sum()
    }
}

/// A number that no other thread of this process has.
#[inline]
fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<usize> = const { Cell::new(usize::MAX) });
    let own = OWN.get();
    if own != usize::MAX {
        return own;
    }
    let own = THREADS.fetch_add(1, Relaxed);
    OWN.set(own);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_however_many_threads_count() {
        let count = ThreadCount::new();
        std::thread::scope(|scope| {
            for _ in 0..3 * CELLS {
                scope.spawn(|| (0..1000).for_each(|_| count.add(2)));
            }
        });
        assert_eq!(count.get(), 2000 * 3 * CELLS as u64);
    }
}
