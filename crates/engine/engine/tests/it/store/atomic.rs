//! A device that tears no write of a page needs no copies.

use iostrata_innodb::{Counter, FlushMethod};
use iostrata_io::disk::MemDisk;

use crate::store::altered::Altered;
use crate::store::common::{Round, create, open, small};

#[test]
fn only_pages_that_can_tear_are_copied() {
    let settings = small(FlushMethod::Direct);
    for (atomic_bytes, copied) in [(0, 4), (2048, 4), (4096, 2), (1 << 20, 2)] {
        let memory = MemDisk::new();
        create(memory.clone(), &settings);
        let (store, _) = open(Altered::atomic(memory.clone(), atomic_bytes), &settings);
        store.write(&mut Round::new(1, &[0, 1, 2, 3]).copies(settings.page_size)).unwrap();
        let counters = store.counts.read();
        assert_eq!(
            (counters[Counter::DblwrWrites], counters[Counter::DblwrPagesWritten]),
            (1, copied)
        );
        assert_eq!(counters[Counter::PagesWritten], 4);
        drop(store);
        let (_, repair) = open(memory, &settings);
        assert_eq!(repair.examined, copied);
    }
}

#[test]
fn a_batch_of_atomic_pages_alone_writes_no_copies() {
    let settings = small(FlushMethod::Direct);
    let memory = MemDisk::new();
    create(memory.clone(), &settings);
    let (store, _) = open(Altered::atomic(memory.clone(), 4096), &settings);
    let opened = store.counts.read();
    store.write(&mut Round::new(1, &[0, 2]).copies(settings.page_size)).unwrap();
    let counters = store.counts.read();
    assert_eq!((counters[Counter::DblwrWrites], counters[Counter::PagesWritten]), (0, 2));
    let syncs = counters[Counter::DataFsyncs] - opened[Counter::DataFsyncs];
    assert_eq!(syncs, 1, "of the one data file, none of a doublewrite file");
}
