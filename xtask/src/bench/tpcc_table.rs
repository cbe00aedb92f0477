//! The table of `bench tpcc`: stability beside speed, and ratios of pairs.

use anyhow::{Context, Result};
use iostrata_stats::{Comparison, paired};
use serde_json::{Value, json};

use super::pairs::{print_verdicts, ratio};

/// What one run measured.
pub struct TpccSample {
    /// Transactions per second.
    pub tps: f64,
    min_over_mean: f64,
    p95_us: f64,
    cpu_us: f64,
    verdicts: Vec<String>,
}

impl TpccSample {
    /// The figures of the document of a run.
    ///
    /// # Errors
    /// When one is missing.
    pub fn of(run: &Value) -> Result<Self> {
        let number = |path: &str| {
            run.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"))
        };
        let verdicts = run["verdicts"].as_array().context("no verdicts[]")?;
        Ok(Self {
            tps: number("/tps")?,
            min_over_mean: number("/stability/min_over_mean_1s")?,
            p95_us: number("/latency_us/new_order/p95")?,
            cpu_us: number("/driver/us_per_txn")?,
            verdicts: verdicts.iter().filter_map(|one| Some(one.as_str()?.to_owned())).collect(),
        })
    }
}

/// One side and all its rounds.
pub struct TpccRow {
    /// Its name.
    pub side: &'static str,
    /// Sessions.
    pub threads: u64,
    /// Whether the others are set over it.
    pub is_base: bool,
    /// Whether the target is another process than the driver.
    pub is_apart: bool,
    /// Whether the twelve conditions were checked after every run.
    pub is_checked: bool,
    /// In the order of the rounds.
    pub samples: Vec<TpccSample>,
}

impl TpccRow {
    fn rates(&self) -> Vec<f64> {
        self.samples.iter().map(|one| one.tps).collect()
    }

    fn sorted(&self, of: fn(&TpccSample) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.samples.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn median(&self, of: fn(&TpccSample) -> f64) -> f64 {
        let values = self.sorted(of);
        let middle = values.len() / 2;
        match values.len() {
            0 => 0.0,
            even if even % 2 == 0 => (values[middle - 1] + values[middle]) / 2.0,
            _ => values[middle],
        }
    }

    fn range(&self) -> [f64; 2] {
        let values = self.sorted(|one| one.tps);
        [0, values.len().saturating_sub(1)].map(|at| values.get(at).copied().unwrap_or_default())
    }
}

/// Each side over the one that the others are set over; none for that one itself.
fn ratios(rows: &[TpccRow]) -> Vec<Option<Comparison>> {
    let base = rows.iter().find(|row| row.is_base);
    let over = |row: &TpccRow| {
        let base = base.filter(|_| !row.is_base)?;
        paired(&base.rates(), &row.rates()).ok()
    };
    rows.iter().map(over).collect()
}

/// Prints the table.
pub fn print(rows: &[TpccRow], rounds: usize, seconds: u32) {
    println!("TPC-C-like, {rounds} rounds of {seconds} s, every commit synced; medians");
    println!("worst s: the worst second over the mean; p95: of new orders; CPU: of the driver");
    println!(
        "{:<24} {:>7} {:>8} {:>15} {:>25} {:>8} {:>8} {:>11}  conditions",
        "", "threads", "tps", "range", "over sysbench-tpcc", "worst s", "p95 ms", "CPU us/txn"
    );
    for (row, over) in rows.iter().zip(ratios(rows)) {
        let [least, most] = row.range();
        let cpu = match row.is_apart {
            true => format!("{:.1}", row.median(|one| one.cpu_us)),
            false => "-".to_owned(),
        };
        println!(
            "{:<24} {:>7} {:>8.0} {:>15} {:>25} {:>8.2} {:>8.2} {cpu:>11}  {}",
            row.side,
            row.threads,
            row.median(|one| one.tps),
            format!("{least:.0}-{most:.0}"),
            over.as_ref().map_or_else(String::new, ratio),
            row.median(|one| one.min_over_mean),
            row.median(|one| one.p95_us) / 1e3,
            if row.is_checked { "12 of 12 hold" } else { "none: tables of the kit" },
        );
    }
    let samples = rows.iter().flat_map(|row| &row.samples);
    let mut verdicts: Vec<String> = samples.flat_map(|one| one.verdicts.clone()).collect();
    verdicts.sort();
    verdicts.dedup();
    print_verdicts(&verdicts);
}

/// Prints one document.
///
/// # Errors
/// None that is known: figures are numbers.
pub fn print_json(rows: &[TpccRow]) -> Result<()> {
    let all: Vec<Value> =
        rows.iter().zip(ratios(rows)).map(|(row, over)| document(row, over.as_ref())).collect();
    println!("{}", serde_json::to_string_pretty(&Value::Array(all))?);
    Ok(())
}

fn document(row: &TpccRow, over: Option<&Comparison>) -> Value {
    json!({
        "side": row.side,
        "threads": row.threads,
        "tps": row.rates(),
        "tps_median": row.median(|one| one.tps),
        "tps_range": row.range(),
        "over_compat": over.map(|over| over.ratio),
        "over_compat_ci95": over.and_then(|over| over.ratio_ci95),
        "min_over_mean_1s": row.median(|one| one.min_over_mean),
        "new_order_p95_us": row.median(|one| one.p95_us),
        "driver_cpu_us_per_txn": row.is_apart.then(|| row.median(|one| one.cpu_us)),
        "conditions_hold": row.is_checked.then_some(true),
        "verdicts": row.samples.iter().map(|one| &one.verdicts).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(tps: f64) -> TpccSample {
        let run = json!({
            "tps": tps, "stability": {"min_over_mean_1s": 0.9}, "driver": {"us_per_txn": 80.0},
            "latency_us": {"new_order": {"p95": 900.0}}, "verdicts": ["not_steady"],
        });
        TpccSample::of(&run).unwrap()
    }

    fn row(is_base: bool, rates: &[f64]) -> TpccRow {
        let samples = rates.iter().map(|tps| sample(*tps)).collect();
        TpccRow { side: "a", threads: 8, is_base, is_apart: is_base, is_checked: !is_base, samples }
    }

    #[test]
    fn sides_are_set_over_the_base_by_pairs() {
        let rows = [row(false, &[100.0, 240.0, 150.0]), row(true, &[10.0, 20.0, 15.0])];
        let found: Vec<Option<f64>> =
            ratios(&rows).iter().map(|over| over.as_ref().map(|over| over.ratio)).collect();
        assert!((found[0].unwrap() - (10.0_f64 * 12.0 * 10.0).cbrt()).abs() < 1e-9, "{found:?}");
        assert_eq!(found[1], None);
        assert_eq!((rows[0].median(|one| one.tps), rows[0].range()), (150.0, [100.0, 240.0]));
        assert_eq!(row(false, &[1.0, 3.0]).median(|one| one.tps), 2.0);
    }

    #[test]
    fn a_document_says_what_is_not_known() {
        let rows = [row(false, &[100.0, 110.0]), row(true, &[10.0, 10.0])];
        let [peer, base] = [0, 1].map(|at| document(&rows[at], ratios(&rows)[at].as_ref()));
        assert_eq!(
            (&peer["driver_cpu_us_per_txn"], &peer["conditions_hold"]),
            (&Value::Null, &json!(true))
        );
        assert_eq!((&base["over_compat"], &base["conditions_hold"]), (&Value::Null, &Value::Null));
        assert_eq!(base["new_order_p95_us"], json!(900.0));
        assert!(TpccSample::of(&json!({"tps": 1.0})).is_err());
    }
}
