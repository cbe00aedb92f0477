//! Tables that are dropped while they are written, loaded, read and scanned.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use iostrata_io::disk::MemDisk;

use super::stress::{mixed, rounds};
use super::{comes, open};
use crate::tree::structure::RowToFit;
use crate::{Background, Direction, Engine, EngineError, Table, TableError};

/// When no table was dropped for so long, the engine hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// What the threads of the scene share.
struct Scene {
    engine: Engine,
    /// Tables dropped so far.
    dropped: AtomicU64,
    is_over: AtomicBool,
}

impl Scene {
    /// Runs `step` again and again on the table of that name, if it is there.
    fn works(&self, name: &str, step: impl Fn(&Table, u64) -> Result<(), EngineError>) {
        for round in 0.. {
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            let Some(table) = self.engine.table(name).unwrap() else {
                std::thread::yield_now();
                continue;
            };
            match step(&table, round) {
                Ok(()) | Err(EngineError::Table(TableError::Dropped)) => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }

    /// Long rows at places that look like chance, or some of them deleted: leaves are split and
    /// joined all the time.
    fn churns(&self, table: &Table, seed: u64) -> Result<(), EngineError> {
        let mut batch = self.engine.batch();
        for row in 0..4 {
            let key = (mixed(seed, row) % 4000).to_be_bytes();
            if seed.is_multiple_of(3) {
                batch.delete(table, &key)?;
            } else {
                batch.put(table, &key, &[row as u8; 900])?;
            }
        }
        batch.commit_async().map(drop)
    }
}

fn scans(table: &Table, round: u64) -> Result<(), EngineError> {
    let direction = if round.is_multiple_of(2) { Direction::Forward } else { Direction::Backward };
    let mut rows = table.cursor(.., direction);
    while rows.next_row()?.is_some() {}
    Ok(())
}

/// A sorted load, which grows the tree at its right edge. Others may write in between.
fn loads(table: &Table) -> Result<(), EngineError> {
    let rows = (0..200_u64).map(|row| ((row * 20).to_be_bytes(), [1; 300]));
    match table.bulk_load(rows) {
        Err(EngineError::Table(TableError::NotEmpty { .. })) => Ok(()),
        loaded => loaded.map(drop),
    }
}

/// Makes the table again and again and drops it under everyone who uses it.
fn drops(scene: &Scene, times: u64) {
    for time in 0..times {
        let table = scene.engine.create_table("short").unwrap();
        if time.is_multiple_of(4) {
            loads(&table).unwrap();
        } else {
            std::thread::sleep(Duration::from_millis(1 + time % 5));
        }
        scene.engine.drop_table("short").unwrap();
        scene.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends the test when nobody gets on, instead of waiting for ever.
fn watch(scene: &Scene, is_done: impl Fn() -> bool) {
    let (mut seen, mut still) = (0, Duration::ZERO);
    let look_every = Duration::from_millis(10);
    while !is_done() {
        std::thread::sleep(look_every);
        let dropped = scene.dropped.load(Ordering::Relaxed);
        still = if dropped == seen { still + look_every } else { Duration::ZERO };
        seen = dropped;
        assert!(still < HANGS_AFTER, "after {dropped} tables nobody gets on");
    }
}

#[test]
fn a_table_is_dropped_under_those_who_use_it() {
    let disk = MemDisk::new();
    let engine = open(&disk, Background::Threads);
    engine.create_table("kept").unwrap();
    let times = rounds(250);
    let (dropped, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let scene = Arc::new(Scene { engine, dropped, is_over });
    let spawn = |work: Box<dyn FnOnce(&Scene) + Send>| {
        let scene = Arc::clone(&scene);
        std::thread::spawn(move || work(&scene))
    };
    let mut threads = vec![spawn(Box::new(move |scene| drops(scene, times)))];
    for (thread, name) in (0..).zip(["short", "short", "short", "kept"]) {
        let churns = move |scene: &Scene| {
            scene.works(name, |table, round| scene.churns(table, thread << 32 | round));
        };
        threads.push(spawn(Box::new(churns)));
    }
    threads.push(spawn(Box::new(|scene| scene.works("short", |table, _| loads(table)))));
    threads.push(spawn(Box::new(|scene| scene.works("short", scans))));
    let get = |table: &Table, round| table.get(&mixed(round, 1).to_be_bytes()).map(drop);
    threads.push(spawn(Box::new(move |scene| scene.works("short", get))));
    // One that ends earlier has failed.
    watch(&scene, || threads.iter().any(|one| one.is_finished()));
    scene.is_over.store(true, Ordering::Release);
    watch(&scene, || threads.iter().all(|one| one.is_finished()));
    let failed = threads.into_iter().filter_map(|one| one.join().err()).count();
    assert_eq!(failed, 0);
    let report = scene.engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    drop(scene);
    let engine = open(&disk, Background::Manual);
    assert_eq!(engine.tables().unwrap(), ["kept"]);
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}

#[test]
fn a_drop_waits_for_a_change_of_the_tree_that_has_begun() {
    let engine = open(&MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    let is_dropped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let changing = engine.parts().pages.admit_structure().unwrap();
        let (dropper, is_dropped) = (engine.clone(), &is_dropped);
        scope.spawn(move || {
            dropper.drop_table("t").unwrap();
            is_dropped.store(true, Ordering::Release);
        });
        std::thread::sleep(Duration::from_millis(100));
        assert!(!is_dropped.load(Ordering::Acquire), "its pages are free under who changes them");
        drop(changing);
        assert!(comes(is_dropped));
    });
    let later = table.tree().split_leaf(&engine.parts().pages, &RowToFit::anyway(b"k"), 0);
    assert!(matches!(later, Err(EngineError::Table(TableError::Dropped))), "{later:?}");
}

#[test]
fn an_open_scan_of_a_dropped_table_says_so() {
    for direction in [Direction::Forward, Direction::Backward] {
        for takes_its_pages in [false, true] {
            let engine = open(&MemDisk::new(), Background::Manual);
            let table = engine.create_table("t").unwrap();
            let rows = || (0..400_u32).map(|row| (row.to_be_bytes(), [7; 100]));
            table.bulk_load(rows()).unwrap();
            let mut range = table.cursor(.., direction);
            assert!(range.next_row().unwrap().is_some());
            engine.drop_table("t").unwrap();
            if takes_its_pages {
                engine.create_table("other").unwrap().bulk_load(rows()).unwrap();
            }
            let end = loop {
                match range.next_row() {
                    Ok(Some(_)) => {}
                    end => break end,
                }
            };
            let case = format!("{direction:?}, pages taken: {takes_its_pages}: {end:?}");
            assert!(matches!(end, Err(EngineError::Table(TableError::Dropped))), "{case}");
        }
    }
}
