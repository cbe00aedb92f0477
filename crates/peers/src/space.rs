//! Space over time: bounded or growing.
//!
//! Method: the highest of the last third of the samples against the highest of the third before.
//! Files that are made and removed in turn (compactions, logs) rise and fall within a third; what
//! keeps growing is higher in the last. Nothing follows from updates that did not write the data
//! several times over.

use serde::Serialize;

/// Growth from one third to the next that still counts as bounded.
const GROWTH_MAX: f64 = 1.10;
/// Times that the data must have been rewritten for a conclusion.
const TURNOVERS_MIN: f64 = 3.0;

/// What follows from the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// It does not grow any more.
    Bounded,
    /// It still grows.
    Growing,
    /// Too few updates or samples.
    TooShort,
}

/// Space that the files of one engine took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Space {
    /// Bytes of all keys and values.
    pub data_bytes: u64,
    /// Bytes of the files when the updates began.
    pub start_bytes: u64,
    /// Most of all samples.
    pub max_bytes: u64,
    /// Bytes when they ended.
    pub end_bytes: u64,
    /// Highest of the last third over the highest of the third before.
    pub growth: f64,
    /// Bytes of the updates over the bytes of the data.
    pub turnovers: f64,
    /// What follows.
    pub bound: Bound,
}

impl Space {
    /// From samples in the order of time; `None` without any.
    pub fn of(samples: &[u64], data_bytes: u64, updated_bytes: u64) -> Option<Self> {
        let (&start_bytes, &end_bytes) = (samples.first()?, samples.last()?);
        let third = samples.len() / 3;
        let high = |part: &[u64]| part.iter().copied().max().unwrap_or(0);
        let (before, last) = samples.split_at(samples.len() - third);
        let middle = &before[third..];
        let growth = high(last) as f64 / high(middle).max(1) as f64;
        let turnovers = updated_bytes as f64 / data_bytes.max(1) as f64;
        let bound = match growth {
            _ if third == 0 || turnovers < TURNOVERS_MIN => Bound::TooShort,
            growth if growth <= GROWTH_MAX => Bound::Bounded,
            _ => Bound::Growing,
        };
        let max_bytes = high(samples);
        Some(Self { data_bytes, start_bytes, max_bytes, end_bytes, growth, turnovers, bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(samples: &[u64], turnovers: u64) -> Bound {
        Space::of(samples, 100, 100 * turnovers).unwrap().bound
    }

    #[test]
    fn what_keeps_growing_is_told_from_what_rises_and_falls() {
        let line: Vec<u64> = (0..90).map(|at| 1_000 + 20 * at).collect();
        assert_eq!(bound(&line, 9), Bound::Growing);
        let level: Vec<u64> = (0..90).map(|at| 1_000 + 20 * at.min(20)).collect();
        assert_eq!(bound(&level, 9), Bound::Bounded);
        let saw: Vec<u64> = (0..90).map(|at| 1_000 + 50 * (at % 10)).collect();
        assert_eq!(bound(&saw, 9), Bound::Bounded);
    }

    #[test]
    fn little_shows_nothing() {
        assert_eq!(bound(&[1, 2], 9), Bound::TooShort);
        assert_eq!(bound(&[5; 9], 2), Bound::TooShort);
        assert_eq!(bound(&[5; 9], 3), Bound::Bounded);
        assert!(Space::of(&[], 1, 1).is_none());
    }

    #[test]
    fn figures_are_those_of_the_samples() {
        let space = Space::of(&[3, 9, 5, 6, 4, 7], 10, 40).unwrap();
        assert_eq!((space.start_bytes, space.max_bytes, space.end_bytes), (3, 9, 7));
        assert!((space.growth - 7.0 / 6.0).abs() < 1e-12);
        assert!((space.turnovers - 4.0).abs() < 1e-12);
    }
}
