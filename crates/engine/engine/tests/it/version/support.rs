//! A spill file in memory, which fails on demand.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use iostrata_engine::version::{SpillFile, VersionSettings, Versions};

/// What the test sees of the file.
#[derive(Default)]
pub struct Slots {
    pub slots: Mutex<BTreeMap<u64, Vec<u8>>>,
    pub fails_writes: AtomicBool,
    pub fails_reads: AtomicBool,
}

/// What the log sees of it.
struct InMemory(Arc<Slots>);

impl SpillFile for InMemory {
    fn write(&self, slot: u64, bytes: &[u8]) -> io::Result<()> {
        if self.0.fails_writes.load(Ordering::SeqCst) {
            return Err(io::Error::other("told to fail"));
        }
        self.0.slots.lock().unwrap().insert(slot, bytes.to_vec());
        Ok(())
    }

    fn read(&self, slot: u64, at: usize, into: &mut [u8]) -> io::Result<()> {
        if self.0.fails_reads.load(Ordering::SeqCst) {
            return Err(io::Error::other("told to fail"));
        }
        let slots = self.0.slots.lock().unwrap();
        into.copy_from_slice(&slots[&slot][at..at + into.len()]);
        Ok(())
    }
}

/// A log with a clock at 100 and a spill file.
pub fn versions(segment_bytes: usize, memory_bytes_max: u64) -> (Arc<Versions>, Arc<Slots>) {
    let slots = Arc::new(Slots::default());
    let settings = VersionSettings { segment_bytes, memory_bytes_max };
    let spill = Box::new(InMemory(Arc::clone(&slots)));
    (Arc::new(Versions::new(100, settings, Some(spill))), slots)
}

/// A value of a version, which holds its number and key.
pub fn value_of(number: u64, key: u64, len: usize) -> Vec<u8> {
    let mut value = [number.to_le_bytes(), key.to_le_bytes()].concat();
    value.extend((16..len).map(|at| (at as u64 * 31 + number * 7 + key) as u8));
    value
}

/// What the pointer leads to.
pub fn read(versions: &Versions, pointer: u64) -> Option<(u8, Vec<u8>)> {
    let mut value = b"old".to_vec();
    let flags = versions.log.read(pointer, &mut value).unwrap()?;
    Some((flags, value))
}

/// Spills all that can be.
pub fn spill(versions: &Versions) {
    while versions.log.spill_step().unwrap() {}
}
