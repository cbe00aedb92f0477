//! The engine as a program calls it: what each call promises.

use std::ops::Bound;
use std::sync::atomic::{AtomicU32, Ordering};

use iostrata_engine::{
    Background, Counter, Direction, Disk, Disks, Engine, EngineError, FlushLogAt, IndexDefinition,
    Isolation, KeyRange, OpenOptions, OwnedRow, ReadView, RequestError, Settings, Table,
    TableError, TransactionError, TransactionOptions,
};
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{MemDisk, Tear, TraceDisk};

/// What makes a small engine.
const SMALL: [(&str, &str); 5] = [
    ("page_size", "4K"),
    ("buffer_pool_size", "512K"),
    ("redo_log_capacity", "256K"),
    ("log_buffer_size", "64K"),
    ("autoextend_increment", "64K"),
];

fn small() -> OpenOptions<'static> {
    SMALL.iter().fold(Engine::options(), |small, (name, value)| small.set(name, value).unwrap())
}

fn open(disk: impl Disk + Clone + 'static, background: Background) -> Engine {
    small().open_on(Disks::one(disk), background).unwrap()
}

/// One way to write a row and to wait for it.
type Write = fn(&Engine, &Table, &[u8]) -> Result<(), EngineError>;

const WAITING: [Write; 3] = [
    |engine, table, key| {
        let mut batch = engine.batch();
        batch.put(table, key, b"v")?;
        batch.commit()
    },
    |engine, table, key| {
        let mut t = engine.begin(Isolation::default())?;
        t.put(table, key, b"v")?;
        t.commit()
    },
    |engine, table, key| engine.transact(Isolation::default(), |t| t.put(table, key, b"v")),
];

const PIPELINED: [Write; 3] = [
    |engine, table, key| {
        let mut batch = engine.batch();
        batch.put(table, key, b"v")?;
        batch.commit_async().map(drop)
    },
    |engine, table, key| {
        let mut t = engine.begin(Isolation::default())?;
        t.put(table, key, b"v")?;
        t.commit_async().map(drop)
    },
    |engine, table, key| {
        engine.transact_async(Isolation::default(), |t| t.put(table, key, b"v")).map(drop)
    },
];

/// What the rows are behind a power cut that takes everything that was not synced.
fn after_power_cut(disk: &TraceDisk) -> Vec<Vec<u8>> {
    let image = disk.image(disk.points() - 1, 0, Tear::Whole);
    let engine = open(image, Background::Manual);
    let rows = engine.table("t").unwrap().unwrap();
    rows.iter().map(|row| row.unwrap().0).collect()
}

#[test]
fn a_commit_survives_a_power_cut_once_it_returned() {
    for background in [Background::Manual, Background::Threads] {
        for (number, write) in WAITING.into_iter().enumerate() {
            let disk = TraceDisk::new(MemDisk::new());
            let engine = open(disk.clone(), background);
            let table = engine.create_table("t").unwrap();
            write(&engine, &table, b"k").unwrap();
            assert_eq!(after_power_cut(&disk), [b"k"], "way {number}, {background:?}");
        }
    }
}

/// Without threads nothing but a wait makes a commit durable.
#[test]
fn a_commit_that_is_not_waited_for_is_not_durable_yet() {
    for (number, write) in PIPELINED.into_iter().enumerate() {
        let disk = TraceDisk::new(MemDisk::new());
        let engine = open(disk.clone(), Background::Manual);
        let table = engine.create_table("t").unwrap();
        write(&engine, &table, b"k").unwrap();
        assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
        assert!(after_power_cut(&disk).is_empty(), "way {number}");
    }
}

#[test]
fn a_commit_waits_for_as_much_as_it_was_asked_to() {
    let disk = TraceDisk::new(MemDisk::new());
    let engine = open(disk.clone(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    let mut batch = engine.batch();
    batch.put(&table, b"k", b"v").unwrap();
    batch.flush_log_at(FlushLogAt::Timeout);
    batch.commit().unwrap();
    let mut options = TransactionOptions::default();
    options.flush_log_at = Some(FlushLogAt::Written);
    engine.transact(options, |t| t.put(&table, b"l", b"v")).unwrap();
    assert!(after_power_cut(&disk).is_empty());
    engine.set("flush_log_at_trx_commit", "0").unwrap();
    engine.transact(Isolation::default(), |t| t.put(&table, b"m", b"v")).unwrap();
    assert!(after_power_cut(&disk).is_empty());
    engine.set("flush_log_at_trx_commit", "1").unwrap();
    engine.transact(Isolation::default(), |t| t.put(&table, b"n", b"v")).unwrap();
    assert_eq!(after_power_cut(&disk), [b"k", b"l", b"m", b"n"]);
}

/// The keys of a range, by every call that takes one.
fn keys(engine: &Engine, table: &Table, range: impl KeyRange) -> String {
    let text = |key: &[u8]| key.escape_ascii().to_string();
    let all: Vec<_> = table.range(&range).map(|row| text(&row.unwrap().0)).collect();
    let mut by_cursor = Vec::new();
    let mut cursor = table.cursor(&range, Direction::Forward);
    while let Some((key, _value)) = cursor.next_row().unwrap() {
        by_cursor.push(text(key));
    }
    assert_eq!(by_cursor, all);
    let mut t = engine.begin(Isolation::default()).unwrap();
    let by_t: Vec<_> = t.range(table, &range).unwrap().map(|row| text(&row.unwrap().0)).collect();
    assert_eq!(by_t, all);
    let first = t.first_for_update(table, &range).unwrap();
    assert_eq!(first.map(|(key, _)| text(&key)).as_ref(), all.first());
    all.join(" ")
}

#[test]
fn ranges_are_written_as_they_come() {
    let engine = open(MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    table.bulk_load([("a", ""), ("b", ""), ("c", ""), ("d", "")]).unwrap();
    let (low, high) = (vec![b'b'], vec![b'c']);
    assert_eq!(keys(&engine, &table, ..), "a b c d");
    assert_eq!(keys(&engine, &table, "a".."c"), "a b");
    assert_eq!(keys(&engine, &table, &b"b"[..]..), "b c d");
    assert_eq!(keys(&engine, &table, b"b"..), "b c d");
    assert_eq!(keys(&engine, &table, [b'b']..=[b'd']), "b c d");
    assert_eq!(keys(&engine, &table, &low..&high), "b");
    assert_eq!(keys(&engine, &table, ..String::from("b")), "a");
    assert_eq!(keys(&engine, &table, ..=low.as_slice()), "a b");
    assert_eq!(keys(&engine, &table, (Bound::Excluded("b"), Bound::Included("d"))), "c d");
    assert_eq!(keys(&engine, &table, (Bound::Excluded("b"), Bound::Unbounded)), "c d");
    assert_eq!(keys(&engine, &table, low..=high), "b c");
}

/// What a view shows of a table, by all of its reads.
fn shown(view: &ReadView, table: &Table) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let rows: Vec<_> = view.iter(table).unwrap().map(Result::unwrap).collect();
    let mut value = Vec::new();
    for (key, is) in &rows {
        assert_eq!(view.get(table, key).unwrap().as_ref(), Some(is));
        assert!(view.get_into(table, key, &mut value).unwrap() && value == *is);
        assert!(view.contains_key(table, key).unwrap());
        let found: Vec<_> = view.prefix(table, key).unwrap().map(Result::unwrap).collect();
        assert_eq!(found, [(key.clone(), is.clone())]);
    }
    assert_eq!(view.first(table).unwrap().as_ref(), rows.first());
    assert_eq!(view.last(table).unwrap().as_ref(), rows.last());
    let mut back: Vec<_> = view.range(table, ..).unwrap().rev().map(Result::unwrap).collect();
    back.reverse();
    assert_eq!(back, rows);
    let all = rows.iter().map(|(key, value)| format!("{}={}", text(key), text(value)));
    all.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_read_view_shows_one_moment_to_all_who_share_it() {
    fn is_shared<T: Send + Sync + Clone>(_: &T) {}
    let by_value = |_key: &[u8], value: &[u8], secondary: &mut Vec<u8>| {
        secondary.extend_from_slice(value);
        true
    };
    let options = small().index("t", "value", by_value).late_index("t", "late", by_value);
    let engine = options.open_on(Disks::one(MemDisk::new()), Background::Threads).unwrap();
    let (t, u) = (engine.create_table("t").unwrap(), engine.create_table("u").unwrap());
    let put = |table: &Table, key: &[u8], value: &[u8]| {
        engine.transact(Isolation::default(), |t| t.put(table, key, value)).unwrap();
    };
    put(&t, b"a", b"1");
    put(&t, b"b", b"1");
    let view = engine.read_view().unwrap();
    is_shared(&view);
    put(&t, b"a", b"2");
    engine.transact(Isolation::default(), |w| w.delete(&t, b"b")).unwrap();
    put(&t, b"c", b"1");
    put(&u, b"x", b"1");
    let newer = engine.read_view().unwrap();
    let value = t.index("value").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                assert_eq!(shown(&view, &t), "a=1 b=1");
                assert_eq!(shown(&view.clone(), &u), "");
                assert_eq!(view.index_get(&value, b"1").unwrap(), [b"a", b"b"]);
                assert_eq!(shown(&newer, &t), "a=2 c=1");
                assert_eq!(newer.index_get(&value, b"1").unwrap(), [b"c"]);
            });
        }
    });
    // Two cursors at once, in both directions.
    let mut forward = view.cursor(&t, .., Direction::Forward).unwrap();
    let mut backward = view.cursor(&t, .., Direction::Backward).unwrap();
    assert_eq!(forward.next_row().unwrap(), Some((&b"a"[..], &b"1"[..])));
    assert_eq!(backward.next_row().unwrap(), Some((&b"b"[..], &b"1"[..])));
    // An index that is younger is refused, and not shown empty.
    engine.make_index("t", "late").unwrap();
    let late = engine.open_table("t").unwrap().index("late").unwrap();
    let refused = view.index_get(&late, b"1").unwrap_err();
    let EngineError::Transaction(refused) = refused else { panic!("{refused}") };
    let (transaction, index) = (view.number(), "t.late".to_owned());
    assert_eq!(refused, TransactionError::DefinitionChanged { transaction, index });
    assert_eq!(engine.read_view().unwrap().index_get(&late, b"1").unwrap(), [b"c"]);
    let other = open(MemDisk::new(), Background::Manual);
    let foreign = other.create_table("t").unwrap();
    assert!(matches!(view.get(&foreign, b"a"), Err(EngineError::Table(_))));
    assert!(matches!(view.iter(&foreign), Err(EngineError::Table(_))));
}

/// While a view is open purge leaves it what it shows; afterwards nothing is kept for it.
#[test]
fn a_read_view_keeps_its_versions_as_long_as_it_is_open() {
    let engine = open(MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    engine.transact(Isolation::default(), |t| t.put(&table, b"k", b"0")).unwrap();
    let view = engine.read_view().unwrap();
    let clone = view.clone();
    drop(view);
    for round in 0..20 {
        engine.transact(Isolation::default(), |t| t.put(&table, b"k", &[round])).unwrap();
        engine.step(round.into()).unwrap();
    }
    assert_eq!(shown(&clone, &table), "k=0");
    assert_eq!(engine.counters()[Counter::OldestSnapshotTrx], clone.number());
    assert!(engine.counters()[Counter::HistoryListLength] > 0);
    drop(clone);
    (0..20).for_each(|round| assert!(engine.step(1000 + round).is_ok()));
    assert_eq!(engine.counters()[Counter::HistoryListLength], 0);
}

#[test]
fn a_transaction_reads_with_several_cursors_at_once() {
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Snapshot] {
        let engine = open(MemDisk::new(), Background::Manual);
        let table = engine.create_table("t").unwrap();
        table.bulk_load([("a", "1"), ("b", "2"), ("c", "3")]).unwrap();
        let mut t = engine.begin(isolation).unwrap();
        t.put(&table, b"bb", b"own").unwrap();
        t.delete(&table, b"c").unwrap();
        let t = t;
        let mut forward = t.cursor(&table, .., Direction::Forward).unwrap();
        let mut backward = t.cursor(&table, .., Direction::Backward).unwrap();
        assert_eq!(forward.next_row().unwrap(), Some((&b"a"[..], &b"1"[..])));
        assert_eq!(backward.next_row().unwrap(), Some((&b"bb"[..], &b"own"[..])));
        assert_eq!(t.get(&table, b"b").unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(backward.next_row().unwrap(), Some((&b"b"[..], &b"2"[..])));
        // Both ends of one range meet, whatever is committed meanwhile.
        let mut range = t.range(&table, "a"..).unwrap();
        let key = |row: Option<Result<OwnedRow, EngineError>>| row.unwrap().unwrap().0;
        assert_eq!(key(range.next_back()), b"bb");
        engine.transact(isolation, |other| other.put(&table, b"ab", b"new")).unwrap();
        assert_eq!(key(range.next()), b"a");
        assert_eq!(key(range.next_back()), b"b");
        assert!(range.next().is_none() && range.next_back().is_none());
    }
}

/// What a function that reads a row in its page does with the engine of that row.
type Inside = fn(&Engine, &Table, &Table) -> Result<(), EngineError>;

#[test]
fn a_row_is_looked_at_without_a_copy_by_every_reader() {
    let engine = open(MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    table.bulk_load([("a", "1"), ("b", "22")]).unwrap();
    let view = engine.read_view().unwrap();
    let mut t = engine.begin(Isolation::default()).unwrap();
    assert_eq!(t.get_with(&table, b"b", <[u8]>::len).unwrap(), Some(2));
    t.put(&table, b"a", b"own").unwrap();
    engine.transact(Isolation::default(), |t| t.put(&table, b"b", b"333")).unwrap();
    assert_eq!(table.get_with(b"b", <[u8]>::len).unwrap(), Some(3));
    assert_eq!(table.get_with(b"c", <[u8]>::len).unwrap(), None);
    // An older version, and an own one.
    assert_eq!(view.get_with(&table, b"b", <[u8]>::len).unwrap(), Some(2));
    assert_eq!(t.get_with(&table, b"b", <[u8]>::len).unwrap(), Some(2));
    assert_eq!(t.get_with(&table, b"a", <[u8]>::to_vec).unwrap().as_deref(), Some(&b"own"[..]));
}

#[test]
fn a_call_of_the_engine_is_refused_while_a_row_is_looked_at() {
    let commit: Inside = |engine, table, _| {
        let mut batch = engine.batch();
        batch.put(table, b"a", b"2")?;
        batch.commit()
    };
    let calls: [Inside; 10] = [
        commit,
        |_, table, _| table.get(b"a").map(drop),
        |_, table, _| table.cursor(.., Direction::Forward).next_row().map(drop),
        |_, table, _| table.iter().next().unwrap().map(drop),
        |engine, table, _| engine.read_view()?.get(table, b"a").map(drop),
        |engine, table, _| engine.begin(Isolation::Snapshot)?.put(table, b"a", b"2"),
        |engine, _, _| engine.create_table("u").map(drop),
        |engine, _, _| engine.checkpoint(),
        |engine, _, _| engine.step(0).map(drop),
        |engine, _, _| engine.check().map(drop),
    ];
    for background in [Background::Manual, Background::Threads] {
        let engine = open(MemDisk::new(), background);
        let table = engine.create_table("t").unwrap();
        table.bulk_load([("a", "1")]).unwrap();
        let other = open(MemDisk::new(), background);
        let theirs = other.create_table("t").unwrap();
        let mut t = engine.begin(Isolation::default()).unwrap();
        t.put(&table, b"b", b"own").unwrap();
        for (number, call) in calls.iter().enumerate() {
            let inside = |_row: &[u8]| call(&engine, &table, &theirs).unwrap_err();
            for refused in [table.get_with(b"a", inside), t.get_with(&table, b"b", inside)] {
                let refused = refused.unwrap().unwrap();
                let is_meant = EngineError::Request(RequestError::WithinGet).to_string();
                assert_eq!(refused.to_string(), is_meant, "{number}");
            }
        }
        drop(t);
        // Another engine can be called, for everything but a second look.
        let copied = table.get_with(b"a", |row| {
            let mut batch = other.batch();
            batch.put(&theirs, b"a", row)?;
            assert!(theirs.get(b"a").is_err());
            batch.commit()
        });
        copied.unwrap().unwrap().unwrap();
        assert_eq!(theirs.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
        // It is over when the function is, also by a panic.
        let panics = || table.get_with(b"a", |_| panic!("meant"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        commit(&engine, &table, &theirs).unwrap();
        assert_eq!(table.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
        // The last handle may go there.
        let mut handle = Some(engine);
        assert_eq!(table.get_with(b"a", |_| drop(handle.take())).unwrap(), Some(()));
    }
}

#[test]
fn a_transaction_finds_its_own_rows_by_every_read() {
    let engine = open(MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    assert_eq!((table.first().unwrap(), table.last().unwrap()), (None, None));
    table.bulk_load([("b", "1"), ("ba", "2"), ("c", "3")]).unwrap();
    let mut t = engine.begin(Isolation::default()).unwrap();
    t.put(&table, b"a", b"own").unwrap();
    t.put(&table, b"bb", b"own").unwrap();
    t.delete(&table, b"c").unwrap();
    let row = |key: &[u8], value: &[u8]| Some((key.to_vec(), value.to_vec()));
    assert_eq!(t.first(&table).unwrap(), row(b"a", b"own"));
    assert_eq!(t.last(&table).unwrap(), row(b"bb", b"own"));
    assert!(t.contains_key(&table, b"a").unwrap() && !t.contains_key(&table, b"c").unwrap());
    let keys = |rows: &mut dyn Iterator<Item = Result<OwnedRow, EngineError>>| {
        rows.map(|row| row.unwrap().0).collect::<Vec<_>>()
    };
    assert_eq!(keys(&mut t.prefix(&table, b"b").unwrap()), [&b"b"[..], b"ba", b"bb"]);
    assert_eq!(keys(&mut t.iter(&table).unwrap().rev()), [&b"bb"[..], b"ba", b"b", b"a"]);
    assert_eq!((table.first().unwrap(), table.last().unwrap()), (row(b"b", b"1"), row(b"c", b"3")));
}

#[test]
fn rows_are_estimated_from_a_few_leaves() {
    let engine = open(MemDisk::new(), Background::Manual);
    let table = engine.create_table("t").unwrap();
    assert_eq!(table.rows_estimate().unwrap(), 0);
    let put = |row: u64| {
        let mut batch = engine.batch();
        // Spread over the keys, and of different sizes.
        let key = row.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        batch.put(&table, &key, &vec![1; 10 + row as usize % 100]).unwrap();
        batch.commit().unwrap();
    };
    (0..20).for_each(put);
    assert_eq!(table.rows_estimate().unwrap(), 20, "one leaf is counted");
    (20..20_000).for_each(put);
    let before = engine.counters()[Counter::BufferPoolReadRequests];
    let estimate = table.rows_estimate().unwrap();
    assert!((16_000..=24_000).contains(&estimate), "{estimate}");
    let pages = engine.counters()[Counter::BufferPoolReadRequests] - before;
    assert!(pages <= 16 * 4, "{pages} pages");
    for row in 0..10_000_u64 {
        let mut batch = engine.batch();
        let key = row.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        batch.delete(&table, &key).unwrap();
        batch.commit().unwrap();
    }
    let estimate = table.rows_estimate().unwrap();
    assert!((8_000..=12_000).contains(&estimate), "{estimate}");
}

fn by_value(_key: &[u8], value: &[u8], secondary: &mut Vec<u8>) -> bool {
    secondary.extend_from_slice(value);
    true
}

fn by_first_byte(_key: &[u8], value: &[u8], secondary: &mut Vec<u8>) -> bool {
    secondary.extend(value.first());
    true
}

#[test]
fn an_index_of_another_version_is_refused_or_made_anew() {
    let disk = MemDisk::new();
    let open = |index: IndexDefinition| {
        small().define(index).open_on(Disks::one(disk.clone()), Background::Manual)
    };
    let refused = |index: IndexDefinition| match open(index).unwrap_err() {
        EngineError::Table(TableError::IndexVersion { index, kept, given }) => {
            assert_eq!(index, "t.value");
            (kept, given)
        }
        other => panic!("{other}"),
    };
    let keys = |engine: &Engine, secondary: &[u8]| {
        let index = engine.table("t").unwrap().unwrap().index("value").unwrap();
        assert!(engine.check().unwrap().is_clean());
        engine.read_view().unwrap().index_get(&index, secondary).unwrap()
    };
    let first = || IndexDefinition::new("t", "value", by_first_byte);
    let whole = || IndexDefinition::new("t", "value", by_value);
    // Without a version it is 0, by the short call as well.
    let engine = small().index("t", "value", by_first_byte);
    let engine = engine.open_on(Disks::one(disk.clone()), Background::Manual).unwrap();
    let t = engine.create_table("t").unwrap();
    engine.transact(Isolation::default(), |w| w.put(&t, b"k", b"vw")).unwrap();
    assert_eq!(keys(&engine, b"v"), [b"k"]);
    engine.close().unwrap();
    assert_eq!(refused(whole().version(7)), (0, 7));
    // What is refused is as it was.
    let engine = open(first()).unwrap();
    assert_eq!(keys(&engine, b"v"), [b"k"]);
    engine.close().unwrap();
    let engine = open(whole().version(7).rebuild()).unwrap();
    assert!(keys(&engine, b"v").is_empty());
    assert_eq!(keys(&engine, b"vw"), [b"k"]);
    engine.close().unwrap();
    assert_eq!(refused(first()), (7, 0));
    assert_eq!(refused(first().version(8)), (7, 8));
    // The version stays, also over an opening that does not name the index.
    drop(self::open(disk.clone(), Background::Manual));
    let engine = open(whole().version(7)).unwrap();
    assert_eq!(keys(&engine, b"vw"), [b"k"]);
    engine.close().unwrap();
    // A late one is made on request.
    let engine = open(first().version(8).rebuild().late()).unwrap();
    assert!(engine.table("t").unwrap().unwrap().index("value").is_none());
    engine.make_index("t", "value").unwrap();
    assert_eq!(keys(&engine, b"v"), [b"k"]);
    engine.close().unwrap();
    assert_eq!(refused(whole().version(7)), (8, 7));
}

#[test]
fn what_was_set_is_in_force_at_the_next_opening_unless_it_is_named() {
    let home = tempfile::tempdir().unwrap();
    let disk = MemDisk::new();
    // In a directory and on disks.
    let open = |options: OpenOptions<'_>, is_real: bool| match is_real {
        true => options.open(home.path().join("engine")),
        false => options.open_on(Disks::one(disk.clone()), Background::Manual),
    };
    let told = |engine: &Engine| {
        let settings = engine.settings();
        let of = |name: &str| settings.get(name).unwrap();
        (of("page_size"), of("redo_log_capacity"), of("io_capacity"))
    };
    let is = |page: &str, redo: &str, io: &str| (page.to_owned(), redo.to_owned(), io.to_owned());
    for is_real in [true, false] {
        let engine = open(small(), is_real).unwrap();
        engine.set("redo_log_capacity", "512K").unwrap();
        engine.set("io_capacity", "4000").unwrap();
        engine.close().unwrap();
        let engine = open(Engine::options(), is_real).unwrap();
        assert_eq!(told(&engine), is("4K", "512K", "4000"), "kept");
        engine.close().unwrap();
        // Its default, but named.
        let named = Engine::options().set("io_capacity", "10000").unwrap();
        let engine = open(named, is_real).unwrap();
        assert_eq!(told(&engine), is("4K", "512K", "10000"), "named");
        engine.close().unwrap();
        let engine = open(Engine::options(), is_real).unwrap();
        assert_eq!(told(&engine), is("4K", "512K", "4000"), "a name is for one opening");
        engine.close().unwrap();
        let mut all = Settings::default();
        all.set("page_size", "4K").unwrap();
        let engine = open(Engine::options().settings(all), is_real).unwrap();
        assert_eq!(told(&engine), is("4K", "32M", "10000"), "all were given");
        engine.close().unwrap();
        // One that only creation decides is refused, as before.
        let other = Engine::options().set("page_size", "8K").unwrap();
        assert!(matches!(open(other, is_real), Err(EngineError::Request(_))));
    }
    assert!(Engine::options().set("io_capacity", "many").is_err());
}

/// Rows whose pages would be written long after they were committed.
fn fill(engine: &Engine, rows: u32) -> Table {
    let table = engine.open_table("t").unwrap();
    for row in 0..rows {
        let mut batch = engine.batch();
        batch.put(&table, &row.to_be_bytes(), &[row as u8; 100]).unwrap();
        drop(batch.commit_async().unwrap());
    }
    table
}

fn lazy() -> OpenOptions<'static> {
    let named =
        [("idle_flush_pct", "0"), ("adaptive_flushing", "OFF"), ("redo_log_capacity", "4M")];
    named.iter().fold(small(), |options, (name, value)| options.set(name, value).unwrap())
}

#[test]
fn a_dropped_engine_leaves_nothing_to_apply_and_an_abandoned_one_all() {
    for is_abandoned in [false, true] {
        let disk = MemDisk::new();
        let open = || lazy().open_on(Disks::one(disk.clone()), Background::Threads).unwrap();
        let engine = open();
        let table = fill(&engine, 2000);
        // The last commit is durable in either case.
        let mut batch = engine.batch();
        batch.put(&table, b"last", b"durable").unwrap();
        batch.commit().unwrap();
        let clone = engine.clone();
        if is_abandoned {
            engine.abandon()
        } else {
            drop(engine)
        }
        drop((clone, table));
        let engine = open();
        let report = engine.recovery().clone();
        assert!(!report.was_clean);
        match is_abandoned {
            true => assert!(report.pages_changed > 20, "{report:?}"),
            false => assert!(report.pages_changed == 0 && report.frames < 10, "{report:?}"),
        }
        let table = engine.table("t").unwrap().unwrap();
        assert_eq!(table.iter().count(), 2001);
        assert!(engine.check().unwrap().is_clean());
    }
}

#[test]
fn a_drop_beside_writers_ends() {
    let disk = MemDisk::new();
    let open = || lazy().open_on(Disks::one(disk.clone()), Background::Threads).unwrap();
    let engine = open();
    let table = fill(&engine, 500);
    let written = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for writer in 0..3_u32 {
            let batches: Vec<_> = (0..2000_u32)
                .map(|number| {
                    let mut batch = engine.batch();
                    let key = (1 << 20 | writer << 12 | number).to_be_bytes();
                    batch.put(&table, &key, &[1; 100]).unwrap();
                    batch
                })
                .collect();
            let written = &written;
            scope.spawn(move || {
                for batch in batches {
                    batch.commit().unwrap();
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while written.load(Ordering::Relaxed) < 100 {
            std::thread::yield_now();
        }
        drop(engine);
    });
    drop(table);
    let engine = open();
    assert_eq!(engine.table("t").unwrap().unwrap().iter().count(), 6500);
    assert!(engine.check().unwrap().is_clean());
}

#[test]
fn a_drop_on_a_disk_that_fails_leaves_all_to_recovery() {
    let disk = MemDisk::new();
    let open = || lazy().open_on(Disks::one(disk.clone()), Background::Threads).unwrap();
    let engine = open();
    let table = fill(&engine, 500);
    let mut batch = engine.batch();
    batch.put(&table, b"last", b"durable").unwrap();
    batch.commit().unwrap();
    disk.before_each(|call| match call.kind {
        CallKind::Write | CallKind::Sync => Fault::Errno(5),
        _ => Fault::None,
    });
    drop((engine, table));
    disk.before_each(|_| Fault::None);
    let engine = open();
    assert_eq!(engine.table("t").unwrap().unwrap().iter().count(), 501);
}
