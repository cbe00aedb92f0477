//! Faults at calls throughout a run: the engine answers with a typed error, never panics,
//! acknowledges nothing that is not durable, and stops writing when it cannot know what is durable.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_engine::{Engine, EngineError};
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{Ending, MemDisk, Tear, TraceDisk};

use crate::common::altered::Alteration;
use crate::common::chance::Chance;
use crate::common::engine::{EngineStore, How, STILL, commit};
use crate::common::failing::{EIO, ENOSPC, FailedCall, arm, at_calls};
use crate::common::model::{Change, History, Tables, table_name};
use crate::common::plan::{Op, Shape, Step, plan};
use crate::common::quiet::{Watch, quietly};
use crate::common::record::{Recording, record};
use crate::common::restarts::Left;
use crate::common::sweep::{Crash, Sweep};

const SHAPE: Shape = Shape { batches: 40, tables: 2, ..STILL };
const SEED: u64 = 5;

/// A run whose n-th call fails.
struct Run {
    disk: TraceDisk,
    failed: FailedCall,
    fault: Fault,
    armed: Arc<AtomicBool>,
    /// The engine misses failed syncs: then its answers cannot be checked.
    is_deaf: bool,
    history: History,
    next: u64,
    waiting: Vec<(u64, iostrata_engine::Ticket)>,
}

impl Run {
    fn new(number: u64, fault: Fault) -> Self {
        let memory = MemDisk::new();
        let (armed, failed) = arm(&memory, number, fault);
        let disk = TraceDisk::new(memory);
        let history = History::new(Tables::new());
        let is_deaf = false;
        Self { disk, failed, fault, armed, is_deaf, history, next: 0, waiting: Vec::new() }
    }

    /// Whether the call that failed leaves unknown what is durable.
    fn must_stop(&self) -> bool {
        let failed = self.failed.lock().unwrap();
        failed.as_ref().is_some_and(|call| match call.kind {
            CallKind::Sync => true,
            CallKind::Write => call.name.starts_with("redo-"),
            _ => false,
        })
    }

    fn all(&mut self, engine: &Engine) -> Result<(), String> {
        let mut now_us = 0;
        for step in plan(SEED, &SHAPE) {
            let stopped = self.must_stop();
            let result = match step {
                Step::Create(table) => self.create(engine, table),
                Step::Drop(table) => self.drop_table(engine, table),
                Step::Batch { ops, is_awaited } => self.batch(engine, &ops, is_awaited),
                Step::WaitAll => self.wait_all(),
                Step::Checkpoint => engine.checkpoint(),
                Step::Background(_) => {
                    now_us += 10_000;
                    engine.step(now_us).map(|_next_us| ())
                }
                Step::Scan { .. } | Step::Set(..) => Ok(()),
            };
            if let Err(EngineError::Broken { what }) = &result {
                return Err(format!("a fault is no broken rule: {what}"));
            }
            result.as_ref().map_or_else(|error| self.is_named(error), |()| Ok(()))?;
            if stopped && !self.is_deaf {
                self.refuses(engine)?;
            }
        }
        Ok(())
    }

    /// A full disk is distinguished from one that failed, also once the engine has stopped.
    fn is_named(&self, error: &EngineError) -> Result<(), String> {
        let is_of_disk = matches!(
            error,
            EngineError::NoSpace { .. } | EngineError::Io(_) | EngineError::Poisoned { .. }
        );
        match is_of_disk && error.is_full() != (self.fault == ENOSPC) {
            true => Err(format!("{error:?} is_full {} of {:?}", error.is_full(), self.fault)),
            false => Ok(()),
        }
    }

    /// After a failure that leaves unknown what is durable, every write is refused with its cause.
    fn refuses(&self, engine: &Engine) -> Result<(), String> {
        let Ok(Some(table)) = engine.table(&table_name(0)) else { return Ok(()) };
        let mut batch = engine.batch();
        let put = batch.put(&table, b"after", b"the failure");
        match put.and_then(|()| batch.commit()) {
            Err(EngineError::Poisoned { .. }) => {}
            other => return Err(format!("a stopped engine answers a write with {other:?}")),
        }
        match engine.create_table("another") {
            Err(EngineError::Poisoned { .. }) => Ok(()),
            other => Err(format!("a stopped engine answers create_table with {:?}", other.err())),
        }
    }

    fn push(&mut self, change: Change) -> u64 {
        self.next += 1;
        self.history.push(self.next, change);
        self.next
    }

    fn create(&mut self, engine: &Engine, table: usize) -> Result<(), EngineError> {
        let name = table_name(table);
        match engine.create_table(&name) {
            Ok(_table) => {
                let id = self.push(Change::Create(table));
                self.disk.ack(id);
                Ok(())
            }
            Err(error) => {
                // It may be there all the same: not acknowledged.
                if matches!(engine.table(&name), Ok(Some(_))) || self.must_stop() {
                    self.push(Change::Create(table));
                }
                Err(error)
            }
        }
    }

    fn drop_table(&mut self, engine: &Engine, table: usize) -> Result<(), EngineError> {
        let name = table_name(table);
        if !matches!(engine.table(&name), Ok(Some(_))) {
            return Ok(());
        }
        let result = engine.drop_table(&name);
        if result.is_ok() || self.must_stop() || matches!(engine.table(&name), Ok(None)) {
            let id = self.push(Change::Drop(table));
            result.as_ref().ok().inspect(|()| self.disk.ack(id));
        }
        result
    }

    fn batch(&mut self, engine: &Engine, ops: &[Op], is_awaited: bool) -> Result<(), EngineError> {
        let known = |op: &&Op| matches!(engine.table(&table_name(op.table)), Ok(Some(_)));
        let ops: Vec<Op> = ops.iter().filter(known).cloned().collect();
        match commit(engine, &ops) {
            Ok((ticket, count)) => {
                let id = self.push(Change::Batch(ops[..count].to_vec()));
                self.waiting.push((id, ticket));
            }
            Err(error) => return Err(error),
        }
        if is_awaited { self.wait_all() } else { Ok(()) }
    }

    fn wait_all(&mut self) -> Result<(), EngineError> {
        for (id, ticket) in std::mem::take(&mut self.waiting) {
            ticket.wait()?;
            self.disk.ack(id);
        }
        Ok(())
    }

    /// Everything acknowledged is there when it is opened on the disk without the fault, on what a
    /// crash now may leave, and on what one leaves after the next process went on.
    fn judge(self, how: &How, before_close: usize) -> Result<(), String> {
        self.armed.store(false, Ordering::Relaxed);
        let last = self.disk.points() - 1;
        let recording = Recording { seed: SEED, disk: self.disk, history: self.history, opened: 0 };
        let sweep = Sweep::<EngineStore>::new(how, &SHAPE);
        for (point, seed) in [(before_close, 0), (before_close, 31), (last, 0), (last, 1)] {
            let tear = Tear::Sectors(512);
            let crash = Crash { point, seed, tear, ending: None };
            sweep.one(&recording, crash, false).map_err(|what| format!("{crash:?}: {what}"))?;
        }
        let Recording { disk, history, .. } = recording;
        for seed in [0, 1] {
            let needed = history.needed(&disk.acknowledged(last));
            // A sync that failed is on record; nothing else is in flight.
            let disk = disk.restarted(last, seed, Ending::Killed);
            let left = Left { disk, history: history.clone(), needed };
            let crash = Crash { point: last, seed, tear: Tear::Sectors(512), ending: None };
            let lived = sweep.live(left, crash, &mut Chance::new(last as u64));
            lived.map_err(|what| format!("restarted: {what}"))?;
        }
        Ok(())
    }
}

/// Runs with one fault. None when the call it is for was not reached, else whether the engine was
/// open then and had to stop.
fn with_fault(how: &How, number: u64, fault: Fault) -> Result<Option<bool>, String> {
    let mut run = Run::new(number, fault);
    run.is_deaf = how.alteration.as_ref().is_some_and(|alteration| alteration.is_deaf);
    let (mut has_stopped, mut before_close) = (false, 0);
    match how.open(Arc::new(run.disk.clone())) {
        Ok(engine) => {
            run.all(&engine)?;
            has_stopped = run.must_stop();
            before_close = run.disk.points() - 1;
            // Closing may fail, too; it acknowledges nothing.
            let _closed = engine.close();
        }
        Err(EngineError::Broken { what }) => return Err(format!("broken: {what}")),
        Err(typed) => run.is_named(&typed)?,
    }
    let reached = run.failed.lock().unwrap().clone();
    run.judge(how, before_close).map_err(|what| format!("after {reached:?}: {what}"))?;
    Ok(reached.map(|_call| has_stopped))
}

fn of_batches(fault: Fault) {
    let how = How::with(&[]);
    at_calls("batches", fault, |number| with_fault(&how, number, fault));
}

#[test]
fn eio_at_every_call() {
    of_batches(EIO);
}

#[test]
fn enospc_at_calls() {
    of_batches(ENOSPC);
}

#[test]
fn a_short_write_at_calls() {
    of_batches(Fault::Short(700));
}

/// The proof of these proofs: an engine that misses a failed sync loses what it acknowledged.
#[test]
fn a_failed_sync_that_is_missed_is_found() {
    let deaf = Alteration { is_deaf: true, ..Alteration::default() };
    let how = How::with(&[]).altered(deaf);
    let what = (0..).map(|number| quietly(|| with_fault(&how, number, EIO)));
    let mut lost = 0;
    for found in what.take_while(|found| !matches!(found, Ok(None))) {
        lost += usize::from(found.is_err_and(|what| what.contains("acknowledged and lost")));
    }
    assert!(lost > 0, "no failed sync was missed");
    eprintln!("{lost} failed syncs that were missed lost something");
}

/// A recovery whose n-th call fails: it returns the error, and the next one finds everything.
#[test]
fn a_fault_at_every_call_of_a_recovery() {
    let how = How::with(&[]);
    let recording = record::<EngineStore>(SEED, &SHAPE, &how).unwrap();
    let sweep = Sweep::<EngineStore>::new(&how, &SHAPE);
    let watch = Watch::new();
    let points = recording.disk.points();
    let mut calls = 0;
    for (point, fault) in
        [(points / 2, EIO), (points * 3 / 4, EIO), (points - 30, Fault::Short(700)), (90, ENOSPC)]
    {
        let needed = recording.history.needed(&recording.disk.acknowledged(point));
        for number in 0.. {
            watch.on(format!("{fault:?} at call {number} of the recovery at {point}"));
            let image = recording.disk.image(point, 33, Tear::Sectors(512));
            let (armed, failed) = arm(&image, number, fault);
            let disk = TraceDisk::new(image);
            let result = quietly(|| match how.open(Arc::new(disk.clone())) {
                Err(EngineError::Broken { what }) => Err(format!("broken: {what}")),
                // One that opens may not need what failed; nothing may be lost.
                Ok(_) | Err(_) => Ok(()),
            });
            result.unwrap_or_else(|what| panic!("{fault:?} at call {number} of {point}: {what}"));
            armed.store(false, Ordering::Relaxed);
            let Some(call) = failed.lock().unwrap().clone() else { break };
            for seed in [0, 1, 31] {
                let image = disk.image(disk.points() - 1, seed, Tear::Sectors(512));
                let judged = sweep.judge(image, &recording.history, needed, true);
                judged.unwrap_or_else(|what| panic!("after {call:?}, seed {seed}: {what}"));
            }
            calls += 1;
        }
    }
    assert!(calls > 60, "only {calls} calls");
    eprintln!("{calls} calls of recoveries");
}

/// A disk that fills up: a clear error, nothing acknowledged is lost, and it goes on when there is
/// space again.
#[test]
fn a_full_disk_does_no_harm() {
    let how = How::with(&[]);
    let memory = MemDisk::new();
    let is_full = Arc::new(AtomicBool::new(false));
    let refused = Arc::new(AtomicU64::new(0));
    let (full, count) = (Arc::clone(&is_full), Arc::clone(&refused));
    let mut lengths: HashMap<String, u64> = HashMap::new();
    memory.before_each(move |call| {
        let end = match call.kind {
            CallKind::Write => call.at + call.bytes,
            CallKind::SetLen => call.at,
            _ => return Fault::None,
        };
        let length = lengths.entry(call.name.clone()).or_default();
        if end > *length && full.load(Ordering::Relaxed) {
            count.fetch_add(1, Ordering::Relaxed);
            return ENOSPC;
        }
        *length = end.max(*length);
        Fault::None
    });
    let engine = how.open(Arc::new(memory.clone())).unwrap();
    let table = engine.create_table("orders").unwrap();
    let put = |number: u64| {
        let mut batch = engine.batch();
        batch.put(&table, &number.to_be_bytes(), &[number as u8; 900])?;
        batch.commit()
    };
    let rows_are = |count: u64| {
        for number in 0..count {
            let value = table.get(&number.to_be_bytes()).unwrap();
            assert_eq!(value.as_deref(), Some(&[number as u8; 900][..]), "row {number}");
        }
    };
    let mut rows = 0;
    while rows < 50 {
        put(rows).unwrap();
        rows += 1;
    }
    is_full.store(true, Ordering::Relaxed);
    let error = loop {
        match put(rows) {
            Ok(()) => rows += 1,
            Err(error) => break error,
        }
        assert!(rows < 5_000, "the disk never filled");
    };
    assert!(matches!(error, EngineError::NoSpace { .. }), "{error}");
    assert!(refused.load(Ordering::Relaxed) > 0);
    rows_are(rows);
    for number in 0..5 {
        put(number).expect("an overwrite needs no space");
    }
    assert!(matches!(put(rows), Err(EngineError::NoSpace { .. })), "still full");
    is_full.store(false, Ordering::Relaxed);
    for _ in 0..200 {
        put(rows).unwrap();
        rows += 1;
    }
    rows_are(rows);
    assert!(engine.check().unwrap().is_clean());
    engine.close().unwrap();
}

/// A disk too small to begin with, in steps: every size is a clear error or works.
#[test]
fn every_size_of_disk_works_or_says_so() {
    let how = How::with(&[]);
    let mut worked = false;
    for kib in (4..1_000).step_by(36) {
        let disk = MemDisk::with_capacity(kib * 1024);
        match how.open(Arc::new(disk.clone())) {
            Ok(engine) => {
                worked = true;
                engine.create_table("a").unwrap();
                engine.close().unwrap();
                how.open(Arc::new(disk)).unwrap_or_else(|error| panic!("{kib} KiB: {error}"));
            }
            Err(error) => {
                assert!(!worked, "{kib} KiB are too few, and less was enough: {error}");
                assert!(error.to_string().contains("space"), "{kib} KiB: {error}");
            }
        }
    }
    assert!(worked);
}
