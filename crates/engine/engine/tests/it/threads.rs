//! Many threads on a real directory: what they wrote is there, while they write and afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use iostrata_engine::{
    Background, Counter, Direction, Engine, EngineError, OpenError, RequestError, Table,
};
use iostrata_io::disk::MemDisk;

use crate::common::chance::Chance;
use crate::common::engine::{How, contents};
use crate::common::is_soak;

const WRITERS: u64 = 4;
const KEYS: u64 = 300;
/// Rows of a commit that leaves more than purge takes meanwhile.
const RUN: u64 = 200;

fn key(thread: u64, number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&thread.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// A value that identifies itself: key, version, and a length that follows from both.
fn value(thread: u64, number: u64, version: u64) -> Vec<u8> {
    let mut value = [thread, number, version].map(u64::to_le_bytes).concat();
    value.resize(24 + ((number * 37 + version * 101) % 500) as usize, version as u8);
    value
}

/// Whether a row is one that its writer wrote.
fn is_whole(found: &[u8], row: &[u8]) -> bool {
    let Some(words) = row.first_chunk::<24>() else { return false };
    let word = |at: usize| u64::from_le_bytes(words[at * 8..][..8].try_into().unwrap());
    let (thread, number, version) = (word(0), word(1), word(2));
    found == key(thread, number) && row == value(thread, number, version)
}

/// Writes until its rounds are over; what each key holds in the end.
fn write(engine: &Engine, table: &Table, thread: u64, rounds: u64) -> Vec<Option<u64>> {
    let mut chance = Chance::new(thread);
    let mut versions = vec![None; KEYS as usize];
    for round in 0..rounds {
        let mut batch = engine.batch();
        for _ in 0..chance.within(1, 12) {
            let number = chance.below(KEYS as usize);
            let key = key(thread, number as u64);
            if chance.percent(30) {
                batch.delete(table, &key).unwrap();
                versions[number] = None;
            } else {
                let value = value(thread, number as u64, round);
                batch.put(table, &key, &value).unwrap();
                versions[number] = Some(round);
            }
        }
        let ticket = batch.commit_async().unwrap();
        if chance.percent(60) {
            ticket.wait().unwrap();
            assert!(ticket.is_durable());
        }
    }
    versions
}

fn read(table: &Table, thread: u64, is_over: &AtomicBool) {
    let mut chance = Chance::new(1_000 + thread);
    while !is_over.load(Ordering::Relaxed) {
        let (of, number) = (chance.next() % WRITERS, chance.next() % KEYS);
        if let Some(row) = table.get(&key(of, number)).unwrap() {
            assert!(is_whole(&key(of, number), &row), "torn row {of} {number}");
        }
    }
}

fn scan(table: &Table, is_over: &AtomicBool) {
    let mut is_backward = false;
    while !is_over.load(Ordering::Relaxed) {
        let direction = if is_backward { Direction::Backward } else { Direction::Forward };
        let mut range = table.cursor(.., direction);
        let mut last: Option<Vec<u8>> = None;
        while let Some((key, row)) = range.next_row().unwrap() {
            assert!(is_whole(key, row), "torn row {key:02x?}");
            let follows =
                last.as_deref().is_none_or(|last| (last < key) != is_backward && last != key);
            assert!(follows, "{key:02x?} after {last:02x?}");
            last = Some(key.to_vec());
        }
        is_backward = !is_backward;
    }
}

#[test]
fn writers_readers_and_scans() {
    let directory = tempfile::tempdir().unwrap();
    let how = How::with(&[
        ("data_files", "4"),
        ("redo_log_capacity", "1M"),
        ("buffer_pool_size", "512K"),
    ]);
    let engine = Engine::open(directory.path(), how.settings()).unwrap();
    let table = engine.create_table("rows").unwrap();
    let rounds = if is_soak() { 20_000 } else { 150 };
    let is_over = AtomicBool::new(false);
    let wanted = std::thread::scope(|scope| {
        let (engine, table, is_over) = (&engine, &table, &is_over);
        let writers: Vec<_> =
            (0..WRITERS).map(|of| scope.spawn(move || write(engine, table, of, rounds))).collect();
        for of in 0..2 {
            scope.spawn(move || read(table, of, is_over));
        }
        scope.spawn(move || scan(table, is_over));
        let joined: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        joined.into_iter().map(|versions| versions.expect("no writer panics")).collect::<Vec<_>>()
    });
    let is_as_written = |engine: &Engine| {
        let all = contents(engine).unwrap();
        let rows = &all["rows"];
        let live = wanted.iter().flatten().flatten().count();
        assert_eq!(rows.len(), live);
        for (thread, versions) in (0..).zip(&wanted) {
            for (number, version) in (0..).zip(versions) {
                let wanted = version.map(|version| value(thread, number, version));
                assert_eq!(rows.get(&key(thread, number)[..]), wanted.as_ref());
            }
        }
        let report = engine.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    };
    is_as_written(&engine);
    engine.close().unwrap();
    let engine = Engine::open(directory.path(), how.settings()).unwrap();
    is_as_written(&engine);
    engine.close().unwrap();
}

#[test]
fn a_second_engine_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let settings = How::with(&[]).settings();
    let first = Engine::open(directory.path(), settings.clone()).unwrap();
    let second = Engine::open(directory.path(), settings.clone());
    assert!(matches!(second, Err(EngineError::Open(OpenError::Locked(_)))), "{:?}", second.err());
    first.close().unwrap();
    Engine::open(directory.path(), settings).expect("free again").close().unwrap();
}

/// Deletes rows that a view keeps for purge and puts them again, until the engine is closed.
fn outrun_purge(engine: &Engine, table: &Table, thread: u64) -> Result<(), EngineError> {
    for round in 0.. {
        let _view = engine.read_view()?;
        let mut batch = engine.batch();
        for number in 0..RUN {
            let key = key(thread, number);
            match round % 2 {
                0 => batch.put(table, &key, b"v")?,
                _ => batch.delete(table, &key)?,
            }
        }
        let _unsettled = batch.commit_async()?;
    }
    Ok(())
}

/// Purge takes one row at a time here, so that what is left to it grows as long as others write.
#[test]
fn closing_ends_while_writers_outrun_purge() {
    let (ends, has_ended) = channel();
    // Not joined: a close that hangs must not keep the test from saying so.
    std::thread::spawn(move || {
        let mut how = How::with(&[("purge_batch_size", "1"), ("redo_log_capacity", "1M")]);
        how.background = Background::Threads;
        let engine = how.open(Arc::new(MemDisk::new())).unwrap();
        let table = engine.create_table("rows").unwrap();
        std::thread::scope(|scope| {
            let writer = |of| outrun_purge(&engine, &table, of);
            let writers: Vec<_> = (0..WRITERS).map(|of| scope.spawn(move || writer(of))).collect();
            while engine.counters()[Counter::HistoryListLength] < 100 {
                assert!(writers.iter().all(|writer| !writer.is_finished()));
                std::thread::yield_now();
            }
            engine.clone().close().unwrap();
            for writer in writers {
                let ended = writer.join().unwrap();
                let is_closed = matches!(ended, Err(EngineError::Request(RequestError::Closed)));
                assert!(is_closed, "{ended:?}");
            }
        });
        ends.send(()).unwrap();
    });
    has_ended.recv_timeout(Duration::from_secs(60)).expect("the close ends");
}
