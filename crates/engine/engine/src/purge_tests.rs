//! Purge, and what it finds after a crash.

use std::time::{Duration, Instant};

use iostrata_io::disk::MemDisk;
use iostrata_io::disk::memory::{CallKind, Fault};

use crate::storage::VERSION_SEGMENT_BYTES;
use crate::tests::{open, small};
use crate::transaction::tests::{begin, delete, engine, put, rows};
use crate::{Background, Counter, Direction, Disks, Engine, EngineError, Isolation};

#[test]
fn tombstones_that_a_crash_leaves_are_purged_after_the_next_opening() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    let table = engine.create_table("t").unwrap();
    put(&engine, &table, b"a", b"1");
    put(&engine, &table, b"b", b"1");
    let reader = begin(&engine, Isolation::Snapshot);
    delete(&engine, &table, b"a");
    put(&engine, &table, b"b", b"2");
    std::mem::forget((reader, engine));
    let engine = open(&disk);
    let table = engine.table("t").unwrap().unwrap();
    let mut t = begin(&engine, Isolation::Snapshot);
    assert_eq!(rows(&mut t, &table), "b=2");
    while engine.parts().purger.step().unwrap() {}
    assert_eq!(engine.counters()[Counter::RowsPurged], 1);
    assert!(!engine.parts().purger.has_history());
    assert_eq!(engine.parts().purger.walk_place(), None);
    assert_eq!(rows(&mut t, &table), "b=2");
    drop(t);
    engine.close().unwrap();
}

#[test]
fn a_clean_close_leaves_no_key_of_a_commit_that_purge_has_begun() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    engine.set("purge_batch_size", "1").unwrap();
    let table = engine.create_table("t").unwrap();
    put(&engine, &table, b"a", b"1");
    put(&engine, &table, b"b", b"1");
    let reader = begin(&engine, Isolation::Snapshot);
    let mut t = begin(&engine, Isolation::ReadCommitted);
    assert!(t.delete(&table, b"a").unwrap() && t.delete(&table, b"b").unwrap());
    t.commit().unwrap();
    assert_eq!(tombstones(&engine), 2);
    drop(reader);
    engine.close().unwrap();
    let engine = open(&disk);
    assert!(engine.recovery().was_clean);
    assert_eq!(tombstones(&engine), 0);
}

#[test]
fn without_purge_threads_old_versions_go_to_their_file_all_the_same() {
    let mut settings = small();
    for (name, value) in [("version_log_memory", "256K"), ("purge_threads", "0")] {
        settings.set(name, value).unwrap();
    }
    let disks = Disks::one(MemDisk::new());
    let engine = Engine::open_on(disks, settings, Background::Threads).unwrap();
    let table = engine.create_table("t").unwrap();
    let mut reader = begin(&engine, Isolation::Snapshot);
    for round in 0..4_000_u32 {
        let mut batch = engine.batch();
        batch.put(&table, &(round % 8).to_be_bytes(), &[round as u8; 1_000]).unwrap();
        let _unsettled = batch.commit_async().unwrap();
    }
    let memory = || engine.parts().storage.versions.stats().memory_bytes;
    // Each thread's newest segment is not full.
    let limit = (256 << 10) + 2 * VERSION_SEGMENT_BYTES as u64;
    let end = Instant::now() + Duration::from_secs(20);
    while memory() > limit {
        assert!(Instant::now() < end, "{} bytes in memory", memory());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(rows(&mut reader, &table), "");
    drop(reader);
    engine.close().unwrap();
}

/// The walk behind an unclean opening meets what is deleted since, and leaves it to the snapshots.
#[test]
fn a_bulk_load_is_not_seen_by_snapshots_before_it() {
    let (engine, _) = engine();
    let table = engine.create_table("loaded").unwrap();
    let mut old = begin(&engine, Isolation::Snapshot);
    assert_eq!(table.bulk_load([(b"a", b"1"), (b"b", b"2")]).unwrap(), 2);
    assert_eq!(rows(&mut old, &table), "");
    assert_eq!(rows(&mut begin(&engine, Isolation::Snapshot), &table), "a=1 b=2");
    delete(&engine, &table, b"a");
    delete(&engine, &table, b"b");
    // Tombstones are left in the leaf, which is no reason to refuse.
    assert_eq!(table.bulk_load([(b"a", b"3")]).unwrap(), 1);
    assert_eq!(rows(&mut old, &table), "");
    assert_eq!(rows(&mut begin(&engine, Isolation::Snapshot), &table), "a=3");
}

/// Leaves of the table that a crash is to leave tombstones in: more than a close may read.
const ROWS: u32 = 9_000;

/// What a crash leaves of rows of which every third was deleted under a reader.
fn killed_with_tombstones(disk: &MemDisk) {
    let engine = open(disk);
    for name in ["a", "b"] {
        let table = engine.create_table(name).unwrap();
        for rows in (0..ROWS).collect::<Vec<_>>().chunks(50) {
            let mut batch = engine.batch();
            for row in rows {
                batch.put(&table, &row.to_be_bytes(), &[7; 60]).unwrap();
            }
            batch.commit().unwrap();
        }
    }
    let reader = begin(&engine, Isolation::Snapshot);
    for name in ["a", "b"] {
        let table = engine.table(name).unwrap().unwrap();
        for row in (0..ROWS).step_by(3) {
            delete(&engine, &table, &row.to_be_bytes());
        }
    }
    std::mem::forget((reader, engine));
}

fn tombstones(engine: &Engine) -> u64 {
    engine.check().unwrap().tables.iter().map(|table| table.tombstones).sum()
}

/// Closes it and says how many pages were read for that.
fn close(engine: Engine) -> u64 {
    let before = engine.counters()[Counter::PagesRead];
    engine.clone().close().unwrap();
    engine.counters()[Counter::PagesRead] - before
}

#[test]
fn the_walk_behind_a_crash_goes_on_at_the_next_opening_when_the_engine_is_closed() {
    let disk = MemDisk::new();
    killed_with_tombstones(&disk);
    let all = u64::from(2 * ROWS / 3);
    let engine = open(&disk);
    assert_eq!(tombstones(&engine), all);
    let read = close(engine);
    assert!(read < 10, "closing read {read} pages");
    let (mut opened, mut last) = (0, None);
    loop {
        let engine = open(&disk);
        assert!(engine.recovery().was_clean);
        let place = engine.parts().purger.walk_place();
        assert!(opened == 0 || place == last, "{place:?} is not {last:?}");
        if place.is_none() {
            assert_eq!(tombstones(&engine), 0);
            break;
        }
        engine.parts().purger.step().unwrap();
        last = engine.parts().purger.walk_place();
        assert_ne!(place, last);
        assert!(close(engine) < 10);
        opened += 1;
    }
    assert!(opened > 8, "only {opened} openings");
}

#[test]
fn a_walk_that_a_crash_cuts_off_begins_anew() {
    let disk = MemDisk::new();
    killed_with_tombstones(&disk);
    close(open(&disk));
    let engine = open(&disk);
    engine.parts().purger.step().unwrap();
    engine.parts().purger.step().unwrap();
    let reader = begin(&engine, Isolation::Snapshot);
    let table = engine.table("b").unwrap().unwrap();
    // It lies before the place where the walk stands.
    delete(&engine, &table, &1_u32.to_be_bytes());
    std::mem::forget((reader, engine));
    let engine = open(&disk);
    assert!(!engine.recovery().was_clean);
    while engine.parts().purger.step().unwrap() {}
    assert_eq!(tombstones(&engine), 0);
    engine.close().unwrap();
    assert_eq!(open(&disk).parts().purger.walk_place(), None);
}

#[test]
fn a_row_whose_version_cannot_be_read_comes_when_it_is_asked_for_again() {
    const ROWS: u32 = 400;
    let mut settings = small();
    settings.set("version_log_memory", "256K").unwrap();
    let disk = MemDisk::new();
    let disks = Disks::one(disk.clone());
    let engine = Engine::open_on(disks, settings, Background::Manual).unwrap();
    let table = engine.create_table("t").unwrap();
    let key = |row: u32| row.to_be_bytes();
    (0..ROWS).for_each(|row| put(&engine, &table, &key(row), &[b'1'; 1400]));
    let mut old = begin(&engine, Isolation::Snapshot);
    (0..ROWS).for_each(|row| put(&engine, &table, &key(row), &[b'2'; 1400]));
    while engine.parts().storage.versions.log.spill_step().unwrap() {}
    let mut calls = 0;
    disk.before_each(move |call| {
        let is_meant = call.kind == CallKind::Read && call.name == "engine.versions";
        calls += u32::from(is_meant);
        if is_meant && calls % 5 == 0 { Fault::Errno(5) } else { Fault::None }
    });
    old.put(&table, &key(ROWS), b"1").unwrap();
    for direction in [Direction::Forward, Direction::Backward] {
        for has_own in [false, true] {
            let end = key(if has_own { ROWS } else { ROWS - 1 });
            let mut cursor = old.cursor(&table, ..=&end[..], direction).unwrap();
            let (mut seen, mut failed) = (Vec::new(), 0);
            loop {
                match cursor.next_row() {
                    Ok(None) => break,
                    Ok(Some((key, value))) => {
                        assert_eq!(value.first(), Some(&b'1'));
                        seen.push(key.to_vec());
                    }
                    Err(EngineError::Io(_)) => failed += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            if direction == Direction::Backward {
                seen.reverse();
            }
            let wanted = (0..ROWS + u32::from(has_own)).map(|row| key(row).to_vec());
            assert!(failed > 0 && seen.iter().cloned().eq(wanted), "{direction:?} {has_own}");
        }
    }
}
