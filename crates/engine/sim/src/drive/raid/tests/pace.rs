//! How fast arrays are.

use super::*;
use crate::drive::{Command, Request};

/// Published (Matsunobu, "Linux I/O scheduler queue size and MyISAM performance", 2009): 575.6
/// writes of 4 KiB a second into an index of 4.5 GB at most, on two SAS disks of 15,000 turns in
/// RAID 1, write cache on, at most 128 requests in the block queue. On a disk of 73 GB, as that
/// server took, the index is 6 % of the bytes, so seeks are short and most of the time is rotation.
/// The drive chooses among what its write cache holds, and 32, 64 and 128 ranges give 566, 619 and
/// 666 writes a second; the real index grew up to its 4.5 GB, and the file system wrote a journal,
/// which are not modelled.
#[test]
fn random_writes_into_a_small_index() {
    let mut load = Load::random_write(128);
    load.region_bytes = Some(0..4_500_000_000);
    let found = outcome(&mut plain(RAID1_15K), &load, 10.0, 60.0).iops.value;
    assert!((0.8..=1.2).contains(&(found / 575.6)), "{found:.0} writes a second");
}

/// The same source, after 41 of 77 million rows, so with about 2.4 GB of index: 2,042.6 writes of
/// 17.6 KiB a second, 84,402 of them in the queue, sorted and merged.
#[test]
fn sorted_and_merged_writes_into_a_small_index() {
    let mut array = plain(RAID1_15K);
    let (count, bytes) = (84_402_u64, 18_022);
    let step = 2_400_000_000 / count;
    let (mut now_ns, mut next, mut done) = (0, 0, Vec::new());
    while (done.len() as u64) < count {
        while next < count && next - (done.len() as u64) < 128 {
            let command = Command::Write;
            array.submit(now_ns, Request { id: next, command, at_bytes: next * step, bytes });
            next += 1;
        }
        now_ns = array.next_event_ns().expect("something is in flight");
        array.advance(now_ns, &mut done);
    }
    let found = count as f64 * 1e9 / now_ns as f64;
    eprintln!("sorted and merged: {found:.0} writes a second");
    assert!((0.8..=1.2).contains(&(found / 2_042.6)), "{found:.0} writes a second");
}

#[test]
fn two_disks_read_nearly_twice_as_much_as_one() {
    let mut disk = crate::drive::hdd::Hdd::new(HDD_15K, HDD_15K.capacity_bytes, 3);
    let one = outcome(&mut disk, &Load::random_read(32), 2.0, 40.0).iops.value;
    let two = outcome(&mut plain(RAID1_15K), &Load::random_read(64), 2.0, 40.0).iops.value;
    assert!((1.8..=2.3).contains(&(two / one)), "{two:.0} {one:.0}");
}

#[test]
fn more_pairs_read_and_write_more() {
    let found = |spindles, load: &Load| {
        let mut array = plain(RaidParameters { spindles, ..RAID10_15K });
        outcome(&mut array, load, 1.0, 10.0).iops.value
    };
    for load in [Load::random_read(256), Load::random_write(256)] {
        let (one, four) = (found(2, &load), found(8, &load));
        assert!((2.4..=4.4).contains(&(four / one)), "{four:.0} {one:.0}");
    }
}

#[test]
fn a_protected_cache_writes_at_once_until_it_is_full() {
    let cache = ProtectedCacheParameters { cache_bytes: 16 << 20, ..BATTERY_512M };
    let load = Load::random_write(1);
    let early = outcome(&mut protected(RAID10_15K, cache), &load, 0.0, 0.1);
    let us = 1e6 / early.iops.value;
    assert!((50.0..=100.0).contains(&us), "{us:.0} us a write");
    let late = |cache| outcome(&mut protected(RAID10_15K, cache), &load, 20.0, 20.0).iops.value;
    let sorted = late(cache);
    assert!(sorted < 4_000.0, "{sorted:.0} writes a second are more than disks can");
    let small = ProtectedCacheParameters { cache_bytes: 256 << 10, ..BATTERY_512M };
    assert!(sorted > 1.5 * late(small), "a larger cache sorts more");
}

#[test]
fn a_protected_flush_does_not_wait() {
    let load = Load { flush_every: Some(1), ..Load::random_write(4) };
    let flush = outcome(&mut protected(RAID10_15K, BATTERY_512M), &load, 0.0, 0.2).flush;
    let mean_us = flush.expect("flushes were done").latency_us.mean;
    assert!((50.0..=150.0).contains(&mean_us), "{mean_us}");
}

#[test]
fn a_flush_without_battery_waits_for_the_disks() {
    let load = Load { flush_every: Some(8), ..Load::random_write(8) };
    let flush = outcome(&mut plain(RAID1_15K), &load, 1.0, 20.0).flush;
    let mean_us = flush.expect("flushes were done").latency_us.mean;
    assert!(mean_us > 2_000.0, "{mean_us}");
}
