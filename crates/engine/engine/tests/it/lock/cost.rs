//! The cost of an uncontended lock. Run alone: `IOSTRATA_COST=1 cargo test --release -p
//! iostrata-lock cost -- --nocapture`.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use iostrata_engine::lock::*;

use crate::lock::support::*;

const BATCHES: u64 = 100;
const ROUNDS: u64 = 40_000;

/// The least and the median of many batches: others may use the machine meanwhile.
fn timed(what: &str, mut step: impl FnMut(u64)) {
    let mut batch = |from: u64| {
        let start = Instant::now();
        (from..from + ROUNDS).for_each(&mut step);
        start.elapsed().as_nanos() as f64 / ROUNDS as f64
    };
    let mut ns: Vec<f64> = (0..BATCHES).map(|at| batch(at * ROUNDS)).collect();
    ns.sort_by(f64::total_cmp);
    eprintln!("{what}: least {:.1} ns, median {:.1}", ns[0], ns[ns.len() / 2]);
}

fn acquire_and_release(table: &LockTable, owner: &LockOwner, from: u64, round: u64) {
    let id = row(from + round % 10_000);
    black_box(table.acquire(owner, id, FOREVER)).unwrap();
    table.release(owner, &[id]);
}

#[test]
fn cost_of_a_lock() {
    if std::env::var_os("IOSTRATA_COST").is_none() {
        eprintln!("skipped: a measurement; set IOSTRATA_COST=1");
        return;
    }
    let (table, owner) = (LockTable::new(), LockOwner::new(0));
    timed("hash of a key of 8 bytes", |round| {
        black_box(row(black_box(round)));
    });
    timed("is it held, nothing is", |round| {
        black_box(table.is_held_by_another(Some(&owner), row(round % 10_000)));
    });
    timed("acquire, release, one thread", |round| acquire_and_release(&table, &owner, 0, round));
    let others: Vec<LockId> = (0..10_000).map(|number| row(1_000_000 + number)).collect();
    for id in &others {
        table.acquire(&owner, *id, FOREVER).unwrap();
    }
    timed("is it held, 10000 others are", |round| {
        black_box(table.is_held_by_another(Some(&owner), row(round % 10_000)));
    });
    timed("acquire, release, 10000 others held", |round| {
        acquire_and_release(&table, &owner, 0, round);
    });
    table.release(&owner, &others);
    let together = Barrier::new(2);
    thread::scope(|scope| {
        for number in [1, 2] {
            let (table, together) = (&table, &together);
            scope.spawn(move || {
                let owner = LockOwner::new(number);
                together.wait();
                timed("acquire, release, two threads", |round| {
                    acquire_and_release(table, &owner, number * 1_000_000, round);
                });
            });
        }
    });
}
