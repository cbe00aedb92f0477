//! Pages go in and come out; settings and reads return typed errors.

use std::sync::Arc;

use iostrata_engine::page::{PageFault, PageSize};
use iostrata_engine::store::layout::{doublewrite_file_bytes, header_bytes};
use iostrata_engine::store::{PageCopy, ReadError, Store, StoreSettings};
use iostrata_engine::{EngineError, RequestError, SettingError};
use iostrata_innodb::{Counter, Doublewrite, FlushMethod, PageNo};
use iostrata_io::disk::{Aligned, Disk, FileMode, FileName, MemDisk, Tear, TraceDisk};

use crate::common::is_damage;
use crate::store::common::{Round, create, judge, open, page, sealed, small, version};

fn content(disk: &MemDisk, name: &str) -> Vec<u8> {
    disk.content(&FileName::new(name).unwrap()).unwrap()
}

fn overwrite(disk: &MemDisk, name: &str, at: u64, bytes: &[u8]) {
    let file = disk.open(&FileName::new(name).unwrap(), FileMode::Existing).unwrap();
    let from = Aligned::from_slice(bytes);
    disk.write(file, at, &from, iostrata_io::disk::Durability::Volatile).unwrap();
    disk.close(file);
}

#[test]
fn pages_lie_striped_and_copies_contiguous() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Direct));
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    let opened = store.counts.read();
    let mut copies = Round::new(5, &[6, 1, 2]).copies(settings.page_size);
    store.write(&mut copies).unwrap();
    let mut back: Vec<_> = copies.iter().map(|copy| copy.page.0).collect();
    back.sort();
    assert_eq!(back, [1, 2, 6]);
    let size = settings.page_size;
    for (name, at, number) in [("data-00", 1, 2), ("data-00", 3, 6), ("data-01", 0, 1)] {
        let place = &content(&disk, name)[at * 4096..][..4096];
        assert_eq!(place, &sealed(number, 5, size)[..], "page {number}");
    }
    // Opening forgets what is in either file, so the first batch is in the first one all the same.
    let copies = content(&disk, "doublewrite-0");
    assert_eq!(copies.len() as u64, doublewrite_file_bytes(4, 4096));
    let first = 4096 + header_bytes(4);
    for (slot, number) in [2, 6, 1].into_iter().enumerate() {
        assert_eq!(&copies[first + slot * 4096..][..4096], &sealed(number, 5, size)[..]);
    }
    let counters = store.counts.read();
    assert_eq!((counters[Counter::DblwrWrites], counters[Counter::DblwrPagesWritten]), (1, 3));
    assert_eq!(counters[Counter::PagesWritten], 3);
    let syncs = counters[Counter::DataFsyncs] - opened[Counter::DataFsyncs];
    assert_eq!(syncs, 3, "of the copies and of two data files");
}

#[test]
fn reads_say_what_they_found() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    store.write(&mut Round::new(1, &[0, 1, 2, 3]).copies(settings.page_size)).unwrap();
    // A torn page 2, page 3 in the place of page 1, and page 0 as it should be.
    overwrite(&disk, "data-00", 4096 + 512, &[7; 512]);
    overwrite(&disk, "data-01", 0, &sealed(3, 1, settings.page_size));
    let mut bytes = Aligned::zeroed(4096);
    let mut read = |number| store.read(PageNo(number), &mut bytes);
    assert_eq!(read(0), Ok(()));
    assert!(matches!(read(1), Err(ReadError::Torn { fault: PageFault::OtherPage { .. }, .. })));
    assert!(matches!(read(2), Err(ReadError::Torn { fault: PageFault::Checksum { .. }, .. })));
    assert_eq!(read(5), Err(ReadError::Zero { page: PageNo(5) }));
    assert_eq!(read(8), Err(ReadError::BeyondEnd { page: PageNo(8), pages: 8 }));
    let unchecked = StoreSettings { checksum: false, ..settings.clone() };
    let store = Store::open(Arc::new(disk), &unchecked, &Default::default()).unwrap();
    let mut bytes = Aligned::zeroed(4096);
    let mut read = |number| store.read(PageNo(number), &mut bytes);
    assert_eq!(read(2), Ok(()));
    assert!(matches!(read(1), Err(ReadError::Torn { fault: PageFault::OtherPage { .. }, .. })));
    assert_eq!(read(5), Err(ReadError::Zero { page: PageNo(5) }));
}

#[test]
fn many_reads_come_back_each_once() {
    let settings = StoreSettings { extend_pages: 300, ..small(FlushMethod::Fsync) };
    let disk = MemDisk::new();
    create(disk.clone(), &settings);
    let (store, _) = open(disk, &settings);
    let all: Vec<u64> = (0..600).collect();
    store.write(&mut Round::new(9, &all[..550]).copies(settings.page_size)).unwrap();
    let bytes = || Aligned::zeroed(4096);
    let mut wanted: Vec<_> =
        (0..700).rev().map(|page| PageCopy { page: PageNo(page), bytes: bytes() }).collect();
    let (mut good, mut zero, mut beyond) = (Vec::new(), 0, 0);
    store.read_many(&mut wanted, |copy, result| match result {
        Ok(()) => {
            assert_eq!(copy.bytes[..], sealed(copy.page.0, 9, settings.page_size)[..]);
            good.push(copy.page.0);
        }
        Err(ReadError::Zero { .. }) => zero += 1,
        Err(ReadError::BeyondEnd { .. }) => beyond += 1,
        Err(error) => panic!("{error}"),
    });
    good.sort();
    assert_eq!((&good[..], zero, beyond), (&all[..550], 50, 100));
    assert!(wanted.is_empty());
}

#[test]
fn a_store_of_another_form_is_not_opened() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    let open = |settings: &StoreSettings| {
        Store::open(Arc::new(disk.clone()), settings, &Default::default()).map(drop)
    };
    assert!(matches!(open(&settings), Err(EngineError::Io(_))));
    create(disk.clone(), &settings);
    open(&settings).unwrap();
    let larger = StoreSettings { page_size: PageSize::DEFAULT, ..settings.clone() };
    let fewer = StoreSettings { data_files: 1, ..settings.clone() };
    let more = StoreSettings { data_files: 3, ..settings.clone() };
    for (other, setting) in [(&larger, "page_size"), (&fewer, "data_files"), (&more, "data_files")]
    {
        for refused in [open(other), Store::create(Arc::new(disk.clone()), other)] {
            let Err(EngineError::Request(RequestError::Setting(fixed))) = refused else {
                panic!("{refused:?}")
            };
            assert!(matches!(fixed, SettingError::Fixed { name, .. } if name == setting));
        }
    }
    assert_eq!(disk.list().unwrap().len(), 6);
    overwrite(&disk, "doublewrite-1", 12, &[1]);
    let refused = open(&settings).unwrap_err();
    assert!(is_damage(&refused, &["doublewrite-1 is no file of a store"]), "{refused}");
}

#[test]
fn creation_leaves_what_is_there() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    store.write(&mut Round::new(3, &[0, 7]).copies(settings.page_size)).unwrap();
    create(disk.clone(), &settings);
    assert_eq!(version(&store, 7), Ok(Some(3)));
    // Nor are pages written over whose doublewrite files were lost.
    disk.remove(&FileName::new("doublewrite-3").unwrap()).unwrap();
    let refused = Store::create(Arc::new(disk), &settings).unwrap_err();
    assert!(is_damage(&refused, &["data-00 is no file of a store"]), "{refused}");
    assert_eq!(version(&store, 7), Ok(Some(3)));
}

#[test]
fn nothing_is_written_before_repair_or_beyond_the_end() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let open_only = || Store::open(Arc::new(disk.clone()), &settings, &Default::default()).unwrap();
    let is_broken = |done| matches!(done, Err(EngineError::Broken { .. }));
    let mut copies = Round::new(1, &[0, 8]).copies(settings.page_size);
    assert!(is_broken(open_only().write(&mut copies)));
    assert!(is_broken(open_only().ensure(9)));
    assert!(is_broken(open_only().set_doublewrite(Doublewrite::Off)));
    let (store, _) = open(disk.clone(), &settings);
    assert!(is_broken(store.write(&mut copies)));
    assert_eq!((version(&store, 0), store.poison.is_set()), (Ok(None), true));
    drop(store);
    let (store, _) = open(disk, &settings);
    store.ensure(9).unwrap();
    store.write(&mut copies).unwrap();
    assert_eq!(version(&store, 8), Ok(Some(1)));
}

#[test]
#[should_panic(expected = "comes twice")]
fn a_page_comes_once() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let (store, _) = open(disk, &settings);
    let _ = store.write(&mut vec![page(1, 1, PageSize::MIN), page(1, 2, PageSize::MIN)]);
}

/// The copies of before must not come back over what was written without them.
#[test]
fn turning_the_guard_off_forgets_the_copies() {
    for off in [Doublewrite::Off, Doublewrite::DetectOnly] {
        let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
        create(disk.clone(), &settings);
        let (store, _) = open(disk.clone(), &settings);
        store.write(&mut Round::new(1, &[0]).copies(settings.page_size)).unwrap();
        store.set_doublewrite(off).unwrap();
        assert_eq!(store.doublewrite(), off);
        store.write(&mut Round::new(2, &[0]).copies(settings.page_size)).unwrap();
        drop(store);
        overwrite(&disk, "data-00", 512, &[7; 512]);
        let (store, repair) = open(disk, &settings);
        assert_eq!(repair.restored, []);
        assert!(matches!(version(&store, 0), Err(ReadError::Torn { .. })));
    }
}

/// A copy that a later batch has made old must not come back either.
#[test]
fn only_the_newest_copies_are_believed() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    let write = |version, pages: &[u64]| {
        store.write(&mut Round::new(version, pages).copies(settings.page_size)).unwrap();
    };
    write(1, &[0]);
    write(2, &[0, 1]);
    write(3, &[1]);
    // Page 0 of round 2 lies in the other file and is durable; damage is not a torn write.
    overwrite(&disk, "data-00", 512, &[7; 512]);
    drop(store);
    let (store, repair) = open(disk, &settings);
    assert_eq!((repair.examined, &repair.restored[..]), (1, &[][..]));
    assert!(version(&store, 0).is_err());
}

#[test]
fn a_page_beyond_the_end_of_its_file_is_restored_also_after_crashes_in_repair() {
    let (memory, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(memory.clone(), &settings);
    let (store, _) = open(memory.clone(), &settings);
    store.ensure(24).unwrap();
    store.write(&mut Round::new(1, &[0, 23]).copies(settings.page_size)).unwrap();
    drop(store);
    let file = memory.open(&FileName::new("data-01").unwrap(), FileMode::Existing).unwrap();
    memory.set_len(file, 3 * 4096 + 1000).unwrap();
    let disk = TraceDisk::new(memory);
    let (store, repair) = open(disk.clone(), &settings);
    assert_eq!(repair.restored, [PageNo(23)]);
    assert_eq!((version(&store, 22), store.pages()), (Ok(None), 24));
    let whole = [0, 23].map(|page| (page, vec![Some(1)])).into();
    for (at, seed) in (0..disk.points()).flat_map(|at| (0..5).map(move |seed| (at, seed))) {
        let image = disk.image(at, seed, Tear::Sectors(512));
        judge(image, &settings, &whole).unwrap_or_else(|what| panic!("point {at}: {what}"));
    }
}

/// The header of a batch is there and the copies are not, and yet a place is torn: the device lied.
/// An older copy that happens to lie in the slot is not taken for the missing copy.
#[test]
fn a_slot_with_an_older_copy_restores_nothing() {
    let (disk, settings) = (MemDisk::new(), small(FlushMethod::Fsync));
    create(disk.clone(), &settings);
    let (store, _) = open(disk.clone(), &settings);
    for round in 1..=5 {
        store.write(&mut Round::new(round, &[0]).copies(settings.page_size)).unwrap();
    }
    drop(store);
    let slot = 4096 + header_bytes(4) as u64;
    assert_eq!(content(&disk, "doublewrite-0")[slot as usize + 16], 5);
    overwrite(&disk, "doublewrite-0", slot, &sealed(0, 1, settings.page_size));
    overwrite(&disk, "data-00", 512, &[7; 512]);
    let (_, repair) = open(disk, &settings);
    assert_eq!((&repair.restored[..], &repair.torn_unrestorable[..]), (&[][..], &[PageNo(0)][..]));
}

#[test]
fn the_size_of_batches_may_change_between_openings() {
    let (disk, mut settings) = (MemDisk::new(), small(FlushMethod::Direct));
    create(disk.clone(), &settings);
    for (round, pages) in (1..).zip([4, 512, 1, 200]) {
        let (store, repair) = open(disk.clone(), &settings);
        let restored = if round == 1 { vec![] } else { vec![PageNo(0)] };
        assert_eq!(repair.restored, restored, "before round {round}");
        drop(store);
        settings.doublewrite_pages = pages;
        let (store, _) = open(disk.clone(), &settings);
        store.write(&mut Round::new(round, &[0, 1, 2]).copies(settings.page_size)).unwrap();
        drop(store);
        if pages == 1 {
            // Three batches of one page each: page 0 comes once more, as the last.
            let (store, _) = open(disk.clone(), &settings);
            store.write(&mut Round::new(round + 10, &[0]).copies(settings.page_size)).unwrap();
            drop(store);
        }
        overwrite(&disk, "data-00", 512, &[7; 512]);
    }
}
