//! Which points get further replicates, and whether one more fits.
//!
//! Invariant: a budget is kept by dropping replicates, never points. Pure: it is told the time. How
//! long a window is, the plan's [`pacing`](iostrata_plan::study::pacing) says.

use std::time::Duration;

use iostrata_plan::study::Cell;
use iostrata_plan::study::pacing::TRACED_S;
use iostrata_run::{Event, Replicate};
use iostrata_stats::{Measured, Need, Verdicts, more_needed};

/// Length of a traced pass.
pub(super) const TRACED_PASS: Duration = Duration::from_millis((TRACED_S * 1e3) as u64);

/// From so many replicates on their spread is known well enough to plan with.
const KNOWN: u32 = 6;
/// Rank of points that look hopeless: behind all others, those with the fewest replicates first.
const HOPELESS: u32 = 1 << 16;

/// What a point has so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// The figures of its replicates.
    pub figures: Vec<Measured>,
    /// Replicates beside these that the hypervisor took.
    lost: u32,
}

impl Standing {
    /// Takes in a replicate.
    pub fn add(&mut self, figure: Measured, is_lost: bool) {
        if is_lost { self.lost += 1 } else { self.figures.push(figure) }
    }

    /// Replicates, with those that were lost.
    pub fn replicates(&self) -> u32 {
        self.figures.len() as u32 + self.lost
    }

    /// Whether it has no figure of a round, counted from 0; `is_again`: because one was lost.
    pub fn wants(&self, round: u32, is_again: bool) -> bool {
        self.figures.len() as u32 <= round && (!is_again || self.lost > 0)
    }
}

/// The points that shall be measured once more. First those with too few replicates to know how
/// much they vary; then those that need the fewest to be precise, so that the largest number of
/// points gets there. Points that look hopeless come last, and only where a budget ends it all.
pub(super) fn once_more(
    standings: &[Standing],
    precision: f64,
    most: u32,
    has_budget: bool,
) -> Vec<usize> {
    let mut wanting: Vec<(u32, usize)> = Vec::new();
    for (index, standing) in standings.iter().enumerate() {
        let have = standing.figures.len() as u32;
        // Also where each one is lost there must be an end.
        if have == 0 || standing.replicates() >= most {
            continue;
        }
        match more_needed(&standing.figures, precision) {
            Need::Enough => {}
            _ if has_budget && have < KNOWN => wanting.push((have, index)),
            Need::Replicates(more) => wanting.push((KNOWN + more, index)),
            Need::Hopeless if has_budget => wanting.push((HOPELESS + have, index)),
            Need::Hopeless => {}
        }
    }
    wanting.sort_unstable();
    wanting.into_iter().map(|(_, index)| index).collect()
}

/// Whether one more replicate of this length still fits.
pub(super) fn fits(left: Option<Duration>, takes_s: f64) -> bool {
    left.is_none_or(|left| left.as_secs_f64() >= takes_s)
}

/// The figure of a replicate: reads and writes of all streams together.
pub(super) fn figure_of(replicate: &Replicate) -> Measured {
    iostrata_diagnose::metric_of(replicate)
        .unwrap_or_else(|| Measured::without_interval(0.0, 0, Verdicts::none()))
}

/// What every point has in what was stored.
pub(super) fn standings(cells: &[Cell], done: &[Event]) -> Vec<Standing> {
    let mut standings = vec![Standing::default(); cells.len()];
    for event in done {
        let Event::Replicate(replicate) = event else { continue };
        let cell = cells.iter().position(|cell| cell.id == replicate.point.id);
        if let Some(cell) = cell {
            let is_lost = iostrata_diagnose::is_lost_to_steal(replicate);
            standings[cell].add(figure_of(replicate), is_lost);
        }
    }
    standings
}

/// Seconds that the stored part of the run took.
pub(super) fn before_s(done: &[Event]) -> f64 {
    let end = |event: &Event| match event {
        Event::Replicate(replicate) => replicate.started_s + replicate.duration_s,
        Event::Interrupted { at_s, .. } | Event::Finished { at_s, .. } => *at_s,
        _ => 0.0,
    };
    done.iter().map(end).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(values: &[f64]) -> Standing {
        let figure = |&value: &f64| {
            Measured::new(value, [value * 0.99, value * 1.01], 40, Default::default())
        };
        Standing { figures: values.iter().map(figure).collect(), lost: 0 }
    }

    #[test]
    fn points_that_are_nearly_precise_come_first() {
        let calm = standing(&[100.0, 100.5, 99.5]);
        let wild = standing(&[80.0, 100.0, 120.0]);
        let near = standing(&[97.0, 100.0, 103.0]);
        let all = [calm, wild.clone(), near];
        assert_eq!(once_more(&all, 0.05, 24, true), [1, 2], "a precise point needs nothing");
        let twice = |values: [f64; 3]| standing(&[values, values].concat());
        let known = [twice([80.0, 100.0, 120.0]), twice([92.0, 100.0, 108.0])];
        assert_eq!(once_more(&known, 0.05, 24, true), [1, 0], "the nearer one first");
        assert_eq!(once_more(&all, 0.05, 24, false), [2], "without a bound there must be an end");
        assert!(once_more(&all, 0.05, 3, true).is_empty(), "nothing beyond the most");
        let mut lost = wild.clone();
        (0..3).for_each(|_| lost.add(wild.figures[0].clone(), true));
        assert!(once_more(&[lost], 0.05, 6, true).is_empty(), "lost ones count, too");
    }

    #[test]
    fn a_window_that_was_lost_is_wanted_once_more_and_is_no_figure() {
        let mut point = standing(&[100.0]);
        assert!(!point.wants(0, false) && point.wants(1, false));
        assert!(!point.wants(1, true), "nothing was lost");
        let figure = point.figures[0].clone();
        point.add(figure.clone(), true);
        assert_eq!((point.replicates(), point.figures.len()), (2, 1));
        assert!(point.wants(1, true));
        point.add(figure, false);
        assert!(!point.wants(1, true) && point.wants(2, false));
    }

    #[test]
    fn nothing_starts_that_does_not_fit() {
        assert!(fits(None, 1e9) && fits(Some(Duration::from_secs(2)), 1.0));
        assert!(!fits(Some(Duration::from_secs(1)), 1.5));
    }
}
