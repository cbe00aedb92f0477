//! Latency histograms: recorded in nanoseconds, read in microseconds.
//!
//! Purpose: hold the latencies of any number of requests in 35 KB with every percentile within 1 %:
//! the type that the measuring loop records into, that is merged, stored and read back.
//! Invariants: a new histogram has every bucket it will ever need, so recording neither allocates
//! nor fails; the mean and the maximum come from an own sum and an own maximum, so they are exact;
//! a latency above 1,000 s counts in the last bucket, still exact in mean and maximum.
//! It takes no time itself and keeps no order of arrival: time series live elsewhere.
//! Source of the buckets: HdrHistogram, 2 significant digits (256 sub-buckets, so that a bucket is
//! at most 1/128 of its value wide, and its middle at most 1/256 away).

mod bytes;

use serde::{Deserialize, Serialize};

pub use bytes::{HistogramDecodeError, HistogramEncodeError};

use crate::LatencyUs;

/// Latencies above this, in nanoseconds (1,000 s), share the last bucket.
pub(crate) const HIGH_NS: u64 = 1_000_000_000_000;
/// Nanoseconds in a microsecond.
const NS_PER_US: f64 = 1_000.0;
/// Values below this have a bucket each; above, every power of two has half as many.
const SUB_BUCKETS: u64 = 256;
const HALF: usize = SUB_BUCKETS as usize / 2;
/// Leading zeros of the largest value of the first bucket row.
const BASE_LEADING_ZEROS: u32 = (SUB_BUCKETS - 1).leading_zeros();
/// Index of the bucket of the largest value, plus one.
const BUCKETS: usize = index_of(HIGH_NS) + 1;

/// The bucket of a value: its power of two above 256, and the next seven bits.
#[inline(always)]
pub(crate) const fn index_of(value_ns: u64) -> usize {
    let row = BASE_LEADING_ZEROS - (value_ns | (SUB_BUCKETS - 1)).leading_zeros();
    row as usize * HALF + (value_ns >> row) as usize
}

/// The smallest value of a bucket and how many values share it.
const fn values_of(index: usize) -> (u64, u64) {
    if index < SUB_BUCKETS as usize {
        return (index as u64, 1);
    }
    let row = index / HALF - 1;
    (((index - row * HALF) as u64) << row, 1 << row)
}

/// A latency histogram with a relative error of at most 1 %.
#[derive(Clone, Default)]
pub struct LatencyHistogram {
    /// Buckets before the first of `counts` hold nothing.
    first: usize,
    counts: Box<[u64]>,
    pub(crate) sum_ns: u64,
    pub(crate) max_ns: u64,
    /// Where the slices of its window are known, when the slow ones came. Apart, so that what a
    /// request touches lies close together.
    moments: Option<Box<Moments>>,
}

/// One bucket that holds at least one latency, for charts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Smallest latency that falls into the bucket, in microseconds.
    pub low_us: f64,
    /// First latency above the bucket, in microseconds.
    pub high_us: f64,
    /// Latencies recorded in it; never 0.
    pub count: u64,
}

impl LatencyHistogram {
    /// An empty histogram with room for every latency; the only allocation of its life. The default
    /// is an empty one without memory, to merge into.
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS].into_boxed_slice(), ..Self::default() }
    }

    /// Counts one latency, in nanoseconds. Never allocates after [`new`](Self::new), never fails.
    #[inline(always)]
    pub fn record_ns(&mut self, latency_ns: u64) {
        let index = index_of(latency_ns.min(HIGH_NS));
        match self.counts.get_mut(index.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.add_count(index, 1),
        }
        self.sum_ns = self.sum_ns.saturating_add(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Notes when the slow ones came: the slowest of each slice of the window, in nanoseconds.
    pub fn note_slices(&mut self, slowest_ns: &[u64]) {
        self.moments = Some(Box::new(Moments::of(slowest_ns)));
    }

    /// Separate moments at which latencies lay in a bucket or beyond it; `None` where the slices
    /// are not known, as in what was read back.
    pub(crate) fn moments_from(&self, bucket: usize) -> Option<u64> {
        self.moments.as_ref().map(|moments| moments.beyond(values_of(bucket).0))
    }

    /// Counts so many latencies of the same length, in nanoseconds.
    pub fn record_many_ns(&mut self, latency_ns: u64, count: u64) {
        if count > 0 {
            self.add_count(index_of(latency_ns.min(HIGH_NS)), count);
            self.sum_ns = self.sum_ns.saturating_add(latency_ns.saturating_mul(count));
            self.max_ns = self.max_ns.max(latency_ns);
        }
    }

    /// Counts so many latencies in a bucket, wherever it is.
    #[cold]
    pub(crate) fn add_count(&mut self, index: usize, count: u64) {
        self.hold(index, index);
        let held = &mut self.counts[index - self.first];
        *held = held.saturating_add(count);
    }

    /// Has memory for these buckets.
    fn hold(&mut self, low: usize, high: usize) {
        assert!(low <= high && high < BUCKETS, "bucket {high} of {BUCKETS}");
        if self.counts.is_empty() {
            self.first = low;
        }
        let (first, end) = (self.first.min(low), (self.first + self.counts.len()).max(high + 1));
        if (first, end - first) != (self.first, self.counts.len()) {
            let mut counts = vec![0; end - first].into_boxed_slice();
            counts[self.first - first..][..self.counts.len()].copy_from_slice(&self.counts);
            (self.first, self.counts) = (first, counts);
        }
    }

    /// Gives back the memory of buckets before the first and behind the last that holds something:
    /// what is left is a tenth as a rule.
    pub fn shrink(&mut self) {
        let is_held = |count: &u64| *count > 0;
        let low = self.counts.iter().position(is_held).unwrap_or(0);
        let end = self.counts.iter().rposition(is_held).map_or(0, |high| high + 1);
        self.counts = self.counts[low..end].into();
        self.first += low;
    }

    /// Every bucket that holds something, by index, with its count.
    pub(crate) fn held(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let all = (self.first..).zip(self.counts.iter().copied());
        all.filter(|(_, count)| *count > 0)
    }

    /// Latencies recorded.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.held().next().is_none()
    }

    /// Adds every latency of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.is_empty() {
            return;
        }
        let is_empty = self.counts.is_empty();
        self.hold(other.first, other.first + other.counts.len() - 1);
        let mine = &mut self.counts[other.first - self.first..];
        for (mine, theirs) in mine.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.moments = match (self.moments.take(), &other.moments) {
            (Some(mine), Some(theirs)) => Some(Box::new(mine.and(theirs))),
            (None, Some(theirs)) if is_empty => Some(theirs.clone()),
            _ => None,
        };
    }

    /// Forgets everything, keeping the memory.
    pub fn reset(&mut self) {
        self.counts.fill(0);
        self.sum_ns = 0;
        self.max_ns = 0;
        self.moments = None;
    }

    /// Words in which any histogram can be kept: a count for each bucket, their sum, their largest.
    pub const WORDS: usize = BUCKETS + 2;
    /// Of these words the one of the largest latency; all others are sums.
    pub const MAX_WORD: usize = BUCKETS + 1;

    /// The words that are not 0, each with its number.
    pub fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.held().chain([(BUCKETS, self.sum_ns), (Self::MAX_WORD, self.max_ns)])
    }

    /// The histogram that is kept in these words.
    pub fn of_words(word: impl Fn(usize) -> u64) -> Self {
        let mut histogram = Self::default();
        for (index, count) in (0..BUCKETS).map(|index| (index, word(index))) {
            if count > 0 {
                histogram.add_count(index, count);
            }
        }
        histogram.sum_ns = word(BUCKETS);
        histogram.max_ns = word(Self::MAX_WORD);
        histogram
    }

    /// Mean latency in microseconds, exact; `None` when empty.
    pub fn mean_us(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count() as f64 / NS_PER_US)
    }

    /// Standard deviation in microseconds, to the width of the buckets; `None` when empty.
    pub fn stddev_us(&self) -> Option<f64> {
        let mean_us = self.mean_us()?;
        let square = |bucket: Bucket| {
            let middle_us = (bucket.low_us + bucket.high_us) / 2.0;
            bucket.count as f64 * (middle_us - mean_us).powi(2)
        };
        Some((self.iter_buckets().map(square).sum::<f64>() / self.count() as f64).sqrt())
    }

    /// The distribution in microseconds; `None` when empty.
    pub fn summary(&self) -> Option<LatencyUs> {
        Some(LatencyUs {
            mean: self.mean_us()?,
            p50: self.percentile_us(50.0)?,
            p95: self.percentile_us(95.0)?,
            p99: self.percentile_us(99.0)?,
            p99_9: self.percentile_us(99.9)?,
            max: self.max_ns as f64 / NS_PER_US,
        })
    }

    /// Percentile `percent` (0 to 100; values outside are clamped) in microseconds: the smallest
    /// latency that at least this share of the requests did not exceed. `None` when empty.
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        (!self.is_empty()).then(|| self.quantile_us(percent / 100.0))
    }

    /// Every bucket that holds something, in rising order.
    pub fn iter_buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.held().map(|(index, count)| {
            let (low, width) = values_of(index);
            let us = |ns: u64| ns as f64 / NS_PER_US;
            Bucket { low_us: us(low), high_us: us(low + width), count }
        })
    }

    /// The bucket at a quantile: the first up to which at least this share of the requests lies.
    pub(crate) fn bucket_at(&self, quantile: f64) -> Option<usize> {
        // 99.9 / 100 * 1000 is a hair above 999, which would be rounded up to rank 1000.
        let share = quantile.clamp(0.0, 1.0) * (1.0 - 1e-12);
        let rank = ((share * self.count() as f64).ceil() as u64).max(1);
        let mut below = 0_u64;
        let mut reached = self.held().skip_while(|(_, count)| {
            below = below.saturating_add(*count);
            below < rank
        });
        reached.next().map(|(index, _)| index)
    }

    /// Requests up to the end of a bucket.
    pub(crate) fn count_up_to(&self, bucket: usize) -> u64 {
        self.held()
            .take_while(|(index, _)| *index <= bucket)
            .fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// The middle of the bucket at a quantile, never above the exact maximum.
    pub(crate) fn quantile_us(&self, quantile: f64) -> f64 {
        let bucket = self.bucket_at(quantile).filter(|_| quantile < 1.0);
        let ns = bucket.map_or(self.max_ns, |bucket| middle_ns(bucket).min(self.max_ns));
        ns as f64 / NS_PER_US
    }
}

/// The middle of a bucket.
pub(crate) fn middle_ns(bucket: usize) -> u64 {
    let (low, width) = values_of(bucket);
    low + width / 2
}

impl PartialEq for LatencyHistogram {
    /// By what they hold, whatever memory they have.
    fn eq(&self, other: &Self) -> bool {
        (self.sum_ns, self.max_ns) == (other.sum_ns, other.max_ns) && self.held().eq(other.held())
    }
}

impl std::fmt::Debug for LatencyHistogram {
    /// The summary, not the 4,000 buckets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LatencyHistogram")
            .field("count", &self.count())
            .field("summary", &self.summary())
            .finish()
    }
}

/// The separate moments at which latencies were slow.
///
/// Method: slices whose slowest latency lies above a bound are one moment where they follow each
/// other, as long as most slices lie below it; where most lie above, each is a sample of its own. A
/// lower bound never has fewer moments.
#[derive(Clone, Debug, PartialEq)]
struct Moments {
    /// The bound below which there are so many moments at least, in nanoseconds: the first is that
    /// of one moment. Falling.
    bounds_ns: Vec<u64>,
}

/// More moments than these are as good as any.
const MOMENTS_MAX: usize = 64;

impl Moments {
    fn of(slowest_ns: &[u64]) -> Self {
        let mut order: Vec<usize> = (0..slowest_ns.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(slowest_ns[at]));
        let mut is_above = vec![false; slowest_ns.len() + 2];
        let (mut runs, mut bounds_ns) = (0_usize, Vec::new());
        for (above, &at) in (1..).zip(&order) {
            if slowest_ns[at] == 0 || bounds_ns.len() >= MOMENTS_MAX {
                break;
            }
            is_above[at + 1] = true;
            runs = runs + 1 - usize::from(is_above[at]) - usize::from(is_above[at + 2]);
            let moments = if 2 * above > slowest_ns.len() { above } else { runs };
            let more = moments.min(MOMENTS_MAX).saturating_sub(bounds_ns.len());
            bounds_ns.extend(std::iter::repeat_n(slowest_ns[at], more));
        }
        Self { bounds_ns }
    }

    /// Those of both: windows are apart.
    fn and(mut self, other: &Self) -> Self {
        self.bounds_ns.extend(&other.bounds_ns);
        self.bounds_ns.sort_unstable_by_key(|bound| std::cmp::Reverse(*bound));
        self
    }

    /// Moments with a latency of so many nanoseconds or more.
    fn beyond(&self, ns: u64) -> u64 {
        self.bounds_ns.partition_point(|bound| *bound >= ns) as u64
    }
}

/// Service and response latencies of one kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// From the start of the operation.
    pub service: LatencyHistogram,
    /// From its scheduled start, or for flushes from the first write that they cover.
    pub response: Option<LatencyHistogram>,
}

impl Latencies {
    /// Empty ones with room for every latency.
    pub fn new(has_response: bool) -> Self {
        let response = has_response.then(LatencyHistogram::new);
        Self { service: LatencyHistogram::new(), response }
    }

    /// Counts one operation. Neither allocates nor fails.
    #[inline(always)]
    pub fn record(&mut self, service_ns: u64, response_ns: u64) {
        self.service.record_ns(service_ns);
        if let Some(response) = &mut self.response {
            response.record_ns(response_ns);
        }
    }

    /// Adds those of another stretch or worker.
    pub fn merge(&mut self, other: &Self) {
        self.service.merge(&other.service);
        if let Some(response) = &other.response {
            self.response.get_or_insert_default().merge(response);
        }
    }

    /// Gives back memory that holds nothing.
    pub fn shrink(&mut self) {
        self.service.shrink();
        self.response.iter_mut().for_each(LatencyHistogram::shrink);
    }
}

#[cfg(test)]
mod tests;
