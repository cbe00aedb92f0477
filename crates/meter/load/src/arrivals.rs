//! When requests are due on an open-loop schedule.
//!
//! Invariant: the schedule never waits for a request; moments are kept in 1/1024 of a nanosecond,
//! so that rounding does not add up (a gap rounded to whole microseconds is wrong by a third at
//! 300,000 per second). It reads no clock: it only returns moments.

use iostrata_plan::{Pacing, RateProcess};

use iostrata_stats::Random;

const FRACTIONS_PER_NS: f64 = 1024.0;
/// Makes the random moments of writes differ from those of reads.
const WRITES_SEED: u64 = 0x5752_4954_4553;

/// The due times of one worker's requests, in nanoseconds from the start of the window.
#[derive(Clone, Debug)]
pub struct Arrivals {
    next: u64,
    mean_gap: f64,
    /// What fixed gaps left over below one fraction.
    remainder: f64,
    process: RateProcess,
    random: Random,
}

impl Arrivals {
    /// The schedule of one worker; `None` when it is a closed loop. Workers start at different
    /// moments within the first gap, so that fixed schedules of many workers interleave.
    pub fn new(pacing: Pacing, seed: u64, worker: u32, workers: u32) -> Option<Self> {
        let Pacing::Open { rate_iops, process } = pacing else { return None };
        let mean_gap = 1e9 / rate_iops * FRACTIONS_PER_NS;
        let mut arrivals = Self {
            next: 0,
            mean_gap,
            remainder: 0.0,
            process,
            random: Random::of_stream(seed ^ 0xA771_4A15, u64::from(worker)),
        };
        match process {
            RateProcess::Fixed => {
                let phase = f64::from(worker) / f64::from(workers.max(1));
                arrivals.next = (mean_gap * phase) as u64;
            }
            RateProcess::Poisson => arrivals.advance(),
        }
        Some(arrivals)
    }

    /// When the next request is due, in nanoseconds from the start.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.next >> 10
    }

    /// Moves on to the request after it.
    #[inline]
    pub fn advance(&mut self) {
        let gap = match self.process {
            RateProcess::Fixed => {
                let exact = self.mean_gap + self.remainder;
                self.remainder = exact.fract();
                exact
            }
            RateProcess::Poisson => -self.random.unit().ln() * self.mean_gap,
        };
        self.next = self.next.saturating_add(gap as u64);
    }
}

/// Schedules of the directions of a mix: reads, then writes.
#[derive(Clone, Debug)]
pub(crate) struct DirectionArrivals {
    schedules: [Option<Arrivals>; 2],
}

impl DirectionArrivals {
    /// Those of one worker; `None` where both directions are paced as one, or not at all.
    pub(crate) fn new(pacing: Pacing, seed: u64, worker: u32, workers: u32) -> Option<Self> {
        let Pacing::Directions { read_iops, write_iops, process } = pacing else { return None };
        let schedule = |rate: Option<f64>, seed: u64| {
            let pacing = Pacing::Open { rate_iops: rate?, process };
            Arrivals::new(pacing, seed, worker, workers)
        };
        let schedules = [schedule(read_iops, seed), schedule(write_iops, seed ^ WRITES_SEED)];
        Some(Self { schedules })
    }

    /// The direction of the request that may start at `now_ns`: the wanted one if it is due or has
    /// no schedule, or else the other.
    pub(crate) fn choose(&self, wanted: usize, now_ns: u64) -> Option<usize> {
        let is_due = |at: &usize| {
            self.schedules[*at].as_ref().is_none_or(|schedule| schedule.due_ns() <= now_ns)
        };
        [wanted, 1 - wanted].into_iter().find(is_due)
    }

    /// Moves a direction on to its next request; when the one before it was due, if ever.
    pub(crate) fn advance(&mut self, direction: usize) -> Option<u64> {
        let schedule = self.schedules[direction].as_mut()?;
        let due_ns = schedule.due_ns();
        schedule.advance();
        Some(due_ns)
    }

    /// When the next request is due; `None` where a direction has no schedule.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let [read, write] = self.schedules.each_ref().map(Option::as_ref);
        Some(read?.due_ns().min(write?.due_ns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 200_000;

    fn gaps_ns(rate_iops: f64, process: RateProcess) -> Vec<f64> {
        let pacing = Pacing::Open { rate_iops, process };
        let mut arrivals = Arrivals::new(pacing, 5, 0, 1).unwrap();
        let mut last = 0.0;
        (0..N)
            .map(|_| {
                let due = arrivals.next as f64 / FRACTIONS_PER_NS;
                let gap = due - last;
                last = due;
                arrivals.advance();
                gap
            })
            .collect()
    }

    #[test]
    fn poisson_gaps_are_exponential_at_every_rate() {
        let tolerance = 4.0 / (N as f64).sqrt();
        for rate in [1.0, 37.0, 1e3, 1e4, 123_456.0, 3e5, 6e5, 1e6] {
            let gaps = gaps_ns(rate, RateProcess::Poisson);
            let mean = gaps.iter().sum::<f64>() / N as f64;
            assert!((mean * rate / 1e9 - 1.0).abs() < tolerance, "rate {rate}: mean {mean} ns");
            // Share of gaps longer than k means: e^-k for an exponential, for nothing else.
            for k in [0.1, 0.5, 1.0, 2.0, 4.0_f64] {
                let longer = gaps.iter().filter(|gap| **gap > k * 1e9 / rate).count();
                let share = longer as f64 / N as f64;
                assert!((share - (-k).exp()).abs() < tolerance, "rate {rate}, {k} means: {share}");
            }
            let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / N as f64;
            // The sample variation of an exponential has standard error of about 1 / sqrt(n).
            assert!((square.sqrt() / mean - 1.0).abs() < tolerance, "rate {rate}: {square}");
        }
    }

    #[test]
    fn fixed_gaps_do_not_drift() {
        for rate in [3.0, 300_000.0, 600_000.0, 999_983.0] {
            let pacing = Pacing::Open { rate_iops: rate, process: RateProcess::Fixed };
            let mut arrivals = Arrivals::new(pacing, 5, 0, 1).unwrap();
            for _ in 0..1_000_000 {
                arrivals.advance();
            }
            let expected = 1e6 / rate * 1e9;
            let error = (arrivals.due_ns() as f64 - expected).abs() / expected;
            assert!(error < 1e-9, "rate {rate}: off by {error}");
        }
    }

    #[test]
    fn workers_of_a_fixed_schedule_take_turns() {
        let pacing = Pacing::Open { rate_iops: 100.0, process: RateProcess::Fixed };
        let due: Vec<u64> = (0..4)
            .filter_map(|worker| Arrivals::new(pacing, 5, worker, 4))
            .map(|arrivals| arrivals.due_ns())
            .collect();
        assert_eq!(due, [0, 2_500_000, 5_000_000, 7_500_000]);
    }

    #[test]
    fn a_direction_that_is_not_due_leaves_its_turn_to_the_other() {
        let process = RateProcess::Fixed;
        let paced = |read_iops, write_iops| {
            let pacing = Pacing::Directions { read_iops, write_iops, process };
            DirectionArrivals::new(pacing, 5, 0, 1).unwrap()
        };
        let mut one = paced(Some(100.0), None);
        assert_eq!((one.choose(0, 0), one.advance(0)), (Some(0), Some(0)));
        assert_eq!((one.choose(0, 9_999_999), one.choose(0, 10_000_000)), (Some(1), Some(0)));
        assert_eq!(
            (one.choose(1, 10_000_000), one.advance(1), one.due_ns()),
            (Some(1), None, None)
        );
        let mut both = paced(Some(100.0), Some(50.0));
        assert_eq!((both.advance(0), both.advance(1)), (Some(0), Some(0)));
        assert_eq!((both.choose(1, 0), both.due_ns()), (None, Some(10_000_000)));
        assert_eq!(both.choose(1, 10_000_000), Some(0));
    }
}
