//! What a crash image costs: of disks of several sizes, after 2,000 events, and what it costs to
//! begin another recording on it and change some blocks.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::Instant;

use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Disk, Durability, FileMode, FileName, MemDisk, Tear, TraceDisk};

const FILES: u64 = 6;

fn main() {
    for disk_kib in [256, 1024, 16384] {
        measure(disk_kib << 10);
    }
}

fn name(number: u64) -> FileName {
    FileName::new(format!("file-{number}")).unwrap()
}

fn measure(disk_bytes: u64) {
    let disk = recording(disk_bytes);
    let points = disk.points();
    let start = Instant::now();
    let mut files = 0;
    let mut acknowledged = 0;
    for at in 0..points {
        files += disk.image(at, at as u64, Tear::Sectors(512)).list().unwrap().len();
        acknowledged = acknowledged.max(disk.acknowledged(at).len());
    }
    let sweep_us = start.elapsed().as_secs_f64() * 1e6 / points as f64;

    let mut image = disk.image(points - 1, 1, Tear::Whole);
    let start = Instant::now();
    for round in 0..points as u64 {
        let again = TraceDisk::new(image);
        let file = again.open(&name(round % FILES), FileMode::Existing).unwrap();
        let block = Aligned::from_slice(&[round as u8; 4096]);
        for number in 0..8 {
            again.write(file, number * 8192, &block, Durability::Volatile).unwrap();
        }
        again.sync(file, SyncKind::Fdatasync).unwrap();
        image = again.image(again.points() - 1, 0, Tear::Whole);
    }
    let again_us = start.elapsed().as_secs_f64() * 1e6 / points as f64;
    println!(
        "{disk_bytes} bytes, {points} points, {files} files, {acknowledged} acknowledged: \
         {sweep_us:.1} us per image; {again_us:.1} us to record 8 writes on one and take another"
    );
}

fn recording(disk_bytes: u64) -> TraceDisk {
    let memory = MemDisk::new();
    let full = Aligned::from_slice(&vec![7; (disk_bytes / FILES) as usize]);
    for number in 0..FILES {
        let file = memory.open(&name(number), FileMode::Create).unwrap();
        memory.write(file, 0, &full, Durability::Volatile).unwrap();
        memory.close(file);
    }
    let disk = TraceDisk::new(memory);
    let files: Vec<_> =
        (0..FILES).map(|number| disk.open(&name(number), FileMode::Existing).unwrap()).collect();
    let page = Aligned::from_slice(&[9; 16384]);
    let log = Aligned::from_slice(&[8; 512]);
    let mut round = 0;
    while disk.points() < 2_000 {
        let at = round * 16384 % (disk_bytes / FILES - 16384) / 4096 * 4096;
        disk.write(files[0], round * 512 % (disk_bytes / FILES - 512), &log, Durability::Volatile)
            .unwrap();
        disk.sync(files[0], SyncKind::Fdatasync).unwrap();
        disk.ack(round);
        let file = files[1 + round as usize % (FILES as usize - 1)];
        disk.write(file, at, &page, Durability::Volatile).unwrap();
        if round % 32 == 31 {
            files.iter().for_each(|file| disk.sync(*file, SyncKind::Fdatasync).unwrap());
        }
        round += 1;
    }
    disk
}
