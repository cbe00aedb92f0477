//! Comparisons as text.

use iostrata_stats::{Comparison, Conclusion};

/// Two sides are called equal only when their interval lies within so many percent of each other.
const EQUAL_PCT: f64 = 10.0;

/// One case of the parity benchmark.
pub struct TableRow {
    /// What was done.
    pub name: String,
    /// Ours over fio's, operations per second.
    pub iops: Comparison,
    /// Ours over fio's, processor time per operation.
    pub cpu: Comparison,
    /// What our runs said against themselves.
    pub verdicts: Vec<String>,
}

/// `1.02 [0.99, 1.05]`.
pub fn ratio(comparison: &Comparison) -> String {
    match comparison.ratio_ci95 {
        Some([low, high]) => format!("{:.3} [{low:.3}, {high:.3}]", comparison.ratio),
        None => format!("{:.3}", comparison.ratio),
    }
}

/// Prints all rows with what follows from each.
pub fn print(rows: &[TableRow]) {
    println!("iostrata / fio, geometric mean of the pairs with its 95 % interval");
    println!("equal: the interval holds 1 and lies within {EQUAL_PCT} %; wide: it holds 1 only");
    let heads = ["case", "IOPS", "CPU ns/IO"].map(str::to_owned);
    let [case, iops, cpu] = heads;
    println!("{case:<34} {iops:<22} {cpu:<22} verdict");
    for row in rows {
        let (iops, cpu) = (ratio(&row.iops), ratio(&row.cpu));
        println!("{:<34} {iops:<22} {cpu:<22} {}", row.name, conclusion(row));
    }
    let mut verdicts: Vec<String> =
        rows.iter().flat_map(|row| row.verdicts.iter().cloned()).collect();
    verdicts.sort();
    verdicts.dedup();
    print_verdicts(&verdicts);
}

/// What iostrata said against its own runs.
pub fn print_verdicts(verdicts: &[String]) {
    if !verdicts.is_empty() {
        println!("verdicts of iostrata on its runs: {}", verdicts.join(", "));
    }
}

fn conclusion(row: &TableRow) -> String {
    format!("IOPS {}; CPU {}", follows(&row.iops), follows(&row.cpu))
}

/// A wide interval that holds 1 shows that nothing was shown, not that the two are equal.
pub fn follows(comparison: &Comparison) -> &'static str {
    match comparison.conclusion {
        Conclusion::Higher => "differs: more",
        Conclusion::Lower => "differs: less",
        Conclusion::NoMeasurableDifference if comparison.differs_by_less_than(EQUAL_PCT) => {
            "equal within the interval"
        }
        Conclusion::NoMeasurableDifference => "no difference seen, interval wide",
        Conclusion::TooFewPairs => "too few pairs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_stats::paired;

    #[test]
    fn a_row_says_what_follows() {
        let row = TableRow {
            name: "a".into(),
            iops: paired(&[10.0, 11.0, 10.0], &[10.1, 10.9, 10.0]).unwrap(),
            cpu: paired(&[10.0, 10.0, 10.0], &[5.0, 5.1, 4.9]).unwrap(),
            verdicts: Vec::new(),
        };
        assert_eq!(conclusion(&row), "IOPS equal within the interval; CPU differs: less");
        assert_eq!(ratio(&row.cpu).split(' ').next(), Some("0.500"));
    }

    #[test]
    fn a_wide_interval_is_not_called_equal() {
        let wide = paired(&[10.0, 10.0, 10.0], &[7.0, 10.0, 14.0]).unwrap();
        assert_eq!(follows(&wide), "no difference seen, interval wide");
        assert_eq!(follows(&paired(&[1.0], &[9.0]).unwrap()), "too few pairs");
    }
}
