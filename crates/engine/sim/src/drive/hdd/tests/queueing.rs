//! Many commands at a time.

use super::super::{HDD_7K2, HDD_10K, HDD_15K};
use super::*;
use crate::drive::{Command, Drive, Request};

const DISKS: [HddParameters; 3] = [HDD_7K2, HDD_10K, HDD_15K];

/// Published: SATA disks "improve by nearly 100 % with deep queues", Savvio disks exceed 400 IOPS,
/// "more than doubling" (IOPS, Wikipedia).
#[test]
fn command_queueing_about_doubles_random_reads() {
    for parameters in DISKS {
        let with = |queue_depth, depth| {
            let parameters = HddParameters { queue_depth, ..parameters };
            iops(parameters, &Load::random_read(depth))
        };
        let alone = with(1, 32);
        let gain = with(32, 32) / alone;
        assert!((1.7..=2.2).contains(&gain), "{}: {gain:.2}", parameters.name);
        near("a queue of one", alone, with(32, 1), 0.03);
        assert!(with(128, 128) > 1.15 * with(32, 128), "{}", parameters.name);
    }
    assert!(iops(HDD_15K, &Load::random_read(128)) > 400.0);
}

#[test]
fn more_commands_give_more() {
    let found = [1, 2, 4, 8, 16, 32, 64, 128].map(|depth| iops(HDD_15K, &Load::random_read(depth)));
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
}

#[test]
fn the_write_cache_sorts_what_one_command_at_a_time_cannot() {
    for parameters in DISKS {
        let off = HddParameters { write_cache: false, ..parameters };
        let gain = iops(parameters, &Load::random_write(1)) / iops(off, &Load::random_write(1));
        assert!((1.8..3.0).contains(&gain), "{}: {gain:.2}", parameters.name);
    }
}

/// Ascending writes with gaps, as a block queue sends them that has sorted many.
fn ascending(parameters: HddParameters, bytes: u32, step: u64, count: u64) -> f64 {
    let mut disk = Hdd::new(parameters, parameters.capacity_bytes, 2);
    let mut done = Vec::new();
    let mut now_ns = 0;
    let mut next = 0;
    while (done.len() as u64) < count {
        while next < count && next - (done.len() as u64) < 128 {
            let request =
                Request { id: next, command: Command::Write, at_bytes: next * step, bytes };
            disk.submit(now_ns, request);
            next += 1;
        }
        now_ns = disk.next_event_ns().expect("something is in flight");
        disk.advance(now_ns, &mut done);
    }
    count as f64 * 1e9 / now_ns as f64
}

#[test]
fn sorted_writes_beat_random_ones() {
    let mut random = Load::random_write(128);
    random.region_bytes = Some(0..4_500_000_000);
    let random = iops(HDD_15K, &random);
    // The same 4.5 GB in 100,000 ascending steps, then as fewer and larger writes that touch more.
    let sorted = ascending(HDD_15K, 4_096, 45_056, 100_000);
    let dense = ascending(HDD_15K, 20_480, 24_576, 100_000);
    assert!(sorted > 2.0 * random, "{sorted:.0} {random:.0}");
    assert!(dense > 2.0 * random, "{dense:.0} {random:.0}");
}

#[test]
fn none_starves_behind_nearer_ones() {
    let parameters = HddParameters { queue_depth: 8, ..HDD_15K };
    let mut disk = Hdd::new(parameters, parameters.capacity_bytes, 2);
    let far = Request { id: u64::MAX, command: Command::Read, at_bytes: 60 << 30, bytes: 4_096 };
    disk.submit(0, Request { id: 0, at_bytes: 0, ..far });
    disk.submit(0, far);
    let mut done = Vec::new();
    let mut random = iostrata_stats::Random::new(1);
    for id in 1..5_000 {
        let now_ns = disk.next_event_ns().expect("something is in flight");
        done.clear();
        disk.advance(now_ns, &mut done);
        if done.iter().any(|it| it.id == u64::MAX) {
            assert!(now_ns > 20_000_000, "it is far, and others are near");
            return;
        }
        for _ in 0..done.len() + usize::from(id < 7) {
            let at_bytes = random.below(1 << 17) * 4_096;
            disk.submit(now_ns, Request { id: id * 16 + random.below(16), at_bytes, ..far });
        }
    }
    panic!("the far one is not done");
}
