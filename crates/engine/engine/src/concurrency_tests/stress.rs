//! Many threads on small engines: splits and joins below scans, settings that change, a close.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostrata_io::disk::MemDisk;

use super::{all, open};
use crate::tests::small;
use crate::{Background, Direction, Disks, Engine, EngineError, RequestError, Settings, Table};

/// Rounds of a loop: many in the long form.
pub(crate) fn rounds(short: u64) -> u64 {
    if std::env::var_os("IOSTRATA_SOAK").is_some() { 20 * short } else { short }
}

/// A number that looks like chance and follows from these two.
pub(crate) fn mixed(seed: u64, step: u64) -> u64 {
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
        let ticket = batch.commit_async().unwrap();
        if round % 16 == 0 {
            ticket.wait().unwrap();
        }
    }
}

fn scan(table: &Table, direction: Direction) {
    let mut rows = table.cursor(.., direction);
    let (mut last, mut anchors): (Option<Vec<u8>>, Vec<u32>) = (None, Vec::new());
    while let Some((key, _)) = rows.next_row().unwrap() {
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
    let rounds = rounds(200);
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
        let _waited_for_below = batch.commit_async().unwrap();
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
    let redo = &engine.parts().storage.redo;
    redo.make_durable(redo.lsn()).unwrap();
    let before: Vec<_> = all(&table);
    drop((engine, table));
    let engine = open();
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert!(all(&engine.table("t").unwrap().unwrap()) == before);
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
                            match batch.commit() {
                                Ok(()) => {}
                                Err(EngineError::Request(RequestError::Closed)) => return row,
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
    let rounds = rounds(60);
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
                        let _unsettled = batch.commit_async().unwrap();
                        let table = &tables[(mixed(thread, round) % 24) as usize];
                        table.get(&mixed(thread * 1000 + round, 3).to_be_bytes()).unwrap();
                        if round % 50 == 0 {
                            let mut rows = table.cursor(.., Direction::Forward);
                            while rows.next_row().unwrap().is_some() {}
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
