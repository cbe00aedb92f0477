//! Pages that stand before an LSN, from the counts by age.
//!
//! Counts are per bucket; inside a bucket pages are taken to lie evenly, so that a histogram of a
//! single bucket, as a small redo may have, still tells something.

use crate::Lsn;

use crate::flush::FlushSample;

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
    /// `pages_per_s` are written: the same schedule, asked the other way round. Without bound where
    /// no page is dirty.
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
    /// schedule of Yao, Demers and Shenker (1995), which never goes faster than some deadline asks.
    /// Deadlines are looked at within `horizon`, a share of the time in which the redo fills up to
    /// `set_age`: younger pages may well be changed again. What is already late is due within
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
mod tests;
