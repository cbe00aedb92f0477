//! Faults at calls throughout a run with sessions: typed errors, reads that stay right, and nothing
//! acknowledged that is lost, to writers or to readers. A fault of the file of old versions does no
//! harm.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use iostrata_engine::{Counter, EngineError, Isolation};
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{Ending, MemDisk, Tear, TraceDisk};

use crate::common::chance::Chance;
use crate::common::engine::{EngineStore, How, SESSIONS};
use crate::common::failing::{EIO, ENOSPC, arm, at_calls};
use crate::common::model::{History, Tables};
use crate::common::plan::Shape;
use crate::common::record::Recording;
use crate::common::restarts::Left;
use crate::common::sessions::{Sessions, go_on};
use crate::common::store::Store;
use crate::common::sweep::{Crash, Sweep};

const SHAPE: Shape = Shape { batches: 16, tables: 2, live: &[], ..SESSIONS };
const SEED: u64 = 8;

/// Runs with one fault; whether its call was reached, and the engine stopped.
fn with_fault(how: &How, number: u64, fault: Fault) -> Result<Option<bool>, String> {
    let memory = MemDisk::new();
    let (armed, failed) = arm(&memory, number, fault);
    let disk = TraceDisk::new(memory);
    let mut history = History::new(Tables::new());
    let (mut has_stopped, mut before_close) = (false, 0);
    match how.open(Arc::new(disk.clone())) {
        Ok(engine) => {
            let mut sessions = Sessions::new(&engine, (&disk, &SHAPE), history, SEED);
            sessions.may_fail = true;
            sessions.whole()?;
            has_stopped = must_stop(failed.lock().unwrap().as_ref());
            let begun = engine.begin(Isolation::default()).err();
            if has_stopped && !matches!(begun, Some(EngineError::Poisoned { .. })) {
                return Err(format!("a stopped engine begins a transaction: {begun:?}"));
            }
            before_close = disk.points() - 1;
            history = sessions.world.committed.history;
            // Closing may fail, too; it acknowledges nothing.
            let _closed = engine.close();
        }
        Err(EngineError::Broken { what }) => return Err(format!("broken: {what}")),
        Err(_typed) => {}
    }
    armed.store(false, Ordering::Relaxed);
    let reached = failed.lock().unwrap().clone();
    let recording = Recording { seed: SEED, disk, history, opened: 0 };
    judge(recording, how, before_close).map_err(|what| format!("after {reached:?}: {what}"))?;
    Ok(reached.map(|_call| has_stopped))
}

/// Whether the call that failed leaves unknown what is durable.
fn must_stop(failed: Option<&iostrata_io::disk::memory::Call>) -> bool {
    failed.is_some_and(|call| match call.kind {
        CallKind::Sync => true,
        CallKind::Write => call.name.starts_with("redo-"),
        _ => false,
    })
}

/// What was acknowledged is there, also after a crash, and sessions go on.
fn judge(recording: Recording, how: &How, before_close: usize) -> Result<(), String> {
    let last = recording.disk.points() - 1;
    let sweep = Sweep::<EngineStore> { go_on, settles: true, ..Sweep::new(how, &SHAPE) };
    let tear = Tear::Sectors(512);
    for (point, seed) in [(before_close, 0), (before_close, 31), (last, 0), (last, 1)] {
        let crash = Crash { point, seed, tear, ending: None };
        sweep.one(&recording, crash, false).map_err(|what| format!("{crash:?}: {what}"))?;
    }
    let Recording { disk, history, .. } = recording;
    let needed = history.needed(&disk.acknowledged(last));
    let disk = disk.restarted(last, 0, Ending::Killed);
    let left = Left { disk, history, needed };
    let crash = Crash { point: last, seed: 0, tear, ending: None };
    let lived = sweep.live(left, crash, &mut Chance::new(last as u64));
    lived.map_err(|what| format!("restarted: {what}")).map(|_life| ())
}

fn of_sessions(fault: Fault) {
    let how = How::with(&[("lock_wait_timeout", "0")]);
    at_calls("sessions", fault, |number| with_fault(&how, number, fault));
}

#[test]
fn eio_at_every_call() {
    of_sessions(EIO);
}

#[test]
fn enospc_at_calls() {
    of_sessions(ENOSPC);
}

#[test]
fn a_short_write_at_calls() {
    of_sessions(Fault::Short(700));
}

const ROWS: u32 = 30;
const ROUNDS: u8 = 40;

/// One call of the spill file in two fails, of these kinds. Old versions that cannot be written
/// stay in memory; those that cannot be read are an error to the caller, which may try again.
fn spill_fails(kinds: &'static [CallKind], fault: Fault) {
    let how = How::with(&[
        ("version_log_memory", "256K"),
        ("buffer_pool_size", "1M"),
        ("redo_log_capacity", "2M"),
        ("log_buffer_size", "1M"),
    ]);
    let memory = MemDisk::new();
    let (calls, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let seen = Arc::clone(&failed);
    let engine = how.open(Arc::new(memory.clone())).unwrap();
    memory.before_each(move |call| {
        let is_meant = call.name == "engine.versions" && kinds.contains(&call.kind);
        if is_meant && calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            seen.fetch_add(1, Ordering::Relaxed);
            return fault;
        }
        Fault::None
    });
    let table = engine.create_table("t").unwrap();
    let fill = |round: u8| {
        let mut t = engine.begin(Isolation::ReadCommitted).unwrap();
        for row in 0..ROWS {
            t.put(&table, &row.to_be_bytes(), &[round; 600]).unwrap();
        }
        t.commit().unwrap();
    };
    fill(0);
    let reader = engine.begin(Isolation::Snapshot).unwrap();
    let mut refused = 0;
    for round in 1..=ROUNDS {
        fill(round);
        engine.step(u64::from(round) * 10_000).unwrap();
        for row in 0..ROWS {
            match reader.get(&table, &row.to_be_bytes()) {
                Ok(found) => assert_eq!(found.as_deref(), Some(&[0; 600][..]), "row {row}"),
                Err(error) => {
                    assert!(matches!(error, EngineError::Io(_)), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(failed.load(Ordering::Relaxed) > 0, "{kinds:?} never failed");
    assert_eq!(refused > 0, kinds.contains(&CallKind::Read), "{refused} reads refused");
    drop(reader);
    let mut steps = 0;
    while engine.counters()[Counter::HistoryListLength] > 0 {
        // Purge reads the file, too, and tries again.
        let step = engine.step(1_000_000);
        assert!(step.is_ok() || matches!(step, Err(EngineError::Io(_))), "{step:?}");
        steps += 1;
        assert!(steps < 1_000, "purge never ends");
    }
    fill(99);
    assert!(engine.check().unwrap().is_clean());
    engine.close().unwrap();
}

#[test]
fn a_spill_file_that_fails_does_no_harm() {
    spill_fails(&[CallKind::Open], EIO);
    spill_fails(&[CallKind::Write, CallKind::SetLen], EIO);
    spill_fails(&[CallKind::Write, CallKind::SetLen], ENOSPC);
    spill_fails(&[CallKind::Write], Fault::Short(700));
    spill_fails(&[CallKind::Read], EIO);
}

/// Whether or not old versions can be read, pages are written and the engine closes; what purge
/// could not find out goes after the next opening.
#[test]
fn a_spill_file_that_cannot_be_read_keeps_no_engine_open() {
    let settings = [("version_log_memory", "256K"), ("redo_log_capacity", "2M")];
    let how = How::with(&settings);
    let memory = MemDisk::new();
    let engine = how.open(Arc::new(memory.clone())).unwrap();
    let table = engine.create_table("t").unwrap();
    let reader = engine.begin(Isolation::Snapshot).unwrap();
    for number in 0..700u32 {
        let key = (number % 10).to_be_bytes();
        let mut batch = engine.batch();
        // A segment without keys to purge is dropped unread.
        match number {
            690.. => batch.delete(&table, &key),
            _ if number % 7 == 3 => batch.delete(&table, &key),
            _ => batch.put(&table, &key, &[7; 1_200]),
        }
        .unwrap();
        batch.commit().unwrap();
        engine.step(u64::from(number) * 10_000).unwrap();
    }
    memory.before_each(|call| match call.kind {
        CallKind::Read if call.name == "engine.versions" => EIO,
        _ => Fault::None,
    });
    drop(reader);
    assert!(matches!(engine.step(10_000_000), Err(EngineError::Io(_))));
    engine.close().unwrap();
    let store = EngineStore(how.open(Arc::new(memory.clone())).unwrap());
    assert!(!store.0.recovery().was_clean);
    store.settle().unwrap();
    assert!(store.contents().unwrap()["t"].is_empty());
}
