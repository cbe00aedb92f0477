//! Writes 10,000 pages of 16 KiB in scattered order, 64 in flight, by each kind of batch.
//!
//! Usage: `batch_rates [DIRECTORY]`, /var/tmp when absent. Three passes each, of which the first
//! allocates the blocks; every pass ends with one fdatasync. Other work on the machine shows.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::Path;
use std::time::Instant;

use iostrata_io::SyncKind;
use iostrata_io::disk::{
    Aligned, BatchKind, Disk, Durability, FileId, FileMode, FileName, RealDisk, RealOptions,
};

const PAGES: u64 = 10_000;
const PAGE_BYTES: usize = 16384;
const DEPTH: u32 = 64;
const KINDS: [BatchKind; 3] = [BatchKind::Sync, BatchKind::Libaio, BatchKind::IoUring];

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "/var/tmp".to_owned());
    for direct in [true, false] {
        for kind in KINDS {
            measure(Path::new(&directory), direct, kind);
        }
    }
}

fn measure(directory: &Path, direct: bool, batch: BatchKind) {
    let options = RealOptions { direct, batch, depth: DEPTH, ..RealOptions::default() };
    let disk = RealDisk::with(directory, options).unwrap();
    let name = FileName::new("iostrata-batch-rates").unwrap();
    let file = disk.open(&name, FileMode::CreateNew).unwrap();
    // Also an interrupted run leaves nothing.
    disk.remove(&name).unwrap();
    let mut spare: Vec<Aligned> = (0..DEPTH).map(|_| Aligned::zeroed(PAGE_BYTES)).collect();
    let rates: Vec<u64> = (0..3).map(|_| one_pass(&disk, file, &mut spare)).collect();
    let facts = disk.facts(file);
    let granted = disk.batch_granted();
    println!("direct {}, {:?}: {rates:?} pages/s", facts.direct, granted.kind);
}

fn one_pass(disk: &RealDisk, file: FileId, spare: &mut Vec<Aligned>) -> u64 {
    let start = Instant::now();
    let mut batch = disk.batch();
    for number in 0..PAGES {
        if spare.is_empty() {
            batch.complete(1, &mut |done| {
                done.result.unwrap();
                spare.push(done.buffer);
            });
        }
        let page = spare.pop().unwrap();
        let at = number * 7919 % PAGES * PAGE_BYTES as u64;
        batch.write(file, at, page, Durability::Volatile, number);
        if number % 8 == 7 {
            batch.submit();
        }
    }
    batch.submit();
    batch.complete(usize::MAX, &mut |done| {
        done.result.unwrap();
        spare.push(done.buffer);
    });
    disk.sync(file, SyncKind::Fdatasync).unwrap();
    (PAGES as f64 / start.elapsed().as_secs_f64()) as u64
}
