//! Writes pages of 16 KiB in scattered order, 128 at a time, under every flush method, with and
//! without doublewrite, and on a disk of memory, where what the store itself costs is left.
//!
//! Usage: `store_rates [DIRECTORY]`, /var/tmp when absent. Other work on the machine shows.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use iostrata_engine::page::{PageEdit, PageKind, PageSize};
use iostrata_engine::store::{PageCopy, Store, StoreSettings};
use iostrata_innodb::{Counter, Doublewrite, FlushMethod, NO_PAGE, PageNo, TableId};
use iostrata_io::disk::{Aligned, Disk, MemDisk, RealDisk, RealOptions};

const PAGES: u64 = 4096;
const BATCH: u64 = 128;

#[allow(dead_code)] // in the test
fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "/var/tmp".to_owned());
    store_rates(&Path::new(&directory).join("store_rates"), 64);
}

/// Gives under each method and doublewrite how many pages were written, to their places and to
/// doublewrite files, and how often data files were synced.
pub fn store_rates(directory: &Path, rounds: u64) -> Vec<(FlushMethod, Doublewrite, [u64; 3])> {
    let mut all = Vec::new();
    for doublewrite in [Doublewrite::On, Doublewrite::DetectOnly, Doublewrite::Off] {
        let (disk, method) = (Arc::new(MemDisk::new()), FlushMethod::Direct);
        all.push((method, doublewrite, measure("memory", disk, (method, doublewrite), rounds)));
    }
    for method in FlushMethod::ALL.iter().copied() {
        for doublewrite in [Doublewrite::On, Doublewrite::Off] {
            std::fs::create_dir_all(directory).unwrap();
            let direct = method.plan(false).data.direct;
            let options = RealOptions { direct, ..RealOptions::default() };
            let disk = RealDisk::with(directory, options).unwrap();
            let written = measure("real", Arc::new(disk), (method, doublewrite), rounds);
            all.push((method, doublewrite, written));
            std::fs::remove_dir_all(directory).unwrap();
        }
    }
    all
}

fn measure(
    on: &str,
    disk: Arc<dyn Disk>,
    (flush_method, doublewrite): (FlushMethod, Doublewrite),
    rounds: u64,
) -> [u64; 3] {
    let settings =
        StoreSettings { flush_method, doublewrite, ..StoreSettings::new(PageSize::DEFAULT) };
    Store::create(Arc::clone(&disk), &settings).unwrap();
    let store = Store::open(disk, &settings, &Default::default()).unwrap();
    store.repair().unwrap();
    store.ensure(PAGES).unwrap();
    let mut pages: Vec<_> = (0..BATCH).map(page).collect();
    store.write(&mut pages).unwrap();
    let before = store.counts.read();
    let start = Instant::now();
    for round in 0..rounds {
        for (at, copy) in (0..).zip(&mut pages) {
            copy.page = PageNo(((round * BATCH + at) * 1021) % PAGES);
            copy.bytes[8..16].copy_from_slice(&copy.page.0.to_le_bytes());
        }
        store.write(&mut pages).unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    let after = store.counts.read();
    let counters = [Counter::PagesWritten, Counter::DblwrPagesWritten, Counter::DataFsyncs];
    let counted = counters.map(|counter| after[counter] - before[counter]);
    let [written, _, syncs] = counted;
    println!(
        "{on:6} {flush_method:17} {doublewrite:10} {:8.0} pages/s {:6.2} us/page {syncs:4} syncs",
        written as f64 / seconds,
        seconds * 1e6 / written as f64,
        doublewrite = format!("{doublewrite:?}"),
    );
    counted
}

fn page(number: u64) -> PageCopy {
    let mut bytes = Aligned::zeroed(PageSize::DEFAULT.bytes());
    let mut edit = PageEdit::new(&mut bytes);
    edit.format(PageKind::Space, 0, TableId(0), PageNo(number), NO_PAGE, NO_PAGE);
    PageCopy { page: PageNo(number), bytes }
}
