//! Which rows are asked for: sysbench's distributions with their default parameters.

use iostrata_load::Zipf;
use iostrata_stats::Random;

/// Uniforms that are summed up for a bell.
const ITERATIONS: u32 = 12;
/// Of `special`: so many percent of all draws go to so many percent of the rows, in the middle.
const SPECIAL_DRAWS_PCT: i64 = 75;
const SPECIAL_ROWS_PCT: i64 = 1;
const PARETO_H: f64 = 0.2;

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
    count: i64,
    zipf: Zipf,
}

impl Chooser {
    pub fn new(of: Distribution, zipf_exponent: f64, count: i64) -> Self {
        Self { of, count, zipf: Zipf::new(count as u64, zipf_exponent) }
    }

    pub fn draw(&self, random: &mut Random) -> i64 {
        let count = self.count;
        let at = match self.of {
            Distribution::Uniform => random.below(count as u64) as i64,
            Distribution::Gaussian => bell(random, count),
            Distribution::Special => {
                let in_all = count * 100 / (100 - SPECIAL_DRAWS_PCT);
                let drawn = random.below(in_all as u64) as i64;
                let special = (count * SPECIAL_ROWS_PCT / 100).max(1);
                match drawn < count {
                    true => bell(random, count),
                    false => drawn % special + count / 2 - special / 2,
                }
            }
            Distribution::Pareto => {
                let power = PARETO_H.ln() / (1.0 - PARETO_H).ln();
                (count as f64 * random.uniform().powf(power)) as i64
            }
            Distribution::Zipfian => self.zipf.draw(random) as i64,
        };
        at.clamp(0, count - 1) + 1
    }
}

fn bell(random: &mut Random, count: i64) -> i64 {
    let sum: f64 = (0..ITERATIONS).map(|_| random.uniform()).sum();
    (sum / f64::from(ITERATIONS) * count as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of draws among the rows that are drawn most, a tenth and a hundredth of all.
    fn hottest(of: Distribution) -> (f64, f64) {
        const ROWS: usize = 10_000;
        const N: usize = 400_000;
        let (chooser, mut random) = (Chooser::new(of, 0.8, ROWS as i64), Random::new(9));
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
    fn one_row_is_always_itself() {
        for (of, _) in Distribution::ALL {
            let (chooser, mut random) = (Chooser::new(of, 0.8, 1), Random::new(1));
            assert!((0..1_000).all(|_| chooser.draw(&mut random) == 1), "{}", of.name());
        }
    }
}
