//! The patch of 2010 that became MySQL 5.6's way: the tail of the redo is freed as fast as its head
//! grows, and `io_capacity` only caps.
//!
//! Users are at work when the redo moves: an older loop that counted transactions took a lone user
//! for idle, and flushed against it. Without users it keeps to `io_capacity` as well.

use crate::Lsn;

use super::strategy::{Proposal, SECOND_US, Strategy, Tick};
use crate::flush::FlushSample;

/// How often the speed is taken, in microseconds.
const SPEED_US: u64 = 10 * SECOND_US;

/// The speed of the redo.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LsnAge {
    bytes_per_s: u64,
    last: Option<Lsn>,
    speed_taken: Option<(u64, Lsn)>,
}

impl LsnAge {
    fn take_speed(&mut self, now: &FlushSample<'_>) {
        let (us, lsn) = *self.speed_taken.get_or_insert((now.now_us, now.lsn));
        let passed_us = now.now_us.saturating_sub(us);
        if passed_us >= SPEED_US {
            let latest = now.lsn.since(lsn) / (passed_us / SECOND_US).max(1);
            self.bytes_per_s = mean(self.bytes_per_s, latest);
            self.speed_taken = Some((now.now_us, now.lsn));
        }
    }
}

impl Strategy for LsnAge {
    fn flush(&mut self, seen: &Tick<'_, '_>, _: u64) -> Option<Proposal> {
        let now = seen.now;
        self.take_speed(now);
        let last = self.last.replace(now.lsn)?;
        let freed = mean(self.bytes_per_s, now.lsn.since(last));
        // A tenth of the redo, whatever later versions made a setting of.
        if now.modified_age() < seen.ladder.capacity / 10 {
            return None;
        }
        let (want, cap) = (u64::MAX, Some(seen.pct(100)));
        Some(Proposal { want, cap, until: seen.now.after_oldest(freed), skips_sleep: false })
    }

    fn activity(&self, now: &FlushSample<'_>) -> u64 {
        now.lsn.0
    }

    fn background_is_capped(&self) -> bool {
        true
    }
}

fn mean(a: u64, b: u64) -> u64 {
    u64::midpoint(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flush::Ladder;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_tail_goes_as_fast_as_the_head_comes() {
        let mut policy = LsnAge {
            bytes_per_s: 10 * MIB,
            last: Some(Lsn(500 * MIB)),
            speed_taken: Some((0, Lsn(500 * MIB))),
        };
        let (lsn, oldest) = (Lsn(512 * MIB), Some(Lsn(100 * MIB)));
        let now = FlushSample { now_us: SECOND_US, lsn, oldest, ..FlushSample::default() };
        let ladder = Ladder { capacity: 921 * MIB, ..Ladder::default() };
        let batch = policy.flush(&Tick { now: &now, ladder, io: 200 }, 0).unwrap();
        assert_eq!((batch.cap, batch.until), (Some(200), Lsn(111 * MIB)));
    }

    #[test]
    fn the_speed_is_taken_every_ten_seconds() {
        let mut policy = LsnAge::default();
        for second in 0..=20 {
            let (now_us, lsn) = (second * SECOND_US, Lsn(second * 8));
            policy.take_speed(&FlushSample { now_us, lsn, ..FlushSample::default() });
        }
        assert_eq!(policy.bytes_per_s, 6, "half of 8, then half way again");
    }
}
