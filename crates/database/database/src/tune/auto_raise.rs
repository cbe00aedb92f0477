//! The rule of 2010: whenever the redo was found three quarters full ten times, 100 pages more.
//!
//! `innodb_io_capacity` only rises. It is the way to see what that rule does; `steady` does better.

use crate::tune::config::TuneConfig;
use crate::tune::lever::{Lever, LeverValues, Move};
use crate::tune::monitor::Vitals;

/// Pages per second that it rises by, and the meetings that this takes.
const RISE: f64 = 100.0;
const MEETINGS: u32 = 10;
/// Full is this share of the redo; or of the age's limit where the redo's size is not known or the
/// limit lies below.
const FULL: f64 = 0.75;
const FULL_OF_LIMIT: f64 = 0.92;

/// Counts meetings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AutoRaise {
    meetings: u32,
}

impl AutoRaise {
    pub fn step(&mut self, now: &Vitals, present: &LeverValues, config: &TuneConfig) -> Vec<Move> {
        let of_limit = FULL_OF_LIMIT * now.limit_bytes;
        let full = now.capacity_bytes.map_or(of_limit, |all| (FULL * all).min(of_limit));
        if now.age_bytes < full {
            return Vec::new();
        }
        self.meetings += 1;
        let Some(io) = present.get(Lever::IoCapacity).filter(|_| self.meetings >= MEETINGS) else {
            return Vec::new();
        };
        self.meetings = 0;
        let to = (io + RISE).min(config.bounds(Lever::IoCapacity).max);
        if to <= io {
            return Vec::new();
        }
        let why = format!("the redo was three quarters full {MEETINGS} times");
        let mut moves = Vec::new();
        if present.get(Lever::IoCapacityMax).is_some_and(|max| max < to) {
            let to = to.min(config.bounds(Lever::IoCapacityMax).max);
            moves.push(Move { lever: Lever::IoCapacityMax, to, why: why.clone() });
        }
        moves.push(Move { lever: Lever::IoCapacity, to, why });
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised(age: f64, steps: u32, io: f64, text: &str) -> Vec<f64> {
        let now = Vitals {
            age_bytes: age,
            limit_bytes: 84.0,
            capacity_bytes: Some(100.0),
            ..Vitals::default()
        };
        let config = TuneConfig::parse(text).unwrap();
        let mut present = LeverValues::default();
        present.set(Lever::IoCapacity, io);
        let mut rule = AutoRaise::default();
        let moves = (0..steps).flat_map(|_| rule.step(&now, &present, &config));
        moves.map(|one| one.to).collect()
    }

    #[test]
    fn ten_meetings_raise_by_a_hundred() {
        assert_eq!(raised(76.0, 9, 200.0, ""), [0.0; 0]);
        assert_eq!(raised(76.0, 10, 200.0, ""), [300.0]);
        assert_eq!(raised(74.0, 100, 200.0, ""), [0.0; 0]);
    }

    #[test]
    fn no_further_than_allowed() {
        let text = "[io_capacity]\nmax = 250";
        assert_eq!(raised(80.0, 10, 200.0, text), [250.0]);
        assert_eq!(raised(80.0, 10, 250.0, text), [0.0; 0]);
    }
}
