//! What a policy sees of the engine: one sample with its settings, how old the oldest change may
//! become, and the pages that stand before an LSN.

use std::time::Duration;

use crate::{FlushWriteLimit, Lsn, Settings};

// How old the oldest change may become: pure functions of the room in the log.
//
// Purpose: the steps at which the engine starts to flush for age, flushes in earnest, and admits
// no more changes. Age is the newest LSN less the checkpoint (for admission) or less the oldest
// change in the pool (for flushing), in bytes.
//
// | | InnoDB up to 8.0.29 | 8.0.30 and later | here, of 1 GiB |
// |---|---|---|---|
// | async | 0.71 of the capacity | 0.73 | 30/32 of max = 0.88 |
// | sync | 0.76 | 0.79 | 63/64 of max = 0.92 |
// | max | 0.81 | 0.84 | 0.94 |
//
// Why so high: the older a page is when it is written, the more changes share its write. InnoDB
// leaves more room, and needs it: writers at full speed run from one step to the next within one
// round of flushing. Here they are slowed down long before, to what the device bears. Below 32 MiB
// the steps are wider, up to an eighth of the way: there one batch of pages is much. The wall
// lies higher, because the reserve behind it is stated and not a share of everything.
//
// The reserve: threads that were admitted before the wall may still finish. It holds N
// mini-transactions of B bytes each when N * B is at most `reserve_bytes()`; admission keeps to
// that. It is
// 32 MiB (256 of 128 KiB, eight pages of 16 KiB each), or a third of a log below 96 MiB.

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
    /// From here on flushing takes precedence over everything else.
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

/// At most this share of the pool is kept free.
const FREE_SHARE: u64 = 8;

/// Frames that a thread frees at most when it frees them by itself.
const USER_FRAMES: u64 = 64;

/// A write of redo that takes so long stood still, as where a limit on the volume's requests is
/// used up. Where a hypervisor took a third of the processors, one wake in a hundred was as late.
pub const STALLED_REDO_WRITE: Duration = Duration::from_millis(10);

/// Frames that a thread frees by itself when it finds none, in a pool of so many: not more than are
/// kept free.
#[must_use]
pub fn frames_of_user(frames: u64) -> u64 {
    free_most(frames).min(USER_FRAMES)
}

/// Frames that are kept free at most in a pool of so many.
fn free_most(frames: u64) -> u64 {
    (frames / FREE_SHARE).max(1)
}

/// The engine at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlushSample<'a> {
    /// Now, in microseconds of a clock that never goes back.
    pub now_us: u64,
    /// End of the redo.
    pub lsn: Lsn,
    /// End of the redo that is durable.
    pub durable: Lsn,
    /// The last checkpoint.
    pub checkpoint: Lsn,
    /// The oldest change of a dirty page; nothing when no page is dirty.
    pub oldest: Option<Lsn>,
    /// Limits of the checkpoint age.
    pub limits: AgeLimits,
    /// Dirty pages.
    pub dirty_pages: u64,
    /// Frames that hold no page.
    pub free_frames: u64,
    /// Frames of the pool.
    pub frames: u64,
    /// Dirty pages by their oldest change: the first LSN of a bucket and the pages in it,
    /// ascending. A bucket reaches to the next one, the last to `lsn`.
    pub age_histogram: &'a [(Lsn, u32)],
    /// Pages written to free their frames, since the engine opened.
    pub lru_flushed: u64,
    /// Pages written to let the checkpoint go on, since the engine opened.
    pub list_flushed: u64,
    /// Bytes of the redo files: what limits by generation are computed from.
    pub redo_file_bytes: u64,
    /// Commits since the engine opened.
    pub commits: u64,
    /// Pages read and written since the engine opened.
    pub page_ios: u64,
    /// Times that redo was written and synced since the engine opened, and how long these took in
    /// all, in microseconds.
    pub redo_writes: u64,
    /// The total duration of `redo_writes`.
    pub redo_write_us: u64,
    /// Those of them that took [`STALLED_REDO_WRITE`] or longer.
    pub stalled_redo_writes: u64,
    /// Reads of pages in flight.
    pub pending_reads: u64,
    /// Writes of pages in flight.
    pub pending_writes: u64,
    /// What the cleaner was ordered and has not done yet.
    pub lanes: LanesUse,
    /// Settings that may change at any time.
    pub settings: FlushSettings,
}

impl FlushSample<'_> {
    /// Redo since the oldest change of a dirty page, in bytes: what flushing acts on.
    #[must_use]
    pub fn modified_age(&self) -> u64 {
        self.oldest.map_or(0, |oldest| self.lsn.0.saturating_sub(oldest.0))
    }

    /// Redo since the last checkpoint, in bytes: what committing threads are held by.
    #[must_use]
    pub fn checkpoint_age(&self) -> u64 {
        self.lsn.0.saturating_sub(self.checkpoint.0)
    }

    /// Share of dirty frames, in percent.
    #[must_use]
    pub fn dirty_pct(&self) -> f64 {
        100.0 * self.dirty_pages as f64 / self.frames.max(1) as f64
    }

    /// The most frames that are kept free, whatever the value of `lru_scan_depth`.
    #[must_use]
    pub fn free_frames_most(&self) -> u64 {
        free_most(self.frames)
    }

    /// Reads and writes of pages in flight.
    #[must_use]
    pub fn pending_ios(&self) -> u64 {
        self.pending_reads.saturating_add(self.pending_writes)
    }

    /// Behind all dirty pages.
    #[must_use]
    pub fn behind_all(&self) -> Lsn {
        self.lsn.plus(1)
    }

    /// So much redo behind the oldest change.
    #[must_use]
    pub fn after_oldest(&self, bytes: u64) -> Lsn {
        self.could_checkpoint().plus(bytes)
    }

    /// Where a checkpoint could be now.
    #[must_use]
    pub fn could_checkpoint(&self) -> Lsn {
        self.oldest.unwrap_or(self.lsn).min(self.lsn)
    }
}

/// Orders of a policy that does not wait for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LanesUse {
    /// Pages of [`Action::Flush`](crate::flush::Action::Flush) that are not written yet.
    pub list_pages: u32,
    /// Frames of [`Action::Lru`](crate::flush::Action::Lru) that are not free yet.
    pub cold_frames: u32,
}

/// The settings that a policy follows, under InnoDB's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlushSettings {
    /// Pages per second for background flushing.
    pub io_capacity: u32,
    /// Pages per second that flushing keeps to unless redo is about to run out.
    pub io_capacity_max: u32,
    /// Share of dirty frames in percent that is flushed with `io_capacity`.
    pub max_dirty_pages_pct: f64,
    /// Share of dirty frames in percent from which flushing for it begins; 0: shortly below.
    pub max_dirty_pages_pct_lwm: f64,
    /// Whether pages are flushed for redo below the async limit.
    pub adaptive_flushing: bool,
    /// Share of the redo capacity in percent below which nothing is flushed for it.
    pub adaptive_flushing_lwm: f64,
    /// Loops that averages reach back.
    pub flushing_avg_loops: u32,
    /// Share of `io_capacity` in percent that is flushed while nothing changes.
    pub idle_flush_pct: f64,
    /// Whether flushing may go beyond `io_capacity_max` when redo is about to run out.
    pub flush_sync: bool,
    /// Free frames to keep ready, at most an eighth of the pool.
    pub lru_scan_depth: u32,
    /// Time after which redo is made durable when commits do not require it, in microseconds.
    pub flush_log_at_timeout_us: u64,
    /// Threads that purge; without any the policy requests it.
    pub purge_threads: u32,
    /// Whether pages are copied before they are written in place.
    pub doublewrite: bool,
    /// Whether what a policy wants to write is capped.
    pub write_limit: FlushWriteLimit,
}

impl Default for FlushSettings {
    /// The defaults of the engine.
    fn default() -> FlushSettings {
        FlushSettings::of(&Settings::default())
    }
}

// Pages that stand before an LSN, from the counts by age.
//
// Counts are per bucket; inside a bucket pages are taken to lie evenly, so that a histogram of a
// single bucket, as a small redo may have, is still of use.

/// The dirty pages by their oldest change.
#[derive(Clone, Copy, Debug)]
pub struct Ages<'a> {
    buckets: &'a [(Lsn, u32)],
    oldest: Lsn,
    end: Lsn,
}

/// One bucket: the LSNs it covers, and its pages.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bucket {
    start: Lsn,
    end: Lsn,
    pages: f64,
}

impl<'a> Ages<'a> {
    /// Pages by the first LSN of their bucket, ascending, between these two ends of the redo: as in
    /// [`FlushSample::age_histogram`].
    #[must_use]
    pub fn between(buckets: &'a [(Lsn, u32)], oldest: Lsn, end: Lsn) -> Ages<'a> {
        Ages { buckets, oldest, end }
    }

    /// The ages in a sample.
    pub(crate) fn of(now: &FlushSample<'a>) -> Ages<'a> {
        let oldest = now.could_checkpoint();
        Ages { buckets: now.age_histogram, oldest, end: now.lsn }
    }

    fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let ends = self.buckets.iter().skip(1).map(|(start, _)| *start);
        self.buckets.iter().zip(ends.chain([self.end])).map(|(&(start, pages), end)| {
            let start = start.max(self.oldest);
            Bucket { start, end: end.max(start), pages: f64::from(pages) }
        })
    }

    /// Pages whose oldest change is before `until`.
    #[must_use]
    pub fn pages_before(&self, until: Lsn) -> f64 {
        let before = |bucket: Bucket| {
            if until >= bucket.end {
                return bucket.pages;
            }
            let width = bucket.end.since(bucket.start).max(1) as f64;
            bucket.pages * until.since(bucket.start) as f64 / width
        };
        self.buckets().map(before).sum()
    }

    /// Redo that may still come until each page is `max_age` old, of all pages together, in bytes.
    pub(crate) fn remaining_bytes(&self, max_age: u64) -> f64 {
        let left = |bucket: Bucket| {
            let middle = bucket.start.0.midpoint(bucket.end.0);
            let age = self.end.0.saturating_sub(middle);
            bucket.pages * max_age.saturating_sub(age) as f64
        };
        self.buckets().map(left).sum()
    }

    /// The end of the bucket in which the oldest `pages` pages end.
    pub(crate) fn lsn_after(&self, pages: f64) -> Lsn {
        let mut passed = 0.0;
        for bucket in self.buckets() {
            passed += bucket.pages;
            if passed >= pages {
                return bucket.end;
            }
        }
        self.end
    }

    /// The most redo per second, in bytes, at which no page becomes older than `most_age` when
    /// `pages_per_s` are written: the inverse of the same schedule. Unbounded where no page is
    /// dirty.
    pub(crate) fn redo_rate_for(&self, most_age: f64, pages_per_s: f64) -> f64 {
        let (mut passed, mut rate) = (0.0, f64::INFINITY);
        for bucket in self.buckets() {
            passed += bucket.pages;
            if passed > 0.0 {
                let left = (most_age - self.end.since(bucket.end) as f64).max(0.0);
                rate = f64::min(rate, left * pages_per_s / passed);
            }
        }
        rate
    }

    /// The least steady rate, in pages per second, at which no page that comes due soon becomes
    /// older than `set_age`, when redo is produced at `redo_bytes_per_s`.
    ///
    /// The oldest `P` pages, up to LSN `L`, must be written before the redo's end is at
    /// `L + set_age`; the rate is the greatest of `P` over the time until then, over all `L`: the
    /// schedule of Yao, Demers and Shenker (1995), which never goes faster than some deadline
    /// requires. Only deadlines within `horizon` count, a share of the time in which the redo fills
    /// up to `set_age`: younger pages may well be changed again. What is already late is due within
    /// `late_us`.
    #[must_use]
    pub fn rate_for(&self, set_age: f64, redo_bytes_per_s: f64, late_us: f64, horizon: f64) -> f64 {
        let us_per_byte = 1e6 / redo_bytes_per_s.max(1e-3);
        let due_in_us = |until: Lsn| {
            let left = set_age - self.end.since(until) as f64;
            (left * us_per_byte).max(late_us)
        };
        let aged = |age: f64| Lsn(self.end.0.saturating_sub(age as u64));
        let (late, soon) = (aged(set_age), aged(set_age * (1.0 - horizon)));
        let at = |until: Lsn| self.pages_before(until) * 1e6 / due_in_us(until);
        let mut rate = at(late).max(at(soon));
        let mut passed = 0.0;
        for bucket in self.buckets().take_while(|bucket| bucket.end <= soon) {
            passed += bucket.pages;
            rate = f64::max(rate, passed * 1e6 / due_in_us(bucket.end));
        }
        rate
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

/// Ages against histograms whose answers are known.
#[cfg(test)]
mod ages_tests {
    use crate::Lsn;

    use super::Ages;

    /// Pages every 100 bytes of redo, ten to a bucket of 1000, from 1000 to 11000.
    fn even() -> Vec<(Lsn, u32)> {
        (1..=10).map(|bucket| (Lsn(bucket * 1000), 10)).collect()
    }

    fn ages(buckets: &[(Lsn, u32)]) -> Ages<'_> {
        Ages { buckets, oldest: Lsn(1000), end: Lsn(11_000) }
    }

    #[test]
    fn pages_before_an_lsn_are_counted_and_shared_within_a_bucket() {
        let buckets = even();
        for (until, pages) in [(0, 0.0), (1000, 0.0), (2000, 10.0), (2500, 15.0), (99_999, 100.0)] {
            assert!((ages(&buckets).pages_before(Lsn(until)) - pages).abs() < 1e-9, "{until}");
        }
        let one = [(Lsn(0), 100)];
        assert!((ages(&one).pages_before(Lsn(6000)) - 50.0).abs() < 1e-9);
        assert_eq!(ages(&[]).pages_before(Lsn(6000)), 0.0);
    }

    #[test]
    fn the_end_of_some_pages_is_the_end_of_their_bucket() {
        let buckets = even();
        for (pages, end) in [(1.0, 2000), (10.0, 2000), (11.0, 3000), (1000.0, 11_000)] {
            assert_eq!(ages(&buckets).lsn_after(pages), Lsn(end), "{pages}");
        }
    }

    #[test]
    fn at_the_set_point_pages_leave_as_fast_as_redo_comes() {
        let buckets = even();
        let late_us = 100_000.0;
        // 10,000 bytes of age at 1000 bytes per second, one page every 100 bytes: 10 pages per
        // second.
        let held = ages(&buckets).rate_for(10_000.0, 1000.0, late_us, 0.5);
        assert!((held - 10.0).abs() < 1e-6, "{held}");
        let half = ages(&buckets).rate_for(20_000.0, 1000.0, late_us, 0.5);
        assert_eq!(half, 0.0, "nothing is older than half of what is held");
        let more = ages(&buckets).rate_for(15_000.0, 1000.0, late_us, 0.5);
        // 25 pages are older than 7500 bytes, and due in 7.5 s.
        assert!((more - 25.0 / 7.5).abs() < 1e-6, "{more}");
        let late = ages(&buckets).rate_for(9000.0, 1000.0, late_us, 0.5);
        assert!((late - 100.0).abs() < 1e-6, "10 pages are late: {late}");
    }

    #[test]
    fn a_heap_of_pages_is_begun_early_instead_of_all_at_once() {
        let mut buckets = even();
        buckets[4].1 = 10_000;
        let rate = ages(&buckets).rate_for(10_000.0, 1000.0, 100_000.0, 0.5);
        // All 10,040 up to LSN 6000 are due in 5 s.
        assert!((rate - 10_040.0 / 5.0).abs() < 1e-6, "{rate}");
    }
}
