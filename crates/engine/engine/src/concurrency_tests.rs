//! What threads, settings and old handles may do to each other, each case as a small scene; and
//! tables that are dropped while they are written, loaded, read and scanned.

pub(crate) mod stress;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use iostrata_innodb::flush::{Action, ActionOutcome, AdmitRule, FlushPolicy, FlushSample};
use iostrata_innodb::{PageNo, PolicyName};
use iostrata_io::disk::MemDisk;

use crate::mtr::Mtr;
use crate::page::Record;
use crate::parts::Parts;
use crate::tests::small;
use crate::tree::descend::UpperFence;
use crate::tree::structure::RowToFit;
use crate::{
    Background, Counter, Direction, Disks, Engine, EngineError, OpenError, RequestError, Settings,
    Table, TableError,
};
use stress::{mixed, rounds};

/// Looks for what may be over before it is seen.
const LOOKS_MAX: u32 = 100_000;

fn open(disk: &MemDisk, background: Background) -> Engine {
    Engine::open_on(Disks::one(disk.clone()), small(), background).unwrap()
}

fn waits(parts: &Parts) -> u64 {
    parts.storage.counts.get(Counter::AdmitWaits)
}

/// Waits for something that other threads do; fails when it never comes.
fn comes(what: &AtomicBool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while !what.load(Ordering::Acquire) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn a_promise_that_ends_without_redo_lets_others_go_on() {
    for background in [Background::Manual, Background::Threads] {
        let engine = open(&MemDisk::new(), background);
        engine.checkpoint().unwrap();
        let parts = engine.parts();
        let capacity = parts.storage.redo.limits().capacity as usize;
        let admit = |bytes| parts.pages.admission.admit(bytes).unwrap();
        let all: Vec<_> = (0..4).map(|_| admit(capacity / 4 - 200)).collect();
        let waited = waits(parts);
        let is_in = Arc::new(AtomicBool::new(false));
        let other = {
            let (pages, is_in) = (Arc::clone(&parts.pages), Arc::clone(&is_in));
            std::thread::spawn(move || {
                let room = pages.admission.admit(2000).map(drop);
                is_in.store(true, Ordering::Release);
                room
            })
        };
        while waits(parts) == waited {
            std::thread::yield_now();
        }
        drop(all);
        assert!(comes(&is_in), "{background:?}: no page is written, so no checkpoint moves");
        other.join().unwrap().unwrap();
    }
}

/// Rows that came and went in rising order, as in a queue. The leaves were full.
fn drained(engine: &Engine, rows: u32) -> Table {
    let table = engine.create_table("t").unwrap();
    for is_delete in [false, true] {
        for i in 0..rows {
            let mut batch = engine.batch();
            if is_delete {
                batch.delete(&table, &i.to_be_bytes()).unwrap();
            } else {
                batch.put(&table, &i.to_be_bytes(), &[7; 90]).unwrap();
            }
            let _settled_by_others = batch.commit_async().unwrap();
        }
    }
    table
}

#[test]
fn a_drained_table_gives_its_pages_back() {
    let engine = open(&MemDisk::new(), Background::Manual);
    drained(&engine, 20_000);
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    let pages = report.tables.iter().find(|table| table.name == "t").unwrap().pages;
    assert!(pages < 20, "{pages} pages for no row");
}

#[test]
fn a_sorted_load_into_a_drained_table_loses_nothing() {
    let engine = open(&MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    let (root, pages) = (table.tree(), &*engine.parts().pages);
    // Two empty leaves: a split for a row that never comes.
    let row = RowToFit::anyway(b"m");
    let leaf = root.locate(pages, b"m", &mut UpperFence::default()).unwrap();
    let room = pages.admit_structure().unwrap();
    root.grow_root(pages, &row, leaf.pin, &pages.new_page().unwrap()).unwrap();
    drop(room);
    let leaf = root.locate(pages, b"m", &mut UpperFence::default()).unwrap();
    root.split_leaf(pages, &row, leaf.page_version).unwrap();
    let rows = (b'a'..=b'z').map(|letter| ([letter], [letter]));
    assert_eq!(table.bulk_load(rows.clone()).unwrap(), 26);
    for (key, value) in rows {
        assert_eq!(table.get(&key).unwrap().as_deref(), Some(&value[..]), "{key:?}");
    }
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}

#[test]
fn a_sorted_load_beside_another_writer_ends_with_an_error() {
    for other in [&b"zz"[..], b"a", b"row 0500x"] {
        let engine = open(&MemDisk::new(), Background::Manual);
        let table = engine.create_table("t").unwrap();
        let rows = (0..2000).map(|row| {
            if row == 1000 {
                let mut batch = engine.batch();
                batch.put(&table, other, b"not of the load").unwrap();
                batch.commit().unwrap();
            }
            (format!("row {row:04}"), [1; 40])
        });
        let loaded = table.bulk_load(rows);
        let report = engine.check().unwrap();
        assert!(report.is_clean(), "{other:?}: {:?}", report.problems);
        let is_last = other == b"zz";
        assert_eq!(
            matches!(loaded, Err(EngineError::Table(TableError::NotEmpty { .. }))),
            is_last,
            "{loaded:?}"
        );
        assert!(table.get(other).unwrap().is_some());
    }
}

/// Readers of one leaf hold it one over the other, without a gap. A batch that waits for it blocks
/// no other thread with the leaves it holds.
#[test]
fn a_batch_that_waits_for_a_leaf_lets_others_have_those_it_holds() {
    let engine = open(&MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    let (row, rows) = (|number: u32| number.to_be_bytes(), 300);
    table.bulk_load((0..rows).map(|number| (row(number), [7; 90]))).unwrap();
    let (pages, tree) = (&*engine.parts().pages, table.tree());
    let leaf = |number| tree.locate(pages, &row(number), &mut UpperFence::default()).unwrap().pin;
    // By page number: the batch latches the first one first.
    let mut both = [0, rows - 1];
    both.sort_by_key(|number| leaf(*number).page_no());
    let put = |numbers: &[u32]| {
        let mut batch = engine.batch();
        numbers.iter().for_each(|number| batch.put(&table, &row(*number), &[8; 90]).unwrap());
        batch.commit().unwrap();
    };
    let (is_over, has_put, is_done) = <(AtomicBool, AtomicBool, AtomicBool)>::default();
    let is_held = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pin = leaf(both[1]);
            let mut held = pin.clone().shared();
            is_held.store(true, Ordering::Release);
            while !is_over.load(Ordering::Acquire) {
                let next = pin.clone().shared();
                drop(std::mem::replace(&mut held, next));
            }
        });
        assert!(comes(&is_held));
        scope.spawn(|| {
            put(&both);
            is_done.store(true, Ordering::Release);
        });
        let first = leaf(both[0]);
        // It holds the first one for a moment only: when that was missed, it waits without it.
        let mut looks = 0..LOOKS_MAX;
        while looks.next().is_some() && first.clone().try_shared().is_ok() {
            std::thread::yield_now();
        }
        scope.spawn(|| {
            put(&both[..1]);
            has_put.store(true, Ordering::Release);
        });
        let came = comes(&has_put);
        let was_done = is_done.load(Ordering::Acquire);
        is_over.store(true, Ordering::Release);
        assert!(came && !was_done, "{came} {was_done}");
    });
    assert!(is_done.into_inner());
}

#[test]
fn settings_that_change_together_are_kept_whole() {
    let disk = MemDisk::new();
    let engine = open(&disk, Background::Manual);
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let engine = &engine;
            scope.spawn(move || {
                for round in 0..1000 {
                    let value = (20_000 + 100 * thread + round).to_string();
                    let name = ["io_capacity_max", "fill_factor"][thread as usize % 2];
                    let value = if thread % 2 == 0 { value } else { "90".to_owned() };
                    engine.set(name, &value).unwrap();
                }
            });
        }
    });
    let kept = crate::settings_file::read(&disk).unwrap();
    assert_eq!(kept.to_text(&Settings::default()), engine.settings().to_text(&Settings::default()));
}

#[test]
fn what_outlives_an_engine_that_was_not_closed_keeps_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Engine::open(directory.path(), small());
    let engine = open().unwrap();
    let table = engine.create_table("t").unwrap();
    let mut batch = engine.batch();
    batch.put(&table, b"a", b"1").unwrap();
    drop((engine, table));
    // It can still write to the files, so no other engine may.
    assert!(matches!(open(), Err(EngineError::Open(OpenError::Locked(_)))));
    let ticket = batch.commit_async().unwrap();
    assert!(matches!(open(), Err(EngineError::Open(OpenError::Locked(_)))));
    ticket.wait().unwrap();
    drop(ticket);
    let engine = open().unwrap();
    let table = engine.table("t").unwrap().unwrap();
    assert!(table.get(b"a").unwrap().is_some());
    let other = engine.clone();
    engine.close().unwrap();
    assert!(matches!(
        other.set("fill_factor", "90"),
        Err(EngineError::Request(RequestError::Closed))
    ));
    let again = other.clone().close();
    assert!(matches!(again, Err(EngineError::Request(RequestError::Closed))), "{again:?}");
    // After a clean close nothing is left to write.
    let engine = open().unwrap();
    drop(table);
    engine.close().unwrap();
}

#[test]
fn a_change_that_is_not_logged_stops_the_engine() {
    let engine = open(&MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    let storage = &*engine.parts().storage;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut mtr = Mtr::begin(storage);
        let root = mtr.latch(storage.pool.pin(table.tree().root).unwrap());
        let row = Record::Insert { slot: 0, flags: 0, key: b"a", value: b"1" };
        mtr.change(root, &row).unwrap();
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert!(matches!(storage.poison.check(), Err(EngineError::Poisoned { .. })));
    assert_eq!(table.get(b"a").unwrap(), None, "what was not logged is shown");
    assert!(engine.checkpoint().is_err());
}

#[derive(Debug)]
struct Panics;

impl FlushPolicy for Panics {
    fn next(&mut self, _: &FlushSample<'_>, _: ActionOutcome) -> Action {
        panic!("on purpose");
    }

    fn admit(&self) -> AdmitRule {
        AdmitRule::wall(u64::MAX)
    }
}

#[test]
fn writers_hear_of_a_cleaner_that_panicked() {
    let engine = open(&MemDisk::new(), Background::Threads);
    let table = engine.create_table("t").unwrap();
    engine.parts().cleaner.set_policy(Box::new(Panics));
    let (sender, receiver) = std::sync::mpsc::channel();
    let writer = engine.clone();
    std::thread::spawn(move || {
        let mut row = 0_u32;
        let failed = loop {
            let mut batch = writer.batch();
            batch.put(&table, &row.to_be_bytes(), &[1; 90]).unwrap();
            match batch.commit_async() {
                Ok(_unsettled) => row += 1,
                Err(error) => break error,
            }
        };
        sender.send(failed).unwrap();
    });
    let failed = receiver.recv_timeout(Duration::from_secs(20));
    assert!(matches!(failed, Ok(EngineError::Poisoned { .. })), "{failed:?}");
}

/// Writes nothing at all; its rule, shared with the test, decides which threads wait.
#[derive(Debug)]
struct Idle(Arc<Mutex<AdmitRule>>);

impl FlushPolicy for Idle {
    fn next(&mut self, now: &FlushSample<'_>, _: ActionOutcome) -> Action {
        Action::Sleep { until_us: now.now_us + 100_000, firm: false }
    }

    fn admit(&self) -> AdmitRule {
        *self.0.lock().unwrap()
    }
}

#[test]
fn who_waits_for_room_goes_on_where_another_rule_sees_enough_of_it() {
    let open_wall = AdmitRule::wall(u64::MAX);
    let walls = [AdmitRule::wall(1), AdmitRule { flush_wait_age: 1, ..open_wall }];
    for wall in walls {
        let engine = open(&MemDisk::new(), Background::Threads);
        let table = engine.create_table("t").unwrap();
        let put = |row: u8| {
            let mut batch = engine.batch();
            batch.put(&table, &[row], &[1; 90]).unwrap();
            batch.commit().unwrap();
        };
        let parts = engine.parts();
        let rule = Arc::new(Mutex::new(open_wall));
        parts.cleaner.set_policy(Box::new(Idle(Arc::clone(&rule))));
        put(0);
        *rule.lock().unwrap() = wall;
        while parts.pages.admission.rule() != wall {
            parts.storage.signal.recall();
        }
        let (waited, is_in) = (waits(parts), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                put(1);
                is_in.store(true, Ordering::Release);
            });
            while waits(parts) == waited {
                std::thread::yield_now();
            }
            // The pages that the old one wanted written are never written.
            *rule.lock().unwrap() = open_wall;
            let goes_on = comes(&is_in);
            engine.parts().cleaner.set_policy(iostrata_innodb::flush::policy(PolicyName::Steady));
            assert!(goes_on, "{wall:?}");
        });
    }
}

fn all(table: &Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut rows, mut all) = (table.cursor(.., Direction::Forward), Vec::new());
    while let Some((key, value)) = rows.next_row().unwrap() {
        all.push((key.to_vec(), value.to_vec()));
    }
    all
}

#[test]
fn a_table_of_another_engine_is_refused() {
    let engines = [0, 1].map(|_| open(&MemDisk::new(), Background::Manual));
    let [ours, theirs] = engines.each_ref().map(|engine| engine.create_table("t").unwrap());
    let mut batch = engines[0].batch();
    batch.put(&ours, b"a", b"1").unwrap();
    let refused = batch.put(&theirs, b"b", b"2");
    assert!(matches!(refused, Err(EngineError::Table(TableError::NotFound { .. }))), "{refused:?}");
    assert!(batch.delete(&theirs, b"a").is_err());
    batch.commit().unwrap();
    assert_eq!((all(&ours).len(), all(&theirs).len()), (1, 0));
}

#[test]
fn who_wants_a_frame_waits_for_those_that_have_them_a_moment() {
    for background in [Background::Manual, Background::Threads] {
        let engine = open(&MemDisk::new(), background);
        let table = engine.create_table("t").unwrap();
        let rows = (0..2000_u32).map(|row| (row.to_be_bytes(), [1; 200]));
        table.bulk_load(rows).unwrap();
        engine.checkpoint().unwrap();
        let pool = &engine.parts().storage.pool;
        let frames = pool.frames.len() as u64;
        let held: Vec<_> = (0..frames).map(|page| pool.pin(PageNo(page)).unwrap()).collect();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| pool.pin(PageNo(frames)).map(drop));
            std::thread::sleep(Duration::from_millis(50));
            drop(held);
            other.join().unwrap().unwrap();
        });
    }
}

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

/// Makes the table again and again and drops it under all threads that use it.
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

/// Ends the test when no thread gets on, instead of waiting for ever.
fn watch(scene: &Scene, is_done: impl Fn() -> bool) {
    let (mut seen, mut still) = (0, Duration::ZERO);
    let look_every = Duration::from_millis(10);
    while !is_done() {
        std::thread::sleep(look_every);
        let dropped = scene.dropped.load(Ordering::Relaxed);
        still = if dropped == seen { still + look_every } else { Duration::ZERO };
        seen = dropped;
        assert!(still < HANGS_AFTER, "after {dropped} tables no thread gets on");
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
