//! Secondary indexes; index functions that panic or call engines, and indexes where they do not
//! belong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use iostrata_io::disk::MemDisk;

use crate::tests::small;
use crate::{
    Background, Direction, Disks, Engine, EngineError, Isolation, OpenOptions, RequestError, Table,
    TableError, TransactionError,
};

/// By the first byte of the value, rows with an empty value are not in it.
fn by_first(key: &[u8], value: &[u8], secondary: &mut Vec<u8>) -> bool {
    assert!(!key.is_empty());
    secondary.extend(value.first());
    !value.is_empty()
}

pub(crate) fn options() -> OpenOptions<'static> {
    Engine::options().settings(small()).index("t", "first", by_first)
}

pub(crate) fn open(disk: &MemDisk, options: OpenOptions<'_>) -> Engine {
    options.open_on(Disks::one(disk.clone()), Background::Manual).unwrap()
}

/// The entries of the index, as text.
pub(crate) fn entries(engine: &Engine, table: &Table) -> String {
    let t = engine.begin(Isolation::Snapshot).unwrap();
    let index = table.index("first").unwrap();
    let mut cursor = t.index_cursor(&index, .., Direction::Forward).unwrap();
    let mut all = Vec::new();
    while let Some((secondary, key)) = cursor.next_entry().unwrap() {
        all.push(format!("{}:{}", secondary.escape_ascii(), key.escape_ascii()));
    }
    drop(cursor);
    assert!(engine.check().unwrap().is_clean(), "{:?}", engine.check().unwrap().problems);
    all.join(" ")
}

pub(crate) fn fill(engine: &Engine, table: &Table) {
    let mut t = engine.begin(Isolation::default()).unwrap();
    for (key, value) in [("a", "x1"), ("b", "y1"), ("c", "x2"), ("d", ""), ("e", "\0z")] {
        t.insert(table, key.as_bytes(), value.as_bytes()).unwrap();
    }
    t.commit().unwrap();
}

#[test]
fn entries_follow_their_rows() {
    let engine = open(&MemDisk::new(), options());
    let t = engine.create_table("t").unwrap();
    assert_eq!(engine.tables().unwrap(), ["t"], "an index is no table");
    assert!(engine.table("t.first").unwrap().is_none());
    fill(&engine, &t);
    assert_eq!(entries(&engine, &t), r"\x00:e x:a x:c y:b");
    let old = engine.begin(Isolation::Snapshot).unwrap();
    let mut work = engine.begin(Isolation::default()).unwrap();
    work.modify(&t, b"a", |value| value.push(b'!')).unwrap();
    work.put(&t, b"b", b"x3").unwrap();
    work.delete(&t, b"c").unwrap();
    work.put(&t, b"d", b"w").unwrap();
    let savepoint = work.savepoint();
    work.put(&t, b"e", b"lost").unwrap();
    work.rollback_to(savepoint).unwrap();
    let first = t.index("first").unwrap();
    assert_eq!(work.index_get(&first, b"x").unwrap(), [b"a", b"b"], "own writes are seen");
    work.commit().unwrap();
    assert_eq!(entries(&engine, &t), r"\x00:e w:d x:a x:b");
    let old = old;
    assert_eq!(old.index_get(&first, b"x").unwrap(), [b"a", b"c"], "as its snapshot was");
    assert_eq!(old.index_get(&first, b"y").unwrap(), [b"b"]);
    drop(old);
    while engine.parts().purger.step().unwrap() {}
    assert_eq!(engine.counters()[crate::Counter::RowsPurged], 3, "c and the old entries of b, c");
    assert_eq!(entries(&engine, &t), r"\x00:e w:d x:a x:b");
}

#[test]
fn batches_and_bulk_loads_write_entries_too() {
    let engine = open(&MemDisk::new(), options());
    let t = engine.create_table("t").unwrap();
    let rows: Vec<_> = (0..500_u32).map(|n| (n.to_be_bytes(), [b'a' + (n % 3) as u8])).collect();
    t.bulk_load(rows.iter().map(|(key, value)| (key, value))).unwrap();
    let mut batch = engine.batch();
    batch.put(&t, &rows[0].0, b"z").unwrap();
    batch.compare_and_set(&t, &rows[1].0, Some(b"b"), None).unwrap();
    batch.commit().unwrap();
    let mut refused = engine.batch();
    refused.put(&t, b"new", b"z").unwrap();
    refused.require(&t, &rows[1].0, Some(b"b")).unwrap();
    assert!(refused.commit().is_err());
    let first = t.index("first").unwrap();
    let mut reader = engine.begin(Isolation::default()).unwrap();
    assert_eq!(reader.index_get(&first, b"z").unwrap(), [rows[0].0]);
    assert_eq!(reader.index_get(&first, b"b").unwrap().len(), 166);
    let found = reader.index_get_for_update((&t, &first), b"z").unwrap();
    assert_eq!(found, [(rows[0].0.to_vec(), b"z".to_vec())]);
    drop(reader);
    entries(&engine, &t);
}

#[test]
fn a_batch_that_changes_nothing_waits_for_all_that_is_visible() {
    let engine = open(&MemDisk::new(), options());
    let (t, u) = (engine.create_table("t").unwrap(), engine.create_table("u").unwrap());
    let mut other = engine.batch();
    other.put(&u, b"a", b"1").unwrap();
    let visible = other.commit_async().unwrap();
    let mut batch = engine.batch();
    batch.delete(&t, b"not there").unwrap();
    let ticket = batch.commit_async().unwrap();
    assert!(ticket.lsn() >= visible.lsn());
    ticket.wait().unwrap();
    assert!(visible.is_durable());
}

#[test]
fn an_index_is_made_from_the_rows_that_are_there() {
    let disk = MemDisk::new();
    let engine = open(&disk, Engine::options().settings(small()));
    fill(&engine, &engine.create_table("t").unwrap());
    engine.close().unwrap();
    for _ in 0..2 {
        let engine = open(&disk, options());
        let t = engine.table("t").unwrap().unwrap();
        assert_eq!(entries(&engine, &t), r"\x00:e x:a x:c y:b");
        engine.close().unwrap();
    }
    // Not named: readable, not writable, and untouched.
    let engine = open(&disk, Engine::options().settings(small()));
    let t = engine.table("t").unwrap().unwrap();
    let mut work = engine.begin(Isolation::default()).unwrap();
    assert_eq!(work.index_get(&t.index("first").unwrap(), b"y").unwrap(), [b"b"]);
    let refused = work.put(&t, b"a", b"z").unwrap_err();
    assert!(matches!(refused, EngineError::Table(TableError::IndexUnknown { .. })), "{refused}");
    assert!(refused.to_string().contains("t.first"), "{refused}");
    drop(work);
    engine.close().unwrap();
    let engine = open(&disk, options());
    let t = engine.table("t").unwrap().unwrap();
    assert_eq!(entries(&engine, &t), r"\x00:e x:a x:c y:b");
    engine.drop_table("t").unwrap();
    assert!(engine.check().unwrap().is_clean());
    let t = engine.create_table("t").unwrap();
    assert_eq!(entries(&engine, &t), "");
}

#[test]
fn what_a_crash_leaves_of_an_index_is_begun_anew() {
    let disk = MemDisk::new();
    let engine = open(&disk, Engine::options().settings(small()));
    fill(&engine, &engine.create_table("t").unwrap());
    // The row of an index that is being built, and one without a table.
    engine.parts().catalogue.leave_unbuilt("t", "first").unwrap();
    engine.parts().catalogue.leave_unbuilt("gone", "first").unwrap();
    std::mem::forget(engine);
    let engine = open(&disk, options().index("gone", "first", by_first));
    let t = engine.table("t").unwrap().unwrap();
    assert_eq!(entries(&engine, &t), r"\x00:e x:a x:c y:b");
    engine.create_table("gone").unwrap();
    engine.close().unwrap();
}

#[test]
fn a_late_index_is_made_when_it_is_asked_for_and_then_kept() {
    let disk = MemDisk::new();
    let late = || Engine::options().settings(small()).late_index("t", "first", by_first);
    let engine = open(&disk, late());
    assert!(matches!(engine.make_index("t", "first"), Err(EngineError::Table(_))), "no table");
    let old = engine.create_table("t").unwrap();
    assert!(old.index("first").is_none());
    fill(&engine, &old);
    // What a failure has left of it is no obstacle.
    engine.parts().catalogue.leave_unbuilt("t", "first").unwrap();
    let mut before = engine.begin(Isolation::default()).unwrap();
    before.put(&old, b"f", b"x").unwrap();
    engine.make_index("t", "first").unwrap();
    engine.make_index("t", "first").unwrap();
    let is_refused = |result: Result<(), EngineError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, EngineError::Table(TableError::IndexMade { .. })), "{error}");
    };
    is_refused(before.commit());
    let mut batch = engine.batch();
    batch.put(&old, b"f", b"x").unwrap();
    is_refused(batch.commit());
    is_refused(old.bulk_load([(b"f", b"x")]).map(drop));
    let t = engine.table("t").unwrap().unwrap();
    assert_eq!(entries(&engine, &t), r"\x00:e x:a x:c y:b");
    let mut work = engine.begin(Isolation::default()).unwrap();
    work.put(&t, b"f", b"w").unwrap();
    is_refused(work.put(&old, b"g", b"x"));
    work.commit().unwrap();
    engine.close().unwrap();
    // It exists: named at opening it is known, and need not be created any more.
    let engine = open(&disk, late());
    let t = engine.table("t").unwrap().unwrap();
    let mut work = engine.begin(Isolation::default()).unwrap();
    assert!(work.delete(&t, b"a").unwrap());
    work.commit().unwrap();
    assert_eq!(entries(&engine, &t), r"\x00:e w:f x:c y:b");
    // With a new table it is late again.
    engine.drop_table("t").unwrap();
    let t = engine.create_table("t").unwrap();
    assert!(t.index("first").is_none());
    fill(&engine, &t);
    let unknown = engine.make_index("t", "second").unwrap_err();
    assert!(matches!(unknown, EngineError::Table(TableError::IndexUnknown { .. })), "{unknown}");
    engine.make_index("t", "first").unwrap();
    assert_eq!(entries(&engine, &engine.table("t").unwrap().unwrap()), r"\x00:e x:a x:c y:b");
    // It outlives an end without closing, and one that was being made then is started over.
    engine.parts().catalogue.leave_unbuilt("t", "second").unwrap();
    std::mem::forget(engine);
    let engine = open(&disk, late().late_index("t", "second", by_first));
    let t = engine.table("t").unwrap().unwrap();
    assert_eq!(entries(&engine, &t), r"\x00:e x:a x:c y:b");
    assert!(t.index("second").is_none());
    engine.make_index("t", "second").unwrap();
    let t = engine.table("t").unwrap().unwrap();
    let reader = engine.begin(Isolation::default()).unwrap();
    assert_eq!(reader.index_get(&t.index("second").unwrap(), b"y").unwrap(), [b"b"]);
}

#[test]
fn the_newest_rows_and_entries_are_seen_whatever_the_level_shows() {
    let engine = open(&MemDisk::new(), options());
    let t = engine.create_table("t").unwrap();
    fill(&engine, &t);
    let first = t.index("first").unwrap();
    let mut reader = engine.begin(Isolation::RepeatableRead).unwrap();
    assert_eq!(reader.get(&t, b"a").unwrap().as_deref(), Some(&b"x1"[..]));
    let mut work = engine.begin(Isolation::default()).unwrap();
    work.put(&t, b"a", b"w").unwrap();
    work.delete(&t, b"b").unwrap();
    work.commit().unwrap();
    let mut seen = Vec::new();
    let mut newest = reader.newest_cursor(&t, &b"a"[..]..&b"c"[..], Direction::Forward).unwrap();
    while let Some((key, value)) = newest.next_row().unwrap() {
        seen.push([key, value].concat());
    }
    drop(newest);
    assert_eq!(seen, [b"aw"]);
    let mut keys = Vec::new();
    let mut newest = reader.newest_index_cursor(&first, .., Direction::Backward).unwrap();
    while let Some((_secondary, key)) = newest.next_entry().unwrap() {
        keys.push(key.to_vec());
    }
    drop(newest);
    assert_eq!(keys, [b"c", b"a", b"e"]);
    let mut value = b"kept".to_vec();
    assert!(!reader.get_for_update_into(&t, b"b", &mut value).unwrap());
    assert_eq!(value, b"kept");
    assert!(reader.get_for_update_into(&t, b"a", &mut value).unwrap());
    assert_eq!(
        (value, reader.index_get(&first, b"y").unwrap()),
        (b"w".to_vec(), vec![b"b".into()])
    );
}

#[test]
fn a_snapshot_from_before_an_index_cannot_read_it() {
    for isolation in [Isolation::RepeatableRead, Isolation::Snapshot] {
        let late = Engine::options().settings(small()).late_index("t", "first", by_first);
        let engine = open(&MemDisk::new(), late);
        let old_handle = engine.create_table("t").unwrap();
        fill(&engine, &old_handle);
        let mut before = engine.begin(isolation).unwrap();
        assert_eq!(before.get(&old_handle, b"a").unwrap().as_deref(), Some(&b"x1"[..]));
        engine.make_index("t", "first").unwrap();
        let t = engine.table("t").unwrap().unwrap();
        let first = t.index("first").unwrap();
        let number = before.number();
        let refused = [
            before.index_get(&first, b"x").unwrap_err(),
            before.index_get_for_update((&t, &first), b"x").unwrap_err(),
            before.index_cursor(&first, .., Direction::Backward).unwrap_err(),
        ];
        for error in refused {
            let is_typed = matches!(
                &error,
                EngineError::Transaction(TransactionError::DefinitionChanged { transaction, index })
                    if *transaction == number && index == "t.first"
            );
            assert!(is_typed && error.to_string().contains("begin a new"), "{error}");
        }
        // What is newest can be read, and rows through their keys; it may write, too.
        let mut newest = before.newest_index_cursor(&first, .., Direction::Forward).unwrap();
        assert!(newest.next_entry().unwrap().is_some());
        drop(newest);
        assert_eq!(before.get(&t, b"c").unwrap().as_deref(), Some(&b"x2"[..]));
        before.put(&t, b"f", b"x3").unwrap();
        before.commit().unwrap();
        let after = engine.begin(isolation).unwrap();
        assert_eq!(after.index_get(&first, b"x").unwrap(), [b"a", b"c", b"f"]);
    }
}

/// A snapshot shows the entries of before, a write the newest row: they meet in own writes.
#[test]
fn own_writes_of_rows_that_others_have_changed_are_found_by_their_entries() {
    let engine = open(&MemDisk::new(), options());
    let t = engine.create_table("t").unwrap();
    fill(&engine, &t);
    let first = t.index("first").unwrap();
    let mut work = engine.begin(Isolation::RepeatableRead).unwrap();
    assert_eq!(work.index_get(&first, b"x").unwrap(), [b"a", b"c"]);
    let mut other = engine.begin(Isolation::default()).unwrap();
    for (key, value) in [(b"a", b"w1"), (b"b", b"w2"), (b"e", b"w3")] {
        other.put(&t, key, value).unwrap();
    }
    other.delete(&t, b"c").unwrap();
    other.commit().unwrap();
    assert_eq!(work.index_get(&first, b"x").unwrap(), [b"a", b"c"], "as the snapshot was");
    // One keeps its current secondary key, one gets the key of the snapshot, one is there again.
    work.modify(&t, b"a", |value| value.push(b'!')).unwrap();
    work.put(&t, b"b", b"y!").unwrap();
    work.insert(&t, b"c", b"v").unwrap();
    work.delete(&t, b"e").unwrap();
    let mut found = Vec::new();
    let mut entries_now = work.index_cursor(&first, .., Direction::Forward).unwrap();
    while let Some((secondary, key)) = entries_now.next_entry().unwrap() {
        found.push(format!("{}:{}", secondary.escape_ascii(), key.escape_ascii()));
    }
    drop(entries_now);
    assert_eq!(found, ["v:c", "w:a", "y:b"]);
    work.commit().unwrap();
    assert_eq!(entries(&engine, &t), "v:c w:a y:b");
    while engine.parts().purger.step().unwrap() {}
    assert_eq!(entries(&engine, &t), "v:c w:a y:b");
}

#[test]
fn check_finds_an_entry_that_is_left_out() {
    let disk = MemDisk::new();
    let engine = open(&disk, options());
    let t = engine.create_table("t").unwrap();
    fill(&engine, &t);
    engine.close().unwrap();
    let other = |_: &[u8], _: &[u8], secondary: &mut Vec<u8>| {
        secondary.push(b'q');
        true
    };
    let engine = open(&disk, Engine::options().settings(small()).index("t", "first", other));
    let report = engine.check().unwrap();
    assert_eq!(report.problems_total, 6, "{:?}", report.problems);
}

#[test]
fn what_a_failure_leaves_of_a_table_s_indexes_is_no_obstacle() {
    let engine = open(&MemDisk::new(), options());
    engine.parts().catalogue.leave_unbuilt("t", "first").unwrap();
    assert!(engine.check().unwrap().is_clean(), "{:?}", engine.check().unwrap().problems);
    let t = engine.create_table("t").unwrap();
    fill(&engine, &t);
    assert_eq!(entries(&engine, &t), r"\x00:e x:a x:c y:b");
}

#[test]
fn definitions_that_cannot_be_are_refused_at_opening() {
    let refused = |options: OpenOptions<'_>| {
        let opened = options.open_on(Disks::one(MemDisk::new()), Background::Manual);
        opened.unwrap_err().to_string()
    };
    let twice = refused(options().index("t", "first", by_first));
    assert!(twice.contains("t.first") && twice.contains("twice"), "{twice}");
    let nameless = refused(options().index("t", "", by_first));
    assert!(nameless.contains("is no name"), "{nameless}");
    let long = refused(options().index("t", &"n".repeat(300), by_first));
    assert!(long.contains("is no name"), "{long}");
}

#[test]
fn an_entry_that_is_too_long_is_refused_and_changes_nothing() {
    let long = |_: &[u8], value: &[u8], secondary: &mut Vec<u8>| {
        secondary.extend_from_slice(value);
        true
    };
    let options = Engine::options().settings(small()).index("t", "first", long);
    let engine = open(&MemDisk::new(), options);
    let t = engine.create_table("t").unwrap();
    let mut work = engine.begin(Isolation::default()).unwrap();
    work.put(&t, b"a", b"x").unwrap();
    let refused = work.put(&t, b"a", &[b'y'; 600]).unwrap_err().to_string();
    assert!(refused.contains("t.first") && refused.contains("603") && refused.contains("512"));
    work.commit().unwrap();
    assert_eq!(entries(&engine, &t), "x:a");
}

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
