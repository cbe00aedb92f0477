//! Comparisons as text.

use iostrata_stats::{Comparison, Conclusion};

/// One case of the parity benchmark.
pub struct Row {
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
pub fn print(rows: &[Row]) {
    println!("iostrata / fio, geometric mean of the pairs with its 95 % interval");
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

fn conclusion(row: &Row) -> String {
    let iops = match row.iops.conclusion {
        Conclusion::NoMeasurableDifference => "IOPS equal within the interval",
        Conclusion::Higher => "IOPS differ: more",
        Conclusion::Lower => "IOPS differ: fewer",
        Conclusion::TooFewPairs => "IOPS: too few pairs",
    };
    let cpu = match row.cpu.conclusion {
        Conclusion::NoMeasurableDifference => "CPU equal within the interval",
        Conclusion::Higher => "CPU differs: more",
        Conclusion::Lower => "CPU differs: less",
        Conclusion::TooFewPairs => "CPU: too few pairs",
    };
    format!("{iops}; {cpu}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_stats::paired;

    #[test]
    fn a_row_says_what_follows() {
        let row = Row {
            name: "a".into(),
            iops: paired(&[10.0, 11.0, 10.0], &[10.1, 10.9, 10.0]).unwrap(),
            cpu: paired(&[10.0, 10.0, 10.0], &[5.0, 5.1, 4.9]).unwrap(),
            verdicts: Vec::new(),
        };
        assert_eq!(conclusion(&row), "IOPS equal within the interval; CPU differs: less");
        assert_eq!(ratio(&row.cpu).split(' ').next(), Some("0.500"));
    }
}
