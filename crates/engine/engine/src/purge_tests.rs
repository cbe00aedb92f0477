//! Purge, and what it finds after a crash.

use std::time::{Duration, Instant};

use iostrata_io::disk::MemDisk;

use crate::storage::VERSION_SEGMENT_BYTES;
use crate::tests::{open, small};
use crate::transaction::tests::{begin, delete, engine, put, rows};
use crate::{Background, Counter, Disks, Engine, Isolation};

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
    assert!(engine.parts().purger.is_done());
    assert_eq!(rows(&mut t, &table), "b=2");
    drop(t);
    engine.close().unwrap();
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
        let _unsettled = batch.commit().unwrap();
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
