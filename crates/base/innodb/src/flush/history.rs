//! The policies of InnoDB's history, each with the limits, the roundings and the weaknesses of its
//! time.
//!
//! Purpose: what those servers did can be played and compared. Invariant: formulas are theirs, and
//! so are the integer divisions; what a generation's users had to do is in the rule of admission.
//! What the engine has no counterpart of (the insert buffer, several instances of the pool) is left
//! out. docs/flushing.md compares them. What the master thread's policies decide is here; page
//! cleaners have files of their own.

mod mariadb;
mod master_loop;
mod page_cleaner;

use crate::Lsn;
use crate::flush::sample::Ages;
use crate::flush::{FlushPolicy, FlushSample};
use mariadb::Mariadb;
use master_loop::{MasterLoop, Proposal, SECOND_US, Strategy, Tick};
use page_cleaner::{AgeFactor, CleanerLoop, Mysql56, Mysql57, Version};

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
struct DirtyShare {
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
struct Estimate {
    last: Option<Lsn>,
}

impl Strategy for Estimate {
    fn flush(&mut self, seen: &Tick<'_, '_>, _: u64) -> Option<Proposal> {
        let now = seen.now;
        let last = self.last.replace(now.lsn)?;
        let (age, most) = (now.modified_age(), seen.ladder.wait_age);
        // A comment in the original has half; its code has a quarter.
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
struct Reflex;

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

// XtraDB's `keep_average`: a look writes the share that its redo is of the async limit.

/// Remembers the last look.
#[derive(Clone, Copy, Debug, Default)]
struct KeepAverage {
    /// End of the redo, and dirty pages.
    last: Option<(Lsn, u64)>,
}

impl Strategy for KeepAverage {
    fn tick_us(&self) -> u64 {
        SECOND_US / 10
    }

    fn flush(&mut self, seen: &Tick<'_, '_>, own: u64) -> Option<Proposal> {
        let now = seen.now;
        let (mark, before) = self.last.replace((now.lsn, now.dirty_pages))?;
        let older = Ages::of(now).pages_before(mark) as u64;
        let new = now.dirty_pages.saturating_sub(older);
        let flushed_by_all = new.saturating_add(before).saturating_sub(now.dirty_pages);
        let made = now.lsn.since(mark);
        let want = pages_of_look(now.dirty_pages, made, seen.ladder.async_age);
        let want = want.saturating_sub(flushed_by_all.saturating_sub(own));
        let until = seen.now.after_oldest(made);
        (want > 0).then(|| Proposal { want: want + 1, cap: None, until, skips_sleep: false })
    }
}

/// The share of the dirty pages that the redo made since the last look is of the async limit.
fn pages_of_look(dirty: u64, made: u64, async_age: u64) -> u64 {
    (dirty as f64 * made as f64 / async_age.max(1) as f64).min(1e18) as u64
}

// Adaptive flushing of the InnoDB plugin 1.0.4 and MySQL 5.5.
//
// It requests the same share of the dirty pages as a second's redo is of all redo, and then keeps
// to `io_capacity`: where that is less than is needed, the redo runs full every time.

/// Seconds that averages reach back.
const SLOTS: usize = 20;

/// Redo and pages flushed for frames, by second.
#[derive(Clone, Copy, Debug, Default)]
struct Adaptive {
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
    /// not depend on when in its second this is called. A slot is of one second whatever time
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

// The patch of 2010 that became MySQL 5.6's way: the tail of the redo is freed as fast as its head
// grows, and `io_capacity` only caps.
//
// Users are at work when the redo moves: an older loop that counted transactions took a lone user
// for idle, and flushed against it. Without users it keeps to `io_capacity` as well.

/// How often the speed is taken, in microseconds.
const SPEED_US: u64 = 10 * SECOND_US;

/// The speed of the redo.
#[derive(Clone, Copy, Debug, Default)]
struct LsnAge {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flush::{FlushSample, Ladder};

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_look_writes_its_share_and_credits_what_others_wrote() {
        let ladder = Ladder { async_age: 7258 * MIB / 10, ..Ladder::default() };
        let flush = |own: u64, others: u64| {
            let mut policy = KeepAverage::default();
            let ages = [(Lsn(MIB), 9_900), (Lsn(500 * MIB), 100)];
            let first = FlushSample {
                lsn: Lsn(500 * MIB),
                oldest: Some(Lsn(MIB)),
                dirty_pages: 9_900 + own + others,
                age_histogram: &ages[..1],
                ..FlushSample::default()
            };
            policy.flush(&Tick { now: &first, ladder, io: 200 }, 0);
            let lsn = Lsn(501 * MIB);
            let now = FlushSample { lsn, dirty_pages: 10_000, age_histogram: &ages, ..first };
            policy.flush(&Tick { now: &now, ladder, io: 200 }, own)
        };
        let batch = flush(50, 0).unwrap();
        assert_eq!((batch.want, batch.until), (14, Lsn(2 * MIB)), "13 and one more");
        assert_eq!(flush(50, 5).unwrap().want, 9, "less what others flushed");
        assert_eq!(flush(50, 13), None);
    }
}

#[cfg(test)]
mod adaptive_tests {
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

#[cfg(test)]
mod lsn_age_tests {
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
