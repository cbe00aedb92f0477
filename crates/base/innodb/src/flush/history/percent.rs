//! From the share of dirty pages and the age of the redo to a share of `io_capacity`, in percent.

use crate::flush::{FlushSample, Ladder};

/// How the age becomes a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgeFactor {
    /// MySQL: `f^1.5 / 7.5`.
    Legacy,
    /// Percona: `f^2.5 / 700.5`, less below 93 percent and more above.
    HighCheckpoint,
}

impl AgeFactor {
    /// The share at `f` percent of the async limit, where the greatest rate is so many times
    /// `io_capacity`.
    fn percent(self, times: u64, f: f64) -> u64 {
        let times = times as f64;
        match self {
            AgeFactor::Legacy => (times * f * f.sqrt() / 7.5) as u64,
            AgeFactor::HighCheckpoint => (times * f * f * f.sqrt() / 700.5) as u64,
        }
    }

    /// The share for an age. The quotient of the two rates is a whole number there: with
    /// `io_capacity` above half of the maximum it is 1, and with whole percents so is the age.
    pub fn of(self, now: &FlushSample<'_>, ladder: &Ladder, whole: bool) -> u64 {
        let (age, settings) = (now.modified_age(), &now.settings);
        let begin = if settings.adaptive_flushing { ladder.low_water } else { ladder.async_age };
        if age < begin {
            return 0;
        }
        let f = age as f64 * 100.0 / ladder.async_age.max(1) as f64;
        let times = settings.io_capacity_max / settings.io_capacity.max(1);
        self.percent(u64::from(times), if whole { f.floor() } else { f })
    }
}

/// The share for dirty pages. Up to 5.6 in whole percents and only above a limit, later also at it.
pub(super) fn for_dirty(now: &FlushSample<'_>, whole: bool) -> f64 {
    let settings = &now.settings;
    let cut = |pct: f64| if whole { pct.floor() } else { pct };
    let (most, low) = (cut(settings.max_dirty_pages_pct), cut(settings.max_dirty_pages_pct_lwm));
    let dirty = cut(now.dirty_pct());
    let is_beyond = |limit: f64| if whole { dirty > limit } else { dirty >= limit };
    if most == 0.0 {
        return if now.dirty_pages > 0 { 100.0 } else { 0.0 };
    }
    if low == 0.0 {
        return if is_beyond(most) { 100.0 } else { 0.0 };
    }
    if is_beyond(low) { cut(dirty * 100.0 / (most + 1.0)) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flush::FlushSettings;

    #[test]
    fn the_factors_are_the_known_curves() {
        let curve = |factor: AgeFactor| {
            [10.0, 25.0, 50.0, 75.0, 90.0, 100.0].map(|f| factor.percent(10, f))
        };
        assert_eq!(curve(AgeFactor::Legacy), [42, 166, 471, 866, 1138, 1333]);
        assert_eq!(curve(AgeFactor::HighCheckpoint), [4, 44, 252, 695, 1096, 1427]);
    }

    #[test]
    fn dirty_pages_count_from_their_limits() {
        let of = |dirty_pages: u64, lwm: f64, whole: bool| {
            let settings = FlushSettings {
                max_dirty_pages_pct: 75.0,
                max_dirty_pages_pct_lwm: lwm,
                ..FlushSettings::default()
            };
            let frames = 1000;
            for_dirty(
                &FlushSample { dirty_pages, frames, settings, ..FlushSample::default() },
                whole,
            )
        };
        assert_eq!((of(750, 0.0, true), of(760, 0.0, true)), (0.0, 100.0));
        assert_eq!((of(749, 0.0, false), of(750, 0.0, false)), (0.0, 100.0));
        assert_eq!((of(100, 10.0, true), of(380, 10.0, true)), (0.0, 50.0));
        assert_eq!(of(385, 10.0, true), 50.0, "cut off");
    }
}
