//! Index functions that panic or call engines, and indexes where they do not belong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use iostrata_io::disk::MemDisk;

use crate::index_tests::{by_first, entries, fill, open, options};
use crate::tests::small;
use crate::{
    Background, Direction, Disks, Engine, EngineError, Isolation, RequestError, TableError,
};

#[test]
fn an_index_of_another_engine_or_table_is_refused() {
    let engines = [0, 1].map(|_| open(&MemDisk::new(), options().index("u", "first", by_first)));
    let [ours, theirs] = engines.each_ref().map(|engine| {
        let table = engine.create_table("t").unwrap();
        fill(engine, &table);
        table
    });
    let other = engines[0].create_table("u").unwrap();
    let is_refused = |error: EngineError, name: &str| {
        let of = |index: &str| index == name;
        let EngineError::Table(TableError::IndexNotFound { index, .. }) = &error else {
            panic!("{error}");
        };
        assert!(of(index), "{error}");
    };
    let (foreign, of_other) = (theirs.index("first").unwrap(), other.index("first").unwrap());
    let mut t = engines[0].begin(Isolation::default()).unwrap();
    is_refused(t.index_get(&foreign, b"x").unwrap_err(), "t.first");
    is_refused(t.newest_index_cursor(&foreign, .., Direction::Forward).unwrap_err(), "t.first");
    is_refused(t.index_get_for_update((&ours, &foreign), b"x").unwrap_err(), "t.first");
    is_refused(t.index_get_for_update((&ours, &of_other), b"x").unwrap_err(), "u.first");
    assert_eq!(t.index_get(&ours.index("first").unwrap(), b"x").unwrap(), [b"a", b"c"]);
}

#[test]
fn an_index_function_that_panics_leaves_the_table_as_it_was() {
    let panics = Arc::new(AtomicBool::new(true));
    let function = {
        let panics = Arc::clone(&panics);
        move |key: &[u8], value: &[u8], secondary: &mut Vec<u8>| {
            assert!(!(panics.load(Ordering::Relaxed) && key == b"c"), "on purpose");
            by_first(key, value, secondary)
        }
    };
    let late = Engine::options().settings(small()).late_index("t", "first", function);
    let engine = open(&MemDisk::new(), late);
    let t = engine.create_table("t").unwrap();
    panics.store(false, Ordering::Relaxed);
    fill(&engine, &t);
    panics.store(true, Ordering::Relaxed);
    let caught = |call: &dyn Fn()| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).unwrap_err();
    };
    caught(&|| engine.make_index("t", "first").unwrap());
    for table in [t.clone(), engine.open_table("t").unwrap()] {
        let mut batch = engine.batch();
        batch.put(&table, b"b", b"y2").unwrap();
        batch.commit().unwrap();
    }
    assert!(engine.check().unwrap().is_clean());
    panics.store(false, Ordering::Relaxed);
    engine.make_index("t", "first").unwrap();
    let t = engine.open_table("t").unwrap();
    assert_eq!(entries(&engine, &t), r"\x00:e x:a x:c y:b");
    // In a write and in a check.
    panics.store(true, Ordering::Relaxed);
    let mut work = engine.begin(Isolation::default()).unwrap();
    let put = std::panic::AssertUnwindSafe(|| work.put(&t, b"c", b"z"));
    assert!(std::panic::catch_unwind(put).is_err());
    caught(&|| drop(engine.check()));
    panics.store(false, Ordering::Relaxed);
    work.put(&t, b"c", b"w").unwrap();
    work.commit().unwrap();
    assert_eq!(entries(&engine, &t), r"\x00:e w:c x:a y:b");
}

/// What an index function does with its own engine.
type Call = fn(&Engine) -> Result<(), EngineError>;

#[test]
fn an_index_function_that_calls_its_engine_is_refused() {
    let commit: Call = |engine| {
        let mut batch = engine.batch();
        batch.put(&engine.open_table("u")?, b"k", b"v")?;
        batch.commit()
    };
    let calls: [(&str, Call); 8] = [
        ("commit", commit),
        ("create", |engine| engine.create_table("v").map(drop)),
        ("drop", |engine| engine.drop_table("u")),
        ("index", |engine| engine.make_index("t", "second")),
        ("check", |engine| engine.check().map(drop)),
        ("set", |engine| engine.set("redo_log_capacity", "64K")),
        ("load", |engine| engine.open_table("u")?.bulk_load([(b"a", b"b")]).map(drop)),
        ("close", |engine| engine.clone().close()),
    ];
    for (name, call) in calls {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let own: Arc<OnceLock<Engine>> = Arc::default();
            let said = Arc::new(Mutex::new(Vec::new()));
            let function = {
                let (own, said) = (Arc::clone(&own), Arc::clone(&said));
                move |key: &[u8], value: &[u8], secondary: &mut Vec<u8>| {
                    said.lock().unwrap().extend(own.get().map(call));
                    by_first(key, value, secondary)
                }
            };
            let settings = Engine::options().settings(small()).late_index("t", "first", function);
            let options = settings.late_index("t", "second", by_first);
            let engine = options.set("redo_log_capacity", "128K").unwrap();
            let engine = engine.open_on(Disks::one(MemDisk::new()), Background::Threads).unwrap();
            fill(&engine, &engine.create_table("t").unwrap());
            engine.create_table("u").unwrap();
            own.set(engine.clone()).unwrap();
            engine.make_index("t", "first").unwrap();
            let report = engine.check().unwrap();
            let mut t = engine.begin(Isolation::default()).unwrap();
            t.put(&engine.open_table("t").unwrap(), b"f", b"x9").unwrap();
            t.commit().unwrap();
            let said = std::mem::take(&mut *said.lock().unwrap());
            sender.send((report.is_clean(), said, engine)).unwrap();
        });
        let (is_clean, said, engine) = receiver.recv_timeout(Duration::from_secs(20)).expect(name);
        assert!(is_clean, "{name}");
        assert_eq!(said.len(), 11, "{name}: 5 rows made into entries, 5 checked, one put");
        for answer in said {
            let is_refused =
                matches!(answer, Err(EngineError::Request(RequestError::WithinIndexFunction)));
            assert!(is_refused, "{name}: {answer:?}");
        }
        engine.close().unwrap();
    }
}

#[test]
fn an_index_function_may_call_another_engine() {
    let other = open(&MemDisk::new(), Engine::options().settings(small()));
    let seen = other.create_table("seen").unwrap();
    let function = move |key: &[u8], value: &[u8], secondary: &mut Vec<u8>| {
        let mut batch = other.batch();
        batch.put(&seen, key, value).unwrap();
        batch.commit().unwrap();
        by_first(key, value, secondary)
    };
    let options = Engine::options().settings(small()).index("t", "first", function);
    let engine = open(&MemDisk::new(), options);
    let t = engine.create_table("t").unwrap();
    fill(&engine, &t);
    assert_eq!(entries(&engine, &t), r"\x00:e x:a x:c y:b");
}
