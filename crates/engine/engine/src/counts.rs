//! Counting: one array of the catalogue's counters for an engine, the modules below it included.
//!
//! Invariant: counters only rise, gauges excepted; each is right by itself. Threads count in shards
//! of their own, so that counting a row moves no line of the processor's cache between them; a
//! reader adds up.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use iostrata_innodb::flush::Cause;
use iostrata_innodb::{Counter, Counters};

use crate::error::Poison;
use crate::sync::thread_number;

/// One call in so many is timed, on average.
const SAMPLED_OF: u32 = 63;

/// More threads than this share shards.
const SHARDS: usize = 16;

thread_local! {
    /// Calls until one is timed, and the state of a generator of random numbers.
    static TURN: Cell<(u32, u32)> = const { Cell::new((SAMPLED_OF, 0x9e37_79b9)) };
}

/// One counter for each of the catalogue. Processors fetch lines by pairs, so shards lie two lines
/// apart.
#[derive(Debug)]
#[repr(align(128))]
struct Shard([AtomicU64; Counter::COUNT]);

/// What the modules of one engine share.
#[derive(Clone, Debug, Default)]
pub struct Common {
    pub counts: Arc<Counts>,
    pub poison: Arc<Poison>,
}

#[derive(Debug)]
pub struct Counts([Shard; SHARDS]);

impl Default for Counts {
    fn default() -> Self {
        Self([const { Shard([const { AtomicU64::new(0) }; Counter::COUNT]) }; SHARDS])
    }
}

impl Counts {
    #[inline]
    pub fn add(&self, counter: Counter, more: u64) {
        self.0[thread_number() % SHARDS].0[counter as usize].fetch_add(more, Relaxed);
    }

    /// Counts what is in flight in a gauge until the guard is dropped.
    pub fn pending(&self, gauge: Counter, count: u64) -> Pending<'_> {
        self.add(gauge, count);
        Pending { counts: self, gauge, count }
    }

    pub fn admission_delayed(&self, time: Duration) {
        self.add(Counter::AdmitDelays, 1);
        self.add(Counter::AdmitDelayNs, time.as_nanos() as u64);
    }

    pub fn flushed(&self, cause: Cause, pages: u64) {
        self.add(Counter::BufferPoolPagesFlushed, pages);
        self.add(of_cause(cause), pages);
    }

    /// Dirty pages were written to free their frames.
    pub fn flushed_cold(&self, pages: u64) {
        self.add(Counter::BufferPoolPagesFlushed, pages);
        self.add(Counter::BufferLruBatchFlushTotalPages, pages);
    }

    pub fn decided(&self, time: Duration) {
        self.add(Counter::PolicyDecisions, 1);
        self.add(Counter::PolicyDecisionNs, time.as_nanos() as u64);
    }

    /// Runs `work` and adds its processor time to `part`, as measured on one call in 63 of this
    /// thread and taken for all: reading the clock costs as much as a small commit.
    #[inline]
    pub fn sampled<R>(&self, part: Counter, work: impl FnOnce() -> R) -> R {
        let sample = Sample::begin();
        let result = work();
        self.end(part, sample);
        result
    }

    /// As [`Counts::sampled`], for work that no closure can hold.
    #[inline]
    pub fn end(&self, part: Counter, Sample(began): Sample) {
        if let Some(began) = began {
            let spent = thread_cpu_ns().saturating_sub(began);
            self.add(part, spent * u64::from(SAMPLED_OF));
        }
    }

    pub fn get(&self, counter: Counter) -> u64 {
        self.sum(counter as usize)
    }

    fn sum(&self, at: usize) -> u64 {
        // A gauge may have sunk in another shard than it rose in.
        self.0.iter().fold(0, |sum, shard| sum.wrapping_add(shard.0[at].load(Relaxed)))
    }

    /// Pages written to let the checkpoint go on.
    pub fn flushed_for_age(&self) -> u64 {
        [Cause::Adaptive, Cause::Background, Cause::Sync]
            .map(|cause| self.get(of_cause(cause)))
            .iter()
            .sum()
    }

    pub fn read(&self) -> Counters {
        Counters::new(std::array::from_fn(|at| self.sum(at)))
    }
}

/// What is in flight, counted in a gauge until this is dropped.
pub struct Pending<'c> {
    counts: &'c Counts,
    gauge: Counter,
    count: u64,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.counts.add(self.gauge, self.count.wrapping_neg());
    }
}

fn of_cause(cause: Cause) -> Counter {
    match cause {
        Cause::Adaptive => Counter::BufferFlushAdaptiveTotalPages,
        Cause::Background => Counter::BufferFlushBackgroundTotalPages,
        Cause::Sync => Counter::BufferFlushSyncTotalPages,
    }
}

/// Processor time at the beginning of a call, if the call is timed.
pub struct Sample(Option<u64>);

impl Sample {
    #[inline]
    pub fn begin() -> Self {
        let (left, mut random) = TURN.get();
        if left > 1 {
            TURN.set((left - 1, random));
            return Self(None);
        }
        // By chance: calls that repeat after so many would always be timed, or never (xorshift).
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        TURN.set((1 + random % (2 * SAMPLED_OF - 1), random));
        Self(Some(thread_cpu_ns()))
    }
}

pub(crate) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_count_of_more_threads_than_shards_is_lost() {
        let counts = Counts::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * SHARDS + 1 {
                scope.spawn(|| (0..1000).for_each(|_| counts.add(Counter::RowsRead, 3)));
            }
        });
        let expected = 3000 * (2 * SHARDS as u64 + 1);
        assert_eq!(counts.get(Counter::RowsRead), expected);
        assert_eq!(counts.read()[Counter::RowsRead], expected);
        assert_eq!(counts.get(Counter::RowsInserted), 0);
    }

    #[test]
    fn calls_that_repeat_are_timed_as_often_as_others() {
        let (period, rounds) = (SAMPLED_OF as usize, 4_000);
        let mut timed = vec![0_u32; period];
        for call in 0..period * rounds {
            timed[call % period] += u32::from(Sample::begin().0.is_some());
        }
        let all: u32 = timed.iter().sum();
        assert!(all.abs_diff(rounds as u32) < rounds as u32 / 20, "{all} of {rounds}");
        assert!(timed.iter().all(|one| (30..110).contains(one)), "{timed:?}");
    }
}
