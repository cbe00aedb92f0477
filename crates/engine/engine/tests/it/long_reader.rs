//! A snapshot that is open for the whole run: what it sees never changes, despite writers and purge
//! and with old versions in their file; when it ends nothing of it is left.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use iostrata_engine::{Counter, Direction, Engine, EngineError, Isolation, Table, Transaction};
use iostrata_io::disk::MemDisk;

use crate::common::chance::Chance;
use crate::common::engine::{How, tombstones};
use crate::common::is_soak;
use crate::common::quiet::Watch;

const WRITERS: usize = 3;
const KEYS: usize = 2_000;
/// Rows that each writer changes: five times all of them, ten times as many bytes as stay in
/// memory.
const CHANGES: usize = 4_000;

fn key(number: usize) -> [u8; 4] {
    (number as u32).to_be_bytes()
}

fn value(chance: &mut Chance) -> Vec<u8> {
    let len = chance.within(10, 700);
    chance.bytes(len)
}

/// A checksum of all rows, forward and backward, and of some looked up one by one.
fn seen(t: &mut Transaction, table: &Table) -> Result<[u64; 3], EngineError> {
    let mut checksums = [0; 3];
    let directions = [Direction::Forward, Direction::Backward];
    for (checksum, direction) in checksums.iter_mut().zip(directions) {
        let mut cursor = t.cursor(table, .., direction)?;
        let mut hasher = DefaultHasher::new();
        while let Some(row) = cursor.next_row()? {
            row.hash(&mut hasher);
        }
        *checksum = hasher.finish();
    }
    let mut hasher = DefaultHasher::new();
    for number in (0..KEYS + KEYS / 2).step_by(7) {
        t.get(table, &key(number))?.hash(&mut hasher);
    }
    checksums[2] = hasher.finish();
    Ok(checksums)
}

/// Puts and deletes rows, new ones between them.
fn write(engine: &Engine, table: &Table, writer: usize, running: &AtomicUsize) {
    let mut chance = Chance::new(writer as u64);
    let changes = if is_soak() { 20 * CHANGES } else { CHANGES };
    let mut done = 0;
    while done < changes {
        let count = chance.within(1, 8);
        let rows: Vec<usize> = (0..count).map(|_| chance.below(KEYS + KEYS / 2)).collect();
        let run = engine.transact_async(Isolation::ReadCommitted, |t| {
            for row in &rows {
                if chance.percent(35) {
                    t.delete(table, &key(*row))?;
                } else {
                    t.put(table, &key(*row), &value(&mut chance))?;
                }
            }
            Ok::<_, EngineError>(())
        });
        let _durable_at_the_end = run.unwrap();
        done += count;
    }
    running.fetch_sub(1, Ordering::Relaxed);
}

fn filled(directory: &Path, how: &How) -> (Engine, Table) {
    let engine = Engine::open(directory, how.settings()).unwrap();
    let table = engine.create_table("rows").unwrap();
    let mut chance = Chance::new(99);
    for numbers in (0..KEYS).collect::<Vec<_>>().chunks(20) {
        let mut batch = engine.batch();
        for number in numbers {
            batch.put(&table, &key(*number), &value(&mut chance)).unwrap();
        }
        batch.commit().unwrap();
    }
    (engine, table)
}

/// What is left without a snapshot of the past.
fn is_tidy(engine: &Engine) {
    let counters = engine.counters();
    assert_eq!((counters[Counter::HistoryListLength], counters[Counter::Snapshots]), (0, 0));
    assert_eq!(counters[Counter::VersionBytesSpilled], 0);
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!(tombstones(engine).unwrap(), 0);
}

fn a_reader_sees_the_same(level: Isolation) {
    let directory = tempfile::tempdir().unwrap();
    let how = How::with(&[
        ("buffer_pool_size", "2M"),
        ("redo_log_capacity", "8M"),
        ("version_log_memory", "256K"),
        ("purge_threads", "2"),
    ]);
    let (engine, table) = filled(directory.path(), &how);
    let mut reader = engine.begin(level).unwrap();
    let first = seen(&mut reader, &table).unwrap();
    let running = AtomicUsize::new(WRITERS);
    let mut spilled = 0;
    std::thread::scope(|scope| {
        let (engine, table, running) = (&engine, &table, &running);
        for writer in 0..WRITERS {
            scope.spawn(move || write(engine, table, writer, running));
        }
        while running.load(Ordering::Relaxed) > 0 {
            assert_eq!(seen(&mut reader, table).unwrap(), first);
            spilled = spilled.max(engine.counters()[Counter::VersionBytesSpilled]);
        }
    });
    assert_eq!(seen(&mut reader, &table).unwrap(), first);
    assert!(engine.counters()[Counter::HistoryListLength] > 0);
    let mut now = engine.begin(level).unwrap();
    let last = seen(&mut now, &table).unwrap();
    assert_ne!(last, first);
    drop((reader, now));
    // Purge goes on by itself.
    let watch = Watch::new();
    watch.on("purge after the last snapshot".to_owned());
    let history = || engine.counters()[Counter::HistoryListLength];
    // A commit counts as purged with the first of its rows.
    while history() > 0 || tombstones(&engine).unwrap() > 0 {
        std::thread::yield_now();
    }
    watch.rest();
    eprintln!("spilled {spilled}, purged {}", engine.counters()[Counter::RowsPurged]);
    assert!(spilled > 0, "no version left the memory");
    is_tidy(&engine);
    engine.close().unwrap();
    drop(table);
    assert!(!directory.path().join("engine.versions").exists());
    let engine = Engine::open(directory.path(), how.settings()).unwrap();
    let table = engine.table("rows").unwrap().unwrap();
    assert_eq!(seen(&mut engine.begin(level).unwrap(), &table).unwrap(), last);
    is_tidy(&engine);
    engine.close().unwrap();
}

/// The first steps after a crash look for tombstones in all leaves. Those that were left since the
/// opening are not for them: a snapshot may need them.
#[test]
fn what_a_crash_has_left_is_purged_beside_snapshots() {
    for level in [Isolation::RepeatableRead, Isolation::Snapshot] {
        let (disk, how) = (MemDisk::new(), How::with(&[]));
        let engine = how.open(Arc::new(disk.clone())).unwrap();
        let table = engine.create_table("rows").unwrap();
        let put = |engine: &Engine, table: &Table, rows: Range<usize>, value: Option<&[u8]>| {
            let mut t = engine.begin(Isolation::ReadCommitted).unwrap();
            for row in rows {
                match value {
                    Some(value) => t.put(table, &key(row), value).unwrap(),
                    None => assert!(t.delete(table, &key(row)).unwrap()),
                }
            }
            t.commit().unwrap();
        };
        put(&engine, &table, 0..40, Some(b"old"));
        let keeps_versions = engine.begin(Isolation::Snapshot).unwrap();
        put(&engine, &table, 0..10, None);
        drop((keeps_versions, table, engine));
        let engine = how.open(Arc::new(disk)).unwrap();
        let table = engine.table("rows").unwrap().unwrap();
        let mut reader = engine.begin(level).unwrap();
        let first = seen(&mut reader, &table).unwrap();
        put(&engine, &table, 10..20, None);
        put(&engine, &table, 20..30, Some(b"new"));
        for now_us in 0..5 {
            engine.step(now_us).unwrap();
            assert_eq!(seen(&mut reader, &table).unwrap(), first, "{level:?}");
        }
        assert_eq!(engine.counters()[Counter::RowsPurged], 10, "those of before");
        let late = reader.put(&table, &key(15), b"late");
        assert_eq!(late.is_err(), level == Isolation::Snapshot, "{late:?}");
        drop(reader);
        for now_us in 5..10 {
            engine.step(now_us).unwrap();
        }
        is_tidy(&engine);
        engine.close().unwrap();
    }
}

#[test]
fn a_long_snapshot_never_changes() {
    a_reader_sees_the_same(Isolation::Snapshot);
}

#[test]
fn a_long_repeatable_read_never_changes() {
    a_reader_sees_the_same(Isolation::RepeatableRead);
}
