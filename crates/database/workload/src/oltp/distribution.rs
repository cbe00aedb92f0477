//! Which rows are asked for: sysbench's distributions with their parameters.

use iostrata_load::Zipf;
use iostrata_stats::Random;

/// What the distributions are drawn with, under sysbench's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandParameters {
    /// Uniforms that are summed up for a bell (`rand-spec-iter`).
    pub iterations: u32,
    /// Of `special`: to so many percent of the rows (`rand-spec-pct`)...
    pub special_rows_pct: u32,
    /// ... go so many percent of all draws (`rand-spec-res`).
    pub special_draws_pct: u32,
    /// Of `pareto` (`rand-pareto-h`).
    pub pareto_h: f64,
    /// Of `zipfian` (`rand-zipfian-exp`).
    pub zipf_exponent: f64,
}

impl Default for RandParameters {
    fn default() -> Self {
        Self {
            iterations: 12,
            special_rows_pct: 1,
            special_draws_pct: 75,
            pareto_h: 0.2,
            zipf_exponent: 0.8,
        }
    }
}

/// How rows are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// All alike.
    #[default]
    Uniform,
    /// A bell around the middle.
    Gaussian,
    /// Three of four in a hundredth of the rows, the others by a bell: the default of sysbench
    /// 1.0.
    Special,
    /// The first rows by far the most.
    Pareto,
    /// By rank, with an exponent.
    Zipfian,
}

impl Distribution {
    /// All of them, with sysbench's names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Uniform, "uniform"),
        (Self::Gaussian, "gaussian"),
        (Self::Special, "special"),
        (Self::Pareto, "pareto"),
        (Self::Zipfian, "zipfian"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// Chooses rows from 1 to `count`.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    of: Distribution,
    with: RandParameters,
    count: i64,
    zipf: Zipf,
}

impl Chooser {
    pub fn new(of: Distribution, with: RandParameters, count: i64) -> Self {
        Self { of, with, count, zipf: Zipf::new(count as u64, with.zipf_exponent) }
    }

    pub fn draw(&self, random: &mut Random) -> i64 {
        let count = self.count;
        let at = match self.of {
            Distribution::Uniform => random.below(count as u64) as i64,
            Distribution::Gaussian => self.bell(random),
            Distribution::Special => {
                let usual_pct = 100 - i64::from(self.with.special_draws_pct.min(99));
                let drawn = random.below((count * 100 / usual_pct) as u64) as i64;
                let special = (count * i64::from(self.with.special_rows_pct) / 100).max(1);
                match drawn < count {
                    true => self.bell(random),
                    false => drawn % special + count / 2 - special / 2,
                }
            }
            Distribution::Pareto => {
                let h = self.with.pareto_h;
                let power = h.ln() / (1.0 - h).ln();
                (count as f64 * random.uniform().powf(power)) as i64
            }
            Distribution::Zipfian => self.zipf.draw(random) as i64,
        };
        at.clamp(0, count - 1) + 1
    }

    fn bell(&self, random: &mut Random) -> i64 {
        let iterations = self.with.iterations.max(1);
        let sum: f64 = (0..iterations).map(|_| random.uniform()).sum();
        (sum / f64::from(iterations) * self.count as f64) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of draws among the rows that are drawn most, a tenth and a hundredth of all.
    fn hottest(of: Distribution) -> (f64, f64) {
        shares(of, RandParameters::default())
    }

    fn shares(of: Distribution, with: RandParameters) -> (f64, f64) {
        const ROWS: usize = 10_000;
        const N: usize = 400_000;
        let (chooser, mut random) = (Chooser::new(of, with, ROWS as i64), Random::new(9));
        let mut counts = vec![0u32; ROWS];
        (0..N).for_each(|_| counts[chooser.draw(&mut random) as usize - 1] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let share = |rows: usize| 100.0 * f64::from(counts[..rows].iter().sum::<u32>()) / N as f64;
        (share(ROWS / 10), share(ROWS / 100))
    }

    #[test]
    fn rows_are_as_hot_as_the_distribution_says() {
        for (of, tenth, hundredth) in [
            (Distribution::Uniform, 10.0..14.0, 1.0..2.0),
            (Distribution::Gaussian, 40.0..50.0, 4.0..6.5),
            (Distribution::Special, 82.0..90.0, 74.0..78.0),
            // A fifth of the rows gets four fifths.
            (Distribution::Pareto, 70.0..75.0, 50.0..56.0),
            (Distribution::Zipfian, 56.0..58.5, 29.0..31.0),
        ] {
            let (found_tenth, found_hundredth) = hottest(of);
            let is_as_said = tenth.contains(&found_tenth) && hundredth.contains(&found_hundredth);
            assert!(is_as_said, "{}: {found_tenth} {found_hundredth}", of.name());
        }
    }

    #[test]
    fn parameters_make_rows_hotter_or_cooler() {
        let usual = RandParameters::default();
        let special = RandParameters { special_rows_pct: 10, special_draws_pct: 90, ..usual };
        let (tenth, _) = shares(Distribution::Special, special);
        assert!((90.0..96.0).contains(&tenth), "{tenth}");
        let pareto = RandParameters { pareto_h: 0.1, ..usual };
        assert!(shares(Distribution::Pareto, pareto).1 > hottest(Distribution::Pareto).1);
        let zipf = RandParameters { zipf_exponent: 1.2, ..usual };
        assert!(shares(Distribution::Zipfian, zipf).1 > hottest(Distribution::Zipfian).1);
        let flat = RandParameters { iterations: 1, ..usual };
        assert!(shares(Distribution::Gaussian, flat).0 < 14.0);
    }

    #[test]
    fn one_row_is_always_itself() {
        for (of, _) in Distribution::ALL {
            let with = RandParameters::default();
            let (chooser, mut random) = (Chooser::new(of, with, 1), Random::new(1));
            assert!((0..1_000).all(|_| chooser.draw(&mut random) == 1), "{}", of.name());
        }
    }
}
