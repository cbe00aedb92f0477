//! Adaptive flushing of the InnoDB plugin 1.0.4 and MySQL 5.5.
//!
//! It asks for the share of dirty pages that the redo of a second is of all redo, and then keeps to
//! `io_capacity`: where that is less than is needed, the redo runs full every time.

use crate::Lsn;

use super::strategy::{Proposal, SECOND_US, Strategy, Tick};

/// Seconds that averages reach back.
const SLOTS: usize = 20;

/// Redo and pages flushed for frames, by second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Adaptive {
    slots: [(u64, u64); SLOTS],
    at: usize,
    /// The latest slot.
    latest: (u64, u64),
    /// Time, end of the redo and pages flushed for frames when the running second began.
    begun: Option<(u64, Lsn, u64)>,
}

impl Adaptive {
    /// Averages per second of redo bytes and pages flushed for frames.
    ///
    /// There another thread closed a slot every second, and what had come since was added as it
    /// was: half a second's worth on average. Here it is half of the latest slot, so that it does
    /// not depend on when in its second this is asked. A slot is of one second whatever time
    /// passed, since a tick comes early or late by a little.
    fn averages(&mut self, seen: &Tick<'_, '_>) -> (u64, u64) {
        let now = seen.now;
        let (us, lsn, lru) = *self.begun.get_or_insert((now.now_us, now.lsn, now.lru_flushed));
        let passed_us = now.now_us.saturating_sub(us);
        let seconds = passed_us.saturating_add(SECOND_US / 2) / SECOND_US;
        if seconds > 0 {
            let made = (now.lsn.since(lsn), now.lru_flushed.saturating_sub(lru));
            self.latest = (per_s(made.0, passed_us), per_s(made.1, passed_us));
            for _ in 0..seconds.min(SLOTS as u64) {
                self.slots[self.at] = self.latest;
                self.at = (self.at + 1) % SLOTS;
            }
            self.begun = Some((now.now_us, now.lsn, now.lru_flushed));
        }
        let sums = self.slots.iter().fold((0, 0), |(redo, lru): (u64, u64), slot| {
            (redo.saturating_add(slot.0), lru.saturating_add(slot.1))
        });
        let average = |sum: u64, latest: u64| (sum / SLOTS as u64).saturating_add(latest / 2);
        (average(sums.0, self.latest.0), average(sums.1, self.latest.1))
    }
}

/// What that is in one second.
fn per_s(sum: u64, passed_us: u64) -> u64 {
    let per_s = u128::from(sum) * u128::from(SECOND_US) / u128::from(passed_us.max(1));
    u64::try_from(per_s).unwrap_or(u64::MAX)
}

impl Strategy for Adaptive {
    fn flush(&mut self, seen: &Tick<'_, '_>, _: u64) -> Option<Proposal> {
        let (redo, lru) = self.averages(seen);
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
    use crate::flush::{FlushSample, Ladder};

    #[test]
    fn the_rate_is_the_share_of_dirty_pages_less_those_for_frames() {
        let capacity = 9216 * (1 << 20) / 10;
        assert_eq!(rate(10_000, 10 << 20, capacity, 0), 108);
        assert_eq!(rate(10_000, 10 << 20, capacity, 100), 8);
        assert_eq!(rate(10_000, 10 << 20, capacity, 200), 0);
    }

    #[test]
    fn the_redo_of_a_second_is_seen_one_and_a_half_times_whatever_the_tick() {
        const MADE: u64 = 10 << 20;
        for tick_us in [999_900, SECOND_US, 1_000_100, 3 * SECOND_US] {
            let mut policy = Adaptive::default();
            let mut redo = 0;
            for tick in 0..60_u64 {
                let now_us = tick * tick_us;
                let lsn = Lsn(MADE * now_us / SECOND_US);
                let now = FlushSample { now_us, lsn, ..FlushSample::default() };
                redo = policy.averages(&Tick { now: &now, ladder: Ladder::default(), io: 200 }).0;
            }
            let times = redo as f64 / MADE as f64;
            assert!((times - 1.5).abs() < 0.01, "{times} times with ticks of {tick_us} us");
        }
    }

    #[test]
    fn a_second_look_in_the_same_second_adds_nothing() {
        let mut policy = Adaptive::default();
        let mut at = |now_us: u64, lsn: u64| {
            let now = FlushSample { now_us, lsn: Lsn(lsn), ..FlushSample::default() };
            policy.averages(&Tick { now: &now, ladder: Ladder::default(), io: 200 }).0
        };
        at(0, 0);
        let once = at(SECOND_US, 1000);
        assert_eq!((once, at(SECOND_US + 1000, 1200)), (1000 / 20 + 500, once));
    }
}
