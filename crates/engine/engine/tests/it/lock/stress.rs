//! Many threads, few locks, any order: exclusive, exact, and no thread is left waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use iostrata_engine::lock::*;

use crate::lock::support::*;

const THREADS: u64 = 64;
const LOCKS: usize = 10;
const ROUNDS: u64 = 150;

/// Numbers of splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) % limit
    }
}

#[derive(Default)]
struct Tally {
    counts: [u64; LOCKS],
    deadlocks: u64,
    timeouts: u64,
}

struct Playground {
    table: LockTable,
    /// Each guarded by its lock: read and written apart, so that two at once lose a count.
    counters: [AtomicU64; LOCKS],
}

impl Playground {
    /// One transaction: some locks in any order, all counters under them, release.
    fn transact(&self, owner: &LockOwner, random: &mut Random, patience: Duration, t: &mut Tally) {
        let mut held = Vec::new();
        for _ in 0..=random.below(4) {
            let number = random.below(LOCKS as u64);
            match self.table.acquire(owner, row(number), patience) {
                Ok(Grant::Now) => held.push(number),
                Ok(Grant::Already) => assert!(held.contains(&number)),
                Err(LockFailure::Deadlock { .. }) => {
                    t.deadlocks += 1;
                    break;
                }
                Err(LockFailure::Timeout { .. }) => {
                    t.timeouts += 1;
                    break;
                }
            }
            if random.below(4) == 0 {
                thread::yield_now();
            }
        }
        for number in held.iter().map(|number| *number as usize) {
            let counter = &self.counters[number];
            let count = counter.load(Ordering::Relaxed);
            if random.below(4) == 0 {
                thread::yield_now();
            }
            counter.store(count + 1, Ordering::Relaxed);
            t.counts[number] += 1;
        }
        let ids: Vec<LockId> = held.iter().map(|number| row(*number)).collect();
        self.table.release(owner, &ids);
    }
}

/// The sum of what the threads did; compared with the statistics of the table.
fn hammer(patience: Duration) -> Tally {
    let counters = [const { AtomicU64::new(0) }; LOCKS];
    let ground = Arc::new(Playground { table: LockTable::new(), counters });
    let (done, tallies) = channel();
    for number in 0..THREADS {
        let (ground, done) = (Arc::clone(&ground), done.clone());
        thread::spawn(move || {
            let (mut random, mut tally) = (Random(number), Tally::default());
            for round in 0..ROUNDS {
                let owner = LockOwner::new(number * ROUNDS + round);
                ground.transact(&owner, &mut random, patience, &mut tally);
            }
            done.send(tally).unwrap();
        });
    }
    let mut sum = Tally::default();
    for _ in 0..THREADS {
        let tally = tallies.recv_timeout(2 * HANGS).expect("a thread hangs or panicked");
        sum.deadlocks += tally.deadlocks;
        sum.timeouts += tally.timeouts;
        (0..LOCKS).for_each(|lock| sum.counts[lock] += tally.counts[lock]);
    }
    assert_eq!(ground.counters.each_ref().map(|one| one.load(Ordering::Relaxed)), sum.counts);
    let stats = ground.table.stats();
    assert_eq!((stats.deadlocks, stats.timeouts), (sum.deadlocks, sum.timeouts));
    assert_empty(&ground.table);
    eprintln!("{stats:?}");
    sum
}

#[test]
fn endless_patience_meets_deadlocks_and_no_timeout() {
    let sum = hammer(FOREVER);
    assert!(sum.deadlocks > 0);
    assert_eq!(sum.timeouts, 0);
}

#[test]
fn short_patience_meets_both() {
    let sum = hammer(Duration::from_micros(200));
    assert!(sum.timeouts > 0);
}
