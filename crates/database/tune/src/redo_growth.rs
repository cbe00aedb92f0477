//! Makes the redo larger, where the user allows it and nothing else helps.
//!
//! A longer round changes more pages twice before they are written. Invariants: it only grows, by
//! steps, each after the server has made the one before; it gets its own size back with all other
//! settings.

use crate::config::TuneConfig;
use crate::lever::{Lever, LeverValues, Move};
use crate::monitor::Vitals;

/// The device must have been too slow for so long, or the redo have gone round so fast.
const SHORT_S: f64 = 10.0;
const ROUND_LEAST_S: f64 = 10.0;
/// What a step grows by, and in which units servers take it.
const STEP: f64 = 2.0;
const UNIT_BYTES: f64 = 1_048_576.0;

/// Watches how long the redo was too small.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RedoGrowth {
    short_s: f64,
}

impl RedoGrowth {
    /// The next size, where it is time; `is_short` says that the device cannot follow.
    pub fn step(
        &mut self,
        now: &Vitals,
        present: &LeverValues,
        config: &TuneConfig,
        is_short: bool,
    ) -> Option<Move> {
        let lever = Lever::RedoLogCapacity;
        let size = present.get(lever).filter(|_| config.allows(lever))?;
        let round_s = now.seconds_of(now.limit_bytes);
        let is_too_small = is_short || round_s < ROUND_LEAST_S;
        // The server makes it larger by and by: until then nothing is known of the new size. One
        // whose files were sized by other settings could not be given that size back.
        let is_made = now.capacity_bytes.is_some_and(|made| (made - size).abs() < UNIT_BYTES);
        self.short_s = if is_too_small && is_made { self.short_s + now.dt_s } else { 0.0 };
        let most = config.bounds(lever).max;
        let to = ((size * STEP).min(most) / UNIT_BYTES).floor() * UNIT_BYTES;
        if self.short_s < SHORT_S || to <= size {
            return None;
        }
        self.short_s = 0.0;
        let why = match is_short {
            true => "the device does not follow; a longer round of the redo writes fewer pages",
            false => "the redo goes round within ten seconds",
        };
        Some(Move { lever, to, why: why.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = UNIT_BYTES;

    /// Sizes that are asked for in so many seconds, in MiB, where the redo is `made` as large; the
    /// server makes each at once, or never.
    fn sizes_of(
        mut made: f64,
        text: &str,
        (seconds, redo_mib_per_s): (u32, f64),
        (is_short, makes): (bool, bool),
    ) -> Vec<f64> {
        let config = TuneConfig::parse(text).unwrap();
        let (mut growth, mut present) = (RedoGrowth::default(), LeverValues::default());
        present.set(Lever::RedoLogCapacity, 100.0 * MIB);
        let mut sizes = Vec::new();
        for _ in 0..seconds {
            let now = Vitals {
                limit_bytes: 0.8 * made,
                capacity_bytes: Some(made),
                redo_bytes_per_s: redo_mib_per_s * MIB,
                dt_s: 1.0,
                ..Vitals::default()
            };
            let Some(one) = growth.step(&now, &present, &config, is_short) else { continue };
            present.set(one.lever, one.to);
            sizes.push(one.to / MIB);
            made = if makes { one.to } else { made };
        }
        sizes
    }

    fn sizes(text: &str, at: (u32, f64), server: (bool, bool)) -> Vec<f64> {
        sizes_of(100.0 * MIB, text, at, server)
    }

    #[test]
    fn it_grows_by_steps_up_to_what_is_allowed_and_not_without() {
        let allowed = "[innodb_redo_log_capacity]\nmax = 314572800";
        assert_eq!(sizes(allowed, (60, 1.0), (true, true)), [200.0, 300.0]);
        assert_eq!(sizes("", (60, 1.0), (true, true)), [0.0; 0], "nobody allowed it");
        assert_eq!(sizes(allowed, (60, 1.0), (false, true)), [0.0; 0], "nothing is short");
        assert_eq!(sizes(allowed, (9, 1.0), (true, true)), [0.0; 0], "not yet");
        assert_eq!(sizes(allowed, (60, 1.0), (true, false)), [200.0], "it is not made yet");
        let other = sizes_of(300.0 * MIB, allowed, (60, 1.0), (true, true));
        assert_eq!(other, [0.0; 0], "its files were sized by other settings");
        // 80 MiB at 9 MiB/s are nine seconds, 160 MiB are enough.
        assert_eq!(sizes(allowed, (60, 9.0), (false, true)), [200.0]);
    }
}
