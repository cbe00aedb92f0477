//! The policies of InnoDB's history, each with the limits, the roundings and the weaknesses of its
//! time.
//!
//! Purpose: what those servers did can be played and compared. Invariant: formulas are theirs, and
//! so are the integer divisions; what a generation's users had to do is in the rule of admission.
//! What the engine has no counterpart of (the insert buffer, several instances of the pool) is left
//! out. docs/flushing.md compares them.

mod adaptive;
mod averages;
mod cleaner_loop;
mod generation;
mod lsn_age;
mod mariadb;
mod master_loop;
mod mysql_56;
mod mysql_57;
mod percent;
mod strategy;

use adaptive::Adaptive;
use averages::KeepAverage;
use cleaner_loop::CleanerLoop;
use lsn_age::LsnAge;
use mariadb::Mariadb;
use master_loop::MasterLoop;
use mysql_56::Mysql56;
use mysql_57::{Mysql57, Version};
use percent::AgeFactor;

use crate::Lsn;
use crate::flush::ages::Ages;
use crate::flush::history::strategy::{Proposal, Strategy, Tick};
use crate::flush::{FlushPolicy, FlushSample};

/// Pages per second of MySQL 5.0 and 5.1.
const FIXED_IO: u64 = 100;

/// MySQL 5.0 and 5.1: 100 pages per second, whatever the device can do.
#[must_use]
pub fn fixed_100() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(DirtyShare { io: Some(FIXED_IO) }))
}

/// Google's patch of 2008: the same loop with `io_capacity`.
#[must_use]
pub fn io_capacity() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(DirtyShare { io: None }))
}

/// XtraDB 5.1: shares of `io_capacity` by steps of the age.
#[must_use]
pub fn reflex() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(Reflex))
}

/// XtraDB 5.1 and 5.5: each page at the rate at which its room in the redo shrinks, without a cap.
#[must_use]
pub fn estimate() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(Estimate::default()))
}

/// XtraDB: ten looks a second, less what others have flushed.
#[must_use]
pub fn keep_average() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(KeepAverage::default()))
}

/// InnoDB plugin 1.0.4 and MySQL 5.5: adaptive flushing, capped by `io_capacity`.
#[must_use]
pub fn adaptive() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(Adaptive::default()))
}

/// The patch of 2010 to MySQL 5.5.4: the tail of the redo is freed as fast as the head grows.
#[must_use]
pub fn lsn_age() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(LsnAge::default()))
}

/// MySQL 5.6's page cleaner.
#[must_use]
pub fn page_cleaner_56() -> Box<dyn FlushPolicy> {
    Box::new(CleanerLoop::new(Mysql56::new(AgeFactor::Legacy)))
}

/// MySQL 5.7's.
#[must_use]
pub fn page_cleaner_57() -> Box<dyn FlushPolicy> {
    Box::new(CleanerLoop::new(Mysql57::new(Version::V57)))
}

/// That of MySQL 8.0.30 and 8.4.
#[must_use]
pub fn page_cleaner_84() -> Box<dyn FlushPolicy> {
    Box::new(CleanerLoop::new(Mysql57::new(Version::V84)))
}

/// MariaDB's from 10.5 on.
#[must_use]
pub fn mariadb() -> Box<dyn FlushPolicy> {
    Box::new(CleanerLoop::new(Mariadb::default()))
}

/// Percona Server 5.6's page cleaner with its default way of weighing the age.
#[must_use]
pub fn percona_high_checkpoint() -> Box<dyn FlushPolicy> {
    Box::new(CleanerLoop::new(Mysql56::new(AgeFactor::HighCheckpoint)))
}

/// Flushes for the share of dirty pages only.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirtyShare {
    /// Pages per second, where they are a constant; otherwise `io_capacity`.
    pub io: Option<u64>,
}

impl Strategy for DirtyShare {
    fn io(&self, now: &FlushSample<'_>) -> u64 {
        self.io.unwrap_or(u64::from(now.settings.io_capacity))
    }

    fn skips_sleep_when_dirty(&self) -> bool {
        true
    }

    fn flush(&mut self, _: &Tick<'_, '_>, _: u64) -> Option<Proposal> {
        None
    }
}

// XtraDB's `estimate`: each page is written at the rate at which its room in the redo shrinks.
//
// It has no cap of its own, and writes only the tail that frees the redo of one second.

/// Remembers the end of the redo at the last tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    last: Option<Lsn>,
}

impl Strategy for Estimate {
    fn flush(&mut self, seen: &Tick<'_, '_>, _: u64) -> Option<Proposal> {
        let now = seen.now;
        let last = self.last.replace(now.lsn)?;
        let (age, most) = (now.modified_age(), seen.ladder.wait_age);
        // A comment there says half; the code says a quarter.
        if age <= most / 4 || age > most - most / 8 {
            return None;
        }
        let made = now.lsn.since(last);
        let remaining = Ages::of(now).remaining_bytes(most);
        let want = pages(now.dirty_pages, made, remaining, now.settings.doublewrite);
        Some(Proposal { want, cap: None, until: seen.now.after_oldest(made), skips_sleep: false })
    }
}

/// Pages to write while `made` bytes of redo come, when all dirty pages together have `remaining`
/// bytes until they reach the limit.
fn pages(dirty: u64, made: u64, remaining: f64, doublewrite: bool) -> u64 {
    let dirty = dirty as f64;
    let pages = (dirty * dirty * made as f64 / remaining.max(1.0)) as u64;
    if doublewrite { pages } else { pages - pages.div_ceil(8) }
}

// XtraDB 5.1's first answer: the fuller the redo, the greater the share of `io_capacity`.
//
// Above 7/8 of the limit it does nothing, and leaves the rest to users.

/// Steps of the age.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reflex;

impl Strategy for Reflex {
    fn skips_sleep_when_dirty(&self) -> bool {
        true
    }

    /// XtraDB 5.1 had the switch for the plugin's way of flushing, which it then ran instead.
    fn follows_adaptive_flushing(&self) -> bool {
        false
    }

    fn flush(&mut self, seen: &Tick<'_, '_>, _: u64) -> Option<Proposal> {
        let (age, most) = (seen.now.modified_age(), seen.ladder.wait_age);
        let want = if age > most - most / 8 {
            return None;
        } else if age > most - most / 4 {
            seen.pct(100)
        } else if age > most / 2 {
            seen.pct(10)
        } else {
            return None;
        };
        Some(Proposal {
            want,
            cap: Some(seen.pct(100)),
            until: seen.now.behind_all(),
            skips_sleep: true,
        })
    }
}

#[cfg(test)]
mod estimate_tests {
    use super::*;

    #[test]
    fn pages_follow_the_mean_distance_to_the_limit() {
        let mib = f64::from(1 << 20);
        let of = |doublewrite| pages(10_000, 10 << 20, 10_000.0 * 500.0 * mib, doublewrite);
        assert_eq!((of(true), of(false)), (200, 175));
    }
}

#[cfg(test)]
mod reflex_tests {
    use crate::Lsn;

    use super::*;
    use crate::flush::{FlushSample, Ladder};

    #[test]
    fn the_share_rises_in_two_steps_and_ends_where_users_take_over() {
        let wanted = |age: u64| {
            let (lsn, oldest) = (Lsn(10_000), Some(Lsn(10_000 - age)));
            let now = FlushSample { lsn, oldest, ..FlushSample::default() };
            let ladder = Ladder { wait_age: 800, ..Ladder::default() };
            let seen = Tick { now: &now, ladder, io: 200 };
            Reflex.flush(&seen, 0).map_or(0, |batch| batch.want)
        };
        assert_eq!([400, 401, 600, 601, 700, 701].map(wanted), [0, 20, 20, 200, 200, 0]);
    }
}
