//! Pools that are nearly too small, and pools that are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use iostrata_engine::pool::{PageFlush, Pool, Supply};
use iostrata_engine::{EngineError, RequestError};
use iostrata_innodb::{Counter, Lsn, PageNo};

use crate::pool::support::*;

#[test]
fn eight_dirty_frames_serve_any_number_of_pages() {
    let (pool, source, cleaner) = pool(8);
    let redo = AtomicU64::new(8);
    for round in 1..4 {
        for page in 0..500 {
            change(&pool, PageNo(page), &redo, round * 1000 + page);
        }
    }
    assert!(cleaner.calls.load(Ordering::Relaxed) > 100);
    assert!(pool.counts.read()[Counter::BufferPoolWaitFree] > 100);
    for page in (0..500).map(PageNo) {
        assert_eq!(stamp(&pool.pin(page).unwrap().shared()), 3000 + page.0);
    }
    let mut rest = Vec::new();
    pool.collect_oldest(100, Lsn(u64::MAX), &mut rest);
    cleaner.write(&pool, rest);
    assert_eq!((pool.dirty.pages(), pool.dirty.oldest()), (0, None));
    for page in (0..500).map(PageNo) {
        assert_eq!(source.stamp(page), 3000 + page.0);
    }
}

#[test]
fn one_frame_is_enough_for_one_page_at_a_time() {
    let (pool, _, _) = pool(1);
    let redo = AtomicU64::new(8);
    for page in 0..50 {
        change(&pool, PageNo(page), &redo, page + 1);
    }
    assert_eq!(stamp(&pool.pin(PageNo(7)).unwrap().shared()), 8);
}

#[test]
fn pinned_frames_exhaust_the_pool_until_one_is_given_back() {
    let (pool, _, _) = pool(8);
    let mut pins: Vec<_> = (0..8).map(|page| pool.pin(PageNo(page)).unwrap()).collect();
    pins.push(pins[0].clone());
    for _ in 0..2 {
        match pool.pin(PageNo(9)) {
            Err(EngineError::Request(RequestError::PoolExhausted {
                frames: 8,
                pinned: 8,
                dirty: 0,
            })) => {}
            other => panic!("{other:?}"),
        }
        assert!(pool.try_pin(PageNo(9)).is_none());
    }
    pool.prefetch(&[PageNo(10), PageNo(11)]);
    assert_eq!(pool.counts.read()[Counter::BufferPoolReadAhead], 0);
    drop(pins.remove(3));
    assert_eq!(pool.pin(PageNo(9)).unwrap().page_no(), PageNo(9));
    assert!(pool.try_pin(PageNo(3)).is_none() && pool.try_pin(PageNo(0)).is_some());
}

/// Frees nothing for a while, as a device does that stands still; ends that as it likes.
struct SlowSupply {
    pool: OnceLock<Weak<Pool>>,
    calls: AtomicU64,
    taken: Mutex<Vec<PageFlush>>,
    /// What happens at a call of this number.
    act: fn(&Pool, u64, &mut Vec<PageFlush>),
}

impl Supply for SlowSupply {
    fn free_wanted(&self) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let pool = self.pool.get().unwrap().upgrade().unwrap();
        (self.act)(&pool, call, &mut self.taken.lock().unwrap());
    }
}

/// Requests another page than the dirty one in a pool of one frame.
fn asked(act: fn(&Pool, u64, &mut Vec<PageFlush>)) -> Result<(), EngineError> {
    let (calls, taken) = Default::default();
    let supply = Arc::new(SlowSupply { pool: OnceLock::new(), calls, taken, act });
    let source = Arc::new(MemorySource::default());
    let pool = Arc::new(Pool::new(settings(1), Arc::default(), source, Arc::clone(&supply) as _));
    assert!(supply.pool.set(Arc::downgrade(&pool)).is_ok());
    change(&pool, PageNo(1), &AtomicU64::new(8), 1);
    pool.pin(PageNo(2)).map(drop)
}

#[test]
fn a_write_that_takes_long_and_fails_leaves_as_many_tries_as_before() {
    let act = |pool: &Pool, call, taken: &mut Vec<PageFlush>| match call {
        0 => pool.collect_cold(1, taken),
        // Longer than is waited for where nothing is being written.
        400 => pool.not_flushed(std::mem::take(taken)),
        500 => pool.collect_cold(1, taken),
        501 => pool.flushed(std::mem::take(taken)),
        _ => {}
    };
    asked(act).unwrap();
    let never = |_: &Pool, _, _: &mut Vec<PageFlush>| {};
    let exhausted = asked(never);
    assert!(matches!(
        exhausted,
        Err(EngineError::Request(RequestError::PoolExhausted { dirty: 1, pinned: 0, .. }))
    ));
}

#[test]
fn tries_are_counted_in_a_row() {
    // Others get what becomes free, every hundred tries.
    let act = |pool: &Pool, call: u64, taken: &mut Vec<PageFlush>| {
        if call > 0 && call.is_multiple_of(100) {
            pool.collect_cold(1, taken);
            pool.flushed(std::mem::take(taken));
            if call < 700 {
                assert_eq!(pool.evict(1), 1);
                change(pool, PageNo(call), &AtomicU64::new(8 * call), 1);
            }
        }
    };
    asked(act).unwrap();
}

#[test]
fn frames_are_found_behind_any_number_of_pinned_ones() {
    // All of the pinned pages came once, or all came back soon; the others the other way round.
    for are_pinned_back in [false, true] {
        for pinned in 1..64 {
            let (pool, _, _) = pool(64);
            let come = |pages: std::ops::Range<u64>, is_back: bool| -> Vec<_> {
                for page in pages.clone().filter(|_| is_back) {
                    drop(pool.pin(PageNo(page)).unwrap());
                    assert_eq!(pool.evict(1), 1);
                }
                pages.map(|page| pool.pin(PageNo(page)).unwrap()).collect()
            };
            let held = come(0..pinned, are_pinned_back);
            drop(come(pinned..64, !are_pinned_back));
            assert_eq!(pool.queues.free(), 0);
            drop(pool.pin(PageNo(100)).unwrap());
            drop(held);
        }
    }
}

#[test]
fn dirty_frames_that_are_not_written_exhaust_the_pool() {
    let source = Arc::new(MemorySource::default());
    let pool = Pool::new(settings(8), Arc::default(), source, Arc::new(NoSupply));
    let redo = AtomicU64::new(8);
    for page in 0..8 {
        change(&pool, PageNo(page), &redo, 1);
    }
    let found = pool.create(PageNo(100)).unwrap_err();
    let wanted = "no frame of the pool became free: 0 of 8 are in use, 8 are dirty";
    assert!(found.to_string().starts_with(wanted), "{found}");
    for page in 0..8 {
        assert_eq!(stamp(&pool.pin(PageNo(page)).unwrap().shared()), 1);
    }
}

#[test]
fn created_pages_are_zeros_and_resident_ones_keep_their_bytes() {
    let (pool, source, _) = pool(8);
    let redo = AtomicU64::new(8);
    for page in 0..8 {
        change(&pool, PageNo(page), &redo, 5);
    }
    let before = pool.pin(PageNo(7)).unwrap().page_version();
    let kept = pool.create(PageNo(7)).unwrap();
    assert_ne!(kept.page_version(), before);
    assert_eq!(stamp(&kept.shared()), 5);
    let reads = source.reads.load(Ordering::Relaxed);
    for page in 20..30 {
        assert!(pool.create(PageNo(page)).unwrap().shared().iter().all(|byte| *byte == 0));
    }
    assert_eq!(source.reads.load(Ordering::Relaxed), reads);
    assert_eq!(pool.counts.read()[Counter::PagesCreated], 11);
}

#[test]
fn guards_move_and_the_page_version_is_of_one_stay() {
    let (pool, _, _) = pool(8);
    let pin = pool.pin(PageNo(1)).unwrap();
    let first = pin.page_version();
    let mut exclusive = pin.exclusive();
    exclusive.bump_page_version();
    assert_ne!(exclusive.page_version(), first);
    let second = exclusive.page_version();
    drop(exclusive);
    let held = vec![pool.pin(PageNo(1)).unwrap().shared()];
    assert_eq!(held[0].page_version(), second);
    let again = pool.pin(PageNo(1)).unwrap();
    let again = again.try_exclusive().unwrap_err();
    let also = again.clone().try_shared().unwrap();
    drop(also);
    drop(held);
    drop(again.try_exclusive().unwrap());
    assert_eq!(pool.evict(8), 1);
    assert!(![first, second].contains(&pool.pin(PageNo(1)).unwrap().page_version()));
}
