//! How much redo the committing threads produce in one round of all of them.

/// A round that is greater than was thought is believed this many times as fast as a smaller one:
/// too short delays let the age rise, too long ones only keep it low.
const UP: u64 = 3;

/// Redo of a round, in bytes: threads times the redo of a transaction.
///
/// Threads that are delayed by `d` produce redo at `round / d`, where what they do beside waiting
/// counts for nothing; so the redo rate times the delay in force is the round. That product hardly
/// changes while both of its factors do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
    bytes: Option<f64>,
}

impl Round {
    /// Takes in a rate of redo and the delay under which it came about, for `dt_us`. Without a
    /// delay nothing is learnt. `most` is what is thought before the first time.
    pub fn observe(&mut self, seen: Delayed, most: f64, reach_us: u64) {
        if seen.delay_us == 0 || seen.dt_us == 0 {
            return;
        }
        let bytes = self.bytes.unwrap_or(most);
        let product = seen.bytes_per_s * seen.delay_us as f64 / 1e6;
        let reach_us = if product > bytes { reach_us / UP } else { reach_us };
        let share = seen.dt_us as f64 / (seen.dt_us as f64 + reach_us as f64);
        self.bytes = Some(bytes + (product - bytes) * share);
    }

    /// Bytes; nothing before threads were delayed.
    #[must_use]
    pub fn bytes(&self) -> Option<f64> {
        self.bytes
    }
}

/// A rate of redo under a delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delayed {
    /// Redo produced, in bytes per second.
    pub bytes_per_s: f64,
    /// The delay, in microseconds.
    pub delay_us: u64,
    /// For how long, in microseconds.
    pub dt_us: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(round: f64, delay_us: u64) -> Delayed {
        Delayed { bytes_per_s: round * 1e6 / delay_us as f64, delay_us, dt_us: 1000 }
    }

    #[test]
    fn the_round_is_found_at_any_delay() {
        let mut round = Round::default();
        round.observe(Delayed { bytes_per_s: 1e6, delay_us: 0, dt_us: 1000 }, 1e9, 1000);
        assert_eq!(round.bytes(), None);
        for at in 1..400 {
            round.observe(seen(4096.0, 50 + at * 7919 % 1000), 1e6, 10_000);
        }
        assert!((round.bytes().unwrap() - 4096.0).abs() < 1.0, "{round:?}");
    }

    #[test]
    fn a_greater_round_is_believed_sooner() {
        let mut round = Round::default();
        let reach_us = 1000 * UP;
        round.observe(seen(1000.0, 100), 1000.0, reach_us);
        round.observe(seen(2000.0, 100), 1000.0, reach_us);
        assert!((round.bytes().unwrap() - 1500.0).abs() < 1.0, "{round:?}");
        round.observe(seen(500.0, 100), 1000.0, reach_us);
        assert!((round.bytes().unwrap() - 1250.0).abs() < 1.0, "{round:?}");
    }
}
