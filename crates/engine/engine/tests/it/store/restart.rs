//! The process dies, the machine does not; the machine dies later.

use iostrata_innodb::FlushMethod;
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{MemDisk, Tear, TraceDisk};

use crate::store::common::{Round, allowed, create, judge, open, small};

/// A write fails at some call; a new process opens the same disk, repairs, and only then the power
/// goes, in the repair or after it. What the failed sync left in a cache must not be taken for
/// durable.
#[test]
fn repair_makes_durable_what_a_dead_process_left_in_caches() {
    let settings = small(FlushMethod::Fsync);
    for fail_at in 0..14 {
        let memory = MemDisk::new();
        create(memory.clone(), &settings);
        let disk = TraceDisk::new(memory.clone());
        let (store, _) = open(disk.clone(), &settings);
        let rounds = [Round::new(1, &[0, 1, 2, 3]), Round::new(2, &[1, 2, 5])];
        rounds[0].write(&store, &disk);
        let mut calls = 0;
        memory.before_each(move |call| {
            let counts = matches!(call.kind, CallKind::Write | CallKind::Sync);
            calls += usize::from(counts);
            if counts && calls == fail_at + 1 { Fault::Errno(5) } else { Fault::None }
        });
        disk.ack(4);
        let failed = store.write(&mut rounds[1].copies(settings.page_size)).is_err();
        assert_eq!(failed, fail_at < 7, "call {fail_at}");
        drop(store);
        memory.before_each(|_| Fault::None);
        let dead = disk.points() - 1;
        let (store, repair) = open(disk.clone(), &settings);
        assert!(repair.torn_unrestorable.is_empty());
        // Recovery reads the pages now and takes them for durable.
        let seen = [0, 1, 2, 3, 5].map(|page| crate::store::common::version(&store, page).unwrap());
        drop(store);
        let repaired = disk.points() - 1;
        let allowed = allowed(&rounds, &disk.acknowledged(repaired));
        for (point, seed) in
            (dead..=repaired).flat_map(|point| (0..6).map(move |seed| (point, seed)))
        {
            let image = disk.image(point, seed, Tear::Sectors(512));
            let judged = judge(image.clone(), &settings, &allowed);
            judged.unwrap_or_else(|what| {
                panic!("call {fail_at}, point {point}, seed {seed}: {what}")
            });
            if point < repaired {
                continue;
            }
            let (store, _) = open(image, &settings);
            let after =
                [0, 1, 2, 3, 5].map(|page| crate::store::common::version(&store, page).unwrap());
            assert_eq!(after, seen, "call {fail_at} seed {seed}");
        }
    }
}
