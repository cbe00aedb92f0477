//! On a real file system.

use std::path::Path;
use std::process::Command;

use iostrata_engine::EngineError;
use iostrata_engine::store::StoreSettings;
use iostrata_innodb::FlushMethod;
use iostrata_io::disk::{BatchKind, RealDisk, RealOptions};

use crate::store::common::{Round, create, open, small, version};

fn disk(directory: &Path, settings: &StoreSettings, batch: BatchKind) -> RealDisk {
    let plan = settings.flush_method.plan(settings.trust_device_cache);
    let options = RealOptions { direct: plan.data.direct, batch, ..RealOptions::default() };
    RealDisk::with(directory, options).unwrap()
}

#[test]
fn every_method_writes_and_reads_back() {
    for method in FlushMethod::ALL.iter().copied() {
        for (trust_device_cache, batch) in
            [(false, BatchKind::Sync), (false, BatchKind::IoUring), (true, BatchKind::Libaio)]
        {
            let directory = tempfile::tempdir().unwrap();
            let settings = StoreSettings { trust_device_cache, ..small(method) };
            let at = || disk(directory.path(), &settings, batch);
            create(at(), &settings);
            let (store, _) = open(at(), &settings);
            store.ensure(20).unwrap();
            for round in 1..=4 {
                let pages: Vec<_> = (0..20).filter(|page| page % round == 0).collect();
                store.write(&mut Round::new(round, &pages).copies(settings.page_size)).unwrap();
            }
            drop(store);
            let (store, repair) = open(at(), &settings);
            assert_eq!((&repair.restored[..], &repair.torn_unrestorable[..]), (&[][..], &[][..]));
            assert!(repair.examined > 0);
            for page in 0..20 {
                let newest = (1..=4).filter(|round| page % round == 0).max();
                assert_eq!(version(&store, page), Ok(newest), "{method}: page {page}");
            }
        }
    }
}

#[test]
fn a_page_torn_by_hand_is_restored() {
    let directory = tempfile::tempdir().unwrap();
    let settings = small(FlushMethod::Direct);
    let at = || disk(directory.path(), &settings, BatchKind::default());
    create(at(), &settings);
    let (store, _) = open(at(), &settings);
    store.write(&mut Round::new(1, &[0, 1, 2]).copies(settings.page_size)).unwrap();
    drop(store);
    let mut bytes = std::fs::read(directory.path().join("data-00")).unwrap();
    bytes[4096 + 2048..8192].fill(0);
    std::fs::write(directory.path().join("data-00"), bytes).unwrap();
    let (store, repair) = open(at(), &settings);
    assert_eq!(repair.restored.iter().map(|page| page.0).collect::<Vec<_>>(), [2]);
    assert_eq!(version(&store, 2), Ok(Some(1)));
}

/// A small file system of its own, unmounted at the end.
struct Small(tempfile::TempDir);

impl Small {
    fn mounted(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", size, "tmpfs"])
            .arg(directory.path())
            .output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(directory))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

#[test]
fn a_real_disk_runs_full_and_the_store_goes_on() {
    let Some(full) = Small::mounted("size=600k") else {
        eprintln!("skipped: no right to mount a small file system");
        return;
    };
    let settings = StoreSettings { extend_pages: 16, ..small(FlushMethod::Fsync) };
    let at = || disk(full.0.path(), &settings, BatchKind::Sync);
    create(at(), &settings);
    let (store, _) = open(at(), &settings);
    let mut pages = store.pages();
    let refused = loop {
        match store.ensure(pages + 1) {
            Ok(()) => pages = store.pages(),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, EngineError::NoSpace { .. }), "{refused}");
    // The file that had room keeps its page: it counts as long as there is no gap before it.
    assert!((pages..=pages + 1).contains(&store.pages()) && !store.poison.is_set());
    store.write(&mut Round::new(1, &[0, pages - 1]).copies(settings.page_size)).unwrap();
    drop(store);
    let (store, _) = open(at(), &settings);
    assert!(store.pages() >= pages, "what a growth that failed left may count now");
    assert_eq!(version(&store, pages - 1), Ok(Some(1)));
}
