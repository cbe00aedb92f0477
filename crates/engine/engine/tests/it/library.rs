//! The engine as a program calls it: what each call promises.

use std::ops::Bound;

use iostrata_engine::{
    Background, Direction, Disk, Disks, Engine, EngineError, FlushLogAt, Isolation, KeyRange,
    OpenOptions, Table, TransactionOptions,
};
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
