//! Rows up to the largest, and deletes of runs next to them, as in a document store: leaves are
//! emptied while others are about to split them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iostrata_engine::{Engine, Settings, Table};

use crate::common::chance::Chance;
use crate::common::engine::contents;
use crate::common::is_soak;

const WRITERS: u64 = 8;
const KEYS: usize = 40;
const KEY_BYTES: usize = 4;
/// Of a page of 16 KiB, key and value.
const ROW_BYTES_MAX: usize = 8_133;
const RUN_MAX: usize = 8;
/// Bytes at the start of a document with its number.
const HEAD_BYTES: usize = 6;

fn key(number: usize) -> [u8; KEY_BYTES] {
    (number as u32).to_be_bytes()
}

/// A value that holds its number and length, as far as it is long enough for that.
fn document(number: usize, bytes: usize) -> Vec<u8> {
    let mut value = [&key(number)[..], &(bytes as u16).to_le_bytes()].concat();
    value.resize(bytes.max(HEAD_BYTES), bytes as u8);
    value.truncate(bytes);
    value
}

fn is_whole(key: &[u8], value: &[u8]) -> bool {
    let number = key.try_into().map(u32::from_be_bytes);
    number.is_ok_and(|number| value == document(number as usize, value.len()))
}

/// Puts documents and deletes runs of them until it is over. Gives the number of commits.
fn write(engine: &Engine, table: &Table, thread: u64, is_over: &AtomicBool) -> u64 {
    let mut chance = Chance::new(thread);
    let mut commits = 0;
    while !is_over.load(Ordering::Relaxed) {
        let mut batch = engine.batch();
        let first = chance.below(KEYS);
        if chance.percent(60) {
            let bytes = chance.within(1, ROW_BYTES_MAX - KEY_BYTES);
            batch.put(table, &key(first), &document(first, bytes)).unwrap();
        } else {
            for number in first..first + chance.within(1, RUN_MAX) {
                batch.delete(table, &key(number)).unwrap();
            }
        }
        // Not waited for: the leaves are changed the faster.
        let _unsettled = batch.commit_async().unwrap();
        commits += 1;
    }
    commits
}

fn read(table: &Table, is_over: &AtomicBool) {
    let mut chance = Chance::new(WRITERS);
    while !is_over.load(Ordering::Relaxed) {
        let key = key(chance.below(KEYS));
        if let Some(value) = table.get(&key).unwrap() {
            assert!(is_whole(&key, &value), "torn row {key:02x?}");
        }
    }
}

/// Each row that a scan shows is found by its key, and the other way round.
fn agree(engine: &Engine, table: &Table) {
    let scanned = contents(engine).unwrap().remove("documents").unwrap();
    for number in 0..KEYS + RUN_MAX {
        let found = table.get(&key(number)).unwrap();
        assert_eq!(found.as_ref(), scanned.get(&key(number)[..]), "{number}");
    }
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}

#[test]
fn documents_come_and_go_with_all_settings_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path(), Settings::default()).unwrap();
    let table = engine.open_table("documents").unwrap();
    let is_over = AtomicBool::new(false);
    let end = Instant::now() + Duration::from_millis(if is_soak() { 60_000 } else { 2_000 });
    std::thread::scope(|scope| {
        let (engine, table, is_over) = (&engine, &table, &is_over);
        let writers: Vec<_> =
            (0..WRITERS).map(|of| scope.spawn(move || write(engine, table, of, is_over))).collect();
        scope.spawn(move || read(table, is_over));
        while Instant::now() < end && writers.iter().all(|writer| !writer.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Ordering::Relaxed);
        let commits = writers.into_iter().map(|writer| writer.join().expect("no writer fails"));
        assert!(commits.sum::<u64>() > 0);
    });
    agree(&engine, &table);
    engine.close().unwrap();
    let engine = Engine::open(directory.path(), Settings::default()).unwrap();
    agree(&engine, &engine.open_table("documents").unwrap());
    engine.close().unwrap();
}
