//! The registry of snapshots under a model checker that tries interleavings of its atomics, taking
//! them as sequentially consistent, which they are: `cargo test -p iostrata-engine --features
//! model`.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::thread;

use crate::version::registry::Registry;

const NUMBERS: usize = 4;

/// What commits and purge did.
struct Done {
    registry: Registry,
    /// Commits that decided not to keep what they replaced.
    unkept: [AtomicBool; NUMBERS],
    /// Everything at or below it was dropped.
    dropped: AtomicU64,
}

impl Done {
    fn commit(&self) {
        let number = self.registry.tick();
        if !self.registry.is_any_below(number) {
            self.unkept[number as usize].store(true, Ordering::SeqCst);
        }
    }

    fn purge(&self) {
        let oldest = self.registry.oldest();
        self.dropped.fetch_max(oldest, Ordering::SeqCst);
    }

    fn read(&self, transaction: u64) {
        let snapshot = self.registry.open(transaction);
        thread::yield_now();
        for number in snapshot.at() + 1..NUMBERS as u64 {
            let is_unkept = self.unkept[number as usize].load(Ordering::SeqCst);
            assert!(!is_unkept, "snapshot {} needs what {number} replaced", snapshot.at());
        }
        let dropped = self.dropped.load(Ordering::SeqCst);
        assert!(dropped <= snapshot.at(), "snapshot {} needs what was dropped", snapshot.at());
    }
}

fn scenario() {
    let done = Arc::new(Done {
        registry: Registry::new(0),
        unkept: std::array::from_fn(|_| AtomicBool::new(false)),
        dropped: AtomicU64::new(0),
    });
    let spawn = |work: fn(&Done)| {
        let done = Arc::clone(&done);
        thread::spawn(move || work(&done))
    };
    let threads = [
        spawn(|done| (0..2).for_each(|_| done.commit())),
        spawn(|done| (0..2).for_each(|round| done.read(round))),
        spawn(|done| done.read(7)),
        spawn(|done| {
            done.commit();
            done.purge();
        }),
        spawn(Done::purge),
    ];
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    assert_eq!((done.registry.oldest(), done.registry.open_now().0), (3, 0));
}

#[test]
fn no_snapshot_is_missed_by_chance() {
    shuttle::check_random(scenario, 100_000);
}

#[test]
fn no_snapshot_is_missed_with_few_switches() {
    shuttle::check_pct(scenario, 100_000, 4);
}
