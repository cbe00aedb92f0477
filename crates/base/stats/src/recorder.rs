//! The hot half of a latency histogram: counting only, in a handful of instructions.
//!
//! Invariant: its buckets are exactly those of [`LatencyHistogram`], so turning one into the other
//! loses nothing. The memory is there from the start; recording neither allocates nor fails.
//! It answers no question: the histogram does.

use crate::LatencyHistogram;
use crate::histogram::HIGH_NS;

/// Values below this have a bucket each; above, every power of two has half as many.
const SUB_BUCKETS: u64 = 256;
const HALF: usize = SUB_BUCKETS as usize / 2;
/// Leading zeros of the largest value of the first bucket row.
const BASE_LEADING_ZEROS: u32 = (SUB_BUCKETS - 1).leading_zeros();
/// Index of the bucket of the largest value, plus one.
const BUCKETS: usize = index_of(HIGH_NS) + 1;

/// Counts latencies into the buckets of HdrHistogram with two significant digits.
#[derive(Clone, Debug)]
pub struct LatencyRecorder {
    counts: Box<[u64; BUCKETS]>,
    sum_ns: u64,
    max_ns: u64,
}

/// The bucket of a value: its power of two above 256, and the next seven bits.
#[inline(always)]
const fn index_of(value_ns: u64) -> usize {
    let row = BASE_LEADING_ZEROS - (value_ns | (SUB_BUCKETS - 1)).leading_zeros();
    row as usize * HALF + (value_ns >> row) as usize
}

/// The smallest value of a bucket.
const fn value_of(index: usize) -> u64 {
    if index < SUB_BUCKETS as usize {
        return index as u64;
    }
    let row = index / HALF - 1;
    ((index - row * HALF) as u64) << row
}

impl LatencyRecorder {
    /// An empty recorder; the only allocation of its life.
    pub fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]), sum_ns: 0, max_ns: 0 }
    }

    /// Counts one latency, in nanoseconds.
    #[inline(always)]
    pub fn record_ns(&mut self, latency_ns: u64) {
        let index = index_of(latency_ns.min(HIGH_NS));
        if let Some(count) = self.counts.get_mut(index) {
            *count += 1;
        }
        // 584 years of latency fit.
        self.sum_ns = self.sum_ns.wrapping_add(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// The histogram of everything recorded.
    pub fn into_histogram(self) -> LatencyHistogram {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let counts = filled.map(|(index, count)| (value_of(index), *count));
        LatencyHistogram::from_counts(counts, self.sum_ns, self.max_ns)
    }
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Rng;

    #[test]
    fn recording_here_equals_recording_there() {
        let mut rng = Rng::new(5);
        let (mut fast, mut slow) = (LatencyRecorder::new(), LatencyHistogram::new());
        let edges = (0..45).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let random: Vec<u64> = (0..20_000).map(|_| (rng.uniform() * 30.0).exp() as u64).collect();
        for ns in edges.chain(random).chain([0, HIGH_NS, HIGH_NS + 1]) {
            fast.record_ns(ns);
            slow.record_ns(ns);
        }
        assert_eq!(fast.into_histogram(), slow);
    }
}
