//! What each call does.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use iostrata_engine::version::{PurgeItem, VersionSettings, VersionStats, Versions};

use crate::version::support::*;

fn item(number: u64, table: u32, key: &[u8]) -> PurgeItem {
    PurgeItem { number, table, key: key.to_vec() }
}

#[test]
fn the_clock_goes_on_by_one() {
    let (versions, _) = versions(4096, 0);
    assert_eq!((versions.registry.now(), versions.registry.oldest()), (100, 100));
    assert_eq!(
        (versions.registry.tick(), versions.registry.tick(), versions.registry.now()),
        (101, 102, 102)
    );
    assert_eq!(versions.registry.oldest(), 102);
}

#[test]
fn a_snapshot_is_registered_until_it_is_dropped() {
    let (versions, _) = versions(4096, 0);
    let first = versions.registry.tick();
    assert!(!versions.registry.is_any_below(first));
    let old = versions.registry.open(1);
    assert_eq!(old.at(), first);
    assert!(!versions.registry.is_any_below(first), "it sees this one");
    let second = versions.registry.tick();
    assert!(versions.registry.is_any_below(second));
    let young = versions.registry.open(2);
    assert_eq!((young.at(), versions.registry.oldest()), (second, first));
    drop(old);
    assert_eq!(versions.registry.oldest(), second);
    assert!(!versions.registry.is_any_below(second));
    assert!(versions.registry.is_any_below(versions.registry.tick()));
    drop(young);
    assert_eq!(versions.registry.oldest(), second + 1);
}

#[test]
fn thousands_of_snapshots_are_open_at_once() {
    let (versions, _) = versions(4096, 0);
    let mut open = Vec::new();
    for transaction in 0..3000 {
        open.push(versions.registry.open(transaction));
        versions.registry.tick();
    }
    assert_eq!(versions.stats().snapshots, 3000);
    // From the middle outwards, so that holes come and are filled.
    open.rotate_left(1500);
    while let Some(snapshot) = open.pop() {
        let at = snapshot.at();
        drop(snapshot);
        let least = open.iter().map(|one| one.at()).min().unwrap_or(versions.registry.now());
        assert_eq!(versions.registry.oldest(), least, "without {at}");
        assert!(least > at || versions.registry.is_any_below(at + 1));
    }
    drop(versions.registry.open(1));
    assert_eq!(versions.stats().snapshots, 0);
}

#[test]
fn snapshots_of_a_log_outlive_it() {
    let (versions, _) = versions(4096, 0);
    let snapshot = versions.registry.open(1);
    drop(versions);
    assert_eq!(snapshot.at(), 100);
}

#[test]
fn what_is_kept_is_read_back() {
    let (versions, _) = versions(4096, u64::MAX);
    let _snapshot = versions.registry.open(1);
    let number = versions.registry.tick();
    let mut kept = Vec::new();
    let mut keeper = versions.log.keep();
    for len in [16, 17, 200, 4000, 5000, 70_000, 16] {
        let value = value_of(number, len as u64, len);
        kept.push((keeper.replaced(number, 5, &value), 5, value.clone()));
        kept.push((keeper.deleted(number, 9, b"key", 6, &value), 6, value));
    }
    drop(keeper);
    for (pointer, flags, value) in &kept {
        assert_ne!(*pointer, 0);
        assert_eq!(read(&versions, *pointer), Some((*flags, value.clone())));
    }
    assert_eq!(read(&versions, 0), None);
    assert_eq!(read(&versions, kept[0].0 + (1 << 40)), None, "a segment that is to come");
}

#[test]
fn purge_waits_for_the_snapshot_and_drops_what_it_passes() {
    let (versions, _) = versions(4096, u64::MAX);
    let snapshot = versions.registry.open(1);
    let (one, two) = (versions.registry.tick(), versions.registry.tick());
    let mut keeper = versions.log.keep();
    let pointer = keeper.deleted(one, 3, b"a", 1, &value_of(1, 1, 20));
    let _ = keeper.replaced(one, 1, &value_of(1, 2, 20));
    let _ = keeper.deleted(one, 3, b"b", 1, &value_of(1, 3, 20));
    drop(keeper);
    let _ = versions.log.keep().deleted(two, 4, b"c", 1, &value_of(2, 1, 20));
    assert!(versions.take_purge(10).unwrap().is_empty());
    assert_eq!(versions.stats().history, 2);
    drop(snapshot);
    let later = versions.registry.open(2);
    let batch = versions.take_purge(2).unwrap();
    assert_eq!(batch.items, [item(one, 3, b"a"), item(one, 3, b"b")]);
    assert_eq!(batch.commits, 1);
    let rest = versions.take_purge(2).unwrap();
    assert_eq!((&rest.items[..], rest.commits), (&[item(two, 4, b"c")][..], 1));
    assert_eq!(versions.stats().history, 2, "not finished");
    versions.finish_purge(batch);
    versions.finish_purge(rest);
    assert_eq!(read(&versions, pointer), None);
    let VersionStats { history, kept, purged, .. } = versions.stats();
    assert_eq!((history, kept, purged), (0, 4, 2));
    drop(later);
}

/// Closing checks whether anything is left: a key that is in no batch yet is.
#[test]
fn a_commit_is_done_with_its_last_key() {
    for segment_bytes in [4096, 64] {
        let (versions, _) = versions(segment_bytes, u64::MAX);
        let one = versions.registry.tick();
        let mut keeper = versions.log.keep();
        let _ = keeper.deleted(one, 3, b"a", 1, &value_of(1, 1, 20));
        let _ = keeper.deleted(one, 3, b"b", 1, &value_of(1, 2, 20));
        let _ = keeper.replaced(one, 1, &value_of(1, 3, 20));
        drop(keeper);
        let mut items = Vec::new();
        while versions.stats().history > 0 {
            let batch = versions.take_purge(1).unwrap();
            assert!(!batch.is_empty(), "{segment_bytes}: {items:?}");
            items.extend(batch.items.iter().cloned());
            versions.finish_purge(batch);
        }
        assert_eq!(items, [item(one, 3, b"a"), item(one, 3, b"b")], "{segment_bytes}");
        assert_eq!(versions.stats().purged, 1, "{segment_bytes}");
    }
}

#[test]
fn what_is_put_back_comes_again_after_newer_keys() {
    let (versions, _) = versions(4096, u64::MAX);
    let one = versions.registry.tick();
    let mut keeper = versions.log.keep();
    let _ = keeper.deleted(one, 1, b"a", 1, b"");
    let _ = keeper.deleted(one, 1, b"b", 1, b"");
    drop(keeper);
    let failed = versions.take_purge(10).unwrap();
    assert_eq!((failed.items.len(), failed.commits), (2, 1));
    versions.put_back(failed);
    let two = versions.registry.tick();
    let _ = versions.log.keep().deleted(two, 1, b"c", 1, b"");
    let batch = versions.take_purge(2).unwrap();
    assert_eq!(batch.items, [item(two, 1, b"c"), item(one, 1, b"a")]);
    assert_eq!(batch.commits, 1, "of commit one a key is left");
    let last = versions.take_purge(2).unwrap();
    assert_eq!((&last.items[..], last.commits), (&[item(one, 1, b"b")][..], 1));
    versions.finish_purge(batch);
    versions.finish_purge(last);
    assert_eq!(versions.stats().history, 0);
}

#[test]
fn memory_is_bounded_while_a_reader_is_open_and_free_afterwards() {
    let (versions, slots) = versions(8192, 32 * 1024);
    let snapshot = versions.registry.open(1);
    let mut kept = Vec::new();
    for at in 0..2000 {
        let number = versions.registry.tick();
        let value = value_of(number, at, 200);
        kept.push((versions.log.keep().replaced(number, 1, &value), value));
        spill(&versions);
        assert!(versions.stats().memory_bytes <= 32 * 1024);
    }
    let stats = versions.stats();
    assert!(stats.spilled_bytes > 380_000, "{stats:?}");
    assert_eq!(stats.oldest.unwrap().versions, 2000);
    for (pointer, value) in &kept {
        assert_eq!(read(&versions, *pointer), Some((1, value.clone())));
    }
    drop(snapshot);
    let batch = versions.take_purge(10).unwrap();
    assert_eq!((batch.items.len(), batch.commits), (0, 2000));
    versions.finish_purge(batch);
    let stats = versions.stats();
    assert_eq!((stats.history, stats.spilled_bytes), (0, 0));
    assert!(stats.memory_bytes <= 8192);
    let used = slots.slots.lock().unwrap().len();
    let _snapshot = versions.registry.open(1);
    for at in 0..1000 {
        let number = versions.registry.tick();
        let _ = versions.log.keep().replaced(number, 1, &value_of(number, at, 200));
        spill(&versions);
    }
    assert_eq!(slots.slots.lock().unwrap().len(), used, "slots are used again");
}

#[test]
fn an_emptied_segment_is_used_again_under_another_number() {
    let (versions, _) = versions(1 << 20, 0);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..1000 {
        let number = versions.registry.tick();
        assert!(seen.insert(versions.log.keep().deleted(number, 1, b"k", 1, &[1; 100])));
        let batch = versions.take_purge(10).unwrap();
        assert_eq!(batch.items, [item(number, 1, b"k")]);
        versions.finish_purge(batch);
    }
    assert!(seen.iter().all(|pointer| read(&versions, *pointer).is_none()));
    assert!(versions.stats().memory_bytes <= 4096);
}

#[test]
fn threads_have_shards_of_their_own_and_purge_finds_all() {
    let settings = VersionSettings { segment_bytes: 4096, memory_bytes_max: 0 };
    let versions = Arc::new(Versions::new(0, settings, None));
    thread::scope(|scope| {
        for table in 0..20 {
            let versions = &versions;
            scope.spawn(move || {
                let number = versions.registry.tick();
                let _ = versions.log.keep().deleted(number, table, b"k", 1, &[2; 50]);
            });
        }
    });
    assert!(!versions.log.spill_step().unwrap(), "there is no file");
    let batch = versions.take_purge(100).unwrap();
    let mut tables: Vec<u32> = batch.items.iter().map(|item| item.table).collect();
    tables.sort_unstable();
    assert_eq!(tables, (0..20).collect::<Vec<_>>());
    versions.finish_purge(batch);
}

#[test]
fn stats_name_the_oldest_snapshot() {
    let (versions, _) = versions(4096, 0);
    assert_eq!(versions.stats(), VersionStats::default());
    let before = Instant::now();
    let _old = versions.registry.open(77);
    let after = Instant::now();
    let number = versions.registry.tick();
    let _young = versions.registry.open(78);
    let _ = versions.log.keep().replaced(number, 1, b"x");
    let stats = versions.stats();
    let oldest = stats.oldest.unwrap();
    assert_eq!((stats.snapshots, oldest.transaction, oldest.at), (2, 77, 100));
    assert_eq!(oldest.versions, 1);
    assert!(before <= oldest.since && oldest.since <= after);
}
