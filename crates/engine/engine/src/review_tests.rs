//! What threads, settings and old handles may do to each other, each case as a small scene.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iostrata_flush::{Action, AdmitRule, Finished, FlushPolicy, FlushSample};
use iostrata_io::disk::MemDisk;
use iostrata_page::Record;

use crate::cleaner::Cleaner;
use crate::core::Core;
use crate::mtr::Mtr;
use crate::tests::small;
use crate::tree::descend::Upper;
use crate::{Background, Counter, Direction, Disks, Engine, EngineError, Settings, Table};

fn open(disk: &MemDisk, background: Background) -> Engine {
    Engine::open_on(Disks::one(disk.clone()), small(), background).unwrap()
}

fn waits(core: &Core) -> u64 {
    core.counts.read()[Counter::AdmitWaits]
}

/// Waits for something that other threads do; fails when it never comes.
fn comes(what: &AtomicBool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while !what.load(Ordering::Acquire) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn a_promise_that_ends_without_redo_lets_others_go_on() {
    for background in [Background::Manual, Background::Threads] {
        let engine = open(&MemDisk::new(), background);
        engine.checkpoint().unwrap();
        let core = Arc::clone(engine.core());
        let capacity = core.redo.limits().capacity as usize;
        let all: Vec<_> = (0..4).map(|_| core.admit(capacity / 4 - 200).unwrap()).collect();
        let waited = waits(&core);
        let is_in = Arc::new(AtomicBool::new(false));
        let other = {
            let (core, is_in) = (Arc::clone(&core), Arc::clone(&is_in));
            std::thread::spawn(move || {
                let room = core.admit(2000).map(drop);
                is_in.store(true, Ordering::Release);
                room
            })
        };
        while waits(&core) == waited {
            std::thread::yield_now();
        }
        drop(all);
        assert!(comes(&is_in), "{background:?}: nobody writes, so no checkpoint moves");
        other.join().unwrap().unwrap();
    }
}

/// Rows that came and went in rising order, as in a queue. The leaves were full.
fn drained(engine: &Engine, rows: u32) -> Table {
    let table = engine.create_table("t").unwrap();
    for is_delete in [false, true] {
        for i in 0..rows {
            let mut batch = engine.batch();
            if is_delete {
                batch.delete(&table, &i.to_be_bytes()).unwrap();
            } else {
                batch.put(&table, &i.to_be_bytes(), &[7; 90]).unwrap();
            }
            let _settled_by_others = batch.commit().unwrap();
        }
    }
    table
}

#[test]
fn a_drained_table_gives_its_pages_back() {
    let engine = open(&MemDisk::new(), Background::Manual);
    drained(&engine, 20_000);
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    let pages = report.tables.iter().find(|table| table.name == "t").unwrap().pages;
    assert!(pages < 20, "{pages} pages for no row");
}

#[test]
fn a_sorted_load_into_a_drained_table_loses_nothing() {
    let engine = open(&MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    let root = table.tree();
    // Two empty leaves: a split for a row that never comes.
    let leaf = root.locate(engine.core(), b"m", &mut Upper::default()).unwrap();
    root.deepen(engine.core(), leaf.pin).unwrap();
    let leaf = root.locate(engine.core(), b"m", &mut Upper::default()).unwrap();
    root.split_leaf(engine.core(), (b"m", 0), leaf.structure).unwrap();
    let rows = (b'a'..=b'z').map(|letter| ([letter], [letter]));
    assert_eq!(table.bulk_load(rows.clone()).unwrap(), 26);
    for (key, value) in rows {
        assert_eq!(table.get(&key).unwrap().as_deref(), Some(&value[..]), "{key:?}");
    }
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}

#[test]
fn a_sorted_load_beside_another_writer_ends_with_an_error() {
    for other in [&b"zz"[..], b"a", b"row 0500x"] {
        let engine = open(&MemDisk::new(), Background::Manual);
        let table = engine.create_table("t").unwrap();
        let rows = (0..2000).map(|row| {
            if row == 1000 {
                let mut batch = engine.batch();
                batch.put(&table, other, b"not of the load").unwrap();
                batch.commit().unwrap().wait().unwrap();
            }
            (format!("row {row:04}"), [1; 40])
        });
        let loaded = table.bulk_load(rows);
        let report = engine.check().unwrap();
        assert!(report.is_clean(), "{other:?}: {:?}", report.problems);
        let is_last = other == b"zz";
        assert_eq!(matches!(loaded, Err(EngineError::NotEmpty { .. })), is_last, "{loaded:?}");
        assert!(table.get(other).unwrap().is_some());
    }
}

#[test]
fn settings_that_change_together_are_kept_whole() {
    let disk = MemDisk::new();
    let engine = open(&disk, Background::Manual);
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let engine = &engine;
            scope.spawn(move || {
                for round in 0..1000 {
                    let value = (20_000 + 100 * thread + round).to_string();
                    let name = ["io_capacity_max", "fill_factor"][thread as usize % 2];
                    let value = if thread % 2 == 0 { value } else { "90".to_owned() };
                    engine.set(name, &value).unwrap();
                }
            });
        }
    });
    let kept = crate::kept::read(&disk).unwrap();
    assert_eq!(kept.to_text(&Settings::default()), engine.settings().to_text(&Settings::default()));
}

#[test]
fn what_outlives_an_engine_that_was_not_closed_keeps_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Engine::open(directory.path(), small());
    let engine = open().unwrap();
    let table = engine.create_table("t").unwrap();
    let mut batch = engine.batch();
    batch.put(&table, b"a", b"1").unwrap();
    drop((engine, table));
    // It can still write to the files, so nobody else may.
    assert!(matches!(open(), Err(EngineError::Locked(_))));
    let ticket = batch.commit().unwrap();
    assert!(matches!(open(), Err(EngineError::Locked(_))));
    ticket.wait().unwrap();
    drop(ticket);
    let engine = open().unwrap();
    let table = engine.table("t").unwrap().unwrap();
    assert!(table.get(b"a").unwrap().is_some());
    let other = engine.clone();
    engine.close().unwrap();
    assert!(matches!(other.set("fill_factor", "90"), Err(EngineError::Closed)));
    // After a clean close nothing is left to write.
    let engine = open().unwrap();
    drop(table);
    engine.close().unwrap();
}

#[test]
fn a_change_that_is_not_logged_stops_the_engine() {
    let engine = open(&MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    let core = engine.core();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut mtr = Mtr::begin(core);
        let root = mtr.latch(core.pool.pin(table.tree().root).unwrap());
        let row = Record::Insert { slot: 0, flags: 0, key: b"a", value: b"1" };
        mtr.change(root, &row).unwrap();
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert!(matches!(core.poison.check(), Err(EngineError::Poisoned { .. })));
    assert!(engine.checkpoint().is_err());
}

#[derive(Debug)]
struct Panics;

impl FlushPolicy for Panics {
    fn next(&mut self, _: &FlushSample<'_>, _: Finished) -> Action {
        panic!("on purpose");
    }

    fn admit(&self) -> AdmitRule {
        AdmitRule::wall(u64::MAX)
    }
}

#[test]
fn writers_hear_of_a_cleaner_that_panicked() {
    let engine = open(&MemDisk::new(), Background::Threads);
    let table = engine.create_table("t").unwrap();
    *engine.core().cleaner() = Cleaner::new(Box::new(Panics));
    let (sender, receiver) = std::sync::mpsc::channel();
    let writer = engine.clone();
    std::thread::spawn(move || {
        let mut row = 0_u32;
        let failed = loop {
            let mut batch = writer.batch();
            batch.put(&table, &row.to_be_bytes(), &[1; 90]).unwrap();
            match batch.commit() {
                Ok(_unsettled) => row += 1,
                Err(error) => break error,
            }
        };
        sender.send(failed).unwrap();
    });
    let failed = receiver.recv_timeout(Duration::from_secs(20));
    assert!(matches!(failed, Ok(EngineError::Poisoned { .. })), "{failed:?}");
}

/// A number that looks like chance and follows from these two.
fn mixed(seed: u64, step: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 31;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 29)
}

fn anchor(number: u32) -> Vec<u8> {
    format!("{number:04}").into_bytes()
}

/// Fills and empties the stretches between the anchors, so that pages are split and joined.
fn churn(engine: &Engine, table: &Table, thread: u64, rounds: u64) {
    let value_bytes_max = engine.settings().page_size as usize / 5;
    for round in 0..rounds {
        let at = mixed(thread, round) % u64::from(ANCHORS);
        let is_filling = round % 64 < 40;
        let mut batch = engine.batch();
        for row in 0..1 + mixed(round, thread) % 6 {
            let key = format!("{:04} {thread} {}", (at + row) % u64::from(ANCHORS), row % 3);
            if is_filling {
                let bytes = mixed(row, round) as usize % value_bytes_max;
                batch.put(table, key.as_bytes(), &vec![thread as u8; bytes]).unwrap();
            } else {
                batch.delete(table, key.as_bytes()).unwrap();
            }
        }
        let ticket = batch.commit().unwrap();
        if round % 16 == 0 {
            ticket.wait().unwrap();
        }
    }
}

fn scan(table: &Table, direction: Direction) {
    let mut rows = table.range(Bound::Unbounded, Bound::Unbounded, direction);
    let (mut last, mut anchors): (Option<Vec<u8>>, Vec<u32>) = (None, Vec::new());
    while let Some((key, _)) = rows.next().unwrap() {
        if let Some(last) = &last {
            let rises = key > last.as_slice();
            assert_eq!(rises, direction == Direction::Forward, "{last:?} and then {key:?}");
        }
        last = Some(key.to_vec());
        if key.len() == 4 {
            anchors.push(std::str::from_utf8(key).unwrap().parse().unwrap());
        }
    }
    if direction == Direction::Backward {
        anchors.reverse();
    }
    assert!(anchors.iter().copied().eq(0..ANCHORS), "{direction:?}: {anchors:?}");
}

const ANCHORS: u32 = 200;

/// The smallest settings with pages of this size.
fn smallest(page_size: &str, pool: &str, redo: &str, buffer: &str) -> Settings {
    let mut settings = small();
    for (name, value) in [
        ("page_size", page_size),
        ("buffer_pool_size", pool),
        ("redo_log_capacity", redo),
        ("log_buffer_size", buffer),
    ] {
        settings.set(name, value).unwrap();
    }
    settings
}

#[test]
fn scans_see_every_row_that_stays_while_pages_come_and_go() {
    scans_beside_writers(&small());
}

#[test]
fn large_pages_go_through_the_smallest_redo() {
    scans_beside_writers(&smallest("16K", "1M", "256K", "64K"));
    scans_beside_writers(&smallest("64K", "4M", "1M", "256K"));
}

fn scans_beside_writers(settings: &Settings) {
    let rounds = std::env::var("REVIEW_ROUNDS").map_or(200, |rounds| rounds.parse().unwrap());
    let disk = MemDisk::new();
    let open = || {
        Engine::open_on(Disks::one(disk.clone()), settings.clone(), Background::Threads).unwrap()
    };
    let (low, high) = (settings.redo_log_capacity, 3 * settings.redo_log_capacity);
    let engine = open();
    let table = engine.create_table("t").unwrap();
    for number in 0..ANCHORS {
        let mut batch = engine.batch();
        batch.put(&table, &anchor(number), b"anchor").unwrap();
        let _waited_for_below = batch.commit().unwrap();
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let (engine, table) = (&engine, &table);
                scope.spawn(move || churn(engine, table, thread, rounds))
            })
            .collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let (table, is_over) = (&table, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Acquire) {
                    scan(table, direction);
                }
            });
        }
        let (engine, is_over) = (&engine, &is_over);
        scope.spawn(move || {
            while !is_over.load(Ordering::Acquire) {
                let table = engine.create_table("short").unwrap();
                let rows = (0..300_u32).map(|row| (row.to_be_bytes(), [1; 60]));
                table.bulk_load(rows).unwrap();
                drop(table);
                engine.drop_table("short").unwrap();
                engine.set("redo_log_capacity", &high.to_string()).unwrap();
                engine.set("redo_log_capacity", &low.to_string()).unwrap();
            }
        });
        let failed = writers.into_iter().filter_map(|writer| writer.join().err()).count();
        is_over.store(true, Ordering::Release);
        assert_eq!(failed, 0);
    });
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    engine.core().redo.make_durable(engine.core().redo.lsn()).unwrap();
    let before: Vec<_> = all(&table);
    drop((engine, table));
    let engine = open();
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert!(all(&engine.table("t").unwrap().unwrap()) == before);
}

fn all(table: &Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut rows, mut all) = (table.rows(), Vec::new());
    while let Some((key, value)) = rows.next().unwrap() {
        all.push((key.to_vec(), value.to_vec()));
    }
    all
}

#[test]
fn writers_stop_at_a_close_and_what_they_were_told_is_there() {
    for background in [Background::Threads, Background::Manual] {
        let disk = MemDisk::new();
        let engine = open(&disk, background);
        let table = engine.create_table("t").unwrap();
        let written: Vec<u32> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4_u32)
                .map(|thread| {
                    let (engine, table) = (&engine, &table);
                    scope.spawn(move || {
                        for row in 0_u32.. {
                            let key = (row << 8 | thread).to_be_bytes();
                            let mut batch = engine.batch();
                            batch.put(table, &key, &[1; 200]).unwrap();
                            match batch.commit().and_then(|ticket| ticket.wait()) {
                                Ok(()) => {}
                                Err(EngineError::Closed) => return row,
                                Err(error) => panic!("{error}"),
                            }
                        }
                        0
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(20));
            engine.clone().close().unwrap();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        drop((engine, table));
        let engine = open(&disk, background);
        assert!(engine.recovery().was_clean);
        let report = engine.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        let rows = all(&engine.table("t").unwrap().unwrap()).len();
        assert_eq!(rows as u32, written.iter().sum::<u32>());
    }
}

#[test]
fn many_trees_that_grow_share_few_frames() {
    let rounds = std::env::var("REVIEW_ROUNDS").map_or(60, |rounds| rounds.parse().unwrap());
    for background in [Background::Threads, Background::Manual] {
        let engine = open(&MemDisk::new(), background);
        let tables: Vec<_> =
            (0..24).map(|table| engine.create_table(&format!("t{table}")).unwrap()).collect();
        std::thread::scope(|scope| {
            for thread in 0..24_u64 {
                let (engine, tables) = (&engine, &tables);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let mut batch = engine.batch();
                        for row in 0..8 {
                            let table = &tables[((thread + row * round) % 24) as usize];
                            let key = mixed(thread * 1000 + round, row).to_be_bytes();
                            batch.put(table, &key, &[1; 700]).unwrap();
                        }
                        let _unsettled = batch.commit().unwrap();
                        let table = &tables[(mixed(thread, round) % 24) as usize];
                        table.get(&mixed(thread * 1000 + round, 3).to_be_bytes()).unwrap();
                        if round % 50 == 0 {
                            let mut rows = table.rows();
                            while rows.next().unwrap().is_some() {}
                        }
                    }
                });
            }
        });
        let report = engine.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        engine.close().unwrap();
    }
}

#[test]
fn a_table_of_another_engine_is_refused() {
    let engines = [0, 1].map(|_| open(&MemDisk::new(), Background::Manual));
    let [ours, theirs] = engines.each_ref().map(|engine| engine.create_table("t").unwrap());
    let mut batch = engines[0].batch();
    batch.put(&ours, b"a", b"1").unwrap();
    let refused = batch.put(&theirs, b"b", b"2");
    assert!(matches!(refused, Err(EngineError::NoTable { .. })), "{refused:?}");
    assert!(batch.delete(&theirs, b"a").is_err());
    batch.commit().unwrap().wait().unwrap();
    assert_eq!((all(&ours).len(), all(&theirs).len()), (1, 0));
}
