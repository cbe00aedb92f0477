//! The points of a study: what each is, in which order those of a round are measured, which get
//! further replicates, and whether one more fits.
//!
//! Invariant: a budget is kept by dropping replicates, never points. Pure: it is given the time.
//! The plan's [`pacing`](iostrata_plan::study::pacing) sets how long a window is.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use iostrata_plan::study::pacing::TRACED_S;
use iostrata_plan::study::{Cell, Conditions, VolumeKind};
use iostrata_plan::{
    Better, CurvePlace, Layer, Metric, MetricKind, OpKind, Point, Stream, TransactionSpec,
};
use iostrata_run::{Event, Replicate};
use iostrata_stats::{Measured, Need, Random, Verdicts, more_needed};

use crate::transaction_point;

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
    /// Replicates besides these that the hypervisor took.
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
    for replicate in done.iter().filter_map(Event::replicate) {
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

// In which order the points of a round are measured.
//
// Invariant: every round has its own random order, from the study's seed, so that a drift of the
// machine falls on all points alike. Points that need the same conditions stand together, because
// switching them takes time; the order of the conditions is random too. Pure.

/// The order of the given points in a round.
pub(super) fn order(cells: &[Cell], chosen: &[usize], seed: u64, round: u32) -> Vec<usize> {
    let mut random = Random::of_stream(seed, u64::from(round) + 1);
    let mut together: BTreeMap<&Conditions, Vec<usize>> = BTreeMap::new();
    for &index in chosen {
        together.entry(&cells[index].conditions).or_default().push(index);
    }
    let mut groups: Vec<Vec<usize>> = together.into_values().collect();
    shuffle(&mut groups, &mut random);
    groups.iter_mut().for_each(|group| shuffle(group, &mut random));
    groups.concat()
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for last in (1..items.len()).rev() {
        let other = random.below(last as u64 + 1) as usize;
        items.swap(last, other);
    }
}

// A cell as a point: the workload on its volume, and the figure it is measured for.

/// The point of a cell on a place, measured for `window`: windows of one length are comparable, and
/// a study takes as long as announced.
pub(super) fn point(cell: &Cell, place: &Path, window: Duration) -> Point {
    let mut spec = cell.workload.clone();
    spec.path = place.to_owned();
    spec.point_time = window;
    // Never precise enough to end early.
    spec.precision = 0.0;
    Point {
        id: cell.id.clone(),
        title: cell.title.clone(),
        layer: match cell.volume.kind {
            _ if !cell.conditions.io_limits.is_none() => Layer::Limit,
            VolumeKind::Raw => Layer::Device,
            _ => Layer::Filesystem,
        },
        streams: vec![Stream { name: "load".to_owned(), spec }],
        metric: total_iops(),
        curve: None::<CurvePlace>,
        block: cell.parts.first().cloned().unwrap_or_default(),
        levels: cell.levels.clone(),
        transactions: None,
    }
}

/// The point of a cell that is a load of transactions.
pub(super) fn transactions(cell: &Cell, load: &TransactionSpec) -> Point {
    Point {
        id: cell.id.clone(),
        title: cell.title.clone(),
        curve: None,
        block: cell.parts.first().cloned().unwrap_or_default(),
        levels: cell.levels.clone(),
        ..transaction_point(load)
    }
}

/// Reads and writes of all streams together.
pub(super) fn total_iops() -> Metric {
    Metric {
        stream: 0,
        op: OpKind::Read,
        kind: MetricKind::TotalIops,
        unit: "IOPS".to_owned(),
        better: Better::Higher,
    }
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

#[cfg(test)]
mod order_tests {
    use super::*;
    use iostrata_plan::IoSpec;
    use iostrata_plan::study::{Volume, VolumeKind};

    fn cell(number: usize) -> Cell {
        let memory_limit_bytes = number.is_multiple_of(3).then_some(1 << 30);
        Cell {
            id: format!("cell_{number}"),
            title: String::new(),
            parts: Vec::new(),
            levels: Vec::new(),
            volume: Volume {
                kind: VolumeKind::Raw,
                disk: None,
                bytes: None,
                count: 1,
                mkfs_options: Vec::new(),
                mount_options: Vec::new(),
            },
            conditions: Conditions { memory_limit_bytes, ..Conditions::default() },
            workload: IoSpec::new(""),
            transactions: None,
            second: None,
            readers: None,
        }
    }

    #[test]
    fn every_point_comes_once_and_conditions_stay_together() {
        let cells: Vec<Cell> = (0..30).map(cell).collect();
        let chosen: Vec<usize> = (0..30).collect();
        for round in 0..20 {
            let found = order(&cells, &chosen, 7, round);
            let mut sorted = found.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, chosen);
            let switches = found
                .windows(2)
                .filter(|two| cells[two[0]].conditions != cells[two[1]].conditions)
                .count();
            assert_eq!(switches, 1, "conditions are switched once a round");
        }
    }

    #[test]
    fn rounds_differ_and_seeds_replay() {
        let cells: Vec<Cell> = (0..30).map(cell).collect();
        let chosen: Vec<usize> = (0..30).collect();
        assert_ne!(order(&cells, &chosen, 7, 0), order(&cells, &chosen, 7, 1));
        assert_eq!(order(&cells, &chosen, 7, 1), order(&cells, &chosen, 7, 1));
        assert_ne!(order(&cells, &chosen, 8, 1), order(&cells, &chosen, 7, 1));
    }

    #[test]
    fn positions_are_spread_evenly() {
        let cells: Vec<Cell> = (0..4).map(|number| cell(number * 3)).collect();
        let chosen: Vec<usize> = (0..4).collect();
        let mut first = [0; 4];
        for round in 0..4_000 {
            first[order(&cells, &chosen, 3, round)[0]] += 1;
        }
        assert!(first.iter().all(|&count| (850..1150).contains(&count)), "{first:?}");
    }
}
