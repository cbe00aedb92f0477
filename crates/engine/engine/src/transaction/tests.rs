//! Transactions one call at a time.

use std::time::Duration;

use iostrata_io::disk::MemDisk;

use crate::tests::open;
use crate::{
    Direction, Engine, EngineError, Isolation, Table, Transaction, TransactionError,
    TransactionOptions,
};

const LEVELS: [Isolation; 3] =
    [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Snapshot];

pub(crate) fn engine() -> (Engine, Table) {
    let engine = open(&MemDisk::new());
    let table = engine.create_table("t").unwrap();
    let mut t = engine.begin(Isolation::default()).unwrap();
    for key in [b"a", b"b", b"c"] {
        t.put(&table, key, b"1").unwrap();
    }
    t.commit().unwrap();
    (engine, table)
}

/// One that does not wait for locks.
pub(crate) fn begin(engine: &Engine, isolation: Isolation) -> Transaction {
    let lock_wait_timeout = Some(Duration::ZERO);
    engine.begin(TransactionOptions { isolation, lock_wait_timeout, ..Default::default() }).unwrap()
}

pub(crate) fn put(engine: &Engine, table: &Table, key: &[u8], value: &[u8]) {
    let mut t = begin(engine, Isolation::ReadCommitted);
    t.put(table, key, value).unwrap();
    t.commit().unwrap();
}

pub(crate) fn delete(engine: &Engine, table: &Table, key: &[u8]) {
    let mut t = begin(engine, Isolation::ReadCommitted);
    assert!(t.delete(table, key).unwrap());
    t.commit().unwrap();
}

/// What a transaction sees, as text.
pub(crate) fn rows(t: &mut Transaction, table: &Table) -> String {
    let of = |direction, t: &mut Transaction| {
        let mut cursor = t.cursor(table, .., direction).unwrap();
        let mut all = Vec::new();
        while let Some((key, value)) = cursor.next_row().unwrap() {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            all.push(format!("{}={}", text(key), text(value)));
        }
        all
    };
    let forward = of(Direction::Forward, t);
    let mut backward = of(Direction::Backward, t);
    backward.reverse();
    assert_eq!(forward, backward);
    forward.join(" ")
}

fn transaction_error(error: EngineError) -> TransactionError {
    match error {
        EngineError::Transaction(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn own_writes_are_seen_by_oneself_alone_and_by_all_after_commit() {
    for level in LEVELS {
        let (engine, table) = engine();
        let (mut t, mut other) = (begin(&engine, level), begin(&engine, level));
        t.put(&table, b"b", b"2").unwrap();
        assert!(t.delete(&table, b"c").unwrap() && !t.delete(&table, b"c").unwrap());
        t.insert(&table, b"d", b"4").unwrap();
        assert!(t.modify(&table, b"b", |value| value.push(b'!')).unwrap());
        assert!(!t.modify(&table, b"c", |_| panic!("it was deleted")).unwrap());
        assert_eq!(rows(&mut t, &table), "a=1 b=2! d=4");
        assert_eq!(t.get(&table, b"b").unwrap().as_deref(), Some(&b"2!"[..]));
        assert_eq!(t.get(&table, b"c").unwrap(), None);
        assert_eq!(rows(&mut other, &table), "a=1 b=1 c=1");
        t.commit().unwrap();
        let now = if level == Isolation::ReadCommitted { "a=1 b=2! d=4" } else { "a=1 b=1 c=1" };
        assert_eq!(rows(&mut other, &table), now, "{level:?}");
        assert_eq!(rows(&mut begin(&engine, level), &table), "a=1 b=2! d=4");
        drop(other);
        engine.close().unwrap();
    }
}

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let (engine, table) = engine();
    let mut t = begin(&engine, Isolation::default());
    t.put(&table, b"a", b"2").unwrap();
    t.insert(&table, b"z", b"2").unwrap();
    drop(t);
    let mut t = begin(&engine, Isolation::default());
    assert_eq!(rows(&mut t, &table), "a=1 b=1 c=1");
    t.put(&table, b"a", b"3").unwrap();
    t.rollback();
    assert_eq!(engine.counters()[crate::Counter::TrxRollbacks], 2);
    assert_eq!(engine.counters()[crate::Counter::RowLocks], 0);
}

#[test]
fn savepoints_take_back_what_came_after() {
    let (engine, table) = engine();
    let mut t = begin(&engine, Isolation::default());
    t.put(&table, b"a", b"2").unwrap();
    let first = t.savepoint();
    t.put(&table, b"a", b"3").unwrap();
    t.delete(&table, b"b").unwrap();
    let second = t.savepoint();
    t.insert(&table, b"b", b"4").unwrap();
    assert_eq!(rows(&mut t, &table), "a=3 b=4 c=1");
    t.rollback_to(second).unwrap();
    assert_eq!(rows(&mut t, &table), "a=3 c=1");
    t.rollback_to(first).unwrap();
    assert_eq!(rows(&mut t, &table), "a=2 b=1 c=1");
    let gone = transaction_error(t.rollback_to(second).unwrap_err());
    assert_eq!(gone, TransactionError::NoSavepoint { transaction: t.number() });
    // Locks are kept, as in InnoDB.
    let mut other = begin(&engine, Isolation::default());
    assert!(other.get_for_update(&table, b"b").is_err());
    t.put(&table, b"c", b"5").unwrap();
    t.commit().unwrap();
    assert_eq!(rows(&mut begin(&engine, Isolation::default()), &table), "a=2 b=1 c=5");
}

#[test]
fn a_snapshot_reads_versions_that_left_the_tree() {
    let (engine, table) = engine();
    let mut old = begin(&engine, Isolation::Snapshot);
    put(&engine, &table, b"a", b"2");
    delete(&engine, &table, b"b");
    put(&engine, &table, b"d", b"1");
    let mut middle = begin(&engine, Isolation::Snapshot);
    put(&engine, &table, b"a", b"3");
    put(&engine, &table, b"b", b"3");
    delete(&engine, &table, b"c");
    for _ in 0..3 {
        engine.step(0).unwrap();
        assert_eq!(rows(&mut old, &table), "a=1 b=1 c=1");
        assert_eq!(rows(&mut middle, &table), "a=2 c=1 d=1");
        assert_eq!(old.get(&table, b"b").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(middle.get(&table, b"b").unwrap(), None);
        assert_eq!(rows(&mut begin(&engine, Isolation::Snapshot), &table), "a=3 b=3 d=1");
    }
    drop((old, middle));
    engine.step(0).unwrap();
    assert_eq!(engine.counters()[crate::Counter::HistoryListLength], 0);
    assert!(engine.check().unwrap().problems.is_empty());
    assert_eq!(rows(&mut begin(&engine, Isolation::Snapshot), &table), "a=3 b=3 d=1");
}

#[test]
fn batches_are_seen_by_snapshots_as_transactions_are() {
    let (engine, table) = engine();
    let mut old = begin(&engine, Isolation::Snapshot);
    let mut batch = engine.batch();
    batch.put(&table, b"a", b"2").unwrap();
    batch.delete(&table, b"b").unwrap();
    batch.commit().unwrap();
    assert_eq!(rows(&mut old, &table), "a=1 b=1 c=1");
    assert_eq!(rows(&mut begin(&engine, Isolation::Snapshot), &table), "a=2 c=1");
}

#[test]
fn a_batch_waits_for_locked_rows() {
    let (engine, table) = engine();
    engine.set("lock_wait_timeout", "0").unwrap();
    let mut t = begin(&engine, Isolation::default());
    t.get_for_update(&table, b"a").unwrap();
    let mut batch = engine.batch();
    batch.put(&table, b"a", b"2").unwrap();
    batch.put(&table, b"b", b"2").unwrap();
    let refused = transaction_error(batch.commit().unwrap_err());
    assert!(
        matches!(refused, TransactionError::LockTimeout { holder, .. } if holder == t.number())
    );
    assert_eq!(rows(&mut t, &table), "a=1 b=1 c=1");
    drop(t);
    let mut batch = engine.batch();
    batch.put(&table, b"a", b"2").unwrap();
    batch.commit().unwrap();
    assert_eq!(engine.counters()[crate::Counter::RowLocks], 0);
}

#[test]
fn the_first_updater_wins_at_level_snapshot() {
    for write in [
        (|t, table| t.put(table, b"a", b"9")) as fn(&mut Transaction, &Table) -> _,
        |t, table| t.insert(table, b"b", b"9"),
        |t, table| t.delete(table, b"a").map(drop),
        |t, table| t.modify(table, b"a", |_| {}).map(drop),
        |t, table| t.get_for_update(table, b"a").map(drop),
    ] {
        let (engine, table) = engine();
        let mut t = begin(&engine, Isolation::Snapshot);
        put(&engine, &table, b"a", b"2");
        delete(&engine, &table, b"b");
        let conflict = transaction_error(write(&mut t, &table).unwrap_err());
        assert!(matches!(conflict, TransactionError::Conflict { .. }), "{conflict}");
        let over = transaction_error(t.get(&table, b"c").unwrap_err());
        assert_eq!(over, TransactionError::Finished { transaction: t.number() });
        assert!(t.commit().is_err());
        // The others go on from the newest row.
        let mut t = begin(&engine, Isolation::RepeatableRead);
        t.get(&table, b"a").unwrap();
        put(&engine, &table, b"a", b"3");
        assert_eq!(t.get(&table, b"a").unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(t.get_for_update(&table, b"a").unwrap().as_deref(), Some(&b"3"[..]));
    }
}

#[test]
fn inserting_what_is_there_is_refused_and_changes_nothing() {
    let (engine, table) = engine();
    let mut t = begin(&engine, Isolation::default());
    t.put(&table, b"b", b"2").unwrap();
    let exists = transaction_error(t.insert(&table, b"a", b"9").unwrap_err());
    assert!(matches!(exists, TransactionError::Exists { .. }));
    assert!(exists.to_string().contains("\"t\"") && exists.to_string().contains(" a "), "{exists}");
    assert!(t.insert(&table, b"b", b"9").is_err(), "own rows are there, too");
    assert_eq!(rows(&mut t, &table), "a=1 b=2 c=1");
    t.commit().unwrap();
}

#[test]
fn a_read_only_transaction_takes_no_lock_and_appends_nothing() {
    let (engine, table) = engine();
    let options = TransactionOptions { is_read_only: true, ..Default::default() };
    let mut t = engine.begin(options).unwrap();
    let end = engine.parts().storage.redo.lsn();
    assert_eq!(rows(&mut t, &table), "a=1 b=1 c=1");
    let read_only = TransactionError::ReadOnly { transaction: t.number() };
    assert_eq!(transaction_error(t.put(&table, b"a", b"2").unwrap_err()), read_only);
    assert_eq!(transaction_error(t.get_for_update(&table, b"a").unwrap_err()), read_only);
    assert_eq!(engine.counters()[crate::Counter::RowLocks], 0);
    t.commit().unwrap();
    assert_eq!(engine.parts().storage.redo.lsn(), end);
}

#[test]
fn a_readers_ticket_waits_for_what_it_has_read() {
    let (engine, table) = engine();
    let mut t = begin(&engine, Isolation::default());
    t.put(&table, b"a", b"2").unwrap();
    let written = t.commit_async().unwrap();
    assert!(!written.is_durable());
    for level in LEVELS {
        for scans in [false, true] {
            let mut reader = begin(&engine, level);
            if scans {
                rows(&mut reader, &table);
            } else {
                reader.get(&table, b"a").unwrap();
            }
            let read = reader.commit_async().unwrap();
            assert!(read.lsn() >= written.lsn(), "{level:?}");
        }
    }
    let reader = begin(&engine, Isolation::default());
    reader.get(&table, b"a").unwrap();
    reader.commit().unwrap();
    assert!(written.is_durable());
}

#[test]
fn the_first_row_of_a_range_is_the_newest_and_locked() {
    let (engine, table) = engine();
    let mut t = begin(&engine, Isolation::default());
    rows(&mut t, &table);
    delete(&engine, &table, b"a");
    t.delete(&table, b"b").unwrap();
    let (key, value) = t.first_for_update(&table, ..).unwrap().unwrap();
    assert_eq!((&key[..], &value[..]), (&b"c"[..], &b"1"[..]));
    assert_eq!(t.first_for_update(&table, &b"d"[..]..).unwrap(), None);
    let mut other = begin(&engine, Isolation::default());
    assert!(other.put(&table, b"c", b"2").is_err());
    t.commit().unwrap();
    other.put(&table, b"c", b"2").unwrap();
}

#[test]
fn transact_tries_again_with_the_contested_rows_locked_first() {
    let (engine, table) = engine();
    let mut tries = 0;
    let seen = engine
        .transact(Isolation::Snapshot, |t| {
            tries += 1;
            let is_locked = |key: &[u8]| {
                begin(&engine, Isolation::default()).get_for_update(&table, key).is_err()
            };
            assert_eq!((is_locked(b"a"), is_locked(b"b")), (tries > 1, tries > 2));
            let seen = t.get(&table, b"a")?;
            if let Some(key) = [b"a", b"b"].get(tries - 1) {
                put(&engine, &table, *key, tries.to_string().as_bytes());
            }
            t.put(&table, b"a", b"done")?;
            t.put(&table, b"b", b"done")?;
            Ok::<_, EngineError>(seen)
        })
        .unwrap();
    assert_eq!((tries, seen.as_deref()), (3, Some(&b"1"[..])));
    assert_eq!(table.get(b"a").unwrap().as_deref(), Some(&b"done"[..]));
    assert_eq!(engine.counters()[crate::Counter::RowLocks], 0);
}

/// A row that stays locked for too long is not waited for twice: the body returns the error.
#[test]
fn transact_goes_on_without_a_contested_row_that_stays_locked() {
    let (engine, table) = engine();
    let mut holder = None;
    let options = TransactionOptions {
        isolation: Isolation::Snapshot,
        lock_wait_timeout: Some(Duration::ZERO),
        ..Default::default()
    };
    let run = engine.transact(options, |t| {
        if holder.is_some() {
            return t.put(&table, b"b", b"alone");
        }
        put(&engine, &table, b"a", b"2");
        let conflict = t.put(&table, b"a", b"3");
        let mut other = begin(&engine, Isolation::default());
        other.get_for_update(&table, b"a").unwrap();
        holder = Some(other);
        conflict
    });
    run.unwrap();
    drop(holder);
    assert_eq!(rows(&mut begin(&engine, Isolation::default()), &table), "a=2 b=alone c=1");
    assert_eq!(engine.counters()[crate::Counter::RowLocks], 0);
}

#[test]
fn the_walk_takes_no_tombstone_that_a_snapshot_needs() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    let table = engine.create_table("t").unwrap();
    put(&engine, &table, b"a", b"1");
    put(&engine, &table, b"b", b"1");
    std::mem::forget(engine);
    let engine = open(&disk);
    let table = engine.table("t").unwrap().unwrap();
    let mut reader = begin(&engine, Isolation::Snapshot);
    delete(&engine, &table, b"a");
    for _ in 0..4 {
        engine.parts().purger.step().unwrap();
        assert_eq!(rows(&mut reader, &table), "a=1 b=1");
    }
    drop(reader);
    while engine.parts().purger.step().unwrap() {}
    assert!(!engine.parts().purger.has_history());
    assert_eq!(engine.counters()[crate::Counter::RowsPurged], 1);
    engine.close().unwrap();
}

/// Deleting what is deleted already frees nothing that the same batch could use.
#[test]
fn a_tombstone_that_is_deleted_again_makes_no_room() {
    let (engine, table) = engine();
    let long = [b'0'; 200];
    put(&engine, &table, &long, b"1");
    let reader = begin(&engine, Isolation::Snapshot);
    delete(&engine, &table, &long);
    drop(reader);
    put(&engine, &table, b"d", &[7; 1_500]);
    put(&engine, &table, b"e", &[7; 800]);
    let free = {
        let page = engine.parts().storage.pool.pin(table.tree().root).unwrap().shared();
        crate::page::PageView::new(&page).free_bytes()
    };
    let mut batch = engine.batch();
    batch.delete(&table, &long).unwrap();
    batch.put(&table, b"z", &vec![7; free]).unwrap();
    batch.commit().unwrap();
    assert!(engine.check().unwrap().is_clean());
    assert!(table.get(b"z").unwrap().is_some() && table.get(&long).unwrap().is_none());
}
