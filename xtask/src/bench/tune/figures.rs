//! What one run came to.

use std::fmt;
use std::ops::Range;

use anyhow::{Context, Result};

use super::course::TuneCourse;
use super::run::KeptRun;

/// So long after a change the part behind it begins: what is between is the way there.
pub const SETTLING_S: usize = 30;
/// Flat is above this share of the mean.
pub const FLAT: f64 = 0.8;

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::run::{RunKey, RunTimes};
    use super::super::scenario::{self, Side};
    use super::*;

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
                scenario: scenario::named(&["halved".to_owned()]).unwrap()[0],
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
