//! Several writers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use iostrata_engine::store::{Store, StoreSettings};
use iostrata_innodb::{Counter, Doublewrite, FlushMethod};
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{MemDisk, Tear, TraceDisk};

use crate::store::altered::{Altered, Gate};
use crate::store::common::{Round, allowed, create, judge, open, small, version};

const WRITERS: u64 = 4;

/// The rounds of one writer, over pages of its own.
fn rounds_of(writer: u64) -> Vec<Round> {
    (0..6)
        .map(|round| {
            let first = writer * 6 + round % 3;
            Round::new(1 + writer * 100 + round, &[first, first + 1, first + 3])
        })
        .collect()
}

#[test]
fn a_crash_amid_several_writers_leaves_whole_pages() {
    let settings = small(FlushMethod::Direct);
    for _ in 0..3 {
        let memory = MemDisk::new();
        create(memory.clone(), &settings);
        let disk = TraceDisk::new(memory);
        let (store, _) = open(Altered::slow(disk.clone()), &settings);
        store.ensure(WRITERS * 6).unwrap();
        std::thread::scope(|threads| {
            for writer in 0..WRITERS {
                let (store, disk) = (&store, &disk);
                threads.spawn(move || {
                    for round in rounds_of(writer) {
                        round.write(store, disk);
                    }
                });
            }
        });
        let rounds: Vec<_> = (0..WRITERS).flat_map(rounds_of).collect();
        for at in 0..disk.points() {
            let allowed = allowed(&rounds, &disk.acknowledged(at));
            for seed in [0, 2 + at as u64] {
                judge(disk.image(at, seed, Tear::Sectors(512)), &settings, &allowed)
                    .unwrap_or_else(|what| panic!("point {at} seed {seed}: {what}"));
            }
        }
    }
}

#[test]
fn writers_growth_reads_and_changes_of_mode_go_on_together() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    store.ensure(WRITERS * 8).unwrap();
    let running = AtomicU64::new(WRITERS);
    std::thread::scope(|threads| {
        for writer in 0..WRITERS {
            let (store, running) = (&store, &running);
            threads.spawn(move || {
                let pages: Vec<_> = (writer * 8..writer * 8 + 8).collect();
                for round in 1..200 {
                    let some = &pages[..1 + (round as usize * 5) % 8];
                    store.write(&mut Round::new(round, some).copies(store.page_size())).unwrap();
                    assert_eq!(version(store, some[0]), Ok(Some(round)));
                }
                running.fetch_sub(1, SeqCst);
            });
        }
        let modes = [Doublewrite::Off, Doublewrite::On, Doublewrite::DetectOnly];
        for (mode, pages) in modes.into_iter().cycle().zip(33..) {
            if running.load(SeqCst) == 0 {
                break;
            }
            store.set_doublewrite(mode).unwrap();
            store.ensure(pages.min(500)).unwrap();
        }
    });
    assert!(!store.poison.is_set());
    drop(store);
    let (store, repair) = open(disk, &settings);
    assert!(repair.torn_unrestorable.is_empty());
    assert!((0..WRITERS * 8).all(|page| version(&store, page).unwrap().is_some()));
}

/// Once the guard against torn pages is reported, the power may be cut: no page may still be on its
/// way into its place without a copy.
#[test]
fn a_guard_is_on_only_when_no_unguarded_write_is_left() {
    let (disk, gate) = (MemDisk::new(), Gate::default());
    let settings = StoreSettings { doublewrite: Doublewrite::Off, ..small(FlushMethod::Direct) };
    create(disk.clone(), &settings);
    let (store, _) = open(Altered::gated(disk, &gate), &settings);
    store.ensure(4).unwrap();
    let is_set = AtomicBool::new(false);
    std::thread::scope(|threads| {
        gate.close();
        let (store, is_set) = (&store, &is_set);
        threads.spawn(|| store.write(&mut Round::new(1, &[1]).copies(store.page_size())).unwrap());
        gate.wait_for_one();
        threads.spawn(|| {
            store.set_doublewrite(Doublewrite::On).unwrap();
            is_set.store(true, SeqCst);
        });
        std::thread::sleep(Duration::from_millis(100));
        let was_early = is_set.load(SeqCst);
        gate.open();
        assert!(!was_early, "it is on while page 1 is being written without a copy");
    });
    assert_eq!(store.doublewrite(), Doublewrite::On);
    assert_eq!(store.counts.read()[Counter::DblwrPagesWritten], 0);
    store.write(&mut Round::new(2, &[1]).copies(store.page_size())).unwrap();
    assert_eq!(store.counts.read()[Counter::DblwrPagesWritten], 1);
}

/// A sync fails for one writer: what any writer had acknowledged as durable must be there
/// afterwards.
#[test]
fn after_a_failure_no_success_is_reported_wrongly() {
    let settings = small(FlushMethod::Fsync);
    for fail_at in 1..20 {
        let memory = MemDisk::new();
        create(memory.clone(), &settings);
        let disk = TraceDisk::new(memory.clone());
        let (store, _) = open(Altered::slow(disk.clone()), &settings);
        store.ensure(WRITERS * 6).unwrap();
        let mut syncs = 0;
        memory.before_each(move |call| {
            syncs += u64::from(call.kind == CallKind::Sync);
            let fails = call.kind == CallKind::Sync && syncs == fail_at;
            if fails { Fault::Errno(5) } else { Fault::None }
        });
        let failed = AtomicBool::new(false);
        std::thread::scope(|threads| {
            for writer in 0..WRITERS {
                let (store, disk, failed) = (&store, &disk, &failed);
                threads.spawn(move || try_rounds(store, disk, writer, failed));
            }
        });
        assert!(failed.load(SeqCst) && store.poison.is_set());
        let rounds: Vec<_> = (0..WRITERS).flat_map(rounds_of).collect();
        let at = disk.points() - 1;
        let allowed = allowed(&rounds, &disk.acknowledged(at));
        for seed in 0..4 {
            judge(disk.image(at, seed, Tear::Sectors(512)), &settings, &allowed).unwrap();
        }
    }
}

fn try_rounds(store: &Store, disk: &TraceDisk, writer: u64, failed: &AtomicBool) {
    for round in rounds_of(writer) {
        disk.ack(round.version * 2);
        if store.write(&mut round.copies(store.page_size())).is_err() {
            failed.store(true, SeqCst);
            return;
        }
        disk.ack(round.version * 2 + 1);
    }
}

#[test]
fn a_store_is_shared_by_reference() {
    fn shared<T: Send + Sync>() {}
    shared::<Store>();
    shared::<Arc<Store>>();
}
