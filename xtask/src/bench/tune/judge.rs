//! The best runs of each side, and what is to be reached.

use std::collections::BTreeMap;

use super::figures::{FLAT, Figures, of_run};
use super::run::{KeptRun, RunKey, RunTimes};
use super::scenario::Side;

/// Of the untuned mean.
const MEAN: f64 = 0.95;
/// The same where nothing stalls.
const MEAN_WITHOUT_STALLS: f64 = 0.98;
/// A server stalls where its worst two seconds are below this share of the mean.
const STALLS: f64 = 0.5;
/// Pages that may be written per transaction where a load needs no help, over those without.
const PAGES: f64 = 1.1;
/// Seconds until it is flat.
const FLAT_WITHIN_S: usize = 60;

/// A line of the table: the best run of a side.
#[derive(Clone, Debug)]
pub struct TuneRow {
    pub key: RunKey,
    pub times: RunTimes,
    pub figures: Figures,
    /// Of how many runs it is the best.
    pub runs: usize,
    /// What it misses, or nothing; absent where nothing is to be reached.
    pub misses: Option<Vec<String>>,
}

/// The lines of the table, in the order of servers, scenarios and sides.
pub fn rows(runs: &[KeptRun]) -> Vec<TuneRow> {
    let mut sides: BTreeMap<(String, usize, Side), Vec<TuneRow>> = BTreeMap::new();
    for run in runs {
        let Ok(figures) = of_run(run) else {
            eprintln!("{}: not in the table: its recording is too short", run.key);
            continue;
        };
        let key = (run.key.server.clone(), run.key.scenario_at(), run.key.side);
        let (key_of_run, times) = (run.key.clone(), run.times);
        let row = TuneRow { key: key_of_run, times, figures, runs: 1, misses: None };
        sides.entry(key).or_default().push(row);
    }
    let mut rows: Vec<TuneRow> = sides.into_values().filter_map(best).collect();
    let untuned: Vec<TuneRow> =
        rows.iter().filter(|row| row.key.side == Side::Untuned).cloned().collect();
    for row in rows.iter_mut().filter(|row| row.key.side != Side::Untuned) {
        let is_beside = |other: &&TuneRow| {
            other.key.server == row.key.server && other.key.scenario == row.key.scenario
        };
        row.misses = untuned.iter().find(is_beside).map(|other| misses(row, other));
    }
    rows
}

/// The steadiest one; of untuned ones, which are only compared with, the fastest.
fn best(mut side: Vec<TuneRow>) -> Option<TuneRow> {
    let runs = side.len();
    let tps = |row: &TuneRow| {
        row.figures.parts.iter().map(|part| part.tps_in_the_long_run()).sum::<f64>()
    };
    side.sort_by(|a, b| match a.key.side {
        Side::Untuned => tps(a).total_cmp(&tps(b)),
        Side::Tuned | Side::Fixed => a.figures.worst_2s().total_cmp(&b.figures.worst_2s()),
    });
    side.pop().map(|row| TuneRow { runs, ..row })
}

/// What a side misses of what is to be reached, against the untuned one.
fn misses(row: &TuneRow, untuned: &TuneRow) -> Vec<String> {
    let mut misses = Vec::new();
    let pages = |row: &TuneRow| row.figures.pages_per_txn;
    if let Some((pages, own)) =
        pages(row).zip(pages(untuned)).filter(|_| row.key.scenario.rate.is_some())
        && pages > PAGES * own
    {
        misses.push(format!("pages {:.2} of untuned", pages / own));
    }
    let stalls = untuned.figures.worst_2s() < STALLS;
    let share = if stalls { MEAN } else { MEAN_WITHOUT_STALLS };
    for (part, other) in row.figures.parts.iter().zip(&untuned.figures.parts) {
        if stalls && part.worst_2s < FLAT {
            misses.push(format!("worst 2 s {:.2}", part.worst_2s));
        }
        let of_untuned = part.tps / other.tps_in_the_long_run();
        if of_untuned < share {
            misses.push(format!("mean {of_untuned:.2} of untuned"));
        }
        if stalls && part.flat_after_s > FLAT_WITHIN_S {
            misses.push(format!("flat after {} s", part.flat_after_s));
        }
    }
    misses
}

#[cfg(test)]
mod tests {
    use super::super::figures::TunePart;
    use super::super::scenario;
    use super::*;

    fn row(side: Side, tps: f64, worst_2s: f64) -> TuneRow {
        let part = TunePart {
            tps,
            tps_of_cycles: None,
            worst_2s,
            worst_2s_in_random_order: None,
            flat_after_s: 4,
            stolen_s: 0,
        };
        let key = RunKey {
            server: "mysql-9.7".to_owned(),
            scenario: scenario::named(&[]).unwrap()[0],
            side,
            round: 1,
        };
        let figures = Figures { parts: vec![part], pages_per_txn: None, changes: 0 };
        let times = RunTimes { warm_up_s: 60, seconds: 300 };
        TuneRow { key, times, figures, runs: 1, misses: None }
    }

    #[test]
    fn a_server_that_stalls_has_to_be_flat_and_another_not_slower() {
        let stalls = row(Side::Untuned, 100.0, 0.1);
        assert_eq!(misses(&row(Side::Tuned, 96.0, 0.85), &stalls), [""; 0]);
        let missed = misses(&row(Side::Tuned, 94.0, 0.79), &stalls);
        assert_eq!(missed, ["worst 2 s 0.79", "mean 0.94 of untuned"]);
        let even = row(Side::Untuned, 100.0, 0.7);
        assert_eq!(misses(&row(Side::Tuned, 98.5, 0.6), &even), [""; 0]);
        assert_eq!(misses(&row(Side::Tuned, 97.0, 0.9), &even), ["mean 0.97 of untuned"]);
    }

    #[test]
    fn a_load_that_needs_no_help_must_not_cost_pages() {
        let quiet = |side, pages| {
            let row = row(side, 30.0, 0.7);
            let scenario = scenario::named(&["quiet".to_owned()]).unwrap()[0];
            let figures = Figures { pages_per_txn: Some(pages), ..row.figures };
            TuneRow { key: RunKey { scenario, ..row.key }, figures, ..row }
        };
        let own = quiet(Side::Untuned, 1.5);
        assert_eq!(misses(&quiet(Side::Tuned, 1.6), &own), [""; 0]);
        assert_eq!(misses(&quiet(Side::Tuned, 3.3), &own), ["pages 2.20 of untuned"]);
    }

    #[test]
    fn the_best_of_untuned_runs_is_the_fastest_and_of_tuned_ones_the_steadiest() {
        let best_of = |side| {
            let rows = vec![row(side, 90.0, 0.8), row(side, 95.0, 0.6), row(side, 80.0, 0.7)];
            let best = best(rows).unwrap();
            (best.figures.parts[0].tps, best.runs)
        };
        assert_eq!(best_of(Side::Untuned), (95.0, 3));
        assert_eq!(best_of(Side::Tuned), (90.0, 3));
    }
}
