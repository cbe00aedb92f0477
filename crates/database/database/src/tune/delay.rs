//! Slows writers down when the device cannot follow them, if the user allows it.
//!
//! Method: with `max_purge_lag = 1` every server delays each changed row by `max_purge_lag_delay`,
//! since its history is longer than that. The delay grows with the age near its limit.

use crate::tune::lever::{Lever, LeverValues, Move};
use crate::tune::monitor::Vitals;

/// From this share of the limit on, in percent, and the longest delay, in microseconds.
const FROM_PCT: f64 = 90.0;
const MOST_US: f64 = 5_000.0;
/// Steps of the delay, in microseconds.
const STEP_US: f64 = 250.0;

/// The moves that bring the delay to where it should be; `before` are the user's own values.
pub(crate) fn moves(
    now: &Vitals,
    is_short: bool,
    present: &LeverValues,
    before: &LeverValues,
) -> Vec<Move> {
    let over = (now.age_pct() - FROM_PCT) / (100.0 - FROM_PCT);
    let delays = present.get(Lever::MaxPurgeLag) == Some(1.0);
    let mut wanted = (MOST_US * over.clamp(0.0, 1.0) / STEP_US).ceil() * STEP_US;
    if !delays && !is_short {
        wanted = 0.0;
    }
    let mut moves = Vec::new();
    let mut to = |lever: Lever, to: f64, why: String| {
        if present.get(lever).is_some_and(|now| now != to) {
            moves.push(Move { lever, to, why });
        }
    };
    if wanted > 0.0 {
        let why = format!(
            "the device writes {:.0} pages/s and cannot follow: writers wait {wanted} us per row",
            now.written_per_s
        );
        to(Lever::MaxPurgeLagDelay, wanted, why.clone());
        to(Lever::MaxPurgeLag, 1.0, why);
    } else if delays {
        let why = "the device follows again: writers go on without delay".to_owned();
        to(Lever::MaxPurgeLag, before.get(Lever::MaxPurgeLag).unwrap_or(0.0), why.clone());
        to(Lever::MaxPurgeLagDelay, before.get(Lever::MaxPurgeLagDelay).unwrap_or(0.0), why);
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(age_pct: f64, is_short: bool, present: &LeverValues) -> Vec<(Lever, f64)> {
        let now = Vitals { age_bytes: age_pct, limit_bytes: 100.0, ..Vitals::default() };
        let before = values(0.0, 0.0);
        let moves = moves(&now, is_short, present, &before);
        moves.into_iter().map(|one| (one.lever, one.to)).collect()
    }

    fn values(lag: f64, delay: f64) -> LeverValues {
        let mut values = LeverValues::default();
        values.set(Lever::MaxPurgeLag, lag);
        values.set(Lever::MaxPurgeLagDelay, delay);
        values
    }

    #[test]
    fn writers_are_delayed_near_the_limit_of_a_short_device_only() {
        assert_eq!(at(95.0, false, &values(0.0, 0.0)), []);
        assert_eq!(at(80.0, true, &values(0.0, 0.0)), []);
        let expected = [(Lever::MaxPurgeLagDelay, 2500.0), (Lever::MaxPurgeLag, 1.0)];
        assert_eq!(at(95.0, true, &values(0.0, 0.0)), expected);
    }

    #[test]
    fn the_delay_ends_with_the_need() {
        assert_eq!(at(95.0, false, &values(1.0, 2500.0)), []);
        let expected = [(Lever::MaxPurgeLag, 0.0), (Lever::MaxPurgeLagDelay, 0.0)];
        assert_eq!(at(80.0, false, &values(1.0, 2500.0)), expected);
    }
}
