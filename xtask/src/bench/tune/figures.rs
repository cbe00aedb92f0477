//! What a server did second by second, from a recording of it; what one run came to; the best runs
//! of each side, and what is to be reached.
//!
//! Method: a sample has a rate since the sample before; rates are spread over the seconds that they
//! are of, so that a sample that came late weighs as much as its time. Invariants: a second that no
//! sample covers has no figure, and counts for nothing; one that the hypervisor took from the
//! machine counts for no rate, tuned or not.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use anyhow::{Context, Result};
use iostrata_stats::Random;
use serde_json::Value;

use super::Side;
use super::kept::{KeptRun, RunKey, RunTimes};

// What a server did second by second, from a recording of it.
//
// Method: a sample has a rate since the sample before; rates are spread over the seconds that they
// are of, so that a sample that came late weighs as much as its time. Invariants: a second that no
// sample covers has no figure, and counts for nothing; one that the hypervisor took from the
// machine counts for no rate, tuned or not.

/// A stall is below this share of the median.
const STALLED: f64 = 0.5;
/// A cycle of stalls is at least so long, in seconds.
const CYCLE_LEAST_S: usize = 30;
/// Orders that the seconds of a run are put in.
const ORDERS: usize = 1_000;
/// From this share of the processor time on, in percent, a second was taken by the hypervisor.
const STOLEN_PCT: f64 = 10.0;

/// Rates of each second since the recording began.
#[derive(Clone, Debug, Default, PartialEq)]
struct TuneCourse {
    tps: Vec<f64>,
    pages_per_s: Vec<f64>,
    /// Empty where the recording does not have it.
    stolen_pct: Vec<f64>,
}

impl TuneCourse {
    /// Of the document of `tune` or `watch`.
    ///
    /// # Errors
    /// When it has no samples.
    pub fn of(document: &Value) -> Result<Self> {
        let samples = document["samples"].as_array().context("no samples")?;
        let rates = |name: &str| -> Vec<f64> {
            let at = |one: &Value| Some((one["t_s"].as_f64()?, one[name].as_f64()?));
            let mut before_s = 0.0;
            let mut seconds = Vec::new();
            for (t_s, rate) in samples.iter().filter_map(at) {
                spread(&mut seconds, before_s..t_s, rate);
                before_s = t_s;
            }
            // The last second is not whole.
            seconds.truncate(before_s as usize);
            seconds
        };
        let course = Self {
            tps: rates("tps"),
            pages_per_s: rates("flushed_pages_per_s"),
            stolen_pct: rates("cpu_stolen_pct"),
        };
        (!course.tps.is_empty()).then_some(course).context("no sample has transactions")
    }

    /// Seconds that it covers.
    pub fn seconds(&self) -> usize {
        self.tps.len()
    }

    fn is_stolen(&self, at: usize) -> bool {
        self.stolen_pct.get(at).is_some_and(|pct| *pct >= STOLEN_PCT)
    }

    /// How many of some seconds the hypervisor took.
    pub fn stolen(&self, seconds: &Range<usize>) -> usize {
        seconds.clone().filter(|at| self.is_stolen(*at)).count()
    }

    /// Transactions per second of some seconds; nothing where there are none.
    fn of_seconds(&self, seconds: &Range<usize>) -> &[f64] {
        let end = seconds.end.min(self.tps.len());
        self.tps.get(seconds.start.min(end)..end).unwrap_or_default()
    }

    /// The mean of transactions per second.
    pub fn tps(&self, seconds: &Range<usize>) -> Option<f64> {
        mean(&self.quiet(seconds))
    }

    /// Transactions per second of the seconds that the hypervisor did not take.
    fn quiet(&self, seconds: &Range<usize>) -> Vec<f64> {
        let all = (seconds.start..).zip(self.of_seconds(seconds));
        all.filter(|(at, _)| !self.is_stolen(*at)).map(|(_, tps)| *tps).collect()
    }

    /// Transactions per second of every two seconds that follow each other, each with how many
    /// seconds after the first it begins.
    fn pairs(&self, seconds: &Range<usize>) -> impl Iterator<Item = (usize, f64)> {
        let first = seconds.start;
        let is_quiet =
            move |at: usize| !self.is_stolen(first + at) && !self.is_stolen(first + at + 1);
        let pairs = self.of_seconds(seconds).windows(2).enumerate();
        let quiet = pairs.filter(move |(at, _)| is_quiet(*at));
        quiet.map(|(at, pair)| (at, f64::midpoint(pair[0], pair[1])))
    }

    /// The mean between the beginnings of the first and of the last stall, where there are two.
    pub fn tps_of_cycles(&self, seconds: &Range<usize>) -> Option<f64> {
        let series = self.of_seconds(seconds);
        let mut sorted = series.to_vec();
        sorted.sort_by(f64::total_cmp);
        let low = STALLED * sorted.get(sorted.len() / 2)?;
        let begins = |at: &usize| series[*at] < low && (*at == 0 || series[*at - 1] >= low);
        let starts: Vec<usize> = (0..series.len()).filter(begins).collect();
        let (first, last) = (*starts.first()?, *starts.last()?);
        if last - first < CYCLE_LEAST_S {
            return None;
        }
        self.tps(&(seconds.start + first..seconds.start + last))
    }

    /// Transactions per second of the worst two seconds that follow each other.
    pub fn worst_2s(&self, seconds: &Range<usize>) -> Option<f64> {
        self.pairs(seconds).map(|(_, tps)| tps).reduce(f64::min)
    }

    /// The same with the seconds in random order: the median of many orders, and the bounds that
    /// 95 % of them keep to. What the noise from second to second comes to by itself; it is
    /// meaningless where the server stalls.
    pub fn worst_2s_in_random_order(&self, seconds: &Range<usize>) -> Option<[f64; 3]> {
        let mut quiet = self.quiet(seconds);
        if quiet.len() < 2 {
            return None;
        }
        let mut random = Random::new(0);
        let mut worst: Vec<f64> = (0..ORDERS)
            .map(|_| {
                for at in (1..quiet.len()).rev() {
                    quiet.swap(at, random.below(at as u64 + 1) as usize);
                }
                let pairs = quiet.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
                pairs.fold(f64::INFINITY, f64::min)
            })
            .collect();
        worst.sort_by(f64::total_cmp);
        Some([ORDERS / 2, ORDERS / 40, ORDERS - ORDERS / 40 - 1].map(|at| worst[at]))
    }

    /// How long it takes from the first of some seconds on until no two among them are below a
    /// rate.
    pub fn settled_after_s(&self, seconds: &Range<usize>, tps: f64) -> usize {
        let below = self.pairs(seconds).filter(|(_, of_pair)| *of_pair < tps);
        below.last().map_or(0, |(at, _)| at + 2)
    }

    /// Pages written per transaction.
    pub fn pages_per_txn(&self, seconds: &Range<usize>) -> Option<f64> {
        let end = seconds.end.min(self.pages_per_s.len());
        let pages: f64 = self.pages_per_s.get(seconds.start.min(end)..end)?.iter().sum();
        let transactions: f64 = self.of_seconds(seconds).iter().sum();
        (transactions > 0.0 && !self.pages_per_s.is_empty()).then(|| pages / transactions)
    }
}

fn mean(series: &[f64]) -> Option<f64> {
    (!series.is_empty()).then(|| series.iter().sum::<f64>() / series.len() as f64)
}

/// Adds a rate to each second that it is of, by the part of it.
fn spread(seconds: &mut Vec<f64>, time_s: Range<f64>, rate: f64) {
    let end = time_s.end.max(0.0).ceil() as usize;
    seconds.resize(end.max(seconds.len()), 0.0);
    for (at, second) in seconds.iter_mut().enumerate().skip(time_s.start.max(0.0) as usize) {
        let (from, to) = (time_s.start.max(at as f64), time_s.end.min(at as f64 + 1.0));
        *second += rate * (to - from).max(0.0);
    }
}

/// So long after a change the part behind it begins: what is between is the way there.
pub const SETTLING_S: usize = 30;
/// Flat is above this share of the mean.
const FLAT: f64 = 0.8;

/// A part of the measured time: all of it, or what is before a change or behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct TunePart {
    pub tps: f64,
    /// Over whole cycles of its stalls, where there are two.
    pub tps_of_cycles: Option<f64>,
    /// The worst two seconds over the mean.
    pub worst_2s: f64,
    /// The same with the seconds in random order: the median and 95 % of many orders.
    pub worst_2s_in_random_order: Option<[f64; 3]>,
    /// Seconds from the beginning, or from the change on, until it was flat.
    pub flat_after_s: usize,
    /// Seconds that count for nothing, because the hypervisor took them.
    pub stolen_s: usize,
}

impl TunePart {
    /// What it came to in the long run.
    pub fn tps_in_the_long_run(&self) -> f64 {
        self.tps_of_cycles.unwrap_or(self.tps)
    }
}

/// What one run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    pub parts: Vec<TunePart>,
    pub pages_per_txn: Option<f64>,
    pub changes: usize,
}

impl Figures {
    /// The worst two seconds of any part, over its mean.
    pub fn worst_2s(&self) -> f64 {
        self.parts.iter().map(|part| part.worst_2s).fold(f64::INFINITY, f64::min)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            write!(
                f,
                "{:.0} tps ({:.0} over whole cycles), worst 2 s {:.2} of it, flat after {} s; ",
                part.tps,
                part.tps_in_the_long_run(),
                part.worst_2s,
                part.flat_after_s,
            )?;
        }
        let stolen_s: usize = self.parts.iter().map(|part| part.stolen_s).sum();
        let pages = self.pages_per_txn.map_or("n/a".to_owned(), |pages| format!("{pages:.2}"));
        let changes = self.changes;
        write!(f, "{pages} pages written per transaction, {changes} changes, {stolen_s} s stolen")
    }
}

/// The figures of a run.
///
/// # Errors
/// When its recording ends before what is measured begins.
pub fn of_run(run: &KeptRun) -> Result<Figures> {
    let course = TuneCourse::of(&run.watched)?;
    let (warm_up, seconds) = (run.times.warm_up_s as usize, run.times.seconds as usize);
    let end = (warm_up + seconds).min(course.seconds());
    // What leads to it, and what counts.
    let parts: Vec<(Range<usize>, Range<usize>)> = match run.change_at_s() {
        None => vec![(0..warm_up, warm_up..end)],
        Some(at) => {
            let settled = at + SETTLING_S;
            vec![(0..warm_up, warm_up..at), (at..settled, settled..end)]
        }
    };
    let parts = parts.iter().map(|(way, counted)| part(&course, way, counted));
    Ok(Figures {
        parts: parts.collect::<Result<_>>()?,
        pages_per_txn: course.pages_per_txn(&(warm_up..end)),
        changes: run.watched["settings"].as_array().map_or(0, Vec::len),
    })
}

fn part(course: &TuneCourse, way: &Range<usize>, counted: &Range<usize>) -> Result<TunePart> {
    let short = "the recording is too short";
    let tps = course.tps(counted).filter(|tps| *tps > 0.0).context(short)?;
    let worst = course.worst_2s(counted).context(short)?;
    Ok(TunePart {
        tps,
        tps_of_cycles: course.tps_of_cycles(counted),
        worst_2s: worst / tps,
        worst_2s_in_random_order: (course.worst_2s_in_random_order(counted))
            .map(|worst| worst.map(|worst| worst / tps)),
        flat_after_s: course.settled_after_s(way, FLAT * tps),
        stolen_s: course.stolen(counted),
    })
}

// The best runs of each side, and what is to be reached.

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
mod course_tests {
    use serde_json::json;

    use super::*;

    fn course(tps: &[f64]) -> TuneCourse {
        let (tps, pages_per_s) = (tps.to_vec(), vec![2.0; tps.len()]);
        TuneCourse { tps, pages_per_s, stolen_pct: Vec::new() }
    }

    #[test]
    fn a_late_sample_is_of_all_its_seconds() {
        let sample =
            |t_s: f64, tps: f64| json!({"t_s": t_s, "tps": tps, "flushed_pages_per_s": 10.0});
        let samples = [sample(1.0, 100.0), sample(1.5, 80.0), sample(4.1, 20.0)];
        let course = TuneCourse::of(&json!({"samples": samples})).unwrap();
        assert_eq!(course.tps, [100.0, 50.0, 20.0, 20.0]);
        assert_eq!(course.worst_2s(&(0..4)), Some(20.0));
        assert_eq!(course.pages_per_txn(&(0..4)), Some(40.0 / 190.0));
        assert!(TuneCourse::of(&json!({"samples": []})).is_err());
    }

    #[test]
    fn seconds_that_the_hypervisor_took_count_for_no_rate() {
        let stolen_pct = vec![0.0, 40.0, 9.9, 0.0, 0.0];
        let course = TuneCourse { stolen_pct, ..course(&[8.0, 1.0, 9.0, 7.0, 8.0]) };
        assert_eq!(course.tps(&(0..5)), Some(8.0));
        assert_eq!((course.worst_2s(&(0..5)), course.stolen(&(0..5))), (Some(7.5), 1));
        assert_eq!((course.worst_2s(&(0..2)), course.settled_after_s(&(0..5), 6.0)), (None, 0));
    }

    #[test]
    fn random_order_parts_noise_from_what_comes_together() {
        // The same seconds: low ones apart from each other, and low ones together.
        let apart: Vec<f64> = (0..300).map(|at| if at % 60 == 0 { 40.0 } else { 100.0 }).collect();
        let mut together = apart.clone();
        together.sort_by(f64::total_cmp);
        let all = 0..300;
        let order = course(&together).worst_2s_in_random_order(&all).unwrap();
        assert_eq!(order[0], 70.0, "two of five among 300 rarely meet");
        assert_eq!(course(&apart).worst_2s(&all), Some(70.0));
        assert_eq!(course(&together).worst_2s(&all), Some(40.0));
        assert!(order[1] <= order[0] && order[0] <= order[2], "{order:?}");
        assert_eq!(course(&[9.0]).worst_2s_in_random_order(&(0..1)), None);
    }

    #[test]
    fn whole_cycles_are_from_one_stall_to_another() {
        let cycle = |high: f64| [vec![10.0; 5], vec![high; 25]].concat();
        let series = [vec![900.0; 7], cycle(500.0), cycle(500.0), cycle(900.0)].concat();
        let found = course(&series[..67]).tps_of_cycles(&(0..67)).unwrap();
        assert!((found - (5.0 * 10.0 + 25.0 * 500.0) / 30.0).abs() < 1e-9, "{found}");
        assert_eq!(course(&[400.0; 90]).tps_of_cycles(&(0..90)), None);
        assert_eq!(course(&[]).tps_of_cycles(&(0..90)), None);
    }

    #[test]
    fn it_is_settled_behind_the_last_two_seconds_that_are_below() {
        let course = course(&[9.0, 1.0, 1.0, 9.0, 9.0, 9.0]);
        assert_eq!(course.settled_after_s(&(0..6), 5.0), 3);
        assert_eq!(course.settled_after_s(&(0..6), 0.5), 0);
        assert_eq!(course.tps(&(3..99)), Some(9.0));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Side;
    use super::super::kept::{RunKey, RunTimes};
    use super::*;
    use crate::bench::tune;

    #[test]
    fn the_parts_of_a_change_are_judged_apart() {
        let tps = |at: usize| match at {
            0..5 => 100.0,
            5..200 => 400.0,
            200..212 => 50.0,
            212..300 => 200.0,
            _ => 190.0,
        };
        let samples = (1..=360).map(|t_s| json!({"t_s": t_s, "tps": tps(t_s - 1)}));
        let run = KeptRun {
            key: RunKey {
                server: "mariadb-10.11".to_owned(),
                scenario: tune::scenarios_named(&["halved".to_owned()]).unwrap()[0],
                side: Side::Tuned,
                round: 1,
            },
            times: RunTimes { warm_up_s: 50, seconds: 300 },
            watched: json!({"samples": samples.collect::<Vec<_>>(), "settings": [1, 2]}),
        };
        let figures = of_run(&run).unwrap();
        let [before, after] = &figures.parts[..] else { panic!("{figures}") };
        assert_eq!((before.tps, before.worst_2s, before.flat_after_s), (400.0, 1.0, 6));
        assert!((195.0..196.0).contains(&after.tps) && after.flat_after_s == 13, "{figures}");
        assert_eq!((figures.changes, figures.pages_per_txn), (2, None));
        assert!(figures.worst_2s() > 0.96, "{figures}");
    }
}

#[cfg(test)]
mod judge_tests {
    use super::{TunePart, *};
    use crate::bench::tune;

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
            scenario: tune::scenarios_named(&[]).unwrap()[0],
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
            let scenario = tune::scenarios_named(&["quiet".to_owned()]).unwrap()[0];
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
