//! The engine as a whole on a memory disk.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_innodb::{PageNo, TableId};
use iostrata_io::disk::MemDisk;

use crate::catalogue::{BadEntry, Entry, IndexField};
use crate::cursor::TreeCursor;
use crate::mtr::Mtr;
use crate::page::layout::{FLAG_TOMBSTONE, FLAG_VERSIONED};
use crate::page::{Record, Version};
use crate::pages::SuperField;
use crate::read::NEWEST;
use crate::{
    Background, Counter, Direction, Disks, Engine, EngineError, OpenError, RequestError, Settings,
    Table, TableError,
};

pub(crate) fn small() -> Settings {
    let mut settings = Settings::default();
    for (name, value) in [
        ("page_size", "4K"),
        ("buffer_pool_size", "256K"),
        ("redo_log_capacity", "64K"),
        ("log_buffer_size", "64K"),
        ("autoextend_increment", "64K"),
        ("log_write_ahead_size", "512"),
        ("doublewrite_pages", "16"),
    ] {
        settings.set(name, value).unwrap();
    }
    settings
}

pub(crate) fn open(disk: &MemDisk) -> Engine {
    Engine::open_on(Disks::one(disk.clone()), small(), Background::Manual).unwrap()
}

#[test]
fn rows_are_there_after_a_clean_close() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    let table = engine.create_table("t").unwrap();
    let mut model = BTreeMap::new();
    for i in 0..5000_u32 {
        let key = (i.wrapping_mul(2_654_435_761)).to_be_bytes();
        let value = vec![i as u8; (i % 90) as usize];
        let mut batch = engine.batch();
        batch.put(&table, &key, &value).unwrap();
        batch.commit().unwrap();
        model.insert(key, value);
    }
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    engine.close().unwrap();
    let engine = open(&disk);
    assert!(engine.recovery().was_clean);
    let table = engine.table("t").unwrap().unwrap();
    let mut rows = table.cursor(.., Direction::Forward);
    for (key, value) in &model {
        assert_eq!(rows.next_row().unwrap(), Some((&key[..], &value[..])));
    }
    assert!(rows.next_row().unwrap().is_none());
    let mut rows = table.cursor(.., Direction::Backward);
    for (key, value) in model.iter().rev() {
        assert_eq!(rows.next_row().unwrap(), Some((&key[..], &value[..])));
    }
}

#[test]
fn a_log_that_shrinks_under_load_refuses_what_is_too_large_for_it() {
    let mut settings = small();
    for (name, value) in [("redo_log_capacity", "16M"), ("log_buffer_size", "1M")] {
        settings.set(name, value).unwrap();
    }
    settings.set("buffer_pool_size", "1M").unwrap();
    let disk = Disks::one(MemDisk::new());
    let engine = Engine::open_on(disk, settings, Background::Threads).unwrap();
    let table = engine.create_table("t").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3_u8 {
            let (engine, table, is_over) = (&engine, &table, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let mut batch = engine.batch();
                    let mut rows = 0..10;
                    let put =
                        rows.try_for_each(|row| batch.put(table, &[thread, row], &[row; 1400]));
                    match put.and_then(|()| batch.commit_async()) {
                        Ok(_unsettled) => {}
                        Err(error) => {
                            assert!(
                                matches!(
                                    error,
                                    EngineError::Request(RequestError::BatchTooLarge { .. })
                                ),
                                "{error}"
                            );
                        }
                    }
                }
            });
        }
        for capacity in ["64K", "16M", "64K", "4M", "64K"].repeat(6) {
            engine.set("redo_log_capacity", capacity).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(engine.check().unwrap().is_clean());
    engine.close().unwrap();
}

#[test]
fn handles_of_a_dropped_table_are_refused() {
    let engine = open(&MemDisk::new());
    let table = engine.create_table("t").unwrap();
    let mut batch = engine.batch();
    batch.put(&table, b"k", b"v").unwrap();
    engine.drop_table("t").unwrap();
    assert!(matches!(batch.commit(), Err(EngineError::Table(TableError::Dropped))));
    assert!(matches!(table.get(b"k"), Err(EngineError::Table(TableError::Dropped))));
    assert!(matches!(
        table.cursor(.., Direction::Forward).next_row(),
        Err(EngineError::Table(TableError::Dropped))
    ));
    assert!(matches!(
        table.bulk_load([(b"k", b"v")]),
        Err(EngineError::Table(TableError::Dropped))
    ));
    let again = engine.create_table("t").unwrap();
    assert_eq!(again.get(b"k").unwrap(), None);
    assert!(engine.check().unwrap().is_clean());
}

#[test]
fn the_number_of_a_dropped_table_is_never_used_again() {
    let disk = MemDisk::new();
    let mut last = 0;
    for is_closed in [true, false, true] {
        for _ in 0..3 {
            let engine = open(&disk);
            let id = engine.create_table("t").unwrap().tree().id.0;
            assert!(id > last, "table {id} after table {last}, {is_closed}");
            last = id;
            engine.drop_table("t").unwrap();
            if is_closed {
                engine.close().unwrap();
            }
        }
    }
}

/// Sets the number that the next table of the next opening gets.
fn set_next_table(engine: &Engine, number: u32) {
    let storage = &engine.parts().storage;
    let mut mtr = Mtr::begin(storage);
    let front = mtr.latch(storage.pool.pin(PageNo(0)).unwrap());
    mtr.change(front, &SuperField::NextTable.set(&number.to_le_bytes())).unwrap();
    mtr.commit();
}

#[test]
fn data_that_keep_no_next_number_are_read_and_keep_it_from_then_on() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    let old = engine.create_table("old").unwrap().tree().id.0;
    // As a program wrote it that did not keep the number.
    set_next_table(&engine, 0);
    engine.close().unwrap();
    let engine = open(&disk);
    let new = engine.create_table("new").unwrap().tree().id.0;
    assert!(new > old);
    engine.drop_table("new").unwrap();
    engine.close().unwrap();
    assert!(open(&disk).create_table("newer").unwrap().tree().id.0 > new);
}

#[test]
fn after_the_last_number_no_table_is_made() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    set_next_table(&engine, u32::MAX - 1);
    engine.close().unwrap();
    for _ in 0..2 {
        let engine = open(&disk);
        let _last_or_none = engine.create_table("last");
        let none = engine.create_table("none");
        assert!(matches!(none, Err(EngineError::Table(TableError::TooMany))), "{none:?}");
        assert_eq!(engine.tables().unwrap(), ["last"]);
        engine.close().unwrap();
    }
}

#[test]
fn the_redo_of_another_engine_is_never_taken_for_a_half_made_one() {
    let (data, redo) = (MemDisk::new(), MemDisk::new());
    let disks = |data: &MemDisk, redo: &MemDisk| Disks {
        data: Arc::new(data.clone()),
        redo: Arc::new(redo.clone()),
    };
    let first = Engine::open_on(disks(&data, &redo), small(), Background::Manual).unwrap();
    first.create_table("t").unwrap();
    drop(first);
    // A making that is cut off after its mark, and then tried again with the other one's redo.
    let unfinished = MemDisk::new();
    let full = MemDisk::with_capacity(40 << 10);
    assert!(Engine::open_on(disks(&unfinished, &full), small(), Background::Manual).is_err());
    let taken = Engine::open_on(disks(&unfinished, &redo), small(), Background::Manual);
    assert!(matches!(taken, Err(EngineError::Open(OpenError::NotOurs { .. }))), "{taken:?}");
    Engine::open_on(disks(&unfinished, &MemDisk::new()), small(), Background::Manual).unwrap();
    let first = Engine::open_on(disks(&data, &redo), small(), Background::Manual).unwrap();
    assert_eq!(first.tables().unwrap(), ["t"]);
}

#[test]
fn counters_tell_what_the_policy_goes_by() {
    let mut settings = small();
    settings.set("policy", "adaptive").unwrap();
    settings.set("io_capacity", "300").unwrap();
    let engine = Engine::open_on(Disks::one(MemDisk::new()), settings, Background::Manual).unwrap();
    let table = engine.create_table("t").unwrap();
    let told = || {
        let counters = engine.counters();
        let all = [Counter::PolicyPagesPerS, Counter::PolicyRaisedPagesPerS, Counter::PolicyBound];
        all.map(|counter| counters[counter])
    };
    let mut now_us = 0;
    while now_us < 5_000_000 {
        now_us = engine.step(now_us).unwrap().max(now_us);
    }
    assert_eq!(told(), [300, 0, 0]);
    engine.set("flush_write_limit", "free").unwrap();
    // So that it does not take the engine for idle.
    put_all(&engine, &table, &[b"a"]);
    while now_us < 10_000_000 {
        now_us = engine.step(now_us).unwrap().max(now_us);
    }
    assert_eq!(told(), [0, 0, 0], "nothing caps it");
}

pub(crate) fn put_all(engine: &Engine, table: &Table, keys: &[&[u8]]) {
    let mut batch = engine.batch();
    for key in keys {
        batch.put(table, key, b"v").unwrap();
    }
    batch.commit().unwrap();
}

#[test]
fn a_place_lost_before_the_first_row_is_found_again_within_the_range() {
    for direction in [Direction::Forward, Direction::Backward] {
        let engine = open(&MemDisk::new());
        let table = engine.create_table("t").unwrap();
        let (there, new): (&[&[u8]], _) = match direction {
            Direction::Forward => (&[b"a", b"b"], b"c"),
            Direction::Backward => (&[b"y", b"z"], b"x"),
        };
        put_all(&engine, &table, there);
        let bound = Bound::Included(b"m".to_vec());
        let bounds = match direction {
            Direction::Forward => (bound, Bound::Unbounded),
            Direction::Backward => (Bound::Unbounded, bound),
        };
        let how = (direction, NEWEST);
        let mut range = TreeCursor::new(table.pages(), table.tree(), bounds, how);
        // As in `step` when the leaf was moved meanwhile.
        range.seek().unwrap();
        put_all(&engine, &table, &[new]);
        range.seek().unwrap();
        assert_eq!(range.next_row().unwrap(), None, "{direction:?}");
    }
}

#[test]
fn rows_of_the_catalogue_may_have_more_fields() {
    let fields = [[200, 2, 0].as_slice(), b"xy", &[255, 0, 0]].concat();
    let entry = Entry { id: TableId(7), root: PageNo(9), index: None, fields };
    assert_eq!(Entry::from_bytes(&entry.to_bytes()), Ok(entry.clone()));
    let plain = Entry { fields: Vec::new(), ..entry.clone() };
    assert_eq!(plain.to_bytes().len(), 12);
    for cut in (0..12).chain([13, 14, 16, 18, 19]) {
        assert_eq!(Entry::from_bytes(&entry.to_bytes()[..cut]), Err(BadEntry::Damaged), "{cut}");
    }
    let index = Some(IndexField { table_bytes: 5, is_built: true, version: 0 });
    let of_index = Entry { index, ..plain.clone() };
    assert_eq!(of_index.to_bytes()[12..], [1, 3, 0, 5, 0, 1]);
    assert_eq!(Entry::from_bytes(&of_index.to_bytes()), Ok(of_index.clone()));
    let index = of_index.index.map(|index| IndexField { version: 0x0102_0304, ..index });
    let versioned = Entry { index, ..of_index };
    assert_eq!(versioned.to_bytes()[18..], [2, 4, 0, 4, 3, 2, 1]);
    assert_eq!(Entry::from_bytes(&versioned.to_bytes()), Ok(versioned.clone()));
    let no_index = [&versioned.to_bytes()[..12], &versioned.to_bytes()[18..]].concat();
    assert_eq!(Entry::from_bytes(&no_index), Err(BadEntry::Damaged));
    let unknown = Entry { fields: vec![3, 0, 0], ..entry };
    assert_eq!(Entry::from_bytes(&unknown.to_bytes()), Err(BadEntry::Unknown { tag: 3 }));
}

/// Gives the row of a table another value.
fn set_row(engine: &Engine, name: &str, change: impl FnOnce(&mut Entry)) {
    let parts = engine.parts();
    let catalogue = parts.catalogue.itself();
    let mut entry = Entry::from_bytes(&catalogue.get(name.as_bytes()).unwrap().unwrap()).unwrap();
    change(&mut entry);
    let mut batch = engine.batch();
    batch.put(&catalogue, name.as_bytes(), &entry.to_bytes()).unwrap();
    batch.commit().unwrap();
}

#[test]
fn a_table_with_fields_of_a_later_program_is_opened_or_refused_by_name() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    put_all(&engine, &engine.create_table("t").unwrap(), &[b"k"]);
    set_row(&engine, "t", |entry| entry.fields = vec![128, 1, 0, 9]);
    engine.close().unwrap();
    let engine = open(&disk);
    assert!(engine.table("t").unwrap().unwrap().get(b"k").unwrap().is_some());
    engine.create_table("u").unwrap();
    set_row(&engine, "u", |entry| entry.fields = vec![127, 0, 0]);
    engine.close().unwrap();
    let refused = Engine::open_on(Disks::one(disk), small(), Background::Manual);
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("\"u\" has a field 127"), "{text}");
}

#[test]
fn a_dropped_table_keeps_its_fields_until_its_pages_are_free() {
    let engine = open(&MemDisk::new());
    engine.create_table("t").unwrap();
    set_row(&engine, "t", |entry| entry.fields = vec![128, 0, 0]);
    engine.drop_table("t").unwrap();
    assert!(engine.check().unwrap().is_clean());
}

#[test]
fn readers_see_what_is_before_a_version_and_no_deleted_row() {
    let engine = open(&MemDisk::new());
    let table = engine.create_table("t").unwrap();
    let storage = &engine.parts().storage;
    let header = Version { number: 3, older: 0 }.to_bytes();
    let long = [&b"new"[..], &header].concat();
    let rows: [(&[u8], u8, &[u8]); 5] = [
        (b"a", FLAG_VERSIONED | FLAG_TOMBSTONE, &header),
        (b"b", 0, b"old"),
        (b"c", FLAG_VERSIONED | FLAG_TOMBSTONE, &header),
        (b"d", FLAG_VERSIONED, &long),
        (b"e", FLAG_VERSIONED | FLAG_TOMBSTONE, &header),
    ];
    let mut mtr = Mtr::begin(storage);
    let root = mtr.latch(storage.pool.pin(table.tree().root).unwrap());
    for (slot, (key, flags, value)) in rows.into_iter().enumerate() {
        mtr.change(root, &Record::Insert { slot, flags, key, value }).unwrap();
    }
    mtr.commit();
    assert_eq!(table.get(b"a").unwrap(), None);
    assert_eq!(table.get(b"d").unwrap().as_deref(), Some(&b"new"[..]));
    let seen = [(b"b".to_vec(), b"old".to_vec()), (b"d".to_vec(), b"new".to_vec())];
    let all: Vec<_> = table.iter().map(Result::unwrap).collect();
    assert_eq!(all, seen);
    let back: Vec<_> = table.iter().rev().map(Result::unwrap).collect();
    assert_eq!(back, [seen[1].clone(), seen[0].clone()]);
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}
