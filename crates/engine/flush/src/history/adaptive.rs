//! Adaptive flushing of the InnoDB plugin 1.0.4 and MySQL 5.5.
//!
//! It asks for the share of dirty pages that the redo of a second is of all redo, and then keeps to
//! `io_capacity`: where that is less than is needed, the redo runs full every time.

use iostrata_page::Lsn;

use super::strategy::{Proposal, SECOND_US, Strategy, Tick};

/// Seconds that averages reach back.
const SLOTS: usize = 20;

/// Redo and pages flushed for frames, by second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Adaptive {
    slots: [(u64, u64); SLOTS],
    at: usize,
    /// Time, end of the redo and pages flushed for frames when the running second began.
    begun: Option<(u64, Lsn, u64)>,
}

impl Adaptive {
    /// Averages of redo bytes and pages flushed for frames, with what the running second adds.
    fn averages(&mut self, seen: &Tick<'_, '_>) -> (u64, u64) {
        let now = seen.now;
        let (us, lsn, lru) = *self.begun.get_or_insert((now.now_us, now.lsn, now.lru_flushed));
        let running = (now.lsn.since(lsn), now.lru_flushed.saturating_sub(lru));
        let sums = self.slots.iter().fold((0, 0), |(redo, lru): (u64, u64), slot| {
            (redo.saturating_add(slot.0), lru.saturating_add(slot.1))
        });
        if now.now_us.saturating_sub(us) >= SECOND_US {
            self.slots[self.at] = running;
            self.at = (self.at + 1) % SLOTS;
            self.begun = Some((now.now_us, now.lsn, now.lru_flushed));
        }
        let average = |sum: u64, running: u64| (sum / SLOTS as u64).saturating_add(running);
        (average(sums.0, running.0), average(sums.1, running.1))
    }
}

impl Strategy for Adaptive {
    fn flush(&mut self, seen: &Tick<'_, '_>, _: u64) -> Option<Proposal> {
        let (redo, lru) = self.averages(seen);
        if !seen.now.settings.adaptive_flushing {
            return None;
        }
        let want = rate(seen.now.dirty_pages, redo, seen.ladder.capacity, lru);
        let cap = Some(seen.pct(100));
        (want > 0).then(|| Proposal { want, cap, until: seen.now.behind_all(), skips_sleep: false })
    }
}

/// Pages per second.
fn rate(dirty: u64, redo: u64, capacity: u64, lru: u64) -> u64 {
    let want = u128::from(dirty) * u128::from(redo) / u128::from(capacity.max(1));
    u64::try_from(want).unwrap_or(u64::MAX).saturating_sub(lru)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_share_of_dirty_pages_less_those_for_frames() {
        let capacity = 9216 * (1 << 20) / 10;
        assert_eq!(rate(10_000, 10 << 20, capacity, 0), 108);
        assert_eq!(rate(10_000, 10 << 20, capacity, 100), 8);
        assert_eq!(rate(10_000, 10 << 20, capacity, 200), 0);
    }
}
