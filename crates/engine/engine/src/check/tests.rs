//! What a check says of versions and tombstones.

use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_io::disk::MemDisk;

use crate::mtr::Mtr;
use crate::page::layout::{
    CELL_AT_FLAGS, CELL_HEADER_BYTES, FLAG_TOMBSTONE, FLAG_VERSIONED, VERSION_BYTES,
};
use crate::page::{Record, Version};
use crate::tests::{open, small};
use crate::{Background, CheckReport, Disks, Engine, Isolation, Table};

/// Puts one cell into the root of an empty table.
fn lay(engine: &Engine, table: &Table, flags: u8, value: &[u8]) {
    let storage = &engine.parts().storage;
    let mut mtr = Mtr::begin(storage);
    let root = mtr.latch(storage.pool.pin(table.tree().root).unwrap());
    mtr.change(root, &Record::Insert { slot: 0, flags, key: b"the key", value }).unwrap();
    mtr.commit();
}

/// Changes the flags of that cell behind the back of everybody.
fn set_flags(engine: &Engine, table: &Table, flags: u8) {
    let pin = engine.parts().storage.pool.pin(table.tree().root).unwrap();
    let mut page = pin.exclusive();
    let key = b"the key";
    let at = page.windows(key.len()).rposition(|bytes| bytes == key).unwrap();
    page[at - CELL_HEADER_BYTES + CELL_AT_FLAGS] = flags;
}

fn report(engine: &Engine, table: &Table) -> (u64, u64, CheckReport) {
    let report = engine.check().unwrap();
    let found = report.tables.iter().find(|found| found.name == table.name()).unwrap();
    (found.rows, found.tombstones, report.clone())
}

#[test]
fn rows_and_tombstones_are_counted_apart() {
    let engine = open(&MemDisk::new());
    let table = engine.create_table("t").unwrap();
    let write = |key: &[u8], value: Option<&[u8]>| {
        let mut batch = engine.batch();
        match value {
            Some(value) => batch.put(&table, key, value).unwrap(),
            None => batch.delete(&table, key).unwrap(),
        }
        batch.commit().unwrap();
    };
    for key in [b"a", b"b", b"c"] {
        write(key, Some(b"1"));
    }
    let reader = engine.begin(Isolation::Snapshot).unwrap();
    write(b"a", None);
    write(b"b", Some(b"2"));
    let (rows, tombstones, found) = report(&engine, &table);
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!((rows, tombstones), (2, 1));
    drop(reader);
    engine.step(0).unwrap();
    let (rows, tombstones, _) = report(&engine, &table);
    assert_eq!((rows, tombstones), (2, 0));
}

#[test]
fn a_version_beyond_the_redo_is_a_problem() {
    for flags in [FLAG_VERSIONED, FLAG_VERSIONED | FLAG_TOMBSTONE] {
        let engine = open(&MemDisk::new());
        let table = engine.create_table("t").unwrap();
        let number = engine.parts().storage.redo.lsn().0 + 100_000;
        lay(&engine, &table, flags, &Version { number, older: 0 }.to_bytes());
        let (_, _, found) = report(&engine, &table);
        assert_eq!(found.problems_total, 1, "{:?}", found.problems);
        assert_eq!(found.problems[0].page, table.tree().root.0);
        assert!(found.problems[0].what.contains(&number.to_string()), "{:?}", found.problems);
    }
}

#[test]
fn a_tombstone_with_more_or_less_than_a_version_is_a_problem() {
    let version = Version { number: 1, older: 0 }.to_bytes();
    for (flags, len, damaged) in [
        (FLAG_VERSIONED, VERSION_BYTES + 1, FLAG_VERSIONED | FLAG_TOMBSTONE),
        (FLAG_VERSIONED | FLAG_TOMBSTONE, VERSION_BYTES, FLAG_TOMBSTONE),
        (0, VERSION_BYTES - 1, FLAG_VERSIONED),
        (0, 0, FLAG_TOMBSTONE),
    ] {
        let engine = open(&MemDisk::new());
        let table = engine.create_table("t").unwrap();
        let value = [&[7; 1][..], &version].concat();
        lay(&engine, &table, flags, &value[value.len() - len..]);
        assert!(report(&engine, &table).2.is_clean());
        set_flags(&engine, &table, damaged);
        let (_, _, found) = report(&engine, &table);
        assert!(found.problems_total > 0, "{flags} became {damaged}");
        assert_eq!(found.problems[0].page, table.tree().root.0);
    }
}

#[test]
fn a_check_beside_purge_and_writers_finds_nothing() {
    let disks = Disks::one(MemDisk::new());
    let engine = Engine::open_on(disks, small(), Background::Threads).unwrap();
    let table = engine.create_table("t").unwrap();
    table.bulk_load((0..4_000_u32).map(|row| (row.to_be_bytes(), [7; 90]))).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (engine, is_over) = (&engine, &is_over);
        // Tables come and go, too.
        scope.spawn(move || {
            while !is_over.load(Ordering::Acquire) {
                let other = engine.create_table("other").unwrap();
                other.bulk_load((0..300_u32).map(|row| (row.to_be_bytes(), [1; 60]))).unwrap();
                engine.drop_table("other").unwrap();
            }
        });
        for round in 0..4_u32 {
            let reader = engine.begin(Isolation::Snapshot).unwrap();
            for row in (round..4_000).step_by(4) {
                let mut batch = engine.batch();
                batch.delete(&table, &row.to_be_bytes()).unwrap();
                let _unsettled = batch.commit_async().unwrap();
            }
            // From here on purge takes the rows away and joins their leaves.
            drop(reader);
            loop {
                let report = engine.check().unwrap();
                if !report.is_clean() {
                    is_over.store(true, Ordering::Release);
                }
                assert!(report.is_clean(), "{round}: {:?}", report.problems);
                let left = report.tables.iter().find(|found| found.name == "t").unwrap();
                if left.tombstones == 0 {
                    break;
                }
            }
        }
        is_over.store(true, Ordering::Release);
    });
    assert_eq!(table.iter().count(), 0);
    engine.close().unwrap();
}
