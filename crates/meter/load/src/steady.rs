//! Whether a stream's rate has become steady, as fio's `steadystate` defines it.
//!
//! Invariant: judged once a second, over whole seconds behind the ramp; a window that is shorter
//! than the required duration is never steady. It reads no clock.

use iostrata_plan::{Steady, SteadyLimit, SteadyOf};

/// The seconds that a stream was judged by last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyRates {
    /// Whether it was steady in them.
    pub is_attained: bool,
    /// What was compared with the limit, in the unit of that; 0 before there were enough seconds.
    pub criterion: f64,
    /// Requests of each second, from the first on; as many as there were.
    pub requests: Vec<f64>,
    /// The largest deviation of a second from their mean, in requests per second; 0 for slopes.
    pub deviation_max: f64,
    /// Requests per second gained each second; 0 for deviations.
    pub slope: f64,
}

/// The criterion of one stream, and how far it has been checked.
#[derive(Clone, Debug)]
pub(crate) struct SteadyState {
    steady: Steady,
    /// Seconds of the stream's own part before anything of it is checked.
    from_s: f64,
    seconds_seen: usize,
    rates: SteadyRates,
}

impl SteadyState {
    /// `begin_s` is when the stream's counted part begins.
    pub(crate) fn new(steady: Steady, begin_s: f64) -> Self {
        let from_s = begin_s + steady.ramp.as_secs_f64();
        Self { steady, from_s, seconds_seen: 0, rates: SteadyRates::default() }
    }

    /// The rates that it was last judged by.
    pub(crate) fn into_rates(self) -> SteadyRates {
        self.rates
    }

    /// Whether it is steady at `open_s`; `counts_until` are requests per slice up to then.
    pub(crate) fn is_attained(
        &mut self,
        open_s: f64,
        slice_s: f64,
        counts_until: impl FnOnce() -> Vec<f64>,
    ) -> bool {
        let seconds = (open_s - self.from_s).max(0.0) as usize;
        if self.rates.is_attained || seconds <= self.seconds_seen {
            return self.rates.is_attained;
        }
        self.seconds_seen = seconds;
        let counts = counts_until();
        let second = |number: usize| {
            let at = |second: usize| ((self.from_s + second as f64) / slice_s) as usize;
            let slices = at(number)..at(number + 1).min(counts.len());
            counts.get(slices).map_or(0.0, |slices| slices.iter().sum())
        };
        let needed = self.steady.duration.as_secs_f64().ceil().max(2.0) as usize;
        let requests: Vec<f64> = (seconds.saturating_sub(needed)..seconds).map(second).collect();
        self.rates = if requests.len() == needed {
            self.judged(requests)
        } else {
            SteadyRates { requests, ..SteadyRates::default() }
        };
        self.rates.is_attained
    }

    fn judged(&self, requests: Vec<f64>) -> SteadyRates {
        let n = requests.len() as f64;
        let mean = requests.iter().sum::<f64>() / n;
        let mut rates = SteadyRates::default();
        let found = match self.steady.of {
            SteadyOf::Iops | SteadyOf::Bandwidth => {
                let deviations = requests.iter().map(|rate| (rate - mean).abs());
                rates.deviation_max = deviations.fold(0.0, f64::max);
                rates.deviation_max
            }
            SteadyOf::IopsSlope | SteadyOf::BandwidthSlope => {
                let middle = (n - 1.0) / 2.0;
                let at = || requests.iter().enumerate().map(|(x, rate)| (x as f64 - middle, rate));
                let spread: f64 = at().map(|(x, _)| x * x).sum();
                rates.slope = at().map(|(x, rate)| x * rate).sum::<f64>() / spread;
                rates.slope
            }
        };
        let (limit, criterion) = match self.steady.limit {
            SteadyLimit::Pct(limit) => (limit, found / mean.max(f64::MIN_POSITIVE) * 100.0),
            SteadyLimit::Plain(limit) => (limit, found),
        };
        let is_attained = mean > 0.0 && criterion.abs() < limit;
        SteadyRates { is_attained, criterion, requests, ..rates }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn state(of: SteadyOf, limit: SteadyLimit) -> SteadyState {
        let duration = Duration::from_secs(4);
        SteadyState::new(
            Steady { of, limit, duration, ramp: Duration::from_secs(1), group: None },
            2.0,
        )
    }

    /// The second at which it is steady, of requests per second; slices last half a second.
    fn attained(mut state: SteadyState, rates: &[f64]) -> Option<usize> {
        let counts: Vec<f64> = rates.iter().flat_map(|rate| [rate / 2.0; 2]).collect();
        (1..=rates.len())
            .find(|second| state.is_attained(*second as f64, 0.5, || counts[..second * 2].to_vec()))
    }

    #[test]
    fn it_is_steady_when_no_second_is_far_from_the_mean() {
        let rates = [0.0, 0.0, 900.0, 100.0, 200.0, 100.0, 100.0, 101.0, 99.0, 100.0];
        let at = |limit| attained(state(SteadyOf::Iops, limit), &rates);
        assert_eq!(at(SteadyLimit::Pct(2.0)), Some(9), "the four seconds before are within 2 %");
        assert_eq!(at(SteadyLimit::Pct(0.5)), None);
        assert_eq!(at(SteadyLimit::Plain(1.5)), Some(9));
        assert_eq!(
            at(SteadyLimit::Pct(1000.0)),
            Some(7),
            "two before it and one of ramp are not seen"
        );
    }

    #[test]
    fn a_slope_is_that_of_the_line_through_the_seconds() {
        let rising: Vec<f64> = (0..12).map(|second| 100.0 + 10.0 * f64::from(second)).collect();
        let of = |limit| attained(state(SteadyOf::IopsSlope, SteadyLimit::Plain(limit)), &rising);
        assert_eq!((of(9.0), of(11.0)), (None, Some(7)));
        let waves = [100.0, 120.0].repeat(6);
        let flat = state(SteadyOf::BandwidthSlope, SteadyLimit::Pct(5.0));
        assert_eq!(attained(flat, &waves), Some(7), "waves have next to no slope");
        assert_eq!(attained(state(SteadyOf::Iops, SteadyLimit::Pct(5.0)), &waves), None);
    }
}
