//! The three disks keep the same contract.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use iostrata_io::SyncKind;
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{
    Aligned, BatchKind, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName, MemDisk,
    RealDisk, RealOptions, TraceDisk,
};

use crate::place::directory;

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn block(byte: u8) -> Aligned {
    Aligned::from_slice(&[byte; 4096])
}

fn keeps_the_contract(disk: &dyn Disk) {
    assert!(matches!(disk.open(&name("a"), FileMode::Existing), Err(DiskError::NotFound { .. })));
    let a = disk.open(&name("a"), FileMode::CreateNew).unwrap();
    assert!(matches!(disk.open(&name("a"), FileMode::CreateNew), Err(DiskError::Exists { .. })));
    disk.write(a, 4096, &block(2), Durability::WriteThrough).unwrap();
    disk.write(a, 0, &block(1), Durability::Volatile).unwrap();
    disk.sync(a, SyncKind::Fdatasync).unwrap();
    assert_eq!(disk.len(a).unwrap(), 8192);
    let mut both = Aligned::zeroed(8192);
    disk.read(a, 0, &mut both).unwrap();
    assert_eq!((&both[..4096], &both[4096..]), (&block(1)[..], &block(2)[..]));
    let past = disk.read(a, 4096, &mut both).unwrap_err();
    assert!(matches!(past, DiskError::PastEnd { file_bytes: 8192, .. }), "{past}");

    parts_are_written_as_one(disk, a);
    disk.set_len(a, 8192).unwrap();
    disk.set_len(a, 12288).unwrap();
    let mut last = block(9);
    disk.read(a, 8192, &mut last).unwrap();
    assert_eq!(last[..], [0; 4096]);

    names_change(disk);
    disk.read(a, 0, &mut both).unwrap();
    assert_eq!(both[0], 1, "an open file outlives its name");
    batches_hand_everything_back(disk);
    disk.close(a);
    disk.sync_dir().unwrap();
}

fn parts_are_written_as_one(disk: &dyn Disk, file: FileId) {
    let many: Vec<Aligned> = (0..1500_u32).map(|number| block((number % 251) as u8)).collect();
    let longer = Aligned::from_slice(&[252; 8192]);
    let parts: Vec<&Aligned> = std::iter::once(&longer).chain(&many).collect();
    for d in [Durability::Volatile, Durability::WriteThrough] {
        disk.write_parts(file, 8192, &parts, d).unwrap();
        let mut found = Aligned::zeroed(8192 + 1500 * 4096);
        disk.read(file, 8192, &mut found).unwrap();
        let expected: Vec<u8> = parts.iter().flat_map(|part| part.iter()).copied().collect();
        assert!(found[..] == expected[..], "{d:?}");
        disk.set_len(file, 8192).unwrap();
    }
    let odd = Aligned::from_slice(&[1; 100]);
    if disk.facts(file).block_bytes > 1 {
        let refused = disk.write_parts(file, 8192, &[&odd, &longer], Durability::Volatile);
        assert!(matches!(refused, Err(DiskError::Unaligned { .. })), "{refused:?}");
    }
}

fn names_change(disk: &dyn Disk) {
    let b = disk.open(&name("b"), FileMode::Create).unwrap();
    disk.write(b, 0, &block(3), Durability::Volatile).unwrap();
    disk.sync(b, SyncKind::Fsync).unwrap();
    disk.close(b);
    disk.rename(&name("b"), &name("a")).unwrap();
    assert_eq!(disk.list().unwrap(), [name("a")]);
    let renamed = disk.open(&name("a"), FileMode::Existing).unwrap();
    assert_eq!(disk.len(renamed).unwrap(), 4096);
    disk.close(renamed);
    disk.remove(&name("a")).unwrap();
    assert!(matches!(disk.remove(&name("a")), Err(DiskError::NotFound { .. })));
    assert!(disk.rename(&name("a"), &name("c")).is_err());
    assert_eq!(disk.list().unwrap(), []);
}

fn batches_hand_everything_back(disk: &dyn Disk) {
    let file = disk.open(&name("batch"), FileMode::Create).unwrap();
    let mut batch = disk.batch();
    for tag in 0..8 {
        batch.write(file, tag * 4096, block(tag as u8), Durability::Volatile, tag);
    }
    batch.submit();
    assert_eq!(batch.in_flight(), 8);
    let mut tags = Vec::new();
    while batch.in_flight() > 0 {
        batch.complete(3, &mut |done| {
            assert_eq!(done.result, Ok(()));
            assert_eq!(done.buffer[0], done.tag as u8);
            tags.push(done.tag);
        });
    }
    tags.sort_unstable();
    assert_eq!(tags, [0, 1, 2, 3, 4, 5, 6, 7]);
    batch.read(file, 5 * 4096, block(0), 5);
    batch.read(file, 9 * 4096, block(0), 9);
    batch.submit();
    let mut results = Vec::new();
    batch.complete(2, &mut |done| results.push((done.tag, done.buffer[0], done.result.is_ok())));
    results.sort_unstable();
    assert_eq!(results, [(5, 5, true), (9, 0, false)]);
    disk.close(file);
    disk.remove(&name("batch")).unwrap();
}

#[test]
fn the_memory_disk_keeps_the_contract() {
    keeps_the_contract(&MemDisk::new());
}

#[test]
fn the_trace_disk_keeps_the_contract() {
    keeps_the_contract(&TraceDisk::new(MemDisk::new()));
}

#[test]
fn the_real_disk_keeps_the_contract() {
    for direct in [false, true] {
        let directory = directory();
        let disk = RealDisk::new(directory.path(), direct).unwrap();
        keeps_the_contract(&disk);
        for batch in [BatchKind::Libaio, BatchKind::IoUring] {
            let options = RealOptions { direct, batch, ..RealOptions::default() };
            keeps_the_contract(&RealDisk::with(directory.path(), options).unwrap());
        }
    }
}

#[test]
fn the_real_disk_says_what_direct_needs() {
    let directory = directory();
    let disk = RealDisk::new(directory.path(), true).unwrap();
    let file = disk.open(&name("a"), FileMode::Create).unwrap();
    let facts = disk.facts(file);
    if !facts.direct {
        eprintln!("skipped: no direct I/O here");
        return;
    }
    assert!(facts.block_bytes >= 512 && facts.block_bytes.is_power_of_two(), "{facts:?}");
    let refused = disk.write(file, 1, &block(1), Durability::Volatile).unwrap_err();
    assert!(matches!(refused, DiskError::Unaligned { .. }), "{refused}");
}

#[test]
fn faults_come_where_they_are_asked_for() {
    let disk = MemDisk::new();
    let file = disk.open(&name("a"), FileMode::Create).unwrap();
    let mut writes = 0;
    disk.before_each(move |call| match call.kind {
        CallKind::Write => {
            writes += 1;
            [Fault::None, Fault::Errno(libc::ENOSPC), Fault::Short(100)][writes - 1]
        }
        CallKind::Sync => Fault::Errno(libc::EIO),
        _ => Fault::None,
    });
    let write = |byte| disk.write(file, 0, &block(byte), Durability::Volatile);
    write(1).unwrap();
    let full = write(2).unwrap_err();
    assert!(full.to_string().contains("No space"), "{full}");
    write(3).unwrap_err();
    disk.sync(file, SyncKind::Fsync).unwrap_err();
    let content = disk.content(&name("a")).unwrap();
    assert_eq!((&content[..100], &content[100..]), (&[3; 100][..], &[1; 3996][..]));
}

#[test]
fn a_full_memory_disk_takes_no_more() {
    let disk = MemDisk::with_capacity(8192);
    let a = disk.open(&name("a"), FileMode::Create).unwrap();
    let b = disk.open(&name("b"), FileMode::Create).unwrap();
    disk.write(a, 0, &block(1), Durability::Volatile).unwrap();
    disk.write(b, 0, &block(1), Durability::Volatile).unwrap();
    disk.write(a, 0, &block(2), Durability::Volatile).unwrap();
    let full = disk.write(a, 4096, &block(1), Durability::Volatile).unwrap_err();
    assert!(matches!(full, DiskError::System { errno: libc::ENOSPC, .. }), "{full}");
    disk.set_len(b, 0).unwrap();
    disk.write(a, 4096, &block(1), Durability::Volatile).unwrap();
}

#[test]
fn atomic_writes_are_asked_for_where_the_kernel_has_them() {
    let directory = directory();
    let options = RealOptions { atomic: true, ..RealOptions::default() };
    let disk = RealDisk::with(directory.path(), options).unwrap();
    keeps_the_contract(&disk);
    let file = disk.open(&name("a"), FileMode::Create).unwrap();
    match disk.facts(file).atomic_write_bytes {
        0 => eprintln!("skipped: neither the kernel nor the disk promises untorn writes"),
        bytes => {
            let whole = Aligned::zeroed(bytes as usize);
            disk.write(file, 0, &whole, Durability::WriteThrough).unwrap();
        }
    }
    let plain = RealDisk::new(directory.path(), true).unwrap();
    let file = plain.open(&name("a"), FileMode::Create).unwrap();
    assert_eq!(plain.facts(file).atomic_write_bytes, 0, "not asked for, not promised");
}

fn posing_as(block_bytes: u32, atomic_write_bytes: u32) -> MemDisk {
    let physical_block_bytes = block_bytes.max(512);
    MemDisk::with_facts(Facts {
        block_bytes,
        physical_block_bytes,
        direct: true,
        atomic_write_bytes,
    })
}

#[test]
fn a_memory_disk_poses_as_a_direct_one() {
    for block_bytes in [512, 4096] {
        let memory = posing_as(block_bytes, 0);
        let calls = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&calls);
        memory.before_each(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            Fault::None
        });
        keeps_the_contract(&memory);
        let disk = TraceDisk::new(memory);
        let file = disk.open(&name("a"), FileMode::Create).unwrap();
        assert_eq!(disk.facts(file).block_bytes, block_bytes);
        disk.write(file, 0, &block(1), Durability::WriteThrough).unwrap();
        let before = calls.load(Ordering::Relaxed);
        let mut half = Aligned::zeroed(block_bytes as usize / 2);
        let unaligned = |result| matches!(result, Err(DiskError::Unaligned { .. }));
        assert!(unaligned(disk.write(file, 0, &half, Durability::Volatile)));
        assert!(unaligned(disk.read(file, 0, &mut half)));
        assert!(unaligned(disk.write(file, 8, &block(2), Durability::Volatile)));
        let mut batch = disk.batch();
        batch.write(file, 8, block(3), Durability::Volatile, 0);
        batch.submit();
        batch.complete(1, &mut |done| assert!(unaligned(done.result)));
        assert_eq!(calls.load(Ordering::Relaxed), before, "refused before anything is done");
        assert_eq!(disk.memory().content(&name("a")).unwrap(), [1; 4096]);
    }
}

#[test]
fn copies_of_a_memory_disk_are_disks_of_their_own() {
    let disk = posing_as(512, 4096);
    let file = disk.open(&name("a"), FileMode::Create).unwrap();
    disk.write(file, 0, &block(1), Durability::Volatile).unwrap();
    disk.set_capacity(Some(4096));
    let copy = disk.copy();
    disk.write(file, 0, &block(2), Durability::Volatile).unwrap();
    disk.remove(&name("a")).unwrap();
    let opened = copy.open(&name("a"), FileMode::Existing).unwrap();
    assert_eq!(copy.facts(opened), disk.facts(file));
    assert_eq!(copy.content(&name("a")).unwrap(), [1; 4096]);
    let full = copy.write(opened, 512, &block(3), Durability::Volatile).unwrap_err();
    assert!(matches!(full, DiskError::System { errno: libc::ENOSPC, .. }), "{full}");
    copy.set_capacity(None);
    copy.write(opened, 512, &block(3), Durability::Volatile).unwrap();
    assert_eq!(disk.len(file), Ok(4096));
}
