//! A proof must be able to fail: with any one safeguard of transactions taken away it does, and
//! with all of them it does not. But for the histories, which are repeated until one is wrong, all
//! of it is on one thread.

use std::sync::Arc;

use iostrata_engine::{Direction, Engine, EngineError, Isolation, Safeguard, Table, Transaction};
use iostrata_io::disk::{MemDisk, Tear, TraceDisk};

use crate::common::engine::How;
use crate::common::lists::history;
use crate::common::model::table_name;

use Isolation::{ReadCommitted, RepeatableRead, Snapshot};

const LEVELS: [Isolation; 3] = [ReadCommitted, RepeatableRead, Snapshot];

/// Histories that are recorded until one is wrong; nearly always the first is.
const ROUNDS: usize = 40;

/// What is seen without a safeguard; with all of them the proof holds.
fn is_found(safeguard: Safeguard, proof: impl Fn(Option<Safeguard>) -> Result<(), String>) {
    proof(None).unwrap_or_else(|what| panic!("with {safeguard:?} in place: {what}"));
    let what = proof(Some(safeguard)).expect_err("what is missing is found");
    eprintln!("{safeguard:?} | {what}");
}

fn without(engine: &Engine, removed: Option<Safeguard>) {
    if let Some(safeguard) = removed {
        engine.remove_safeguard(safeguard);
    }
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// All rows, read in both directions and one by one.
fn rows(t: &mut Transaction, table: &Table) -> Result<Rows, EngineError> {
    let of = |direction| {
        let mut cursor = t.cursor(table, .., direction)?;
        let mut rows = Rows::new();
        while let Some((key, value)) = cursor.next_row()? {
            rows.push((key.to_vec(), value.to_vec()));
        }
        Ok::<_, EngineError>(rows)
    };
    let forward = of(Direction::Forward)?;
    let backward: Rows = of(Direction::Backward)?.into_iter().rev().collect();
    let mut looked_up = Rows::new();
    for key in 0..=u8::MAX {
        looked_up.extend(t.get(table, &[key])?.map(|value| (vec![key], value)));
    }
    assert_eq!((&forward, &forward), (&backward, &looked_up));
    Ok(forward)
}

fn is_same(found: Result<Rows, EngineError>, wanted: &Rows) -> Result<(), String> {
    let found = found.map_err(|error| error.to_string())?;
    let (seen, all) = (found.len(), wanted.len());
    if found == *wanted { Ok(()) } else { Err(format!("other rows are seen: {seen} of {all}")) }
}

fn put(engine: &Engine, table: &Table, keys: std::ops::Range<u8>, value: &[u8]) {
    let mut t = engine.begin(ReadCommitted).unwrap();
    keys.for_each(|key| t.put(table, &[key], value).unwrap());
    t.commit().unwrap();
}

fn delete(engine: &Engine, table: &Table, keys: std::ops::Range<u8>) {
    let mut t = engine.begin(ReadCommitted).unwrap();
    keys.for_each(|key| assert!(t.delete(table, &[key]).unwrap()));
    t.commit().unwrap();
}

/// A snapshot is read again after others' commits and after purge has done all that it may.
fn a_snapshot_stays(
    removed: Option<Safeguard>,
    changes: impl Fn(&Engine, &Table),
) -> Result<(), String> {
    for level in [RepeatableRead, Snapshot] {
        let engine = How::with(&[]).open(Arc::new(MemDisk::new())).unwrap();
        let table = engine.create_table("rows").unwrap();
        put(&engine, &table, 0..40, b"old");
        let mut reader = engine.begin(level).unwrap();
        let first = rows(&mut reader, &table).unwrap();
        without(&engine, removed);
        changes(&engine, &table);
        for now_us in 0..5 {
            engine.step(now_us).map_err(|error| error.to_string())?;
            is_same(rows(&mut reader, &table), &first)?;
        }
    }
    Ok(())
}

/// Records histories on a real directory until one has an anomaly.
fn histories(level: Isolation, removed: Option<Safeguard>) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let how = How::with(&[("buffer_pool_size", "1M"), ("redo_log_capacity", "4M")]);
    let engine = Engine::open(directory.path(), how.settings()).unwrap();
    without(&engine, removed);
    for round in 0..if removed.is_some() { ROUNDS } else { 1 } {
        let found = history(&engine, &"n".repeat(round + 1), level, 200)?.anomalies(level);
        if let Some(first) = found.first() {
            return Err(format!("{level:?}, history {round}: {first:?}"));
        }
    }
    Ok(())
}

#[test]
fn locks_released_before_the_frame_is_appended_are_found() {
    for level in LEVELS {
        is_found(Safeguard::LocksUntilAppended, |removed| histories(level, removed));
    }
}

#[test]
fn histories_find_what_snapshots_lack() {
    for level in [RepeatableRead, Snapshot] {
        is_found(Safeguard::VersionsAreKept, |removed| histories(level, removed));
        is_found(Safeguard::VersionsStay, |removed| histories(level, removed));
        is_found(Safeguard::PurgeWaitsForSnapshots, |removed| histories(level, removed));
    }
}

#[test]
fn versions_that_are_not_kept_are_found() {
    let changes = |engine: &Engine, table: &Table| put(engine, table, 0..20, b"new");
    is_found(Safeguard::VersionsAreKept, |removed| a_snapshot_stays(removed, changes));
    let deletes = |engine: &Engine, table: &Table| delete(engine, table, 0..20);
    is_found(Safeguard::VersionsAreKept, |removed| a_snapshot_stays(removed, deletes));
    let inserts = |engine: &Engine, table: &Table| put(engine, table, 50..60, b"new");
    is_found(Safeguard::VersionsAreKept, |removed| a_snapshot_stays(removed, inserts));
}

#[test]
fn segments_of_the_version_log_that_are_dropped_early_are_found() {
    let changes = |engine: &Engine, table: &Table| put(engine, table, 0..20, b"new");
    is_found(Safeguard::VersionsStay, |removed| a_snapshot_stays(removed, changes));
    let deletes = |engine: &Engine, table: &Table| delete(engine, table, 0..20);
    is_found(Safeguard::VersionsStay, |removed| a_snapshot_stays(removed, deletes));
}

#[test]
fn a_purge_that_ignores_snapshots_is_found() {
    let changes = |engine: &Engine, table: &Table| put(engine, table, 0..20, b"new");
    is_found(Safeguard::PurgeWaitsForSnapshots, |removed| a_snapshot_stays(removed, changes));
    let deletes = |engine: &Engine, table: &Table| delete(engine, table, 0..20);
    is_found(Safeguard::PurgeWaitsForSnapshots, |removed| a_snapshot_stays(removed, deletes));
}

/// A row that is deleted, purged too early and not written: a snapshot from before it was deleted
/// would not know of a conflict.
#[test]
fn a_conflict_that_a_purge_made_invisible_is_found() {
    let proof = |removed: Option<Safeguard>| {
        let engine = How::with(&[]).open(Arc::new(MemDisk::new())).unwrap();
        let table = engine.create_table("rows").unwrap();
        put(&engine, &table, 0..40, b"old");
        let mut late = engine.begin(Snapshot).unwrap();
        without(&engine, removed);
        delete(&engine, &table, 0..20);
        engine.step(0).unwrap();
        match late.put(&table, &[5], b"late") {
            Err(EngineError::Transaction(_)) => Ok(()),
            other => Err(format!("no conflict with a later deletion: {other:?}")),
        }
    };
    is_found(Safeguard::PurgeWaitsForSnapshots, proof);
}

/// What a reader has read and passed on must not be gone after a crash.
#[test]
fn a_ticket_that_does_not_wait_for_what_was_read_is_found() {
    for level in LEVELS {
        for scans in [false, true] {
            is_found(Safeguard::TicketWaitsForReads, |removed| told(level, scans, removed));
        }
    }
}

fn told(level: Isolation, scans: bool, removed: Option<Safeguard>) -> Result<(), String> {
    let disk = TraceDisk::new(MemDisk::new());
    let how = How::with(&[]);
    let engine = how.open(Arc::new(disk.clone())).unwrap();
    let table = engine.create_table("rows").unwrap();
    without(&engine, removed);
    let mut writer = engine.begin(level).unwrap();
    writer.put(&table, &[1], b"written").unwrap();
    let _not_waited_for = writer.commit_async().unwrap();
    let reader = engine.begin(level).unwrap();
    if scans {
        let seen = reader.range(&table, ..).unwrap().count();
        assert_eq!(seen, 1);
    } else {
        assert!(reader.get(&table, &[1]).unwrap().is_some());
    }
    reader.commit().unwrap();
    let image = disk.image(disk.points() - 1, 0, Tear::Whole);
    let recovered = how.open(Arc::new(image)).unwrap();
    let table = recovered.table("rows").unwrap().unwrap();
    let found = table.get(&[1]).unwrap();
    found.map(drop).ok_or(format!("{level:?}: a row that was read is gone after a crash"))
}

/// Versions in the data have numbers; what an opening finds is older than every new snapshot.
#[test]
fn a_clock_that_begins_anew_is_found() {
    for is_closed in [true, false] {
        is_found(Safeguard::ClockGoesOn, |removed| opened_again(is_closed, removed));
    }
}

fn opened_again(is_closed: bool, removed: Option<Safeguard>) -> Result<(), String> {
    for level in [RepeatableRead, Snapshot] {
        let (disk, how) = (MemDisk::new(), How::with(&[]));
        let engine = how.open(Arc::new(disk.clone())).unwrap();
        let table = engine.create_table("rows").unwrap();
        put(&engine, &table, 0..20, b"old");
        let reader = engine.begin(Snapshot).unwrap();
        put(&engine, &table, 10..30, b"new");
        delete(&engine, &table, 0..5);
        drop(reader);
        let wanted = rows(&mut engine.begin(level).unwrap(), &table).unwrap();
        drop(table);
        if is_closed {
            engine.close().unwrap()
        } else {
            drop(engine)
        }
        let engine = how.open(Arc::new(disk)).unwrap();
        without(&engine, removed);
        let table = engine.table("rows").unwrap().unwrap();
        is_same(rows(&mut engine.begin(level).unwrap(), &table), &wanted)?;
        // Nor does an update find a conflict with what was there before.
        let mut t = engine.begin(level).unwrap();
        t.put(&table, &[15], b"newer").map_err(|error| error.to_string())?;
        t.commit().unwrap();
    }
    Ok(())
}

#[test]
fn an_entry_that_is_left_in_an_index_is_found() {
    is_found(Safeguard::EntriesFollowRows, |removed| {
        let how = How { is_indexed: true, ..How::with(&[]) };
        let engine = how.open(Arc::new(MemDisk::new())).unwrap();
        without(&engine, removed);
        let table = engine.create_table(&table_name(0)).unwrap();
        put(&engine, &table, 0..20, b"ab");
        put(&engine, &table, 0..10, b"abc");
        delete(&engine, &table, 5..15);
        let report = engine.check().unwrap();
        report.problems.first().map_or(Ok(()), |problem| Err(problem.to_string()))
    });
}
