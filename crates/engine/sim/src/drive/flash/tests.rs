//! Rates and latencies of the data sheets; cleaning; what a flush waits for.

use super::*;
use crate::bench::{BenchOutcome, BenchWindow, Load, run};

const GIB: u64 = 1 << 30;

fn bench(parameters: FlashParameters, load: &Load) -> BenchOutcome {
    let mut drive = Flash::new(parameters, 8 * GIB, 1);
    run(&mut drive, load, BenchWindow::seconds(3.0, 1.0), 1).unwrap()
}

fn near(found: f64, want: f64, what: &str) {
    assert!((found / want - 1.0).abs() < 0.1, "{what}: {found} for {want}");
}

fn read_us(outcome: &BenchOutcome) -> f64 {
    outcome.read.unwrap().latency_us.mean
}

fn write_us(outcome: &BenchOutcome) -> f64 {
    outcome.write.unwrap().latency_us.mean
}

#[test]
fn the_sata_drive_has_its_data_sheet() {
    let sheet = FlashParameters::x25_e;
    near(read_us(&bench(sheet(), &Load::random_read(1))), 75.0, "read latency");
    near(write_us(&bench(sheet().fresh(), &Load::random_write(1))), 85.0, "write latency");
    near(bench(sheet(), &Load::random_read(32)).iops.value, 35_000.0, "random reads");
    near(bench(sheet(), &Load::random_write(32)).iops.value, 3_300.0, "random writes");
    let long = |load: Load| bench(sheet(), &load).bytes_per_s;
    near(long(Load::sequential_read(131_072, 32)), 250e6, "sequential reads");
    near(long(Load::sequential_write(131_072, 32)), 170e6, "sequential writes");
}

#[test]
fn the_enterprise_drive_has_its_data_sheet() {
    let sheet = FlashParameters::p4500;
    near(read_us(&bench(sheet(), &Load::random_read(1))), 85.0, "read latency");
    near(write_us(&bench(sheet().fresh(), &Load::random_write(1))), 20.0, "write latency");
    near(bench(sheet(), &Load::random_read(256)).iops.value, 490_000.0, "random reads");
    near(bench(sheet(), &Load::random_write(256)).iops.value, 38_000.0, "random writes");
    let long = |load: Load| bench(sheet(), &load).bytes_per_s;
    near(long(Load::sequential_read(131_072, 32)), 3.2e9, "sequential reads");
    near(long(Load::sequential_write(131_072, 32)), 1.05e9, "sequential writes");
}

#[test]
fn the_client_drive_has_its_data_sheet() {
    let sheet = FlashParameters::evo_970_plus;
    near(bench(sheet(), &Load::random_read(1)).iops.value, 19_000.0, "reads, depth 1");
    near(bench(sheet(), &Load::random_write(1)).iops.value, 60_000.0, "writes, depth 1");
    near(bench(sheet(), &Load::random_read(128)).iops.value, 600_000.0, "random reads");
    near(bench(sheet(), &Load::random_write(128)).iops.value, 550_000.0, "random writes");
    let long = |parameters, load: Load| bench(parameters, &load).bytes_per_s;
    near(long(sheet(), Load::sequential_read(131_072, 32)), 3.5e9, "sequential reads");
    near(long(sheet(), Load::sequential_write(131_072, 32)), 3.3e9, "sequential writes");
    let spent = FlashParameters { reserve_pages: 32 * 2048, ..sheet() };
    near(long(spent.clone(), Load::sequential_write(131_072, 32)), 1.7e9, "after TurboWrite");
    near(bench(spent, &Load::random_write(32)).iops.value, 40_000.0, "random after TurboWrite");
}

#[test]
fn a_fresh_drive_writes_faster_than_a_used_one() {
    for sheet in [FlashParameters::x25_e(), FlashParameters::p4500()] {
        let rate = |parameters| bench(parameters, &Load::random_write(32)).iops.value;
        let (used, fresh) = (rate(sheet.clone()), rate(sheet.fresh()));
        assert!(fresh > 3.0 * used, "{fresh} fresh, {used} used");
    }
}

#[test]
fn reads_wait_for_cleaning_only_beside_writes() {
    for sheet in [FlashParameters::x25_e(), FlashParameters::p4500()] {
        let only = bench(sheet.clone(), &Load::random_read(4)).read.unwrap().latency_us;
        assert!(only.p99_9 < 4.0 * only.mean, "reads only: {only:?}");
        let mixed = Load { read_pct: 70, ..Load::random_read(4) };
        let beside = bench(sheet.clone(), &mixed).read.unwrap().latency_us;
        let erase_us = sheet.erase_ns as f64 / 1e3;
        assert!(beside.max > 0.9 * erase_us, "an erase was waited for: {beside:?}");
        assert!(beside.p99_9 > 3.0 * only.p99_9, "{beside:?} beside {only:?}");
        let fresh = bench(sheet.fresh(), &mixed).read.unwrap().latency_us;
        assert!(fresh.p99_9 < beside.p99_9 / 2.0, "nothing to clean: {fresh:?}");
    }
}

#[test]
fn sequential_writes_need_less_cleaning_than_random_ones() {
    let sheet = FlashParameters::x25_e();
    assert!(sheet.valid_share_random() > 0.9);
    assert_eq!(sheet.valid_share_sequential(), 0.0);
    let pages = bench(sheet, &Load::sequential_write(4096, 32)).iops.value;
    assert!(pages > 10.0 * 3_300.0, "{pages}");
}

#[test]
fn a_flush_drains_a_volatile_cache_and_nothing_else() {
    let load = Load { flush_every: Some(1), ..Load::random_write(1) };
    let flush =
        |parameters: FlashParameters| bench(parameters, &load).flush.unwrap().latency_us.mean;
    let protected = flush(FlashParameters::p4500());
    assert!((18.0..25.0).contains(&protected), "{protected}");
    let volatile = flush(FlashParameters::evo_970_plus());
    assert!((1_000.0..10_000.0).contains(&volatile), "{volatile}");
    // 64 pages in the cache, ten channels, 210 us each: more than a ms beyond its own time.
    let sata = FlashParameters { flush_ns: 0, ..FlashParameters::x25_e().fresh() };
    let full = Load { flush_every: Some(64), ..Load::random_write(32) };
    let drained = bench(sata, &full).flush.unwrap().latency_us.mean;
    assert!(drained > 1_000.0, "{drained}");
}

#[test]
fn writes_through_and_without_cache_wait_for_the_dies() {
    let through = Load { write_through: true, ..Load::random_write(1) };
    let sheet = FlashParameters::x25_e().fresh();
    // 85 us, 210 us of programming and 540 us until it can be found again.
    near(write_us(&bench(sheet.clone(), &through)), 833.0, "forced");
    let off = FlashParameters { cache: WriteCache::Off, ..sheet };
    near(write_us(&bench(off, &Load::random_write(1))), 833.0, "without cache");
    let protected = bench(FlashParameters::p4500().fresh(), &through);
    near(write_us(&protected), 20.0, "forced, protected");
}

#[test]
fn a_large_write_passes_through_a_small_cache() {
    let load = Load { block_bytes: 4 << 20, ..Load::sequential_write(4 << 20, 2) };
    near(bench(FlashParameters::x25_e(), &load).bytes_per_s, 170e6, "4 MiB writes");
}
