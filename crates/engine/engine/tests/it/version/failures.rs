//! A spill file that fails.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use iostrata_engine::version::{SpillFile, VersionSettings, Versions};

use crate::version::support::*;

/// Its first write spills the next segment meanwhile, as another thread may, and then fails.
#[derive(Default)]
struct Overtaken {
    versions: Arc<OnceLock<Weak<Versions>>>,
    has_failed: AtomicBool,
}

impl SpillFile for Overtaken {
    fn write(&self, _slot: u64, _bytes: &[u8]) -> io::Result<()> {
        if self.has_failed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let versions = self.versions.get().and_then(Weak::upgrade).unwrap();
        assert!(versions.log.spill_step().unwrap(), "another segment can be spilled meanwhile");
        Err(io::Error::other("told to fail"))
    }

    fn read(&self, _slot: u64, _at: usize, _into: &mut [u8]) -> io::Result<()> {
        Err(io::Error::other("nothing is kept"))
    }
}

#[test]
fn a_failed_write_that_was_overtaken_is_tried_again() {
    let file = Overtaken::default();
    let slot = Arc::clone(&file.versions);
    let settings = VersionSettings { segment_bytes: 1024, memory_bytes_max: 0 };
    let versions = Arc::new(Versions::new(100, settings, Some(Box::new(file))));
    slot.set(Arc::downgrade(&versions)).unwrap();
    let _snapshot = versions.registry.open(1);
    let number = versions.registry.tick();
    let mut keeper = versions.log.keep();
    for at in 0..50 {
        let _pointer = keeper.replaced(number, 1, &value_of(number, at, 100));
    }
    drop(keeper);
    assert!(versions.log.spill_step().is_err());
    spill(&versions);
    let stats = versions.stats();
    assert!(stats.memory_bytes <= 1024, "only the segment that grows is left: {stats:?}");
}

#[test]
fn a_failed_write_keeps_the_segment_in_memory() {
    let (versions, slots) = versions(1024, 0);
    let _snapshot = versions.registry.open(1);
    let number = versions.registry.tick();
    let mut keeper = versions.log.keep();
    let kept: Vec<_> =
        (0..50).map(|at| (keeper.replaced(number, 1, &value_of(number, at, 100)), at)).collect();
    drop(keeper);
    slots.fails_writes.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        assert!(versions.log.spill_step().is_err());
    }
    let memory = versions.stats().memory_bytes;
    assert_eq!(versions.stats().spilled_bytes, 0);
    let check = || {
        for (pointer, at) in &kept {
            assert_eq!(read(&versions, *pointer), Some((1, value_of(number, *at, 100))));
        }
    };
    check();
    slots.fails_writes.store(false, Ordering::SeqCst);
    spill(&versions);
    assert!(versions.stats().memory_bytes < memory / 4, "all but the segment that grows");
    let slots_used: Vec<u64> = slots.slots.lock().unwrap().keys().copied().collect();
    assert_eq!(slots_used[0], 0, "slots of failed writes are used again");
    check();
}

#[test]
fn a_failed_read_is_told_and_loses_no_key() {
    let (versions, slots) = versions(1024, 0);
    let number = versions.registry.tick();
    let mut keeper = versions.log.keep();
    let pointers: Vec<u64> = (0..50_u32)
        .map(|key| keeper.deleted(number, 1, &key.to_be_bytes(), 1, &[9; 100]))
        .collect();
    drop(keeper);
    spill(&versions);
    slots.fails_reads.store(true, Ordering::SeqCst);
    assert!(versions.log.read(pointers[0], &mut Vec::new()).is_err());
    assert!(versions.take_purge(10).is_err());
    assert!(versions.take_purge(10).is_err());
    slots.fails_reads.store(false, Ordering::SeqCst);
    let some = versions.take_purge(3).unwrap();
    slots.fails_reads.store(true, Ordering::SeqCst);
    versions.put_back(some);
    let mut found = Vec::new();
    // The segment that was begun is at hand still, the next one is not.
    let mut batch = versions.take_purge(100).unwrap();
    assert!(batch.items.len() < 50);
    slots.fails_reads.store(false, Ordering::SeqCst);
    while !batch.is_empty() {
        found.extend(batch.items.iter().map(|item| item.key.clone()));
        versions.finish_purge(batch);
        batch = versions.take_purge(7).unwrap();
    }
    found.sort_unstable();
    assert_eq!(found, (0..50_u32).map(|key| key.to_be_bytes().to_vec()).collect::<Vec<_>>());
    assert_eq!(versions.stats().history, 0);
}

#[test]
fn damage_in_the_file_is_an_error() {
    let (versions, slots) = versions(1024, 0);
    let number = versions.registry.tick();
    let mut keeper = versions.log.keep();
    let pointers: Vec<u64> =
        (0..20).map(|_| keeper.deleted(number, 1, b"key", 1, &[9; 100])).collect();
    drop(keeper);
    spill(&versions);
    slots.slots.lock().unwrap().values_mut().for_each(|bytes| bytes.fill(0xff));
    assert!(versions.log.read(pointers[0], &mut Vec::new()).is_err());
    let _snapshot = versions.registry.open(1);
    assert!(versions.take_purge(10).is_err());
}
