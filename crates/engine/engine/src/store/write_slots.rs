//! When the next page may be written: slots at a rate, over all batches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Slots of this time, and so many at least, may be taken at once by those who come late: the
/// copies and syncs of a batch take time, too.
const LATE: Duration = Duration::from_millis(30);
const LATE_SLOTS: u32 = 16;
/// Longest wait for a slot, should the rate be nothing.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Slots for page writes.
#[derive(Debug, Default)]
pub(crate) struct WriteSlots {
    /// Time of a slot; 0 without a rate.
    slot_ns: AtomicU64,
    next: Mutex<Option<Instant>>,
}

impl WriteSlots {
    /// So many slots per second; without bound for no slots.
    pub fn set_per_s(&self, per_s: f64) {
        let slot_ns = if per_s.is_finite() { (1e9 / per_s.max(1.0)) as u64 } else { 0 };
        self.slot_ns.store(slot_ns, Ordering::Relaxed);
    }

    /// Takes the next slot and waits for it.
    pub fn wait(&self) {
        let slot_ns = self.slot_ns.load(Ordering::Relaxed);
        if slot_ns == 0 {
            return;
        }
        let (now, slot) = (Instant::now(), Duration::from_nanos(slot_ns));
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = now.checked_sub(LATE.max(slot * LATE_SLOTS)).unwrap_or(now);
        let mine = next.unwrap_or(now).max(earliest);
        *next = Some(mine + slot);
        drop(next);
        std::thread::sleep(mine.saturating_duration_since(now).min(WAIT_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_at_their_rate_and_the_late_catch_up_with_a_few() {
        let slots = WriteSlots::default();
        let start = Instant::now();
        (0..1000).for_each(|_| slots.wait());
        slots.set_per_s(10_000.0);
        (0..50).for_each(|_| slots.wait());
        assert!(start.elapsed() >= Duration::from_micros(4900), "{:?}", start.elapsed());
        let next = slots.next.lock().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(60));
        slots.wait();
        let after = slots.next.lock().unwrap().unwrap();
        assert!(after > next + Duration::from_millis(25), "what was missed long ago is gone");
    }
}
