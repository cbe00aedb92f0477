//! Conditions of batches, ranges and single rows.

use iostrata_io::disk::MemDisk;

use crate::mtr::Mtr;
use crate::page::layout::{FLAG_TOMBSTONE, FLAG_VERSIONED};
use crate::page::{Record, Version};
use crate::tests::{open, put_all, small};
use crate::{Background, Batch, Disks, Engine, EngineError, RequestError, Table, TableError};

fn value_of(table: &Table, key: &[u8]) -> Option<Vec<u8>> {
    table.get(key).unwrap()
}

#[test]
fn a_batch_with_a_condition_that_does_not_hold_changes_nothing() {
    let engine = open(&MemDisk::new());
    let tables = ["t", "u"].map(|name| engine.create_table(name).unwrap());
    let [t, u] = &tables;
    let mut batch = engine.batch();
    batch.insert(t, b"k", b"1").unwrap();
    batch.commit().unwrap();

    type Add<'a> = &'a dyn Fn(&mut Batch) -> Result<(), EngineError>;
    let refused: [Add<'_>; 5] = [
        &|batch| batch.insert(t, b"k", b"2"),
        &|batch| batch.compare_and_set(t, b"k", Some(b"0"), Some(b"2")),
        &|batch| batch.compare_and_set(t, b"k", None, None),
        &|batch| batch.require(t, b"other", Some(b"1")),
        // A condition speaks of what was before the batch, also behind a change of the same key.
        &|batch| batch.put(t, b"k", b"9").and_then(|()| batch.require(t, b"k", Some(b"9"))),
    ];
    for (case, add) in refused.iter().enumerate() {
        let mut batch = engine.batch();
        batch.put(u, b"x", b"never").unwrap();
        add(&mut batch).unwrap();
        let end = engine.parts().storage.redo.lsn();
        let error = batch.commit_async().unwrap_err();
        assert!(
            matches!(&error, EngineError::Request(RequestError::NotAsExpected { .. })),
            "{case}: {error}"
        );
        assert!(error.to_string().contains("\"t\""), "{error}");
        assert_eq!(engine.parts().storage.redo.lsn(), end, "{case}: nothing is appended");
        assert_eq!((value_of(t, b"k"), value_of(u, b"x")), (Some(b"1".to_vec()), None), "{case}");
    }

    let mut batch = engine.batch();
    batch.compare_and_set(t, b"k", Some(b"1"), Some(b"2")).unwrap();
    batch.put(t, b"k", b"3").unwrap();
    batch.require(u, b"x", None).unwrap();
    batch.put(u, b"x", b"now").unwrap();
    batch.commit().unwrap();
    assert_eq!(value_of(t, b"k").as_deref(), Some(&b"3"[..]), "the last change counts");
    assert_eq!(value_of(u, b"x").as_deref(), Some(&b"now"[..]));
    let mut batch = engine.batch();
    batch.compare_and_set(t, b"k", Some(b"3"), None).unwrap();
    batch.commit().unwrap();
    assert_eq!(value_of(t, b"k"), None);
}

#[test]
fn counters_by_compare_and_set_lose_no_step() {
    let disk = Disks::one(MemDisk::new());
    let engine = Engine::open_on(disk, small(), Background::Threads).unwrap();
    let table = engine.create_table("t").unwrap();
    const STEPS: u64 = 300;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut done = 0;
                while done < STEPS {
                    let old = table.get(b"counter").unwrap();
                    let next =
                        old.as_deref().map_or(0, |old| u64::from_le_bytes(old.try_into().unwrap()))
                            + 1;
                    let mut batch = engine.batch();
                    let new = next.to_le_bytes();
                    batch.compare_and_set(&table, b"counter", old.as_deref(), Some(&new)).unwrap();
                    match batch.commit_async() {
                        Ok(_unsettled) => done += 1,
                        Err(EngineError::Request(RequestError::NotAsExpected { .. })) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(value_of(&table, b"counter"), Some((4 * STEPS).to_le_bytes().to_vec()));
}

#[test]
fn ranges_prefixes_and_single_rows_are_what_they_say() {
    let engine = open(&MemDisk::new());
    let table = engine.create_table("t").unwrap();
    let keys: [&[u8]; 7] = [b"a", b"a\xff", b"a\xff\xff", b"b", b"ba", b"\xff", b"\xff\xff\x01"];
    put_all(&engine, &table, &keys);
    let of =
        |range: crate::Range<'_>| -> Vec<Vec<u8>> { range.map(|row| row.unwrap().0).collect() };
    for prefix in [&b""[..], b"a", b"a\xff", b"b", b"c", b"\xff", b"\xff\xff"] {
        let expected = keys.iter().filter(|key| key.starts_with(prefix)).map(|key| key.to_vec());
        assert_eq!(of(table.prefix(prefix)), expected.collect::<Vec<_>>(), "{prefix:?}");
    }
    assert_eq!(of(table.range("a\u{7f}".."b")), [b"a\xff".to_vec(), b"a\xff\xff".to_vec()]);
    assert_eq!(of(table.range("b"..="ba")), [b"b".to_vec(), b"ba".to_vec()]);
    assert_eq!(of(table.range(.."a")), Vec::<Vec<u8>>::new());
    assert_eq!(of(table.range("b".."a")), Vec::<Vec<u8>>::new());
    let mut value = b"left as it was".to_vec();
    assert!(!table.get_into(b"c", &mut value).unwrap());
    assert_eq!(value, b"left as it was");
    assert!(table.get_into(b"b", &mut value).unwrap() && table.contains_key(b"b").unwrap());
    assert_eq!(value, b"v");
    assert!(!table.contains_key(b"c").unwrap());
}

/// Puts cells with these flags and values into the root of a table.
fn lay(engine: &Engine, table: &Table, cells: &[(&[u8], u8, &[u8])]) {
    let storage = &engine.parts().storage;
    let mut mtr = Mtr::begin(storage);
    let root = mtr.latch(storage.pool.pin(table.tree().root).unwrap());
    for (slot, (key, flags, value)) in cells.iter().copied().enumerate() {
        mtr.change(root, &Record::Insert { slot, flags, key, value }).unwrap();
    }
    mtr.commit();
}

#[test]
fn rows_with_versions_and_tombstones_are_written_as_they_are_read() {
    let header = Version { number: 3, older: 0 }.to_bytes();
    let long = [&b"a value of more than sixteen bytes"[..], &header].concat();
    let cells: [(&[u8], u8, &[u8]); 4] = [
        (b"deleted", FLAG_VERSIONED | FLAG_TOMBSTONE, &header),
        (b"gone", FLAG_VERSIONED | FLAG_TOMBSTONE, &header),
        (b"old", FLAG_VERSIONED, &long),
        (b"older", FLAG_VERSIONED, &long),
    ];
    let disk = MemDisk::new();
    let engine = open(&disk);
    let table = engine.create_table("t").unwrap();
    lay(&engine, &table, &cells);
    let new = b"another of more than sixteen bytes";
    for key in [&b"deleted"[..], b"gone"] {
        let mut batch = engine.batch();
        batch.insert(&table, key, new).unwrap();
        batch.commit().unwrap();
    }
    let mut batch = engine.batch();
    batch.compare_and_set(&table, b"old", Some(&long[..long.len() - 16]), Some(new)).unwrap();
    batch.delete(&table, b"gone").unwrap();
    batch.delete(&table, b"older").unwrap();
    batch.commit().unwrap();
    let check = |engine: &Engine| {
        let table = engine.table("t").unwrap().unwrap();
        let rows: Vec<_> = table.iter().map(Result::unwrap).collect();
        let seen = [(b"deleted".to_vec(), new.to_vec()), (b"old".to_vec(), new.to_vec())];
        assert_eq!(rows, seen);
        assert!(engine.check().unwrap().is_clean());
    };
    check(&engine);
    drop(engine);
    check(&open(&disk));
}

#[test]
fn conditions_take_no_redo_and_no_share_of_the_frames() {
    let engine = open(&MemDisk::new());
    let table = engine.create_table("t").unwrap();
    let limit = engine.parts().storage.frame_bytes_max();
    let value = [7; 1900];
    put_all(&engine, &table, &[b"k"]);
    let mut batch = engine.batch();
    for _ in 0..=limit / value.len() {
        batch.require(&table, b"other", None).unwrap();
        batch.compare_and_set(&table, b"k", Some(b"v"), Some(&value)).unwrap();
    }
    batch.commit().unwrap();
    let mut batch = engine.batch();
    for _ in 0..=limit / value.len() {
        batch.require(&table, b"k", Some(&value)).unwrap();
    }
    batch.commit().unwrap();
    // Others hold all that batches of several rows may hold.
    let admission = &engine.parts().pages.admission;
    let _all = admission.pins(engine.parts().storage.pool.frames.len() / 2).unwrap();
    let mut batch = engine.batch();
    batch.insert(&table, b"l", b"one row").unwrap();
    batch.commit().unwrap();
    assert!(table.contains_key(b"l").unwrap());
}

#[test]
fn a_row_as_long_as_earlier_programs_took_can_be_expected() {
    let engine = open(&MemDisk::new());
    let table = engine.create_table("t").unwrap();
    let longest = vec![5; engine.parts().storage.page_size.row_bytes_max() - 1];
    lay(&engine, &table, &[(b"k", 0, &longest)]);
    let mut batch = engine.batch();
    batch.require(&table, b"k", Some(&longest)).unwrap();
    batch.compare_and_set(&table, b"k", Some(&longest), Some(b"short")).unwrap();
    batch.commit().unwrap();
    assert_eq!(value_of(&table, b"k").as_deref(), Some(&b"short"[..]));
    let too_long = engine.batch().require(&table, b"k", Some(&[5; 4096]));
    assert!(matches!(too_long, Err(EngineError::Request(RequestError::RowTooLarge(_)))));
    let new = engine.batch().put(&table, b"k", &longest);
    assert!(matches!(new, Err(EngineError::Request(RequestError::RowTooLarge(_)))));
}

#[test]
fn a_range_ends_behind_an_error_that_stays() {
    let engine = open(&MemDisk::new());
    let table = engine.create_table("t").unwrap();
    put_all(&engine, &table, &[b"a", b"b"]);
    let mut rows = table.iter();
    engine.drop_table("t").unwrap();
    assert!(matches!(rows.next(), Some(Err(EngineError::Table(TableError::Dropped)))));
    assert!(rows.next().is_none() && rows.next_back().is_none());
}
