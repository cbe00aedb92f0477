//! What a server may write while its age is held at the async limit by itself.
//!
//! Method: above that limit a MariaDB writes the pages that lie behind it and no others, whatever
//! `innodb_io_capacity` is, so that the age stays there. Where dirty pages lie close in the redo it
//! has many to write and commits are slow; where they lie far apart it has few and commits are
//! fast; each makes the next round of the redo as uneven as this one. The only setting that it
//! follows is how much it may write at most. That is held near what all dirty pages take once a
//! round; the redo that is left up to the wall takes the rest, and the swings die down within a few
//! rounds.

use crate::tune::monitor::Vitals;

/// Rates are averaged over so many seconds, and recent ones over so many.
const AVERAGE_S: f64 = 8.0;
const LATE_S: f64 = 1.0;
/// What may be written at the async limit, over what all dirty pages take once a round, and what
/// comes to that on the way to the wall. More leaves the swings as they are; less meets the wall.
pub(crate) const AT_ASYNC: f64 = 0.9;
const UP_TO_WALL: f64 = 0.3;

/// Finds it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PinnedPace {
    /// Pages per second that all dirty pages take once a round: on average, and of late.
    even: f64,
    late: f64,
    seen_s: f64,
}

impl PinnedPace {
    /// Takes in the present state, at any age.
    pub fn take(&mut self, now: &Vitals) {
        let even = now.even_pages_per_s();
        let weight = |over_s: f64| now.dt_s / (now.dt_s + self.seen_s.min(over_s));
        self.late += (even - self.late) * weight(LATE_S);
        self.even += (even - self.even) * weight(AVERAGE_S);
        self.seen_s += now.dt_s;
    }

    /// Pages per second to write at most.
    pub fn most(&self, now: &Vitals) -> f64 {
        let room = now
            .async_bytes
            .map_or(0.0, |limit| (now.age_bytes - limit) / (now.limit_bytes - limit).max(1.0));
        let on_average = self.even * (AT_ASYNC + UP_TO_WALL * room.clamp(0.0, 1.0));
        on_average.max(AT_ASYNC * self.late)
    }

    /// Whether the average can be relied on yet.
    pub fn is_known(&self) -> bool {
        self.seen_s >= AVERAGE_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16,000 pages over 80 MB of redo, 4 MB/s.
    fn at(age_mb: f64) -> Vitals {
        Vitals {
            age_bytes: age_mb * 1e6,
            modified_bytes: 80e6,
            limit_bytes: 90e6,
            async_bytes: Some(80e6),
            redo_bytes_per_s: 4e6,
            dirty_pages: 16_000.0,
            dt_s: 1.0,
            ..Vitals::default()
        }
    }

    #[test]
    fn more_is_allowed_the_nearer_the_wall_is() {
        let mut pace = PinnedPace::default();
        pace.take(&at(80.0));
        assert!(!pace.is_known());
        (0..10).for_each(|_| pace.take(&at(80.0)));
        assert!(pace.is_known());
        let most = [70.0, 80.0, 85.0, 90.0].map(|age_mb| pace.most(&at(age_mb)).round());
        assert_eq!(most, [720.0, 720.0, 840.0, 960.0]);
        // More redo of late is more to write at once, less is no reason to write less.
        pace.take(&Vitals { redo_bytes_per_s: 8e6, ..at(80.0) });
        assert!(pace.most(&at(80.0)) > 1000.0);
        (0..3).for_each(|_| pace.take(&Vitals { redo_bytes_per_s: 2e6, ..at(80.0) }));
        assert!(pace.most(&at(80.0)) > 500.0);
    }
}
