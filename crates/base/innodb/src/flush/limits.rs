//! How old the oldest change may become: pure functions of the room in the log.
//!
//! Purpose: the steps at which the engine starts to flush for age, flushes in earnest, and admits
//! no more changes. Age is the newest LSN less the checkpoint (for admission) or less the oldest
//! change in the pool (for flushing), in bytes.
//!
//! | | InnoDB up to 8.0.29 | 8.0.30 and later | here, of 1 GiB |
//! |---|---|---|---|
//! | async | 0.71 of the capacity | 0.73 | 30/32 of max = 0.88 |
//! | sync | 0.76 | 0.79 | 63/64 of max = 0.92 |
//! | max | 0.81 | 0.84 | 0.94 |
//!
//! Why so high: the older a page is when it is written, the more changes share its write. InnoDB
//! leaves more room, and needs it: writers at full speed run from one step to the next within one
//! round of flushing. Here they are slowed down long before, to what the device bears. Below 32 MiB
//! the steps are wider, up to an eighth of the way: there one batch of pages is much. The wall
//! lies higher, because the reserve behind it is stated and not a share of everything.
//!
//! The reserve: whoever was admitted before the wall may still finish. It holds N mini-transactions
//! of B bytes each when N * B is at most `reserve_bytes()`; whoever admits keeps to that. It is
//! 32 MiB (256 of 128 KiB, eight pages of 16 KiB each), or a third of a log below 96 MiB.

use crate::Lsn;

/// A checkpoint between two batches is worth it when it frees one in so many bytes of the redo.
const CHECKPOINT_WORTH_SHARE: u64 = 128;

/// Largest reserve, in bytes.
pub const RESERVE_BYTES_MAX: u64 = 32 << 20;

/// A step is so wide where that is less than an eighth of the way and more than a 32nd.
const STEP_BYTES: u64 = 1 << 20;

/// The steps of the age, in bytes of LSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgeLimits {
    /// Most that may lie between the checkpoint and the newest LSN; an append beyond it panics.
    pub capacity: u64,
    /// From here on age alone is a reason to flush.
    pub async_age: u64,
    /// From here on flushing goes before everything else.
    pub sync_age: u64,
    /// From here on no new mini-transaction is admitted.
    pub max_age: u64,
}

impl AgeLimits {
    /// The steps for so much room between checkpoint and newest LSN.
    pub const fn of(capacity: u64) -> Self {
        let reserve = least(capacity / 3, RESERVE_BYTES_MAX);
        let max_age = capacity - reserve;
        let step = least(max_age / 8, most(max_age / 32, STEP_BYTES));
        Self { capacity, async_age: max_age - 2 * step, sync_age: max_age - step / 2, max_age }
    }

    /// Whether a checkpoint between two batches is worth its write and sync: from `last` to `at` it
    /// would free a share of the capacity, or the redo, which ends at `end`, is short.
    #[must_use]
    pub fn are_worth_checkpoint(&self, last: Lsn, at: Lsn, end: Lsn) -> bool {
        let is_short = end.since(last) >= self.sync_age;
        is_short || at.since(last) >= self.capacity / CHECKPOINT_WORTH_SHARE
    }

    /// What those admitted before `max_age` may still append together, in bytes of frames.
    pub const fn reserve_bytes(&self) -> u64 {
        self.capacity - self.max_age
    }
}

const fn least(a: u64, b: u64) -> u64 {
    if a < b { a } else { b }
}

const fn most(a: u64, b: u64) -> u64 {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_rise_at_every_capacity() {
        for shift in 14..=40 {
            for capacity in [(1_u64 << shift) - 1, 1 << shift, 3 << (shift - 1)] {
                let l = AgeLimits::of(capacity);
                assert!(0 < l.async_age && l.async_age < l.sync_age, "{l:?}");
                assert!(l.sync_age < l.max_age && l.max_age < l.capacity, "{l:?}");
                assert!(l.sync_age - l.async_age >= l.max_age / 32, "{l:?}");
                assert!(l.reserve_bytes() >= capacity.min(3 * RESERVE_BYTES_MAX) / 3, "{l:?}");
            }
        }
    }

    #[test]
    fn a_checkpoint_is_worth_it_for_what_it_frees_or_where_redo_is_short() {
        let limits = AgeLimits::of(128 << 10);
        let is_worth =
            |at: u64, end: u64| limits.are_worth_checkpoint(Lsn(9), Lsn(9 + at), Lsn(9 + end));
        assert!(!is_worth(1023, 2000) && is_worth(1024, 2000));
        assert!(!is_worth(1, limits.sync_age - 1) && is_worth(1, limits.sync_age));
    }

    #[test]
    fn a_gibibyte_has_the_stated_shares() {
        let capacity = (1 << 30) / 32 * 31;
        let share = |bytes: u64| (bytes as f64 / f64::from(1 << 30) * 100.0).round();
        let l = AgeLimits::of(capacity);
        assert_eq!((share(l.async_age), share(l.sync_age), share(l.max_age)), (88.0, 92.0, 94.0));
        assert_eq!(l.reserve_bytes(), 32 << 20);
    }
}
