//! Tickets: who settles them, at which level, what they say when the log fails, how they count.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iostrata_io::disk::MemDisk;
use iostrata_io::disk::memory::{CallKind, Fault};

use crate::tests::small;
use crate::{Background, Counter, Disks, Engine, EngineError, FlushLogAt, Table, Ticket};

fn open(disk: &MemDisk, background: Background) -> (Engine, Table) {
    let engine = Engine::open_on(Disks::one(disk.clone()), small(), background).unwrap();
    let table = engine.open_table("t").unwrap();
    (engine, table)
}

fn put(engine: &Engine, table: &Table, row: u8, level: FlushLogAt) -> Ticket {
    let mut batch = engine.batch();
    batch.put(table, &[row], b"value").unwrap();
    batch.flush_log_at(level);
    batch.commit_async().unwrap()
}

/// Asks until the ticket is settled or failed; fails when neither ever comes.
fn asked(ticket: &Ticket) -> Result<(), EngineError> {
    let end = Instant::now() + Duration::from_secs(30);
    while !ticket.try_wait()? {
        assert!(Instant::now() < end, "nobody settles it");
        std::thread::yield_now();
    }
    Ok(())
}

#[test]
fn tickets_settle_although_nobody_waits() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path(), small()).unwrap();
    let table = engine.open_table("t").unwrap();
    let before = engine.counters()[Counter::CommitsDurable];
    let tickets: Vec<Ticket> =
        (0..200).map(|row| put(&engine, &table, row, FlushLogAt::Commit)).collect();
    tickets.iter().for_each(|ticket| asked(ticket).unwrap());
    assert!(tickets.iter().all(|ticket| ticket.is_durable() && ticket.is_settled()));
    // Each is counted once, however often it is asked, and its clones with it.
    for ticket in &tickets {
        ticket.wait().unwrap();
        assert!(ticket.clone().try_wait().unwrap());
    }
    assert_eq!(engine.counters()[Counter::CommitsDurable] - before, 200);
    // Nobody asks for this one at all.
    let last = put(&engine, &table, 0, FlushLogAt::Commit);
    let end = Instant::now() + Duration::from_secs(30);
    while !last.is_durable() {
        assert!(Instant::now() < end, "nobody settles it");
        std::thread::sleep(Duration::from_millis(1));
    }
    engine.close().unwrap();
}

#[test]
fn a_sync_that_fails_reaches_who_asks_and_poisons() {
    let disk = MemDisk::new();
    let (engine, table) = open(&disk, Background::Threads);
    let fails = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    disk.before_each(move |call| {
        let is_sync = call.kind == CallKind::Sync && failing.load(Ordering::Relaxed);
        if is_sync { Fault::Errno(5) } else { Fault::None }
    });
    let before = engine.counters()[Counter::CommitsDurable];
    let ticket = put(&engine, &table, 1, FlushLogAt::Commit);
    let written = put(&engine, &table, 2, FlushLogAt::Written);
    asked(&ticket).unwrap_err();
    // What was only written may be lost with what the sync did not bring to the disk.
    written.try_wait().unwrap_err();
    fails.store(false, Ordering::Relaxed);
    // It stays so, also when the disk works again.
    ticket.try_wait().unwrap_err();
    ticket.wait().unwrap_err();
    assert!(!ticket.is_settled());
    let mut batch = engine.batch();
    batch.put(&table, b"k", b"v").unwrap();
    let refused = batch.commit_async();
    assert!(matches!(refused, Err(EngineError::Poisoned { .. })), "{refused:?}");
    assert_eq!(engine.counters()[Counter::CommitsDurable], before);
}

#[test]
fn without_threads_a_ticket_waits_for_who_waits() {
    let disk = MemDisk::new();
    let (engine, table) = open(&disk, Background::Manual);
    let calls = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&calls);
    disk.before_each(move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        Fault::None
    });
    let first = put(&engine, &table, 1, FlushLogAt::Commit);
    let second = put(&engine, &table, 2, FlushLogAt::Commit);
    for _ in 0..100 {
        assert!(!first.try_wait().unwrap() && !second.is_settled());
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    second.wait().unwrap();
    assert!(first.try_wait().unwrap());
}

#[test]
fn each_commit_has_its_level() {
    let (engine, table) = open(&MemDisk::new(), Background::Manual);
    let work = || {
        let counters = engine.counters();
        (counters[Counter::LogWrites], counters[Counter::OsLogFsyncs])
    };
    let (writes, syncs) = work();
    let lazy = put(&engine, &table, 1, FlushLogAt::Timeout);
    assert!(lazy.is_settled() && lazy.try_wait().unwrap());
    assert_eq!(work(), (writes, syncs));
    let written = put(&engine, &table, 2, FlushLogAt::Written);
    assert!(!written.is_settled() && !written.try_wait().unwrap());
    written.wait().unwrap();
    assert!(written.is_settled() && !written.is_durable());
    assert_eq!(work(), (writes + 1, syncs));
    // A ticket keeps the level of its commit.
    engine.set("flush_log_at_trx_commit", "0").unwrap();
    let durable = put(&engine, &table, 3, FlushLogAt::Commit);
    assert_eq!(durable.level(), FlushLogAt::Commit);
    assert!(!durable.is_settled());
    durable.wait().unwrap();
    assert!(durable.is_durable());
    let mut batch = engine.batch();
    batch.put(&table, b"k", b"v").unwrap();
    let by_setting = batch.commit_async().unwrap();
    engine.set("flush_log_at_trx_commit", "1").unwrap();
    assert_eq!(by_setting.level(), FlushLogAt::Timeout);
    assert!(by_setting.try_wait().unwrap() && !by_setting.is_durable());
}

#[test]
fn what_asks_for_a_write_is_written_although_nobody_waits() {
    let (engine, table) = open(&MemDisk::new(), Background::Threads);
    for row in 0..50 {
        let ticket = put(&engine, &table, row, FlushLogAt::Written);
        asked(&ticket).unwrap();
    }
    engine.close().unwrap();
}
