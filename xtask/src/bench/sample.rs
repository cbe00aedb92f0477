//! What one run of either program came to.

use anyhow::Result;

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

#[cfg(test)]
mod tests {
    use super::*;
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
}
