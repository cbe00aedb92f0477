//! Images of the trace disk: what they share, the order of requests for them, what stays whole.

use iostrata_io::SyncKind;
use iostrata_io::disk::{
    Aligned, Disk, Durability, Facts, FileId, FileMode, FileName, MemDisk, Tear, TraceDisk,
};

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn bytes(byte: u8, count: usize) -> Aligned {
    Aligned::from_slice(&vec![byte; count])
}

fn start(memory: MemDisk, file_bytes: u64) -> (TraceDisk, FileId) {
    let file = memory.open(&name("a"), FileMode::Create).unwrap();
    memory.set_len(file, file_bytes).unwrap();
    memory.close(file);
    let disk = TraceDisk::new(memory);
    let file = disk.open(&name("a"), FileMode::Existing).unwrap();
    (disk, file)
}

fn with_atomic(atomic_write_bytes: u32) -> MemDisk {
    let (block_bytes, physical_block_bytes) = (512, 4096);
    MemDisk::with_facts(Facts {
        block_bytes,
        physical_block_bytes,
        direct: true,
        atomic_write_bytes,
    })
}

/// Whether any crash leaves a part of a write.
fn tears(atomic_write_bytes: u32, at: u64, count: usize) -> bool {
    let (disk, file) = start(with_atomic(atomic_write_bytes), 65536);
    disk.write(file, at, &bytes(1, count), Durability::Volatile).unwrap();
    let (mut kept, mut dropped, mut torn) = (0, 0, 0);
    for seed in 2..200 {
        let image = disk.image(disk.points() - 1, seed, Tear::Sectors(512));
        assert_eq!(image.facts(FileId(0)).atomic_write_bytes, atomic_write_bytes);
        match image.content(&name("a")).unwrap().iter().filter(|byte| **byte == 1).count() {
            0 => dropped += 1,
            all if all == count => kept += 1,
            _ => torn += 1,
        }
    }
    assert!(kept > 20 && dropped > 20, "{kept} kept, {dropped} dropped, {torn} torn");
    torn > 0
}

#[test]
fn what_the_disk_promises_whole_stays_whole() {
    assert!(tears(0, 0, 16384));
    assert!(!tears(16384, 0, 16384));
    assert!(!tears(16384, 16384, 16384));
    assert!(!tears(16384, 4096, 4096));
    assert!(tears(16384, 4096, 16384), "not in its place");
    assert!(tears(16384, 0, 32768), "too long");
    assert!(tears(16384, 0, 12288), "no power of two");
}

/// A history of about 40 events per round.
fn history(rounds: u64) -> (TraceDisk, FileId) {
    let (disk, file) = start(MemDisk::new(), 1 << 20);
    for round in 0..rounds {
        for write in 0..18 {
            let at = (round * 37 + write * 11) % 255 * 4096;
            let page = bytes((round + write) as u8 + 1, 4096 + 512 * (write as usize % 3));
            disk.write(file, at, &page, Durability::Volatile).unwrap();
        }
        disk.sync(file, SyncKind::Fdatasync).unwrap();
        disk.ack(round);
    }
    (disk, file)
}

#[test]
fn points_may_be_asked_for_in_any_order() {
    let (disk, _) = history(30);
    let image = |at| disk.image(at, at as u64, Tear::Sectors(512)).content(&name("a")).unwrap();
    let last = disk.points() - 1;
    assert!(last > 3 * 256, "several states are kept");
    let points: Vec<usize> = (0..=last).step_by(29).chain([255, 256, 257, 512, last]).collect();
    // Each by a sweep of its own, from the first event on.
    let (again, _) = history(30);
    let rising: Vec<Vec<u8>> = points.iter().map(|at| image(*at)).collect();
    for (at, expected) in points.iter().zip(&rising).rev() {
        let found = again.image(*at, *at as u64, Tear::Sectors(512)).content(&name("a"));
        assert!(found.as_ref() == Some(expected), "point {at} out of order");
        assert!(image(*at) == *expected, "point {at} backwards");
    }
}

#[test]
fn acknowledgements_are_found_by_point() {
    let (disk, _) = history(20);
    let mut seen = Vec::new();
    for at in 1..disk.points() {
        seen.extend(disk.acknowledged_between(at - 1, at));
        assert_eq!(disk.acknowledged(at), seen);
    }
    assert_eq!(seen, (0..20).collect::<Vec<_>>());
    assert!(disk.acknowledged_between(disk.points() - 1, 0).is_empty());
}

#[test]
fn a_crash_in_a_recovery_leaves_the_first_image_alone() {
    let (disk, file) = history(3);
    disk.write(file, 0, &bytes(200, 4096), Durability::Volatile).unwrap();
    let last = disk.points() - 1;
    let image = disk.image(last, 1, Tear::Whole);
    let before = image.content(&name("a")).unwrap();
    let recovery = TraceDisk::new(image.copy());
    let file = recovery.open(&name("a"), FileMode::Existing).unwrap();
    recovery.write(file, 4096, &bytes(201, 4096), Durability::WriteThrough).unwrap();
    recovery.write(file, 8192, &bytes(202, 4096), Durability::Volatile).unwrap();
    let second = recovery.image(recovery.points() - 1, 0, Tear::Whole).content(&name("a")).unwrap();
    assert_eq!((second[0], second[4096]), (200, 201));
    assert!(second[8192] != 202 && second[8192..] == before[8192..]);
    assert!(image.content(&name("a")).unwrap() == before);
    assert!(disk.image(last, 1, Tear::Whole).content(&name("a")).unwrap() == before);
}
