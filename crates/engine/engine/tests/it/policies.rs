//! Every policy on a real engine: with a redo that is soon full, and exchanged under load.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use iostrata_engine::store::layout::{BATCH_AT, BATCH_MAGIC, DOUBLEWRITE_FILES, batch};
use iostrata_engine::{Background, Counter, Engine, EngineError, Isolation, RequestError, Table};
use iostrata_io::disk::{FileName, MemDisk, Tear};

use crate::common::chance::Chance;
use crate::common::engine::{EXCHANGED, EngineStore, How};
use crate::common::is_soak;
use crate::common::plan::Shape;
use crate::common::quiet::Watch;
use crate::common::record::record_threads;

const POLICIES: [&str; 13] = [
    "fixed-100",
    "io-capacity",
    "reflex",
    "estimate",
    "keep-average",
    "adaptive",
    "lsn-age",
    "page-cleaner-56",
    "page-cleaner-57",
    "page-cleaner-84",
    "mariadb",
    "percona-high-checkpoint",
    "steady",
];

const WRITERS: u64 = 2;
const KEYS: u64 = 2_000;

fn key(writer: u64, number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&writer.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// What a row holds after its last change in this round.
fn value(number: u64, round: u64) -> Vec<u8> {
    let mut value = round.to_be_bytes().to_vec();
    value.resize(100 + (number % 100) as usize, number as u8);
    value
}

/// Changes rows until it is stopped or has made so many batches; gives the last round of each row
/// that was acknowledged as durable.
fn write(
    engine: &Engine,
    table: &Table,
    writer: u64,
    batches: u64,
    is_over: &AtomicBool,
) -> Vec<u64> {
    let mut chance = Chance::new(writer + 1);
    let mut rounds = vec![0; KEYS as usize];
    for round in 1..=batches {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let mut batch = engine.batch();
        let numbers: Vec<u64> = (0..8).map(|_| chance.below(KEYS as usize) as u64).collect();
        for number in &numbers {
            batch.put(table, &key(writer, *number), &value(*number, round)).unwrap();
        }
        batch.commit().unwrap();
        for number in numbers {
            rounds[number as usize] = round;
        }
    }
    rounds
}

fn holds(table: &Table, writer: u64, rounds: &[u64]) {
    for (number, round) in (0..).zip(rounds) {
        let found = table.get(&key(writer, number)).unwrap();
        let expected = (*round > 0).then(|| value(number, *round));
        assert_eq!(found, expected, "row {number} of writer {writer}");
    }
}

fn how(policy: &'static str, redo: &'static str) -> How {
    How::with(&[
        ("buffer_pool_size", "1M"),
        ("page_size", "4K"),
        ("redo_log_capacity", redo),
        ("data_files", "1"),
        ("doublewrite_pages", "32"),
        ("policy", policy),
    ])
}

/// Copies the files of an open engine as they are at one moment. Copying takes longer, so it is
/// done again where something was written meanwhile.
fn copied_at_once(engine: &Engine, from: &Path, to: &Path) {
    let written = || {
        let counters = engine.counters();
        let of = [
            Counter::DataPendingWrites,
            Counter::DblwrPagesWritten,
            Counter::LogCheckpoints,
            Counter::LogWrites,
            Counter::PagesWritten,
        ];
        of.map(|counter| counters[counter])
    };
    loop {
        let before = written();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
        if before[0] == 0 && written() == before {
            break;
        }
    }
}

#[test]
fn no_policy_stops_a_small_redo_for_good() {
    let batches = if is_soak() { 6_000 } else { 600 };
    let watch = Watch::new();
    for policy in POLICIES {
        watch.on(format!("writers of a small redo under {policy}"));
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), how(policy, "256K").settings()).unwrap();
        let table = engine.create_table("rows").unwrap();
        let begun = engine.counters()[Counter::LsnCurrent];
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (engine, table, is_over) = (&engine, &table, &is_over);
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| scope.spawn(move || write(engine, table, writer, batches, is_over)))
                .collect();
            for (writer, rounds) in (0..).zip(writers) {
                holds(table, writer, &rounds.join().unwrap());
            }
        });
        let counters = engine.counters();
        let made = counters[Counter::LsnCurrent] - begun;
        assert!(made > 4 * (256 << 10), "{policy}: the redo was filled only by {made} bytes");
        assert!(counters[Counter::LogCheckpoints] > 3, "{policy}");
        engine.close().unwrap();
    }
}

/// How an engine that threads wait in comes to its end.
#[derive(Clone, Copy, Debug)]
enum End {
    Close,
    Drop,
}

/// Puts and deletes rows until the engine is closed, or so many times.
fn churn(engine: &Engine, table: &Table, writer: u64, batches: u64) {
    for number in 0..batches {
        let key = key(writer, number / 2);
        let mut batch = engine.batch();
        let changed = match number % 2 {
            0 => batch.put(table, &key, &value(number % 100, number)),
            _ => batch.delete(table, &key),
        };
        match changed.and_then(|()| batch.commit()) {
            Ok(()) => {}
            Err(EngineError::Request(RequestError::Closed)) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The least redo, filled to where the policy lets writers wait, by two of them and by purge; then
/// the engine ends.
fn end_while_threads_wait(policy: &'static str, end: End) {
    let slow = [("io_capacity", "100"), ("io_capacity_max", "100"), ("flush_sync", "OFF")];
    let mut how = how(policy, "64K");
    how.settings.extend(slow);
    how.settings.push(("purge_batch_size", "4"));
    let how = How { background: Background::Threads, ..how };
    let engine = how.open(Arc::new(MemDisk::new())).unwrap();
    let table = engine.create_table("rows").unwrap();
    // What is deleted as long as it is open is left to purge.
    let reader = engine.begin(Isolation::Snapshot).unwrap();
    churn(&engine, &table, 7, 400);
    // Counted before, as purge may be through with all of it right afterwards.
    let purged = engine.counters()[Counter::RowsPurged];
    drop(reader);
    let wait_purge = || {
        while engine.counters()[Counter::RowsPurged] < purged + 8 {
            std::thread::yield_now();
        }
    };
    match end {
        End::Close => {
            std::thread::scope(|scope| {
                for writer in 0..WRITERS {
                    let (engine, table) = (&engine, &table);
                    scope.spawn(move || churn(engine, table, writer, u64::MAX));
                }
                wait_purge();
                engine.clone().close().unwrap();
            });
        }
        End::Drop => {
            wait_purge();
            drop(engine);
        }
    }
}

#[test]
fn closing_ends_waits_for_pages_to_be_written() {
    // Side by side, because nearly all of it is waiting. Not joined: one that hangs must not keep
    // the test from saying so.
    let begin = |(policy, end)| {
        let (ends, has_ended) = channel();
        std::thread::spawn(move || {
            end_while_threads_wait(policy, end);
            ends.send(()).unwrap();
        });
        (policy, end, has_ended)
    };
    let all = POLICIES.into_iter().flat_map(|policy| [(policy, End::Close), (policy, End::Drop)]);
    let all: Vec<_> = all.map(begin).collect();
    for (policy, end, has_ended) in all {
        let ended = has_ended.recv_timeout(Duration::from_secs(60));
        ended.unwrap_or_else(|error| panic!("{end:?} under {policy} does not end: {error}"));
    }
}

#[test]
fn policies_are_exchanged_under_load_without_a_lost_commit() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path(), how("steady", "512K").settings()).unwrap();
    let table = engine.create_table("rows").unwrap();
    let watch = Watch::new();
    let is_over = AtomicBool::new(false);
    let rounds: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let (engine, table, is_over) = (&engine, &table, &is_over);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(engine, table, writer, u64::MAX, is_over)))
            .collect();
        for limit in ["policy", "capped", "free", "auto-raised"] {
            engine.set("flush_write_limit", limit).unwrap();
            for policy in POLICIES {
                watch.on(format!("writers under {policy}, {limit}"));
                engine.set("policy", policy).unwrap();
                // Until the writers got on under it.
                let seen = engine.counters()[Counter::Commits];
                while engine.counters()[Counter::Commits] < seen + 10 {
                    let has_ended = writers.iter().any(|writer| writer.is_finished());
                    assert!(!has_ended, "a writer stopped under {policy}, {limit}");
                    std::thread::yield_now();
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    // The files as they are while the engine is open are what a killed process leaves.
    let left = tempfile::tempdir().unwrap();
    copied_at_once(&engine, directory.path(), left.path());
    let killed = Engine::open(left.path(), how("adaptive", "512K").settings()).unwrap();
    let found = killed.open_table("rows").unwrap();
    for (writer, rounds) in (0..).zip(&rounds) {
        holds(&found, writer, rounds);
    }
    assert!(killed.check().unwrap().is_clean());
    killed.close().unwrap();
    engine.close().unwrap();
}

/// Doublewrite batches in a disk that were begun while another one was under way.
fn begun_beside_another(disk: &MemDisk) -> usize {
    let overlaps = |file: usize| {
        let name = FileName::new(format!("doublewrite-{file}")).unwrap();
        let content = disk.content(&name)?;
        let header = content.get(BATCH_AT as usize..)?;
        let number = |at: usize| {
            let bytes = header.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let is_batch = header.starts_with(&BATCH_MAGIC);
        Some(is_batch && number(batch::SETTLED)? < number(batch::SEQUENCE)?)
    };
    (0..DOUBLEWRITE_FILES).filter(|file| overlaps(*file) == Some(true)).count()
}

/// What the crash sweep over changing policies cuts short: batches side by side, under several
/// policies and sizes of the redo.
#[test]
fn batches_are_under_way_side_by_side_where_the_sweep_exchanges_policies() {
    let (how, shape) = (How::side_by_side(), Shape { batches: 40, ..EXCHANGED });
    let mut seen = 0;
    // How many there are depends on how threads take turns; on a busy machine they are fewer.
    for seed in 1_100..1_120 {
        let recording = record_threads::<EngineStore>(seed, 4, &shape, &how).unwrap();
        let points = (recording.opened..recording.disk.points()).step_by(17);
        let image = |point| recording.disk.image(point, 1, Tear::Whole);
        seen += points.map(|point| begun_beside_another(&image(point))).sum::<usize>();
        if seen >= 10 {
            break;
        }
    }
    assert!(seen >= 10, "{seen} images with a batch that was begun beside another one");
}
