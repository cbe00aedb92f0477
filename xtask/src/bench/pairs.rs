//! Pairs of runs of two programs: the case, what one run came to, and the comparison as text.

use anyhow::Result;
use iostrata_stats::{Comparison, Conclusion};

/// What both sides do, direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityCase {
    /// `randread` or `randwrite`.
    pub rw: &'static str,
    /// Bytes of a request, as both programs write it.
    pub block: &'static str,
    /// Memory of the requests, by fio's name.
    pub memory: &'static str,
    /// `sync` or `io_uring`.
    pub engine: &'static str,
    /// Threads.
    pub jobs: u32,
    /// Requests in flight per thread.
    pub depth: u32,
}

/// Figures of one run that both programs report.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchSample {
    /// Completed operations per second.
    pub iops: f64,
    /// Processor time of the workers, user and system, per completed operation.
    pub cpu_ns_per_io: f64,
    /// What speaks against the figures, as the program says it.
    pub verdicts: Vec<String>,
}

/// Runs of both sides, in pairs.
#[derive(Default)]
pub struct Pairs {
    /// fio.
    pub fio: Vec<BenchSample>,
    /// iostrata.
    pub ours: Vec<BenchSample>,
}

impl Pairs {
    /// Runs both sides `count` times, the order turned round from pair to pair. `note` hears of
    /// each finished pair.
    ///
    /// # Errors
    /// When a run fails.
    pub fn alternate(
        count: usize,
        mut fio: impl FnMut() -> Result<BenchSample>,
        mut ours: impl FnMut() -> Result<BenchSample>,
        mut note: impl FnMut(&BenchSample, &BenchSample),
    ) -> Result<Self> {
        let mut pairs = Self::default();
        for pair in 0..count {
            let (theirs, own) = if pair % 2 == 0 {
                let theirs = fio()?;
                (theirs, ours()?)
            } else {
                let own = ours()?;
                (fio()?, own)
            };
            note(&theirs, &own);
            pairs.fio.push(theirs);
            pairs.ours.push(own);
        }
        Ok(pairs)
    }

    /// One figure of both sides: fio's, ours.
    pub fn figures(&self, of: impl Fn(&BenchSample) -> f64) -> (Vec<f64>, Vec<f64>) {
        (self.fio.iter().map(&of).collect(), self.ours.iter().map(&of).collect())
    }

    /// Every verdict that came with our runs, once.
    pub fn verdicts(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.ours.iter().flat_map(|sample| sample.verdicts.iter().cloned()).collect();
        all.sort();
        all.dedup();
        all
    }
}

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
    use std::cell::RefCell;

    #[test]
    fn the_order_turns_round() {
        let order = RefCell::new(String::new());
        let run = |name: char, iops: f64| {
            order.borrow_mut().push(name);
            Ok(BenchSample { iops, cpu_ns_per_io: 1.0, verdicts: vec![format!("from {name}")] })
        };
        let pairs = Pairs::alternate(4, || run('f', 1.0), || run('i', 2.0), |_, _| {}).unwrap();
        assert_eq!(order.take(), "fiiffiif");
        assert_eq!(pairs.figures(|sample| sample.iops), (vec![1.0; 4], vec![2.0; 4]));
        assert_eq!(pairs.verdicts(), ["from i"]);
    }

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
