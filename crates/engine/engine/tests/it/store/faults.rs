//! A fault at every call: the first cause is kept, nothing panics, and what is opened afterwards is
//! whole.

use std::sync::Arc;

use iostrata_engine::EngineError;
use iostrata_engine::store::{ReadError, Store, StoreSettings};
use iostrata_innodb::{FlushMethod, PageNo};
use iostrata_io::disk::memory::{Call, CallKind, Fault};
use iostrata_io::disk::{Aligned, DiskError, MemDisk, Tear, TraceDisk};

use crate::common::first_failure;
use crate::store::common::{Round, allowed, create, judge, open, small, version};

const FAULTS: [Fault; 4] =
    [Fault::Errno(5), Fault::Errno(28), Fault::Short(100), Fault::Short(5000)];

fn fail_at(disk: &MemDisk, number: u64, fault: Fault) {
    let mut calls = 0;
    disk.before_each(move |_call: &Call| {
        calls += 1;
        if calls == number { fault } else { Fault::None }
    });
}

fn heal(disk: &MemDisk) {
    disk.before_each(|_| Fault::None);
}

fn rounds() -> [Round; 4] {
    [
        Round::new(1, &[0, 1, 2]),
        Round::new(2, &[1, 2, 3, 4, 5, 6]),
        Round::new(3, &[0, 12]),
        Round::new(4, &[12, 2]),
    ]
}

/// What must hold whatever failed; true when nothing did.
fn run(disk: &TraceDisk, settings: &StoreSettings) -> bool {
    let Ok(store) = Store::open(Arc::new(disk.clone()), settings, &Default::default()) else {
        return false;
    };
    if store.repair().is_err() {
        return false;
    }
    for round in rounds() {
        if let Err(error) = store.ensure(round.pages.iter().max().unwrap() + 1) {
            if !matches!(error, EngineError::NoSpace { .. }) {
                poisoned_with(&store, &error);
                return false;
            }
            assert!(!store.poison.is_set());
            // The fault is over: the same store goes on.
            store.ensure(13).unwrap();
        }
        disk.ack(round.version * 2);
        let mut copies = round.copies(settings.page_size);
        let written = store.write(&mut copies);
        let mut back: Vec<_> = copies.iter().map(|copy| copy.page.0).collect();
        back.sort();
        let mut given = round.pages.clone();
        given.sort();
        assert_eq!(back, given, "buffers got lost");
        if let Err(error) = written {
            poisoned_with(&store, &error);
            return false;
        }
        disk.ack(round.version * 2 + 1);
    }
    true
}

fn poisoned_with(store: &Store, error: &EngineError) {
    let write = store.write(&mut Round::new(9, &[0]).copies(store.page_size()));
    let calls = [store.poison.check(), write, store.ensure(1), store.ensure(1000)];
    for refused in calls.into_iter().chain([store.repair().map(drop)]) {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, EngineError::Poisoned { .. }), "{refused}");
        assert_eq!(first_failure(&refused), first_failure(error));
    }
}

#[test]
fn after_any_fault_the_next_opening_finds_whole_pages() {
    for method in [FlushMethod::Fsync, FlushMethod::DirectNoFsync] {
        let settings = small(method);
        for fault in FAULTS {
            let (mut number, mut done) = (1, false);
            while !done {
                let memory = MemDisk::new();
                create(memory.clone(), &settings);
                let disk = TraceDisk::new(memory.clone());
                fail_at(&memory, number, fault);
                done = run(&disk, &settings) && number > 60;
                heal(&memory);
                let at = disk.points() - 1;
                let allowed = allowed(&rounds(), &disk.acknowledged(at));
                for seed in 0..3 {
                    let image = disk.image(at, seed, Tear::Sectors(512));
                    let judged = judge(image, &settings, &allowed);
                    assert!(judged.is_ok(), "{method} call {number} {fault:?}: {judged:?}");
                }
                // Without a crash, the next process finds them too.
                judge(memory, &settings, &allowed).unwrap();
                number += 1;
            }
        }
    }
}

#[test]
fn creation_may_fail_anywhere_and_be_tried_again() {
    let settings = small(FlushMethod::Direct);
    for fault in FAULTS {
        for number in 1.. {
            let memory = MemDisk::new();
            let disk = TraceDisk::new(memory.clone());
            fail_at(&memory, number, fault);
            let made = Store::create(Arc::new(disk.clone()), &settings);
            heal(&memory);
            create(disk.clone(), &settings);
            // All of it is durable, also what the first try wrote.
            let (store, repair) = open(disk.image(disk.points() - 1, 0, Tear::Whole), &settings);
            assert_eq!((store.pages(), repair.examined), (8, 0));
            assert!((0..8).all(|page| version(&store, page) == Ok(None)));
            if made.is_ok() {
                assert!(number > 15, "only {number} calls were tried");
                break;
            }
        }
    }
}

#[test]
fn repair_may_fail_anywhere_and_be_tried_again() {
    let settings = small(FlushMethod::Fsync);
    let memory = MemDisk::new();
    create(memory.clone(), &settings);
    let disk = TraceDisk::new(memory);
    let (store, _) = open(disk.clone(), &settings);
    Round::new(1, &[0, 1, 2, 3]).write(&store, &disk);
    let in_place = (0..disk.points())
        .find(|at| open(disk.image(*at, 3, Tear::Sectors(512)), &settings).1.restored.len() > 1);
    for number in 1.. {
        let image = disk.image(in_place.unwrap(), 3, Tear::Sectors(512));
        let store = Store::open(Arc::new(image.clone()), &settings, &Default::default()).unwrap();
        fail_at(&image, number, Fault::Errno(5));
        let failed = store.repair().is_err();
        assert_eq!(store.ensure(1).is_err(), failed && store.poison.is_set());
        assert_eq!(store.write(&mut Vec::new()).is_err(), failed);
        heal(&image);
        let whole = (0..4).map(|page| (page, vec![Some(1)])).collect();
        judge(image, &settings, &whole).unwrap();
        if !failed {
            assert!(number > 15, "only {number} calls were tried");
            break;
        }
    }
}

#[test]
fn a_failed_read_is_told_and_harms_nothing() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    disk.before_each(|call| match call.kind {
        CallKind::Read => Fault::Errno(5),
        _ => Fault::None,
    });
    let read = store.read(PageNo(1), &mut Aligned::zeroed(4096));
    assert!(matches!(read, Err(ReadError::Disk(DiskError::System { errno: 5, .. }))));
    let mut seen = Vec::new();
    let mut wanted = Round::new(1, &[0, 1, 2]).copies(settings.page_size);
    store.read_many(&mut wanted, |copy, result| seen.push((copy.page.0, result.is_err())));
    assert_eq!(seen, [(0, true), (1, true), (2, true)]);
    heal(&disk);
    assert!(!store.poison.is_set());
    store.write(&mut Round::new(1, &[1]).copies(settings.page_size)).unwrap();
}

#[test]
fn a_poisoned_store_still_reads() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    store.write(&mut Round::new(1, &[0, 1]).copies(settings.page_size)).unwrap();
    disk.before_each(|call| match (call.kind, &call.name[..4]) {
        (CallKind::Sync, "data") => Fault::Errno(5),
        _ => Fault::None,
    });
    let failed = store.write(&mut Round::new(2, &[1]).copies(settings.page_size));
    let failed = failed.unwrap_err();
    assert!(matches!(failed.disk_error(), Some(DiskError::System { errno: 5, .. })), "{failed}");
    heal(&disk);
    assert_eq!(version(&store, 0), Ok(Some(1)));
    let later = store.write(&mut Round::new(2, &[1]).copies(settings.page_size));
    assert!(matches!(later, Err(EngineError::Poisoned { .. })));
}
