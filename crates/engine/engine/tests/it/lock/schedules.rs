//! Interleavings that a model checker tries: some thousands at random, some with few switches at
//! the worst places. `cargo test -p iostrata-lock --features model`.
//!
//! It counts a state in which all threads sleep as a failure, wakes sleepers for no reason, and
//! lets a wait with an end time out at any moment. It does not reorder memory accesses.

use std::collections::HashMap;
use std::time::Duration;

use iostrata_engine::lock::*;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

const FOREVER: Duration = Duration::MAX;
/// Ends whenever the model checker wants.
const SOMETIME: Duration = Duration::from_secs(1);
const ROUNDS: usize = 5_000;

fn row(number: u64) -> LockId {
    LockId::of(1, &number.to_be_bytes())
}

fn explore(test: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(test.clone(), ROUNDS);
    shuttle::check_pct(test, ROUNDS, 3);
}

/// What the transactions of one run share.
#[derive(Default)]
struct Ground {
    table: LockTable,
    /// Read and written apart: two holders at once lose a count.
    counters: Mutex<HashMap<u64, Arc<AtomicU64>>>,
    counted: AtomicU64,
    deadlocks: AtomicU64,
}

impl Ground {
    fn counter(&self, number: u64) -> Arc<AtomicU64> {
        Arc::clone(self.counters.lock().unwrap().entry(number).or_default())
    }

    /// Takes the locks in this order and counts under each; releases all, whatever happens.
    fn transact(&self, owner: u64, rows: &[u64], patience: Duration) {
        let owner = LockOwner::new(owner);
        let mut held = Vec::new();
        for number in rows {
            match self.table.acquire(&owner, row(*number), patience) {
                Ok(Grant::Now) => held.push(row(*number)),
                Ok(Grant::Already) => panic!("{number} twice"),
                Err(LockFailure::Deadlock { .. }) => {
                    self.deadlocks.fetch_add(1, Ordering::SeqCst);
                    break;
                }
                Err(LockFailure::Timeout { .. }) => {
                    assert!(patience < FOREVER);
                    break;
                }
            }
            let counter = self.counter(*number);
            let count = counter.load(Ordering::SeqCst);
            counter.store(count + 1, Ordering::SeqCst);
            self.counted.fetch_add(1, Ordering::SeqCst);
        }
        self.table.release(&owner, &held);
    }

    fn deadlocks(&self) -> u64 {
        self.deadlocks.load(Ordering::SeqCst)
    }
}

/// One thread per transaction; afterwards nothing is held, and every count is there.
fn together(rows: &'static [&'static [u64]], patience: Duration) -> Arc<Ground> {
    let ground = Arc::new(Ground::default());
    let start = |(number, rows): (u64, &'static &'static [u64])| {
        let ground = Arc::clone(&ground);
        thread::spawn(move || ground.transact(number, rows, patience))
    };
    let threads: Vec<_> = (0..).zip(rows).map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let stats = ground.table.stats();
    assert_eq!((stats.held, stats.waiting, stats.deadlocks), (0, 0, ground.deadlocks()));
    let counters = ground.counters.lock().unwrap();
    let sum: u64 = counters.values().map(|one| one.load(Ordering::SeqCst)).sum();
    assert_eq!(sum, ground.counted.load(Ordering::SeqCst));
    drop(counters);
    ground
}

#[test]
fn one_lock_goes_from_hand_to_hand() {
    explore(|| {
        assert_eq!(together(&[&[0], &[0], &[0], &[0]], FOREVER).deadlocks(), 0);
    });
}

#[test]
fn one_lock_goes_from_hand_to_hand_while_some_give_up() {
    explore(|| {
        assert_eq!(together(&[&[0], &[0], &[0], &[0]], SOMETIME).deadlocks(), 0);
    });
}

#[test]
fn the_same_order_everywhere_makes_no_deadlock() {
    explore(|| {
        assert_eq!(together(&[&[0, 1, 2], &[1, 2], &[0, 2], &[0, 1]], FOREVER).deadlocks(), 0);
    });
    explore(|| {
        assert_eq!(together(&[&[0, 1, 2], &[1, 2], &[0, 2], &[0, 1]], SOMETIME).deadlocks(), 0);
    });
}

#[test]
fn a_cycle_of_two_or_three_has_one_victim() {
    explore(|| {
        assert!(together(&[&[0, 1], &[1, 0]], FOREVER).deadlocks() <= 1);
    });
    explore(|| {
        assert!(together(&[&[0, 1], &[1, 2], &[2, 0]], FOREVER).deadlocks() <= 1);
    });
}

#[test]
fn cycles_that_overlap_leave_no_waiter() {
    explore(|| drop(together(&[&[0, 1], &[1, 0], &[1, 2, 0], &[2, 0, 1]], FOREVER)));
    explore(|| drop(together(&[&[0, 1], &[1, 0], &[1, 2, 0], &[2, 0, 1]], SOMETIME)));
}

/// 1 may be waiting for the row of 0 when that is handed over. Then 0 waits for 1, which waits for
/// nothing any more.
#[test]
fn who_was_handed_a_lock_is_in_no_cycle() {
    explore(|| {
        let ground = Arc::new(Ground::default());
        let zero = LockOwner::new(0);
        ground.table.acquire(&zero, row(0), FOREVER).unwrap();
        let other = thread::spawn({
            let ground = Arc::clone(&ground);
            move || ground.transact(1, &[1, 0], FOREVER)
        });
        ground.table.release(&zero, &[row(0)]);
        // The other may be waiting for row 0 until now, never after this.
        ground.table.acquire(&zero, row(1), FOREVER).unwrap();
        ground.table.release(&zero, &[row(1)]);
        other.join().unwrap();
        assert_eq!(ground.deadlocks(), 0);
    });
}

#[test]
fn a_lock_taken_before_the_page_was_latched_is_seen_under_the_latch() {
    explore(|| {
        let shared = Arc::new((LockTable::new(), Mutex::new(false)));
        let writer = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (table, page) = &*shared;
                let owner = LockOwner::new(1);
                table.acquire(&owner, row(0), FOREVER).unwrap();
                *page.lock().unwrap() = true;
                *page.lock().unwrap() = false;
                table.release(&owner, &[row(0)]);
            }
        });
        let (table, page) = &*shared;
        let is_locked = page.lock().unwrap();
        assert!(!*is_locked || table.is_held_by_another(None, row(0)));
        drop(is_locked);
        writer.join().unwrap();
    });
}
