//! The registry of snapshots under a model checker that tries interleavings of its atomics, taking
//! them as sequentially consistent, which they are: `cargo test -p iostrata-engine --features
//! model`.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::thread;

use crate::version::registry::Registry;

const NUMBERS: usize = 4;

/// What commits, purge and readers share.
struct SharedState {
    registry: Registry,
    /// Commits that decided not to keep what they replaced.
    unkept: [AtomicBool; NUMBERS],
    /// Everything at or below it was dropped.
    dropped: AtomicU64,
}

impl SharedState {
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
    let state = Arc::new(SharedState {
        registry: Registry::new(0),
        unkept: std::array::from_fn(|_| AtomicBool::new(false)),
        dropped: AtomicU64::new(0),
    });
    let spawn = |work: fn(&SharedState)| {
        let state = Arc::clone(&state);
        thread::spawn(move || work(&state))
    };
    let threads = [
        spawn(|state| (0..2).for_each(|_| state.commit())),
        spawn(|state| (0..2).for_each(|round| state.read(round))),
        spawn(|state| state.read(7)),
        spawn(|state| {
            state.commit();
            state.purge();
        }),
        spawn(SharedState::purge),
    ];
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    assert_eq!((state.registry.oldest(), state.registry.open_now().0), (3, 0));
}

#[test]
fn no_snapshot_is_missed_by_chance() {
    shuttle::check_random(scenario, 100_000);
}

#[test]
fn no_snapshot_is_missed_with_few_switches() {
    shuttle::check_pct(scenario, 100_000, 4);
}
