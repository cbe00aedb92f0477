//! Growth, and a disk that is full.

use std::sync::Arc;

use iostrata_engine::EngineError;
use iostrata_engine::store::{Store, StoreSettings};
use iostrata_innodb::{Counter, FlushMethod};
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{FileName, MemDisk};

use crate::store::common::{Round, create, open, small, version};

fn lengths(disk: &MemDisk) -> [usize; 2] {
    ["data-00", "data-01"].map(|name| disk.content(&FileName::new(name).unwrap()).unwrap().len())
}

#[test]
fn files_grow_by_whole_steps_of_written_zeros() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    assert_eq!((store.pages(), lengths(&disk)), (8, [4 * 4096; 2]));
    let before = store.counts.read();
    store.ensure(8).unwrap();
    assert_eq!(store.counts.read(), before);
    store.ensure(9).unwrap();
    assert_eq!((store.pages(), lengths(&disk)), (16, [8 * 4096; 2]));
    let after = store.counts.read();
    assert_eq!(after[Counter::DataWritten] - before[Counter::DataWritten], 8 * 4096);
    assert_eq!(after[Counter::DataFsyncs] - before[Counter::DataFsyncs], 2);
}

#[test]
fn a_full_disk_is_told_and_all_goes_on() {
    let settings = StoreSettings { extend_pages: 512, ..small(FlushMethod::Direct) };
    let disk = MemDisk::with_capacity(6 << 20);
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    assert_eq!(store.pages(), 1024);
    let had = lengths(&disk);
    for _ in 0..2 {
        // The first file finds room for some of its zeros, not for all.
        let full = store.ensure(1025).unwrap_err();
        assert!(is_full(&full, "data-00 cannot grow from 512 to 1024 pages"), "{full}");
        assert_eq!((store.pages(), lengths(&disk), store.poison.is_set()), (1024, had, false));
        store.write(&mut Round::new(1, &[0, 1023]).copies(settings.page_size)).unwrap();
    }
    drop(store);
    let (store, _) = open(disk, &settings);
    assert_eq!((store.pages(), version(&store, 1023)), (1024, Ok(Some(1))));
}

#[test]
fn a_growth_that_came_short_counts_in_whole_pages() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    disk.before_each(|call| match (call.kind, call.name.as_str()) {
        (CallKind::Write, "data-01") => Fault::Short(2 * 4096 + 77),
        _ => Fault::None,
    });
    assert!(matches!(store.ensure(16), Err(EngineError::Io(_))));
    assert!(store.poison.is_set());
    disk.before_each(|_| Fault::None);
    drop(store);
    assert_eq!(lengths(&disk), [8 * 4096, 6 * 4096 + 77]);
    let (store, _) = open(disk.clone(), &settings);
    // Files of 8 and 6 pages: page 13 is the last without a gap.
    assert_eq!(store.pages(), 13);
    store.ensure(14).unwrap();
    assert_eq!((store.pages(), lengths(&disk)), (16, [8 * 4096; 2]));
}

fn is_full(error: &EngineError, words: &str) -> bool {
    matches!(error, EngineError::NoSpace { .. }) && error.to_string().contains(words)
}

#[test]
fn a_full_disk_at_creation_is_told() {
    for (capacity, file) in
        [(10_000, "doublewrite-0"), (90_000, "doublewrite-3"), (119_000, "data-01")]
    {
        let disk = MemDisk::with_capacity(capacity);
        let made = Store::create(Arc::new(disk), &small(FlushMethod::Fsync)).unwrap_err();
        assert!(is_full(&made, file), "{made}");
    }
}
