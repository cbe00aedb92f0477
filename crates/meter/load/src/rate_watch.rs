//! Whether a job reaches the rates that it must, as fio's `rate_min` defines it.
//!
//! Invariant: nothing is checked in the first two seconds; from then on once a cycle, each
//! direction by what it did in the cycle. It reads no clock.

use std::time::Duration;

use iostrata_plan::{IoSpec, MinimumRate, OpKind};
use serde::{Deserialize, Serialize};

/// As in fio, a job has this long to come up to its rate.
const SETTLING: Duration = Duration::from_secs(2);

/// A rate that a job must reach and did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedRate {
    /// Its direction.
    pub kind: OpKind,
    /// The rate that is required.
    pub asked: MinimumRate,
    /// Its value in the last cycle, in the same unit.
    pub found: u64,
}

/// The requests of one direction.
#[derive(Clone, Copy, Debug)]
struct Direction {
    kind: OpKind,
    asked: Option<MinimumRate>,
    bytes: u64,
    requests: u64,
    /// When it was last checked, in nanoseconds, and what it had done by then.
    last: Option<(u64, u64)>,
}

/// What one worker did in each direction, and when it is checked next.
#[derive(Clone, Debug)]
pub(crate) struct RateWatch {
    directions: [Direction; 2],
    settled_ns: u64,
    cycle_ns: u64,
    /// Whether the window ends with a job that misses a rate.
    pub ends_window: bool,
}

impl RateWatch {
    /// `None` where no rate must be reached.
    pub(crate) fn of(spec: &IoSpec) -> Option<Self> {
        let rates = spec.variation.minimum_rates?;
        let changes = if spec.mix.trims() { OpKind::Trim } else { OpKind::Write };
        let direction = |kind, asked| Direction { kind, asked, bytes: 0, requests: 0, last: None };
        Some(Self {
            directions: [direction(OpKind::Read, rates.read), direction(changes, rates.write)],
            settled_ns: (spec.variation.ramp_time + SETTLING).as_nanos() as u64,
            cycle_ns: rates.cycle.as_nanos() as u64,
            ends_window: rates.ends_window,
        })
    }

    /// Takes note of a request that is done.
    pub(crate) fn done(&mut self, kind: OpKind, bytes: u32) {
        if kind != OpKind::Sync {
            let direction = &mut self.directions[usize::from(kind != OpKind::Read)];
            direction.bytes += u64::from(bytes);
            direction.requests += 1;
        }
    }

    /// A rate that was missed in the cycle that ends now, so many nanoseconds after the start.
    pub(crate) fn missed(&mut self, now_ns: u64) -> Option<MissedRate> {
        if now_ns < self.settled_ns {
            return None;
        }
        let cycle_ns = self.cycle_ns;
        self.directions.iter_mut().find_map(|direction| direction.missed(now_ns, cycle_ns))
    }
}

impl Direction {
    fn missed(&mut self, now_ns: u64, cycle_ns: u64) -> Option<MissedRate> {
        let asked = self.asked?;
        let (per_s, done) = match asked {
            MinimumRate::Bytes(per_s) => (per_s, self.bytes),
            MinimumRate::Requests(per_s) => (per_s, self.requests),
        };
        let (at_ns, before) = *self.last.get_or_insert((now_ns, done));
        let spent_ns = now_ns - at_ns;
        // As in fio, a direction that did nothing at all misses nothing.
        if spent_ns < cycle_ns.max(1) || self.requests == 0 {
            return None;
        }
        self.last = Some((now_ns, done));
        let found = ((done - before) as f64 * 1e9 / spent_ns as f64) as u64;
        (found < per_s).then_some(MissedRate { kind: self.kind, asked, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_plan::{MinimumRates, Mix};

    const MS: u64 = 1_000_000;

    /// The moment in milliseconds at which a rate is missed, and which, of a job that does a read
    /// of 4 KiB every `every_ms`, and a write with each from `writes_from_ms` on.
    fn missed(
        rates: MinimumRates,
        every_ms: u64,
        writes_from_ms: u64,
    ) -> Option<(u64, MissedRate)> {
        let mut spec = IoSpec::new("x");
        spec.mix = Mix::Both { read_pct: 50 };
        spec.variation.minimum_rates = Some(rates);
        spec.variation.ramp_time = Duration::from_millis(500);
        let mut watch = RateWatch::of(&spec).unwrap();
        (0..6000).find_map(|ms| {
            if ms % every_ms == 0 {
                watch.done(OpKind::Read, 4096);
                if ms >= writes_from_ms {
                    watch.done(OpKind::Write, 4096);
                }
                watch.done(OpKind::Sync, 0);
            }
            watch.missed(ms * MS).map(|missed| (ms, missed))
        })
    }

    fn rates(read: Option<MinimumRate>, write: Option<MinimumRate>, cycle_ms: u64) -> MinimumRates {
        let cycle = Duration::from_millis(cycle_ms);
        MinimumRates { read, write, cycle, ends_window: false }
    }

    #[test]
    fn a_rate_is_missed_a_cycle_after_two_seconds_behind_the_ramp() {
        let missed_at = |asked, cycle_ms| {
            missed(rates(Some(asked), None, cycle_ms), 10, 0).map(|(ms, one)| (ms, one.found))
        };
        assert_eq!(missed_at(MinimumRate::Requests(101), 1000), Some((3500, 100)));
        assert_eq!(missed_at(MinimumRate::Requests(100), 1000), None);
        assert_eq!(missed_at(MinimumRate::Bytes(409_601), 500), Some((3000, 409_600)));
        assert_eq!(missed_at(MinimumRate::Bytes(409_600), 500), None);
    }

    #[test]
    fn each_direction_has_its_own_and_one_that_did_nothing_misses_nothing() {
        let least = Some(MinimumRate::Requests(101));
        let (at, one) = missed(rates(None, least, 1000), 10, 0).unwrap();
        assert_eq!((at, one.kind, one.found), (3500, OpKind::Write, 100));
        assert_eq!(missed(rates(None, least, 1000), 10, 10_000), None);
        assert_eq!(missed(rates(None, None, 1000), 10, 0), None);
    }
}
