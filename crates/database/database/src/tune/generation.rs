//! Which page cleaner a server has, and how it is made to write at a wanted rate.
//!
//! Invariant: a server whose cleaner is not known is refused, never guessed.

use thiserror::Error;

use crate::tune::lever::{Lever, LeverValues, Move};
use crate::tune::monitor::Vitals;

/// A page cleaner that can be tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// MariaDB from 10.5 on.
    MariaDb,
    /// MySQL and Percona Server 5.6.
    Mysql56,
    /// MySQL and Percona Server from 5.7 to 8.0.29.
    Mysql57,
    /// MySQL and Percona Server from 8.0.30 on.
    Mysql8,
}

/// A server that is not tuned, because its page cleaner is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{flavour} {major}.{minor}.{patch}: its page cleaner is not known; tune supports those of \
     MariaDB from 10.5 on, and of MySQL and Percona Server from 5.6 on"
)]
pub struct NotTunable {
    flavour: String,
    major: u16,
    minor: u16,
    patch: u16,
}

/// Awake from the first dirty page on, in percent.
const AWAKE_PCT: f64 = 0.001;
/// Where the async limit of the age is, as a share of the max checkpoint age.
const ASYNC_SHARE: f64 = 0.875;
/// Passes over which MySQL's page cleaner averages; 30 by default.
const AVG_LOOPS: f64 = 2.0;
/// At most this many times the wanted pages are requested.
const ASKED_MOST: f64 = 2.0;
/// An age is weighed with this share at least.
const SHARE_LEAST: f64 = 0.25;

impl Generation {
    /// Of a server: its flavour as documents name it, and its version.
    ///
    /// # Errors
    /// A server that is not known.
    pub fn of(flavour: &str, version: (u16, u16, u16)) -> Result<Self, NotTunable> {
        let (major, minor, patch) = version;
        match (flavour, major, minor) {
            ("mariadb", 10, 5..) | ("mariadb", 11..=13, _) => Ok(Self::MariaDb),
            ("mysql" | "percona", 5, 6) => Ok(Self::Mysql56),
            ("mysql" | "percona", 8, 0) if patch >= 30 => Ok(Self::Mysql8),
            ("mysql" | "percona", 5, 7) | ("mysql" | "percona", 8, 0) => Ok(Self::Mysql57),
            ("mysql" | "percona", 8..=9, _) => Ok(Self::Mysql8),
            _ => Err(NotTunable { flavour: flavour.to_owned(), major, minor, patch }),
        }
    }

    /// The `innodb_io_capacity` at which the server writes so many pages per second now.
    pub(crate) fn asked(self, wanted: f64, now: &Vitals) -> f64 {
        if self == Self::MariaDb {
            return wanted;
        }
        // The share of it for the age, where io_capacity_max is less than twice as much.
        let full = now.async_bytes.unwrap_or(now.limit_bytes * ASYNC_SHARE);
        let percent = (100.0 * now.modified_bytes / full).powf(1.5) / 7.5;
        let share = (percent / 100.0).max(SHARE_LEAST);
        (wanted / share).min(wanted * ASKED_MOST)
    }

    /// Whether the server writes what is requested. Above its async limit a MariaDB writes what
    /// lies behind that limit, up to `innodb_io_capacity_max` pages a second, and no more.
    pub(crate) fn obeys(self, now: &Vitals) -> bool {
        self != Self::MariaDb || now.async_bytes.is_none_or(|limit| now.age_bytes < limit)
    }

    /// Seconds between two checkpoints while the redo is not short: so long the checkpoint age goes
    /// on growing while pages are written.
    pub(crate) fn checkpoint_s(self) -> f64 {
        match self {
            Self::MariaDb | Self::Mysql8 => 0.0,
            Self::Mysql56 | Self::Mysql57 => 7.0,
        }
    }

    /// The settings that hold as long as the server is tuned.
    pub(crate) fn held_settings(self, present: &LeverValues) -> Vec<Move> {
        let mut wanted = Vec::new();
        match self {
            Self::MariaDb => {
                // With 0, its default, the cleaner sleeps until the redo is nearly full.
                let awake = "the page cleaner wakes each second, not only when redo runs out";
                let exact = "each pass then writes innodb_io_capacity pages, no more and no fewer";
                wanted.push((Lever::MaxDirtyPagesPctLwm, AWAKE_PCT, awake));
                wanted.push((Lever::AdaptiveFlushing, 0.0, exact));
            }
            Self::Mysql56 | Self::Mysql57 | Self::Mysql8 => {
                let early = "pages are flushed for their age from the first byte of redo on";
                wanted.push((Lever::AdaptiveFlushing, 1.0, early));
                wanted.push((Lever::AdaptiveFlushingLwm, 0.0, early));
                let soon = "the page cleaner follows within seconds, not after half a minute";
                wanted.push((Lever::FlushingAvgLoops, AVG_LOOPS, soon));
            }
        }
        let differs = |(lever, to, why): (Lever, f64, &str)| {
            let is_there = present.get(lever).is_some_and(|now| now != to);
            is_there.then(|| Move { lever, to, why: why.to_owned() })
        };
        wanted.into_iter().filter_map(differs).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_cleaners_are_led_and_others_refused() {
        for (flavour, version, expected) in [
            ("mariadb", (10, 11, 19), Some(Generation::MariaDb)),
            ("mariadb", (11, 8, 9), Some(Generation::MariaDb)),
            ("mariadb", (10, 4, 1), None),
            ("mysql", (5, 6, 24), Some(Generation::Mysql56)),
            ("percona", (5, 7, 44), Some(Generation::Mysql57)),
            ("mysql", (9, 7, 4), Some(Generation::Mysql8)),
            ("mysql", (8, 0, 29), Some(Generation::Mysql57)),
            ("percona", (8, 0, 35), Some(Generation::Mysql8)),
            ("mysql", (5, 5, 60), None),
            ("mysql", (10, 0, 0), None),
            ("tidb", (7, 5, 0), None),
            ("unknown", (8, 0, 0), None),
        ] {
            assert_eq!(Generation::of(flavour, version).ok(), expected, "{flavour} {version:?}");
        }
    }

    #[test]
    fn only_what_differs_and_what_the_server_has_is_moved() {
        let told = [("innodb_flush_neighbors", "1"), ("innodb_adaptive_flushing", "ON")];
        let moves = Generation::MariaDb.held_settings(&LeverValues::of(told));
        let moved: Vec<(Lever, f64)> = moves.iter().map(|one| (one.lever, one.to)).collect();
        assert_eq!(moved, [(Lever::AdaptiveFlushing, 0.0)]);
        assert_eq!(Generation::Mysql57.held_settings(&LeverValues::of(told)), []);
    }
}
