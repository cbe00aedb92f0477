//! Changes of trees: what they take, and what they do without.

use iostrata_flush::AdmitRule;
use iostrata_io::disk::{Disk, MemDisk};
use iostrata_settings::Counter;

use crate::tests::open;
use crate::{Engine, EngineError, Table};

const ROWS: u16 = 300;

fn key(row: u16) -> [u8; 2] {
    row.to_be_bytes()
}

/// A table of some leaves.
fn filled(engine: &Engine) -> Table {
    let table = engine.create_table("t").unwrap();
    for row in 0..ROWS {
        let mut batch = engine.batch();
        batch.put(&table, &key(row), &[7; 90]).unwrap();
        batch.commit().unwrap().wait().unwrap();
    }
    table
}

/// Deletes rows without any look at what is left of their leaves.
fn delete(engine: &Engine, table: &Table, rows: std::ops::Range<u16>) {
    engine.set("merge_threshold", "1").unwrap();
    for row in rows {
        let mut batch = engine.batch();
        batch.delete(table, &key(row)).unwrap();
        batch.commit().unwrap().wait().unwrap();
    }
    engine.set("merge_threshold", "50").unwrap();
}

fn merges(engine: &Engine) -> u64 {
    engine.parts().storage.counts.get(Counter::IndexPageMergeSuccessful)
}

#[test]
fn a_merge_is_left_out_where_writers_are_stopped() {
    let engine = open(&MemDisk::new());
    let table = filled(&engine);
    let (pages, tree) = (&*engine.parts().pages, table.tree());
    pages.admission.publish(AdmitRule::wall(0));
    tree.merge_leaf(pages, &key(5)).unwrap();
    pages.admission.publish(AdmitRule::wall(u64::MAX));
    // All but a few rows of the first leaves.
    for row in (0..ROWS).filter(|row| row % 30 != 0) {
        delete(&engine, &table, row..row + 1);
    }
    let before = merges(&engine);
    pages.admission.publish(AdmitRule::wall(0));
    tree.merge_leaf(pages, &key(120)).unwrap();
    assert_eq!(merges(&engine), before);
    let delaying = AdmitRule { delay_age: 0, span_us: u64::MAX >> 20, ..AdmitRule::wall(1 << 40) };
    pages.admission.publish(delaying);
    tree.merge_leaf(pages, &key(120)).unwrap();
    assert_eq!(merges(&engine), before, "a leaf with rows can wait");
    pages.admission.publish(AdmitRule::wall(u64::MAX));
    tree.merge_leaf(pages, &key(120)).unwrap();
    assert!(merges(&engine) > before);
    assert!(engine.check().unwrap().is_clean());
}

#[test]
fn leaves_that_were_left_empty_are_joined_later() {
    let engine = open(&MemDisk::new());
    let table = filled(&engine);
    let admission = &engine.parts().pages.admission;
    let leaves = |engine: &Engine| {
        let report = engine.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        report.tables.iter().find(|table| table.name == "t").unwrap().pages
    };
    let all = leaves(&engine);
    // Every merge is left out.
    let pins = admission.pins(engine.parts().storage.pool.frames() / 2);
    for row in 0..200 {
        let mut batch = engine.batch();
        batch.delete(&table, &key(row)).unwrap();
        batch.commit().unwrap().wait().unwrap();
    }
    assert_eq!(leaves(&engine), all);
    drop(pins);
    for row in 200..ROWS {
        let mut batch = engine.batch();
        batch.delete(&table, &key(row)).unwrap();
        batch.commit().unwrap().wait().unwrap();
    }
    assert_eq!(leaves(&engine), 1);
}

/// Makes tables until the disk is full; gives the last one.
fn fill_up(engine: &Engine, disk: &MemDisk) -> Table {
    let files = disk.list().unwrap();
    let used: usize = files.iter().map(|file| disk.content(file).unwrap().len()).sum();
    disk.set_capacity(Some(used as u64));
    let mut last = None;
    for number in 0.. {
        match engine.create_table(&format!("empty {number}")) {
            Ok(table) => last = Some(table),
            Err(EngineError::NoSpace { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    last.unwrap()
}

#[test]
fn on_a_full_disk_what_needs_no_new_page_works() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    let table = filled(&engine);
    let empty = fill_up(&engine, &disk);
    assert_eq!(empty.bulk_load([(b"a", b"1"), (b"b", b"2")]).unwrap(), 2);
    // The leaf has been split by somebody else since it was found.
    let pages = &*engine.parts().pages;
    table.tree().split_leaf(pages, (&key(5), 90), u32::MAX).unwrap();
    assert!(engine.check().unwrap().is_clean());
}
