//! The ends of an engine's life: what opening holds, what closing ends, and what errors say.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use iostrata_innodb::{PageNo, PolicyName};
use iostrata_io::disk::{Disk, MemDisk};

use crate::catalogue::Catalogue;
use crate::recovery::{self, Clock};
use crate::redo::layout::CONTROL_NAME;
use crate::tests::{open, put_all, small};
use crate::{
    Background, Disks, Engine, EngineError, OpenError, Phase, Progress, RequestError, Settings,
    settings_file,
};

#[test]
fn no_page_is_latched_while_what_dropped_tables_left_is_freed() {
    let engine = open(&MemDisk::new());
    put_all(&engine, &engine.create_table("t").unwrap(), &[b"k"]);
    let parts = engine.parts();
    // As after a crash between the two steps of dropping it.
    let rows = parts.catalogue.itself();
    let row = rows.get(b"t").unwrap().unwrap();
    let mut batch = engine.batch();
    batch.delete(&rows, b"t").unwrap();
    batch.put(&rows, &[0, 1], &row).unwrap();
    batch.commit().unwrap();
    let mut was_free = None;
    let mut tell = |progress: &Progress| {
        if progress.phase == Phase::Reclaim {
            was_free = Some(parts.pages.pin(PageNo(0)).unwrap().try_exclusive().is_ok());
        }
    };
    let catalogue = Catalogue::new(Arc::clone(&parts.pages));
    recovery::tables(&parts.pages, &catalogue, &mut Clock::start(&mut tell)).unwrap();
    assert_eq!(was_free, Some(true));
}

#[test]
fn closing_waits_for_who_changes_a_setting() {
    let engine = open(&MemDisk::new());
    let changing = engine.parts().keep_settings();
    let other = engine.clone();
    let (closed, is_closed) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || closed.send(other.close()).unwrap());
        assert!(is_closed.recv_timeout(Duration::from_millis(50)).is_err(), "closed too early");
        drop(changing);
        is_closed.recv().unwrap().unwrap();
    });
    let refused = engine.set("io_capacity", "200");
    assert!(matches!(refused, Err(EngineError::Request(RequestError::Closed))), "{refused:?}");
}

/// The moment between the end of an engine's threads and that of those who wait for them.
#[test]
fn whoever_waits_for_the_cleaner_goes_on_by_its_own_hand_when_the_engine_stops() {
    for policy in PolicyName::ALL {
        let (ends, has_ended) = channel();
        // Not joined: one that hangs must not keep the test from saying so.
        std::thread::spawn(move || {
            let settings = Settings { policy: *policy, ..small() };
            let disks = Disks::one(MemDisk::new());
            let engine = Engine::open_on(disks, settings, Background::Manual).unwrap();
            let table = engine.create_table("t").unwrap();
            // The policy says where writers wait.
            engine.step(10_000).unwrap();
            let signal = &engine.parts().storage.signal;
            signal.set_threads(true);
            signal.stop();
            // Several times the redo, and more pages than there are frames.
            for row in 0..600_u32 {
                let mut batch = engine.batch();
                batch.put(&table, &row.to_be_bytes(), &[row as u8; 900]).unwrap();
                batch.commit().unwrap();
            }
            ends.send(()).unwrap();
        });
        let ended = has_ended.recv_timeout(Duration::from_secs(20));
        assert!(ended.is_ok(), "a writer waits for ever under {policy}");
    }
}

#[test]
fn a_closed_engine_reads_nothing_from_the_disk() {
    let engine = open(&MemDisk::new());
    let table = engine.create_table("t").unwrap();
    for row in 0..200_u8 {
        let mut batch = engine.batch();
        batch.put(&table, &[row], &[row; 1900]).unwrap();
        batch.commit().unwrap();
    }
    engine.clone().close().unwrap();
    let mut refused = 0;
    for row in 0..200_u8 {
        match table.get(&[row]) {
            Ok(value) => assert_eq!(value, Some(vec![row; 1900])),
            Err(EngineError::Request(RequestError::Closed)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 0, "more rows than frames");
    let check = engine.check();
    assert!(matches!(check, Err(EngineError::Request(RequestError::Closed))), "{check:?}");
}

#[test]
fn a_full_disk_and_a_missing_log_are_named_as_such() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    disk.set_capacity(Some(0));
    let full = engine.set("redo_log_capacity", "64M");
    assert!(matches!(full, Err(EngineError::NoSpace { .. })), "{full:?}");
    disk.set_capacity(None);
    engine.close().unwrap();
    disk.remove(&settings_file::name(CONTROL_NAME)).unwrap();
    let missing = Engine::open_on(Disks::one(disk), small(), Background::Manual);
    assert!(matches!(missing, Err(EngineError::Open(OpenError::Damaged(_)))), "{missing:?}");
}
