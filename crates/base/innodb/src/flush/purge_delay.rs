//! How long writers are held back for each row, so that purge keeps up: `max_purge_lag`.

use crate::MaxPurgeLagVersion;

/// How far purge is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Commits that are not purged.
    pub history: u64,
    /// `max_purge_lag`; 0 for no delay.
    pub max_lag: u64,
    /// `max_purge_lag_delay`, in microseconds; 0 keeps the delay off from 5.6 on.
    pub max_delay_us: u64,
    /// Whether a snapshot keeps purge from going on.
    pub is_blocked: bool,
    /// What the purge threads have in hand at most.
    pub in_hand: u64,
}

/// The longest delay of 5.5, in microseconds: 32 bits of them.
const LONGEST_US: u64 = 4_294_967_295;

impl Lag {
    /// The delay for each row written by the rule of a version, in microseconds.
    ///
    /// The ratio is a float of 32 bits and the result is cut off, as it was there.
    #[must_use]
    pub fn delay_us(self, version: MaxPurgeLagVersion) -> u64 {
        let ratio = self.history as f32 / self.max_lag as f32;
        if self.max_lag == 0 || ratio <= 1.0 {
            return 0;
        }
        let from = |begin: f64| ((f64::from(ratio) - begin) * 10_000.0) as u64;
        match version {
            MaxPurgeLagVersion::Mysql55 if self.is_blocked => 0,
            MaxPurgeLagVersion::Mysql55 => from(0.5).min(LONGEST_US),
            MaxPurgeLagVersion::Mysql56 => from(0.5).min(self.max_delay_us),
            MaxPurgeLagVersion::Mysql80 => from(0.9995).min(self.max_delay_us),
            MaxPurgeLagVersion::Mysql84 if self.history <= self.in_hand => 0,
            MaxPurgeLagVersion::Mysql84 => from(0.9995).min(self.max_delay_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lag(history: u64, max_lag: u64) -> Lag {
        Lag { history, max_lag, max_delay_us: 1_000_000, is_blocked: false, in_hand: 300 }
    }

    fn delays(lag: Lag) -> Vec<u64> {
        MaxPurgeLagVersion::ALL.iter().map(|version| lag.delay_us(*version)).collect()
    }

    #[test]
    fn the_delay_is_that_of_each_version() {
        assert_eq!(delays(lag(600_000, 400_000)), [10_000, 10_000, 5_004, 5_004], "cut off");
        assert_eq!(delays(lag(400_040, 400_000)), [5_001, 5_001, 6, 6], "the step of 5 ms");
        assert_eq!(delays(lag(2_000, 1_000)), [15_000, 15_000, 10_005, 10_005]);
        assert_eq!(delays(lag(1_000, 1_000)), [0; 4], "up to the limit");
        assert_eq!(delays(lag(1_000_000, 0)), [0; 4], "no limit");
    }

    #[test]
    fn caps_blocks_and_what_is_in_hand_are_each_versions_own() {
        let capped = Lag { max_delay_us: 500, ..lag(2_000, 1_000) };
        assert_eq!(delays(capped), [15_000, 500, 500, 500]);
        let off = Lag { max_delay_us: 0, ..lag(2_000, 1_000) };
        assert_eq!(delays(off), [15_000, 0, 0, 0], "a cap of 0 keeps it off");
        let blocked = Lag { is_blocked: true, ..lag(2_000, 1_000) };
        assert_eq!(delays(blocked), [0, 15_000, 10_005, 10_005]);
        let in_hand = Lag { in_hand: 4_000, ..lag(2_000, 1_000) };
        assert_eq!(delays(in_hand), [15_000, 15_000, 10_005, 0]);
    }
}
