//! What a server did second by second, from a recording of it.
//!
//! Method: a sample tells a rate since the sample before; rates are spread over the seconds that
//! they are of, so that a sample that came late weighs as much as its time. Invariants: a second
//! that no sample tells of has no figure, and counts for nothing; one that the hypervisor took
//! from the machine counts for no rate, tuned or not.

use std::ops::Range;

use anyhow::{Context, Result};
use iostrata_stats::Random;
use serde_json::Value;

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
pub struct TuneCourse {
    tps: Vec<f64>,
    pages_per_s: Vec<f64>,
    /// Empty where the recording does not tell it.
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
        (!course.tps.is_empty()).then_some(course).context("no sample tells transactions")
    }

    /// Seconds that it tells of.
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

    /// Transactions per second of those that the hypervisor did not take.
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

    /// The mean between the beginning of the first stall and that of the last one, where there are
    /// two.
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
    /// 95 % of them keep to. What the noise from second to second comes to by itself; it tells
    /// nothing where the server stalls.
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

#[cfg(test)]
mod tests {
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
