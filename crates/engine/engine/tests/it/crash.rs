//! The sweep over crashes of the engine: 8,000 images and 5,000 after restarts, or 160,000 and
//! 300,000 with `IOSTRATA_SOAK=1`.
//!
//! Each test is one way to run the engine. `IOSTRATA_SWEEP=recording:point:seed:tear` with the
//! test's name replays one image.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_engine::{Background, Counter, Disks, Engine};
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{Disk, FileName, MemDisk, Tear, TraceDisk};

use crate::common::altered::Alteration;
use crate::common::chance::Chance;
use crate::common::engine::{
    EXCHANGED, EngineStore, How, LARGE, LARGE_SESSIONS, SESSIONS, SHAPE, STILL,
};
use crate::common::is_soak;
use crate::common::model::{Change, History, Tables, table_name};
use crate::common::plan::{Live, Op, Shape, Step, plan};
use crate::common::record::{Recording, Run, record, record_threads};
use crate::common::session_threads::record_session_threads;
use crate::common::sessions::{Sessions, go_on, record_sessions};
use crate::common::store::Store;
use crate::common::sweep::{Sweep, parse, prove};

/// Seeds and images of one test: there are sixteen.
fn budget(seed: u64) -> (Vec<u64>, usize) {
    if is_soak() { ((seed..seed + 10).collect(), 10_000) } else { (vec![seed, seed + 1], 500) }
}

fn sweep(test: &str, seed: u64, shape: &Shape, how: &How) {
    let (seeds, images) = budget(seed);
    let sweep = Sweep::<EngineStore>::new(how, shape);
    prove(test, &sweep, &seeds, images, |seed| record::<EngineStore>(seed, shape, how));
}

#[test]
fn as_it_comes() {
    sweep("crash::as_it_comes", 100, &SHAPE, &How::with(&[]));
}

#[test]
fn fsync() {
    sweep("crash::fsync", 200, &STILL, &How::with(&[("flush_method", "fsync")]));
}

#[test]
fn o_dsync() {
    let how = How::with(&[("flush_method", "O_DSYNC"), ("data_files", "4")]);
    sweep("crash::o_dsync", 300, &STILL, &how);
}

#[test]
fn o_direct_no_fsync() {
    let how = How::with(&[("flush_method", "O_DIRECT_NO_FSYNC")]);
    sweep("crash::o_direct_no_fsync", 400, &STILL, &how);
}

#[test]
fn all_o_direct() {
    let how = How::with(&[("flush_method", "ALL_O_DIRECT"), ("use_fdatasync", "ON")]);
    sweep("crash::all_o_direct", 500, &STILL, &how);
}

#[test]
fn pages_of_16_kib() {
    let settings = [("page_size", "16K"), ("buffer_pool_size", "1M"), ("data_files", "4")];
    let how = How::with(&[&settings[..], &[("redo_log_capacity", "256K")]].concat());
    let shape = Shape { value_bytes: 6_000, key_bytes: 1_500, batch_bytes: 24_000, ..STILL };
    sweep("crash::pages_of_16_kib", 600, &shape, &how);
}

#[test]
fn more_data_than_frames() {
    let how = How::with(&[("data_files", "4")]);
    // Of these recordings 742 and 743 once loaded the pages of one way in turns for ever.
    sweep("crash::more_data_than_frames", 742, &LARGE, &how);
}

#[test]
fn redo_elsewhere() {
    let how = How { is_apart: true, ..How::with(&[]) };
    sweep("crash::redo_elsewhere", 800, &SHAPE, &how);
}

/// Settings that a run is recorded with, and others that it is recovered with.
fn two_settings() -> [How; 2] {
    let how = How::with(&[
        ("log_write_ahead_size", "512"),
        ("doublewrite_pages", "4"),
        ("flush_method", "O_DIRECT_NO_FSYNC"),
    ]);
    let other = How::with(&[
        ("log_write_ahead_size", "16K"),
        ("doublewrite_pages", "64"),
        ("flush_method", "ALL_O_DIRECT"),
        ("buffer_pool_size", "512K"),
        ("redo_log_capacity", "128K"),
    ]);
    [how, other]
}

/// Recovered with other settings than it ran with, which decide how files are read and written.
#[test]
fn recovered_with_other_settings() {
    let [how, other] = two_settings();
    let (seeds, images) = budget(1_200);
    let sweep = Sweep::<EngineStore>::new(&other, &SHAPE);
    prove("crash::recovered_with_other_settings", &sweep, &seeds, images, |seed| {
        record::<EngineStore>(seed, &SHAPE, &how)
    });
    let back = Sweep::<EngineStore>::new(&how, &SHAPE);
    prove("crash::recovered_with_other_settings", &back, &seeds, images / 2, |seed| {
        record::<EngineStore>(seed, &SHAPE, &other)
    });
}

/// A spare segment that a killed process left in the page cache alone is taken by the next one; the
/// power goes while the segment's new header and what lies behind it are on their way.
#[test]
fn a_spare_segment_that_was_only_in_the_cache() {
    let [how, other] = two_settings();
    let crash = parse("1205:442:218363930713825:512:killed");
    let (seed, crash) = crash.expect("a crash as IOSTRATA_SWEEP takes it");
    let recording = record::<EngineStore>(seed, &SHAPE, &how).unwrap();
    Sweep::<EngineStore>::new(&other, &SHAPE).one(&recording, crash, true).unwrap();
}

/// Without doublewrite, or with it now and then, on a device that does not tear pages.
#[test]
fn no_doublewrite_on_an_atomic_disk() {
    let atomic = Alteration { atomic_write_bytes: 4096, ..Alteration::default() };
    let how = How::with(&[("doublewrite", "OFF")]).altered(atomic);
    let (seeds, images) = budget(900);
    let tears = [Tear::Whole, Tear::Sectors(4096)];
    let live: Live = &[("doublewrite", &["ON", "OFF", "DETECT_ONLY"])];
    let shape = Shape { live, ..SHAPE };
    let sweep = Sweep::<EngineStore> { tears: &tears, ..Sweep::new(&how, &shape) };
    let test = "crash::no_doublewrite_on_an_atomic_disk";
    prove(test, &sweep, &seeds, images, |seed| record::<EngineStore>(seed, &shape, &how));
}

/// Four threads write on keys of their own; their tickets give the order. Recovered without
/// threads: only the recording needs them.
fn sweep_threads(test: &str, seed: u64, shape: &Shape, how: &How) {
    let shape = Shape { batches: if is_soak() { 150 } else { 40 }, ..*shape };
    let ((seeds, images), recovered) = (budget(seed), How::with(&[]));
    let record = |seed| record_threads::<EngineStore>(seed, 4, &shape, how);
    prove(test, &Sweep::<EngineStore>::new(&recovered, &shape), &seeds, images, record);
}

#[test]
fn four_writers() {
    let how = How { background: Background::Threads, ..How::with(&[]) };
    sweep_threads("crash::four_writers", 1_000, &STILL, &how);
}

/// Batches of pages are on their way side by side while the policy and the size of the redo are
/// exchanged.
#[test]
fn four_writers_under_changing_policies() {
    let test = "crash::four_writers_under_changing_policies";
    sweep_threads(test, 1_100, &EXCHANGED, &How::side_by_side());
}

/// A bulk load is durable when it returns; before that a prefix of its rows may be there.
#[test]
fn bulk_loads() {
    let how = How::with(&[("data_files", "2")]);
    let (seeds, images) = budget(1_100);
    let sweep = Sweep::<EngineStore>::new(&how, &STILL);
    prove("crash::bulk_loads", &sweep, &seeds, images, |seed| {
        let disk = TraceDisk::new(MemDisk::new());
        let store = EngineStore::open(Arc::new(disk.clone()), &how)?;
        let opened = disk.points() - 1;
        let mut run = Run::new(&store, &disk, Tables::new());
        run.all(&[Step::Create(0), Step::Create(1)])?;
        let (mut history, mut chance) = (run.history, Chance::new(seed));
        let mut row = |number: u16| {
            let value = Some(chance.within(0, 400)).map(|len| chance.bytes(len));
            Op { table: 1, key: number.to_be_bytes().to_vec(), value }
        };
        let rows: Vec<Op> = (0..700).map(|number| row(number * 3)).collect();
        let table = store.0.table(&table_name(1)).unwrap().unwrap();
        let pairs = rows.iter().map(|op| (&op.key, op.value.as_ref().unwrap()));
        table.bulk_load(pairs).map_err(|error| error.to_string())?;
        for (number, op) in (1_000..).zip(rows) {
            history.push(number, Change::Batch(vec![op]));
        }
        disk.ack(1_000 + 699);
        store.close()?;
        Ok(Recording { seed, disk, history, opened })
    });
}

/// Each opening appends a little to the redo: it must not fill up without a clean close.
#[test]
fn opened_again_and_again() {
    let how = How::with(&[]);
    let recording = record::<EngineStore>(55, &SHAPE, &how).unwrap();
    let points = recording.disk.points();
    for point in [points / 2, points - 40] {
        let image = recording.disk.image(point, 1, Tear::Whole);
        let mut digest = None;
        for round in 0..300 {
            let opened = EngineStore::open(Arc::new(image.clone()), &how);
            let store = opened.unwrap_or_else(|error| panic!("opening {round}: {error}"));
            let found = store.digest().unwrap();
            assert_eq!(*digest.get_or_insert(found), found, "opening {round}");
        }
    }
}

/// The mark of a half-made engine leaves the redo's directory only when it is durable in the other
/// one that there is an engine, whichever process gets that far.
#[test]
fn an_engine_named_in_a_cache_is_no_half_made_one() {
    let settings = How::with(&[]).settings();
    let open = |disks| Engine::open_on(disks, settings.clone(), Background::Manual);
    let [data, redo] = [(); 2].map(|()| TraceDisk::new(MemDisk::new()));
    let disks = || Disks { data: Arc::new(data.clone()), redo: Arc::new(redo.clone()) };
    let mut is_named = false;
    data.memory().before_each(move |call| {
        is_named |= call.kind == CallKind::Rename;
        if is_named && call.kind == CallKind::SyncDir { Fault::Errno(5) } else { Fault::None }
    });
    assert!(open(disks()).is_err(), "the first process ends before the name is durable");
    data.memory().before_each(|call| match call.kind {
        CallKind::Remove => Fault::Errno(5),
        _ => Fault::None,
    });
    assert!(open(disks()).is_err(), "the second one before its own mark is gone");
    let image = |disk: &TraceDisk| Arc::new(disk.image(disk.points() - 1, 0, Tear::Whole));
    let engine = open(Disks { data: image(&data), redo: image(&redo) });
    assert!(engine.is_ok(), "{:?}", engine.err());
}

/// Four sessions take turns, with snapshots that stay open and tombstones for them. What aborts or
/// is not finished leaves nothing, and no read is acknowledged before what it has read is durable.
#[test]
fn sessions() {
    let how = How::with(&[("lock_wait_timeout", "0")]);
    let (seeds, images) = budget(1_300);
    let sweep = Sweep::<EngineStore> { go_on, settles: true, ..Sweep::new(&how, &SESSIONS) };
    prove("crash::sessions", &sweep, &seeds, images, |seed| record_sessions(seed, &SESSIONS, &how));
}

/// The same with an index on each table: `check` compares each with its table.
#[test]
fn sessions_with_indexes() {
    let how = How { is_indexed: true, ..How::with(&[("lock_wait_timeout", "0")]) };
    let (seeds, images) = budget(1_600);
    let sweep = Sweep::<EngineStore> { go_on, settles: true, ..Sweep::new(&how, &SESSIONS) };
    let record = |seed| record_sessions(seed, &SESSIONS, &how);
    prove("crash::sessions_with_indexes", &sweep, &seeds, images, record);
}

/// The smallest engine, with little memory for old versions. No session waits for a lock.
fn little_memory() -> How {
    How::with(&[("lock_wait_timeout", "0"), ("version_log_memory", "256K"), ("data_files", "4")])
}

/// A batch deleted a row whose tombstone a crash had left, and put others next to it.
#[test]
fn a_tombstone_that_a_crash_left_makes_no_room() {
    let how = little_memory();
    let crash = parse("1408:8965:146297055385244:512:killed");
    let (seed, crash) = crash.expect("a crash as IOSTRATA_SWEEP takes it");
    let recording = record_sessions(seed, &LARGE_SESSIONS, &how).unwrap();
    let new = Sweep::<EngineStore>::new(&how, &LARGE_SESSIONS);
    Sweep { go_on, settles: true, ..new }.one(&recording, crash, true).unwrap();
}

/// More rows than frames, and old versions that leave memory.
#[test]
fn sessions_with_more_data_than_frames() {
    let how = little_memory();
    let (seeds, images) = budget(1_400);
    let shape = &LARGE_SESSIONS;
    let sweep = Sweep::<EngineStore> { go_on, settles: true, ..Sweep::new(&how, shape) };
    let test = "crash::sessions_with_more_data_than_frames";
    let has_spilled = AtomicBool::new(false);
    prove(test, &sweep, &seeds, images, |seed| {
        let recording = record_sessions(seed, shape, &how)?;
        let spill = FileName::new("engine.versions").map_err(|error| error.to_string())?;
        let image = |point| recording.disk.image(point, 1, Tear::Whole);
        let points = (0..recording.disk.points()).step_by(97);
        let mut spilled = points.filter(|point| image(*point).content(&spill).is_some());
        has_spilled.fetch_or(spilled.next().is_some(), Ordering::Relaxed);
        Ok(recording)
    });
    let is_replay = std::env::var_os("IOSTRATA_SWEEP").is_some();
    assert!(has_spilled.into_inner() || is_replay, "no version was written to a file");
}

/// Four threads with transactions on the same rows; their tickets give the order.
#[test]
fn four_threads_of_sessions() {
    let settings = [("lock_wait_timeout", "0")];
    let how = How { background: Background::Threads, ..How::with(&settings) };
    let shape = Shape { batches: if is_soak() { 250 } else { 80 }, live: &[], ..SESSIONS };
    let (seeds, images) = budget(1_500);
    let recovered = How::with(&settings);
    let sweep = Sweep::<EngineStore> { go_on, settles: true, ..Sweep::new(&recovered, &shape) };
    prove("crash::four_threads_of_sessions", &sweep, &seeds, images, |seed| {
        record_session_threads(seed, 4, &shape, &how)
    });
}

/// Their work, too, does everything that it is there for.
#[test]
fn the_work_of_sessions_reaches_everything() {
    let disk = TraceDisk::new(MemDisk::new());
    let how = How::with(&[("lock_wait_timeout", "0")]);
    let store = EngineStore::open(Arc::new(disk.clone()), &how).unwrap();
    let history = History::new(Tables::new());
    let mut sessions = Sessions::new(&store.0, (&disk, &SESSIONS), history, 1_400);
    let (mut tombstones, mut versions) = (0, 0);
    for _ in 0..150 {
        sessions.steps(30).unwrap();
        let report = store.0.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        let left = report.tables.iter().map(|table| table.tombstones).sum();
        tombstones = tombstones.max(left);
        let counters = store.0.counters();
        versions = versions.max(counters[Counter::HistoryListLength]);
    }
    let purged = store.0.counters()[Counter::RowsPurged];
    assert!(tombstones >= 5 && versions >= 10 && purged >= 20, "{tombstones} {versions} {purged}");
    for (what, least) in [
        ("a batch", 100),
        ("a batch that was refused", 10),
        ("a commit", 50),
        ("a reader", 20),
        ("a rollback", 30),
        ("a conflict", 5),
        ("a locked row", 10),
        ("a drop", 3),
    ] {
        let found = sessions.seen.get(what).copied().unwrap_or_default();
        assert!(found >= least, "{what}: {found} times, below {least}");
    }
}

/// What a seed replays is what was recorded.
#[test]
fn a_recording_is_the_same_each_time() {
    let how = How::with(&[("lock_wait_timeout", "0")]);
    let recordings: [&dyn Fn() -> Recording; 2] =
        [&|| record::<EngineStore>(77, &SHAPE, &how).unwrap(), &|| {
            record_sessions(77, &SESSIONS, &how).unwrap()
        }];
    for recorded in recordings {
        let [first, second] = [0, 1].map(|_| recorded());
        assert_eq!(first.disk.points(), second.disk.points());
        let last = first.disk.points() - 1;
        for point in [last / 3, last / 2, last] {
            let image = |run: &Recording| run.disk.image(point, 9, Tear::Sectors(512));
            let [one, two] = [&first, &second].map(image);
            let names = one.list().unwrap();
            assert_eq!(names, two.list().unwrap());
            for name in names {
                assert!(one.content(&name) == two.content(&name), "{name} at point {point}");
            }
        }
    }
}

/// The sweeps prove little about what their work never does: it does everything.
#[test]
fn the_work_reaches_everything() {
    let disk = TraceDisk::new(MemDisk::new());
    let store = EngineStore::open(Arc::new(disk.clone()), &How::with(&[])).unwrap();
    let mut run = Run::new(&store, &disk, Tables::new());
    let (mut levels, mut pages) = (0, 0);
    for steps in plan(700, &LARGE).chunks(10) {
        run.all(steps).unwrap();
        let report = store.0.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        pages = report.pages_used.max(pages);
        levels = report.tables.iter().map(|table| table.levels).fold(levels, u32::max);
    }
    assert!(pages > 100, "all data fit the pool: {pages} pages");
    assert!(levels >= 3, "inner pages never split: {levels} levels");
    for (counter, least) in [
        ("index_page_splits", 100),
        ("index_page_merge_successful", 50),
        ("data_reads", 100),
        ("log_checkpoints", 50),
        ("dblwr_writes", 100),
        ("buffer_flush_sync_total_pages", 20),
    ] {
        let counters = store.0.counters();
        let found = counters.iter().find(|(row, _)| row.name == counter).map(|(_, value)| value);
        assert!(found >= Some(least), "{counter} is {found:?}, below {least}");
    }
}
