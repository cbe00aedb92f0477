//! A thousand threads on ten rows: nothing hangs, and every increment counts once.

use std::sync::atomic::{AtomicU64, Ordering};

use iostrata_engine::{Counter, Engine, EngineError, Isolation, Table, Transaction};

use crate::common::chance::Chance;
use crate::common::engine::How;
use crate::common::is_soak;
use crate::common::quiet::Watch;

const THREADS: u64 = 1_000;
const ROWS: u8 = 10;
/// Small: a thousand of them are at work.
const STACK_BYTES: usize = 256 << 10;

const LEVELS: [Isolation; 3] =
    [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Snapshot];

fn number(row: &[u8]) -> u64 {
    u64::from_le_bytes(row.try_into().unwrap())
}

/// Adds one to each of these rows, in this order.
fn add(t: &mut Transaction, table: &Table, rows: &[u8]) -> Result<(), EngineError> {
    for row in rows {
        let is_there = t.modify(table, &[*row], |value| {
            let next = number(value) + 1;
            value.copy_from_slice(&next.to_le_bytes());
        })?;
        assert!(is_there);
        std::thread::yield_now();
    }
    Ok(())
}

/// Counts what one thread has added to each row. No thread runs out of tries.
fn work(engine: &Engine, table: &Table, thread: u64, added: &[AtomicU64], watch: &Watch) {
    let mut chance = Chance::new(thread);
    for _ in 0..if is_soak() { 24 } else { 12 } {
        let mut rows: Vec<u8> = (0..ROWS).collect();
        for at in 0..3 {
            let other = chance.within(at, usize::from(ROWS) - 1);
            rows.swap(at, other);
        }
        rows.truncate(chance.within(1, 3));
        let ((), _ticket) =
            engine.transact_async(*chance.pick(&LEVELS), |t| add(t, table, &rows)).unwrap();
        for row in &rows {
            added[usize::from(*row)].fetch_add(1, Ordering::Relaxed);
        }
        watch.on(format!("nothing ended after a transaction of thread {thread}"));
    }
}

#[test]
fn a_thousand_threads_on_ten_rows_count_right() {
    let directory = tempfile::tempdir().unwrap();
    let how = How::with(&[("redo_log_capacity", "4M"), ("lock_wait_timeout", "600")]);
    let engine = Engine::open(directory.path(), how.settings()).unwrap();
    let table = engine.create_table("rows").unwrap();
    let mut batch = engine.batch();
    (0..ROWS).for_each(|row| batch.put(&table, &[row], &0u64.to_le_bytes()).unwrap());
    batch.commit().unwrap();
    let added: Vec<AtomicU64> = (0..ROWS).map(|_| AtomicU64::new(0)).collect();
    let watch = Watch::new();
    watch.on("a thousand threads".to_owned());
    std::thread::scope(|scope| {
        let (engine, table, added, watch) = (&engine, &table, &added[..], &watch);
        for thread in 0..THREADS {
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            builder.spawn_scoped(scope, move || work(engine, table, thread, added, watch)).unwrap();
        }
    });
    let is_counted = |table: &Table| {
        for (row, added) in (0..).zip(&added) {
            let found = number(&table.get(&[row]).unwrap().unwrap());
            assert_eq!(found, added.load(Ordering::Relaxed), "row {row}");
        }
    };
    is_counted(&table);
    let counters = engine.counters();
    assert!(counters[Counter::LockDeadlocks] > 0, "no deadlock");
    assert_eq!((counters[Counter::RowLocks], counters[Counter::RowLockCurrentWaits]), (0, 0));
    assert_eq!(counters[Counter::Snapshots], 0);
    engine.close().unwrap();
    let engine = Engine::open(directory.path(), how.settings()).unwrap();
    is_counted(&engine.table("rows").unwrap().unwrap());
    engine.close().unwrap();
}
