//! A crash at every point: each page is old or new in whole, and the test can fail.

use iostrata_engine::store::StoreSettings;
use iostrata_innodb::{Doublewrite, FlushMethod};
use iostrata_io::disk::{MemDisk, Tear, TraceDisk};

use crate::store::common::{Round, allowed, create, judge, open, small};

const TEARS: [Tear; 3] = [Tear::Whole, Tear::Sectors(512), Tear::Sectors(4096)];

fn seeds() -> u64 {
    if std::env::var_os("IOSTRATA_SOAK").is_some() { 64 } else { 6 }
}

/// Pages come again in later rounds, soon and late; one round fills several batches.
fn rounds() -> Vec<Round> {
    let pages: [&[u64]; 8] = [
        &[0, 1, 2, 3],
        &[1, 4],
        &[0, 5, 6],
        &[7],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[2, 3, 9],
        &[1, 0],
        &[9, 8, 7, 6],
    ];
    (1..).zip(pages).map(|(version, pages)| Round::new(version, pages)).collect()
}

fn record(settings: &StoreSettings) -> (TraceDisk, Vec<Round>) {
    let memory = MemDisk::new();
    create(memory.clone(), settings);
    let disk = TraceDisk::new(memory);
    let (store, repair) = open(disk.clone(), settings);
    assert_eq!(repair.examined, 0);
    store.ensure(12).unwrap();
    let rounds = rounds();
    for round in &rounds {
        round.write(&store, &disk);
    }
    (disk, rounds)
}

/// Every image that is not as it should be; and how many pages were restored in all.
fn sweep(settings: &StoreSettings) -> (Vec<String>, usize) {
    let (disk, rounds) = record(settings);
    let (mut wrong, mut restored) = (Vec::new(), 0);
    for tear in TEARS {
        for at in 0..disk.points() {
            let allowed = allowed(&rounds, &disk.acknowledged(at));
            for seed in 0..seeds() {
                match judge(disk.image(at, seed, tear), settings, &allowed) {
                    Ok(repair) => restored += repair.restored.len(),
                    Err(what) => wrong.push(format!("point {at} seed {seed} {tear:?}: {what}")),
                }
            }
        }
    }
    (wrong, restored)
}

#[test]
fn every_page_is_old_or_new_under_every_method() {
    for method in FlushMethod::ALL.iter().copied() {
        let (wrong, restored) = sweep(&small(method));
        assert_eq!(wrong, [""; 0], "{method}");
        assert!(restored > 100, "{method} restored only {restored}: nothing was torn");
    }
}

#[test]
fn without_copies_the_same_sweep_fails() {
    for doublewrite in [Doublewrite::Off, Doublewrite::DetectOnly] {
        let (wrong, restored) = sweep(&StoreSettings { doublewrite, ..small(FlushMethod::Fsync) });
        assert!(wrong.len() > 100, "{doublewrite:?}: only {} images were wrong", wrong.len());
        assert_eq!(restored, 0);
    }
}

#[test]
fn on_a_cache_that_is_lost_trust_fails() {
    use FlushMethod::{Direct, DirectNoFsync};
    for (method, trusting_is_wrong) in FlushMethod::ALL
        .iter()
        .copied()
        .map(|method| (method, matches!(method, Direct | DirectNoFsync)))
    {
        let (wrong, _) = sweep(&StoreSettings { trust_device_cache: true, ..small(method) });
        assert_eq!(!wrong.is_empty(), trusting_is_wrong, "{method}: {:?}", wrong.first());
    }
}

#[test]
fn detect_only_says_which_pages_are_torn() {
    let settings =
        StoreSettings { doublewrite: Doublewrite::DetectOnly, ..small(FlushMethod::Fsync) };
    let (disk, _) = record(&settings);
    let mut torn = 0;
    for at in 0..disk.points() {
        for seed in 2..seeds() {
            let image = disk.image(at, seed, Tear::Sectors(512));
            let (store, repair) = open(image, &settings);
            let broken = (0..store.pages())
                .filter(|page| crate::store::common::version(&store, *page).is_err())
                .collect::<Vec<_>>();
            let mut told: Vec<_> = repair.torn_unrestorable.iter().map(|page| page.0).collect();
            told.sort();
            assert_eq!(told, broken, "point {at} seed {seed}");
            torn += told.len();
        }
    }
    assert!(torn > 50, "{torn}");
}

#[test]
fn a_crash_in_repair_is_repaired_by_the_next() {
    let settings = small(FlushMethod::Direct);
    let (disk, rounds) = record(&settings);
    let mut repairs = 0;
    for at in (0..disk.points()).step_by(3) {
        let allowed = allowed(&rounds, &disk.acknowledged(at));
        let broken = TraceDisk::new(disk.image(at, 2 + at as u64, Tear::Sectors(512)));
        let (_, repair) = open(broken.clone(), &settings);
        if repair.restored.is_empty() {
            continue;
        }
        repairs += 1;
        for at in 0..broken.points() {
            for seed in 0..4 {
                let image = broken.image(at, seed, Tear::Sectors(512));
                judge(image, &settings, &allowed).unwrap();
            }
        }
    }
    assert!(repairs > 10, "{repairs}");
}

#[test]
fn growth_and_creation_may_crash_anywhere() {
    let settings = small(FlushMethod::Fsync);
    let disk = TraceDisk::new(MemDisk::new());
    create(disk.clone(), &settings);
    let created = disk.points() - 1;
    let (store, _) = open(disk.clone(), &settings);
    let one = Round::new(1, &[0, 3, 7]);
    one.write(&store, &disk);
    store.ensure(20).unwrap();
    let two = Round::new(2, &[3, 15, 19]);
    two.write(&store, &disk);
    let rounds = [one, two];
    for at in 0..disk.points() {
        let allowed = allowed(&rounds, &disk.acknowledged(at));
        for (seed, tear) in (0..4).flat_map(|seed| TEARS.map(|tear| (seed, tear))) {
            let image = disk.image(at, seed, tear);
            if at < created {
                create(image.clone(), &settings);
            }
            judge(image, &settings, &allowed).unwrap();
        }
    }
}
