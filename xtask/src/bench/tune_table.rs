//! The table of `bench tune`: how flat, how fast, at what cost in pages.

use std::fmt;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// A stall is below this share of the median.
const STALLED: f64 = 0.5;

/// What one run measured.
pub struct TuneSample {
    is_tuned: bool,
    tps: f64,
    /// Over whole cycles of the stall, where there are two.
    tps_of_cycles: f64,
    worst_2s: f64,
    pages_per_txn: Option<f64>,
    changes: usize,
}

impl TuneSample {
    /// Of the documents of a load, but for its last seconds, and of the tuner beside it.
    ///
    /// # Errors
    /// When a figure is missing.
    pub fn of(is_tuned: bool, load: &Value, tuned: &Value, last_s: usize) -> Result<Self> {
        let series = load.pointer("/series/tps").and_then(Value::as_array).context("no series")?;
        let mut series: Vec<f64> = series.iter().filter_map(Value::as_f64).collect();
        // The tuner ends before the load, and what follows is not its doing.
        series.truncate(series.len().saturating_sub(last_s));
        let tps = series.iter().sum::<f64>() / series.len().max(1) as f64;
        let worst = series.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
        let worst = worst.reduce(f64::min).context("the series is too short")?;
        Ok(Self {
            is_tuned,
            tps,
            tps_of_cycles: whole_cycles(&series).unwrap_or(tps),
            worst_2s: worst / tps,
            pages_per_txn: tuned["pages_written_per_txn"].as_f64(),
            changes: tuned["settings"].as_array().map_or(0, Vec::len),
        })
    }
}

impl fmt::Display for TuneSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages = self.pages_per_txn.map_or("n/a".to_owned(), |pages| format!("{pages:.2}"));
        write!(
            f,
            "{:.0} tps ({:.0} over whole cycles), worst 2 s {:.2} of the mean, {pages} pages \
             written per transaction, {} changes",
            self.tps, self.tps_of_cycles, self.worst_2s, self.changes
        )
    }
}

/// The mean rate between the beginning of the first stall and that of the last one.
fn whole_cycles(series: &[f64]) -> Option<f64> {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let low = STALLED * sorted.get(sorted.len() / 2)?;
    let begins = |at: &usize| series[*at] < low && (*at == 0 || series[*at - 1] >= low);
    let starts: Vec<usize> = (0..series.len()).filter(begins).collect();
    let (first, last) = (*starts.first()?, *starts.last()?);
    let seconds = last.checked_sub(first).filter(|seconds| *seconds >= 30)?;
    Some(series[first..last].iter().sum::<f64>() / seconds as f64)
}

/// The samples of one side, best first by the worst two seconds.
fn side(samples: &[TuneSample], is_tuned: bool) -> Vec<&TuneSample> {
    let mut side: Vec<&TuneSample> =
        samples.iter().filter(|one| one.is_tuned == is_tuned).collect();
    side.sort_by(|a, b| b.worst_2s.total_cmp(&a.worst_2s));
    side
}

/// Prints the table.
///
/// # Errors
/// None; as its sibling.
pub fn print(samples: &[TuneSample]) -> Result<()> {
    println!(
        "{:<8} {:>7} {:>13} {:>14} {:>14}",
        "side", "tps", "tps, cycles", "worst 2 s", "pages/txn"
    );
    for (name, is_tuned) in [("own", false), ("tuned", true)] {
        for one in side(samples, is_tuned) {
            let pages = one.pages_per_txn.map_or("n/a".to_owned(), |pages| format!("{pages:.2}"));
            println!(
                "{name:<8} {:>7.0} {:>13.0} {:>14.2} {pages:>14}",
                one.tps, one.tps_of_cycles, one.worst_2s
            );
        }
    }
    if let (Some(own), Some(tuned)) = (side(samples, false).first(), side(samples, true).first()) {
        println!(
            "tuned over untuned mean: {:.2}; worst 2 s over the mean: {:.2} -> {:.2}",
            tuned.tps / own.tps_of_cycles,
            own.worst_2s,
            tuned.worst_2s
        );
    }
    Ok(())
}

/// The same as one document.
///
/// # Errors
/// When stdout takes it not.
pub fn print_json(samples: &[TuneSample]) -> Result<()> {
    let rows: Vec<Value> = samples
        .iter()
        .map(|one| {
            json!({
                "side": if one.is_tuned { "tuned" } else { "own" },
                "tps": one.tps,
                "tps_of_cycles": one.tps_of_cycles,
                "worst_2s_over_mean": one.worst_2s,
                "pages_written_per_txn": one.pages_per_txn,
                "changes": one.changes,
            })
        })
        .collect();
    println!("{}", serde_json::to_string_pretty(&rows)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_cycles_are_from_one_stall_to_another() {
        let cycle = |high: f64| [vec![10.0; 5], vec![high; 25]].concat();
        let series = [vec![900.0; 7], cycle(500.0), cycle(500.0), cycle(900.0)].concat();
        let mean = whole_cycles(&series).unwrap();
        assert!((mean - (5.0 * 10.0 + 25.0 * 500.0) / 30.0).abs() < 1e-9, "{mean}");
        assert_eq!(whole_cycles(&[400.0; 90]), None);
        assert_eq!(whole_cycles(&[]), None);
    }

    #[test]
    fn figures_are_those_of_the_documents() {
        let load = json!({"series": {"tps": [500.0, 400.0, 300.0, 9.0]}});
        let tuned = json!({"pages_written_per_txn": 1.5, "settings": [1, 2]});
        let sample = TuneSample::of(true, &load, &tuned, 1).unwrap();
        assert_eq!((sample.tps, sample.worst_2s, sample.changes), (400.0, 0.875, 2));
        assert!(TuneSample::of(true, &json!({}), &tuned, 1).is_err());
    }
}
