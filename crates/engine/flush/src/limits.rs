//! How old the oldest change may become: pure functions of the room in the log.
//!
//! Purpose: the steps at which the engine starts to flush for age, flushes in earnest, and admits
//! no more changes. Age is the newest LSN less the checkpoint (for admission) or less the oldest
//! change in the pool (for flushing), in bytes.
//!
//! | | InnoDB up to 8.0.29 | 8.0.30 and later | here, of 1 GiB |
//! |---|---|---|---|
//! | async | 0.71 of the capacity | 0.73 | 3/4 of max = 0.70 |
//! | sync | 0.76 | 0.79 | 7/8 of max = 0.82 |
//! | max | 0.81 | 0.84 | 0.94 |
//!
//! Why: InnoDB's steps lie a few percent apart, so that a writer at full speed runs from the first
//! to the wall within one round of flushing. Here each step is an eighth of the way at least, and
//! the wall lies higher, because the reserve behind it is stated and not a share of everything.
//!
//! The reserve: whoever was admitted before the wall may still finish. It holds N mini-transactions
//! of B bytes each when N * B is at most `reserve_bytes()`; whoever admits keeps to that. It is
//! 32 MiB (256 of 128 KiB, eight pages of 16 KiB each), or a third of a log below 96 MiB.

/// Largest reserve, in bytes.
pub const RESERVE_BYTES_MAX: u64 = 32 << 20;

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
        let third = capacity / 3;
        let reserve = if third < RESERVE_BYTES_MAX { third } else { RESERVE_BYTES_MAX };
        let max_age = capacity - reserve;
        let eighth = max_age / 8;
        Self { capacity, async_age: 6 * eighth, sync_age: 7 * eighth, max_age }
    }

    /// What those admitted before `max_age` may still append together, in bytes of frames.
    pub const fn reserve_bytes(&self) -> u64 {
        self.capacity - self.max_age
    }
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
                assert!(l.sync_age - l.async_age >= l.max_age / 8, "{l:?}");
                assert!(l.reserve_bytes() >= capacity.min(3 * RESERVE_BYTES_MAX) / 3, "{l:?}");
            }
        }
    }

    #[test]
    fn a_gibibyte_has_the_stated_shares() {
        let capacity = (1 << 30) / 32 * 31;
        let share = |bytes: u64| (bytes as f64 / f64::from(1 << 30) * 100.0).round();
        let l = AgeLimits::of(capacity);
        assert_eq!((share(l.async_age), share(l.sync_age), share(l.max_age)), (70.0, 82.0, 94.0));
        assert_eq!(l.reserve_bytes(), 32 << 20);
    }
}
