//! A hot set stays while everything else passes by.

use std::sync::atomic::Ordering;

use iostrata_innodb::{Counter, PageNo};

use crate::pool::support::*;

const FRAMES: u64 = 400;
const HOT: u64 = 150;

/// Hits of the hot set, in percent, while a scan of 20000 pages touches each ten times.
fn hot_hits_pct(ahead: bool) -> u64 {
    let (pool, source, _) = pool(FRAMES as usize);
    let mut dice = Dice(7);
    for _ in 0..8 * HOT {
        drop(pool.pin(PageNo(dice.below(HOT))).unwrap());
    }
    let (mut asked, mut missed) = (0, 0);
    for page in 1000..21_000 {
        if ahead && page % 32 == 0 {
            let next: Vec<_> = (page..page + 32).map(PageNo).collect();
            pool.prefetch(&next);
        }
        for _ in 0..10 {
            drop(pool.pin(PageNo(page)).unwrap());
        }
        let before = source.reads.load(Ordering::Relaxed);
        drop(pool.pin(PageNo(dice.below(HOT))).unwrap());
        // The filling of the pool is no part of the question.
        if page >= 3000 {
            asked += 1;
            missed += source.reads.load(Ordering::Relaxed) - before;
        }
    }
    let counters = pool.counts.read();
    assert_eq!(ahead, counters[Counter::BufferPoolReadAhead] > 19_000, "{counters:?}");
    assert!(counters[Counter::BufferPoolReadAheadEvicted] < 100, "{counters:?}");
    100 - 100 * missed / asked
}

#[test]
fn a_long_scan_leaves_the_hot_set_alone() {
    // A queue in order of use would keep it for 400 of about 1000 pages between two uses.
    assert!(hot_hits_pct(false) >= 97, "{}", hot_hits_pct(false));
    assert!(hot_hits_pct(true) >= 97, "{}", hot_hits_pct(true));
}

#[test]
fn read_ahead_in_vain_is_counted() {
    let (pool, _, _) = pool(100);
    for from in (0..1000).step_by(10) {
        let next: Vec<_> = (from..from + 10).map(PageNo).collect();
        pool.prefetch(&next);
        drop(pool.pin(PageNo(from)).unwrap());
    }
    let counters = pool.counts.read();
    assert_eq!(counters[Counter::BufferPoolReadAhead], 1000);
    assert_eq!(counters[Counter::BufferPoolReads], 0);
    assert!((800..=900).contains(&counters[Counter::BufferPoolReadAheadEvicted]), "{counters:?}");
}

#[test]
fn what_comes_back_soon_is_kept() {
    let (pool, source, _) = pool(100);
    // The first round goes through the small queue, the second comes back, the third finds it.
    for others in [1000, 2000] {
        for page in 0..50 {
            drop(pool.pin(PageNo(page)).unwrap());
        }
        for page in others..others + 70 {
            drop(pool.pin(PageNo(page)).unwrap());
        }
    }
    assert!(pool.counts.read()[Counter::BufferPoolPagesMadeYoung] > 0);
    let before = source.reads.load(Ordering::Relaxed);
    for page in 0..50 {
        drop(pool.pin(PageNo(page)).unwrap());
    }
    assert!(source.reads.load(Ordering::Relaxed) - before < 10);
}
