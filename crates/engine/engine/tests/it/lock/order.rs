//! One lock: in which order it is granted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use iostrata_engine::lock::*;

use crate::lock::support::*;

const NOW: Got = Ok(Grant::Now);
const ALREADY: Got = Ok(Grant::Already);

#[test]
fn a_lock_is_held_until_it_is_released() {
    let table = LockTable::default();
    let (one, other) = (LockOwner::new(1), LockOwner::new(2));
    let is_held = |owner| table.is_held_by_another(owner, row(0));
    assert!(!is_held(None) && !is_held(Some(&one)));
    assert_eq!(table.acquire(&one, row(0), FOREVER), NOW);
    assert_eq!(table.acquire(&one, row(0), Duration::ZERO), ALREADY);
    assert_eq!(holder_of(&table, row(0)), Some(1));
    assert!(is_held(None) && is_held(Some(&other)) && !is_held(Some(&one)));
    assert!(!table.is_held_by_another(None, row(1)));
    let refused = LockFailure::Timeout { holder: 1, waited: Duration::ZERO };
    assert_eq!(table.acquire(&other, row(0), Duration::ZERO), Err(refused));
    table.release(&other, &[row(0)]);
    assert_eq!(holder_of(&table, row(0)), Some(1), "not the other's to release");
    table.release(&one, &[row(0), row(0), row(5)]);
    assert_eq!(holder_of(&table, row(0)), None);
    assert_eq!(table.acquire(&other, row(0), Duration::ZERO), NOW);
    let expected = LockStats { held: 1, ..LockStats::default() };
    assert_eq!(table.stats(), expected, "no thread waited");
}

#[test]
fn waiters_get_the_lock_in_the_order_in_which_they_came() {
    let (table, all) = transactions(9);
    assert_eq!(all[0].acquire(row(0)), NOW);
    for (before, one) in all[1..].iter().enumerate() {
        one.ask_as_waiter(row(0), before as u64 + 1);
    }
    for (at, one) in all.iter().enumerate() {
        one.release(&[row(0)]);
        let Some(next) = all.get(at + 1) else { break };
        assert_eq!(holder_of(&table, row(0)), Some(at as u64 + 1), "handed over, not freed");
        assert_eq!(next.answer(), NOW);
        assert!(all[at + 2..].iter().all(Transaction::is_waiting));
    }
    let stats = table.stats();
    assert_eq!((stats.waits, stats.timeouts, stats.deadlocks), (8, 0, 0));
    assert!(stats.wait_ns >= stats.wait_ns_max && stats.wait_ns_max > 0);
    assert_empty(&table);
}

#[test]
fn a_lock_that_was_handed_over_is_held_before_its_thread_wakes() {
    let (_, all) = transactions(3);
    all[0].acquire(row(0)).unwrap();
    all[1].ask_as_waiter(row(0), 1);
    all[0].release(&[row(0)]);
    // Whether or not the thread has noticed: no other overtakes it.
    all[2].ask(row(0), Duration::ZERO);
    assert!(matches!(all[2].answer(), Err(LockFailure::Timeout { holder: 1, .. })));
    assert_eq!(all[1].answer(), NOW);
    assert_eq!(all[1].acquire(row(0)), ALREADY);
}

#[test]
fn who_gives_up_leaves_the_queue_to_the_others() {
    let (table, all) = transactions(4);
    all[0].acquire(row(0)).unwrap();
    all[1].ask_as_waiter(row(0), 1);
    all[2].ask(row(0), Duration::from_millis(1));
    let Err(LockFailure::Timeout { holder: 0, waited }) = all[2].answer() else {
        panic!("no timeout");
    };
    assert!(waited > Duration::ZERO);
    all[3].ask_as_waiter(row(0), 2);
    all[0].release(&[row(0)]);
    assert_eq!(all[1].answer(), NOW);
    all[1].release(&[row(0)]);
    assert_eq!(all[3].answer(), NOW);
    all[3].release(&[row(0)]);
    assert_eq!((table.stats().timeouts, table.stats().waits), (1, 3));
    assert_empty(&table);
}

#[test]
fn an_unpark_from_elsewhere_ends_no_wait() {
    let table = Arc::new(LockTable::new());
    let holder = LockOwner::new(1);
    table.acquire(&holder, row(0), FOREVER).unwrap();
    let waiter = thread::spawn({
        let table = Arc::clone(&table);
        move || {
            thread::current().unpark();
            table.acquire(&LockOwner::new(2), row(0), FOREVER)
        }
    });
    wait_until_waiting(&table, 1);
    for _ in 0..20 {
        waiter.thread().unpark();
        thread::yield_now();
    }
    assert_eq!((holder_of(&table, row(0)), waiter.is_finished()), (Some(1), false));
    table.release(&holder, &[row(0)]);
    assert_eq!(waiter.join().unwrap(), NOW);
}

/// A release meets the end of a wait: either the waiter has the lock, or it is free.
#[test]
fn a_release_that_meets_the_end_of_a_wait_loses_nothing() {
    let (table, all) = transactions(2);
    let (mut granted, mut late) = (0_u64, 0);
    for round in 0..2000_u64 {
        all[0].acquire(row(0)).unwrap();
        all[1].ask(row(0), Duration::from_micros(20 + round % 100));
        wait_until("asked", || table.stats().waiting == 1 || table.stats().timeouts > late);
        for _ in 0..round % 64 * 20 {
            std::hint::spin_loop();
        }
        all[0].release(&[row(0)]);
        match all[1].answer() {
            Ok(how) => {
                assert_eq!((how, holder_of(&table, row(0))), (Grant::Now, Some(1)));
                granted += 1;
            }
            Err(LockFailure::Timeout { holder, .. }) => {
                assert_eq!((holder, holder_of(&table, row(0))), (0, None));
                late += 1;
            }
            Err(failure) => panic!("{failure}"),
        }
        all[1].release(&[row(0)]);
        assert_empty(&table);
    }
    eprintln!("{granted} granted, {late} timed out");
}

/// The promise of `is_held_by_another`, with a latch made of one atomic.
#[test]
fn a_lock_taken_before_the_page_was_latched_is_seen_under_the_latch() {
    struct Page {
        latch: AtomicBool,
        is_locked: AtomicBool,
    }
    impl Page {
        fn latched<T>(&self, within: impl FnOnce() -> T) -> T {
            while self.latch.swap(true, Ordering::Acquire) {
                thread::yield_now();
            }
            let result = within();
            self.latch.store(false, Ordering::Release);
            result
        }
    }
    let table = LockTable::new();
    let page = Page { latch: AtomicBool::new(false), is_locked: AtomicBool::new(false) };
    let seen = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let owner = LockOwner::new(1);
            let mut rounds = 0;
            while rounds < 20_000 || seen.load(Ordering::Relaxed) == 0 {
                table.acquire(&owner, row(0), Duration::ZERO).unwrap();
                page.latched(|| page.is_locked.store(true, Ordering::Relaxed));
                page.latched(|| page.is_locked.store(false, Ordering::Relaxed));
                table.release(&owner, &[row(0)]);
                rounds += 1;
            }
            page.latched(|| seen.store(u64::MAX, Ordering::Relaxed));
        });
        while seen.load(Ordering::Relaxed) != u64::MAX {
            page.latched(|| {
                if page.is_locked.load(Ordering::Relaxed) {
                    assert!(table.is_held_by_another(None, row(0)));
                    seen.fetch_max(1, Ordering::Relaxed);
                }
            });
        }
    });
}
