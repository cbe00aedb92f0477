//! Settings that are changed while the disk fails, and an engine that its disk has failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use iostrata_engine::{Engine, EngineError};
use iostrata_innodb::{CATALOGUE, When};
use iostrata_io::disk::MemDisk;
use iostrata_io::disk::memory::{CallKind, Fault};

use crate::common::engine::How;
use crate::common::failing::{EIO, ENOSPC};

const ROWS: u8 = 40;

fn put_rows(engine: &Engine, round: u8) {
    let table = engine.open_table("rows").unwrap();
    for row in 0..ROWS {
        let mut batch = engine.batch();
        batch.put(&table, &[row], &[round; 300]).unwrap();
        batch.commit().unwrap();
    }
}

/// Lets the first write of a page fail in its middle, once another thread has begun to change
/// `doublewrite` and waits for that write.
fn change_doublewrite_during_a_failing_write(engine: &Engine, memory: &MemDisk, to: &'static str) {
    let (began, has_begun) = channel();
    let (asks, is_asked) = channel();
    let mut began = Some(began);
    memory.before_each(move |call| {
        let is_page = call.kind == CallKind::Write && call.name.starts_with("data-");
        let Some(began) = began.take_if(|_| is_page) else { return Fault::None };
        began.send(()).unwrap();
        is_asked.recv().unwrap();
        // A change that came later would be refused with or without a second look.
        std::thread::sleep(Duration::from_millis(50));
        Fault::Short(1_000)
    });
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(engine.checkpoint().is_err(), "the write fails"));
        has_begun.recv().unwrap();
        asks.send(()).unwrap();
        let changed = engine.set("doublewrite", to);
        assert!(
            matches!(changed, Err(EngineError::Io(_) | EngineError::Poisoned { .. })),
            "{to}: {changed:?}"
        );
    });
}

#[test]
fn a_page_whose_write_failed_keeps_its_copy_while_doublewrite_is_changed() {
    for to in ["OFF", "DETECT_ONLY"] {
        let memory = MemDisk::new();
        let how = How::with(&[]);
        let engine = how.open(Arc::new(memory.clone())).unwrap();
        put_rows(&engine, 1);
        engine.checkpoint().unwrap();
        put_rows(&engine, 2);
        change_doublewrite_during_a_failing_write(&engine, &memory, to);
        drop(engine);
        memory.before_each(|_| Fault::None);
        let engine = how.open(Arc::new(memory)).unwrap_or_else(|error| panic!("{to}: {error}"));
        let table = engine.table("rows").unwrap().unwrap();
        for row in 0..ROWS {
            assert_eq!(table.get(&[row]).unwrap(), Some(vec![2; 300]), "{to}: row {row}");
        }
    }
}

#[test]
fn no_setting_of_a_stopped_engine_changes_and_nothing_is_written_for_it() {
    let memory = MemDisk::new();
    let engine = How::with(&[]).open(Arc::new(memory.clone())).unwrap();
    put_rows(&engine, 1);
    let (fails, writes) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let (failing, written) = (Arc::clone(&fails), Arc::clone(&writes));
    memory.before_each(move |call| {
        if call.kind == CallKind::Sync && failing.load(Ordering::Relaxed) {
            return Fault::Errno(5);
        }
        written.fetch_add(u64::from(call.kind != CallKind::Read), Ordering::Relaxed);
        Fault::None
    });
    assert!(engine.checkpoint().is_err());
    fails.store(false, Ordering::Relaxed);
    let before = (engine.settings(), writes.load(Ordering::Relaxed));
    let mut live = 0;
    for setting in CATALOGUE.iter().filter(|setting| setting.when == When::Live) {
        let value = engine.settings().get(setting.name).unwrap();
        // Those that write files get another value, the rest the same: it is refused as well.
        let value = match setting.name {
            "redo_log_capacity" => "1M",
            "doublewrite" => "OFF",
            "policy" => "adaptive",
            _ => &value,
        };
        let refused = engine.set(setting.name, value);
        assert!(
            matches!(refused, Err(EngineError::Poisoned { .. })),
            "{}: {refused:?}",
            setting.name
        );
        live += 1;
    }
    assert!(live > 20, "only {live} live settings");
    assert_eq!(before, (engine.settings(), writes.load(Ordering::Relaxed)));
}

/// A disk that fails for a while, under redo or data, and is whole again: nothing is accepted until
/// the engine is reopened, as its error states, and then everything acknowledged is there.
#[test]
fn an_engine_that_a_disk_has_failed_is_of_use_again_when_it_is_opened_anew() {
    let how = How::with(&[]);
    for (file, fault) in [("redo-0", EIO), ("data-", EIO), ("redo-0", ENOSPC), ("data-", ENOSPC)] {
        for kind in [CallKind::Write, CallKind::Sync] {
            let memory = MemDisk::new();
            let fails = Arc::new(AtomicBool::new(false));
            let failing = Arc::clone(&fails);
            memory.before_each(move |call| {
                let is_meant = call.kind == kind && call.name.starts_with(file);
                if is_meant && failing.load(Ordering::Relaxed) { fault } else { Fault::None }
            });
            let engine = how.open(Arc::new(memory.clone())).unwrap();
            let table = engine.create_table("t").unwrap();
            let put = |row: u8| {
                let mut batch = engine.batch();
                batch.put(&table, &[row], &[row; 100])?;
                batch.commit()
            };
            (0..20).for_each(|row| put(row).unwrap());
            fails.store(true, Ordering::Relaxed);
            let _one_of_them_fails = put(20).and_then(|()| engine.checkpoint());
            fails.store(false, Ordering::Relaxed);
            let what = format!("{kind:?} of {file} with {fault:?}");
            let refused = put(21).unwrap_err();
            assert!(matches!(refused, EngineError::Poisoned { .. }), "{what}: {refused}");
            assert!(refused.to_string().contains("open it again"), "{what}: {refused}");
            assert_eq!(refused.is_full(), fault == ENOSPC, "{what}");
            assert!(engine.close().is_err(), "{what}");
            let engine = how.open(Arc::new(memory)).unwrap();
            let table = engine.table("t").unwrap().unwrap();
            for row in 0..20 {
                assert_eq!(table.get(&[row]).unwrap(), Some(vec![row; 100]), "{what}: row {row}");
            }
            assert_eq!(table.get(&[21]).unwrap(), None, "{what}");
            assert!(engine.check().unwrap().is_clean(), "{what}");
            engine.close().unwrap();
        }
    }
}
