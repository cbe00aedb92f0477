//! The limits of the redo's age, as each generation computes them from the bytes of its files.
//!
//! Invariant: limits rise from the first to the last, and none lies above what the engine itself
//! can bear. It defines where the limits are; a policy decides what happens there.

use crate::flush::{AdmitRule, FlushSample};

/// Header of a redo file of MySQL up to 8.0.29, and of MariaDB's only one.
const FILE_HEADER_BYTES: u64 = 2048;
const MARIADB_HEADER_BYTES: u64 = 12288;

/// The page size and the threads that the margin for users was computed from.
const PAGE_BYTES: u64 = 16384;
const SPARE_THREADS: u64 = 10;

/// Steps of the age, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ladder {
    /// What shares are taken of.
    pub capacity: u64,
    /// Adaptive flushing begins.
    pub low_water: u64,
    /// Flushing becomes urgent.
    pub async_age: u64,
    /// Flushing becomes furious.
    pub sync_age: u64,
    /// A checkpoint is requested.
    pub checkpoint_async_age: u64,
    /// Users wait for a checkpoint.
    pub wait_age: u64,
}

impl Ladder {
    /// Of MySQL 5.0 to 8.0.29, XtraDB and MariaDB before 10.5, with two files.
    #[must_use]
    pub fn mysql_5(file_bytes: u64, low_water_pct: f64) -> Ladder {
        let cap = less_tenth(file_bytes.saturating_sub(2 * FILE_HEADER_BYTES));
        let margin = margin(cap);
        Ladder {
            capacity: cap,
            low_water: share(cap, low_water_pct),
            async_age: margin - margin / 8,
            sync_age: margin - margin / 16,
            checkpoint_async_age: margin - margin / 32,
            wait_age: margin,
        }
        .ordered()
    }

    /// Of MySQL 8.0.30 and later, with 32 files.
    #[must_use]
    pub fn mysql_8(file_bytes: u64, low_water_pct: f64) -> Ladder {
        let file = file_bytes / 32;
        let room = file * 30;
        // Where files are smaller than that server allows, headers take half at most.
        let lsn_capacity = room - (31 * FILE_HEADER_BYTES + 2 * (64 << 10)).min(room / 2);
        let hard = lsn_capacity - file / 10;
        let soft = part_of(hard, 95, 100);
        let spare = (4 * PAGE_BYTES * SPARE_THREADS + 4096 + soft / 20).min(part_of(soft, 55, 100));
        let wait_age = soft - spare;
        let above = |part: u64, of: u64| {
            let whole = part_of(soft, part, of);
            (whole - whole % 512).saturating_sub(spare)
        };
        Ladder {
            capacity: wait_age,
            low_water: share(wait_age, low_water_pct),
            async_age: above(7, 8),
            sync_age: above(15, 16),
            checkpoint_async_age: above(31, 32),
            wait_age,
        }
        .ordered()
    }

    /// Of MariaDB 10.5 and later, with one file: nothing lies between the two last limits.
    #[must_use]
    pub fn mariadb(file_bytes: u64, low_water_pct: f64) -> Ladder {
        let cap = less_tenth(file_bytes.saturating_sub(MARIADB_HEADER_BYTES));
        let margin = margin(cap);
        Ladder {
            capacity: cap,
            low_water: share(cap, low_water_pct),
            async_age: margin - margin / 8,
            sync_age: margin,
            checkpoint_async_age: margin,
            wait_age: margin,
        }
        .ordered()
    }

    /// The same steps with the wall where the engine's is, if they would go beyond it.
    #[must_use]
    pub fn within(self, max_age: u64) -> Ladder {
        if self.wait_age <= max_age {
            return self;
        }
        let scaled = |age: u64| part_of(age, max_age, self.wait_age);
        Ladder {
            capacity: scaled(self.capacity),
            low_water: scaled(self.low_water),
            async_age: scaled(self.async_age),
            sync_age: scaled(self.sync_age),
            checkpoint_async_age: scaled(self.checkpoint_async_age),
            wait_age: max_age,
        }
    }

    /// The ladder that a generation's function gives for a sample.
    pub(crate) fn of(generation: fn(u64, f64) -> Ladder, now: &FlushSample<'_>) -> Ladder {
        let low_water_pct = now.settings.adaptive_flushing_lwm;
        generation(now.redo_file_bytes, low_water_pct).within(now.limits.max_age)
    }

    /// Users do nothing below the last limit and wait there for the cleaner.
    pub(crate) fn wall(&self) -> AdmitRule {
        AdmitRule::wall(self.wait_age)
    }

    /// As [`Ladder::wall`], and users request checkpoints shortly before it.
    pub(crate) fn wall_with_checkpoints(&self) -> AdmitRule {
        AdmitRule { checkpoint_age: self.checkpoint_async_age, ..self.wall() }
    }

    /// Very small files leave no room between limits.
    fn ordered(mut self) -> Ladder {
        self.wait_age = self.wait_age.max(1);
        self.checkpoint_async_age = self.checkpoint_async_age.clamp(1, self.wait_age);
        self.sync_age = self.sync_age.clamp(1, self.checkpoint_async_age);
        self.async_age = self.async_age.clamp(1, self.sync_age);
        self.low_water = self.low_water.min(self.async_age);
        self
    }
}

/// What is left for age when every thread may still write a few pages.
fn margin(cap: u64) -> u64 {
    // Files too small for that were refused by those servers; here it takes half at most.
    less_tenth(cap - (PAGE_BYTES * (4 * SPARE_THREADS + 8)).min(cap / 2))
}

fn less_tenth(bytes: u64) -> u64 {
    bytes - bytes / 10
}

fn share(bytes: u64, pct: f64) -> u64 {
    (bytes as f64 * pct / 100.0) as u64
}

/// `bytes * part / of` without overflow.
fn part_of(bytes: u64, part: u64, of: u64) -> u64 {
    let whole = u128::from(bytes) * u128::from(part) / u128::from(of.max(1));
    u64::try_from(whole).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILES: u64 = 100 << 20;

    #[test]
    fn the_limits_are_those_that_servers_report_for_100_mib() {
        let old = Ladder::mysql_5(FILES, 10.0);
        assert_eq!((old.async_age, old.sync_age), (73_695_607, 78_959_579), "MySQL 5.6.24");
        let mariadb = Ladder::mariadb(FILES, 10.0);
        assert_eq!(mariadb.wait_age, 84_216_915, "MariaDB 10.11 to 11.8");
        // MySQL 9.7 reports its limits before the margin for users is taken off.
        let new = Ladder::mysql_8(FILES, 10.0);
        let soft = 92_892_672;
        let spare = soft - new.wait_age;
        let reported = (new.async_age + spare, new.sync_age + spare);
        assert_eq!(reported, (81_281_024, 87_086_592), "MySQL 9.7.4");
    }

    #[test]
    fn the_limits_are_the_known_shares_of_large_files() {
        let gib = f64::from(1 << 30);
        let of = |bytes: u64| (bytes as f64 / gib * 1000.0).round();
        let old = Ladder::mysql_5(1 << 30, 10.0);
        let shares = [old.low_water, old.async_age, old.sync_age, old.wait_age].map(of);
        assert_eq!(shares, [90.0, 708.0, 759.0, 809.0]);
        let new = Ladder::mysql_8(1 << 30, 10.0);
        let shares = [new.async_age, new.sync_age, new.wait_age].map(of);
        assert_eq!(shares, [732.0, 787.0, 842.0]);
    }

    proptest! {
        #[test]
        fn limits_rise_and_stay_within_the_engines(files in any::<u64>(), max_age in any::<u64>()) {
            for generation in [Ladder::mysql_5, Ladder::mysql_8, Ladder::mariadb] {
                let ladder = generation(files, 10.0).within(max_age);
                let Ladder { low_water, async_age, sync_age, .. } = ladder;
                prop_assert!(low_water <= async_age && async_age <= sync_age);
                prop_assert!(sync_age <= ladder.checkpoint_async_age);
                prop_assert!(ladder.checkpoint_async_age <= ladder.wait_age);
                prop_assert!(ladder.wait_age <= max_age.max(1));
            }
        }
    }
}
