//! Random values as clause 4.3.2 and 2.1.6 of TPC-C have them.

use iostrata_stats::Random;

/// What the syllables of last names stand for: the digits of a number.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
const LETTERS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ69";

/// The constants of non-uniform draws, one for each field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Of C_LAST.
    pub last: i64,
    /// Of C_ID.
    pub customer: i64,
    /// Of OL_I_ID.
    pub item: i64,
}

/// The range of the first draw of each field.
const A_LAST: i64 = 255;
const A_CUSTOMER: i64 = 1_023;
const A_ITEM: i64 = 8_191;

impl Constants {
    /// Those of a load.
    pub fn of_load(random: &mut Random) -> Self {
        let last = between(random, 0, A_LAST);
        Self { last, ..Self::for_run(random, last) }
    }

    /// Those of a run over a dataset whose last names were loaded with the constant `c_load`:
    /// 65 to 119 apart from it, but neither 96 nor 112 (clause 2.1.6.1).
    pub fn for_run(random: &mut Random, c_load: i64) -> Self {
        let last = loop {
            let last = between(random, 0, A_LAST);
            if is_legal(c_load, last) {
                break last;
            }
        };
        let (customer, item) = (between(random, 0, A_CUSTOMER), between(random, 0, A_ITEM));
        Self { last, customer, item }
    }

    /// A customer of a district, from 1.
    pub fn customer(&self, random: &mut Random, customers: i64) -> i64 {
        nurand(random, (A_CUSTOMER, self.customer), 1, customers)
    }

    /// An item, from 1.
    pub fn item(&self, random: &mut Random, items: i64) -> i64 {
        nurand(random, (A_ITEM, self.item), 1, items)
    }

    /// The number of a last name, from 0 to 999.
    pub fn last(&self, random: &mut Random) -> i64 {
        nurand(random, (A_LAST, self.last), 0, 999)
    }
}

/// Whether a run may use this constant for last names after a load with that one.
pub fn is_legal(c_load: i64, c_run: i64) -> bool {
    let apart = (c_run - c_load).abs();
    (65..=119).contains(&apart) && apart != 96 && apart != 112
}

/// NURand(A, x, y) with the constant C.
pub(crate) fn nurand(random: &mut Random, (a, c): (i64, i64), least: i64, most: i64) -> i64 {
    let drawn = between(random, 0, a) | between(random, least, most);
    (drawn + c) % (most - least + 1) + least
}

/// A number from `least` to `most`, both included.
#[inline]
pub fn between(random: &mut Random, least: i64, most: i64) -> i64 {
    least + random.below((most - least + 1) as u64) as i64
}

/// Whether something is to happen that happens so often in a hundred.
#[inline]
pub fn percent(random: &mut Random, share: u64) -> bool {
    random.below(100) < share
}

/// Appends letters and digits, from `least` to `most` of them.
pub fn letters(random: &mut Random, text: &mut Vec<u8>, least: i64, most: i64) {
    let mut left = between(random, least, most) as usize;
    while left > 0 {
        let bits = random.bits();
        let count = left.min(10);
        text.extend((0..count).map(|at| LETTERS[(bits >> (6 * at)) as usize & 63]));
        left -= count;
    }
}

/// Appends so many digits.
pub fn digits(random: &mut Random, text: &mut Vec<u8>, count: usize) {
    text.extend((0..count).map(|_| b'0' + random.below(10) as u8));
}

/// Appends the last name of a number from 0 to 999.
pub fn last_name(text: &mut Vec<u8>, number: i64) {
    for digit in [number / 100, number / 10 % 10, number % 10] {
        text.extend_from_slice(SYLLABLES[digit as usize].as_bytes());
    }
}

/// Appends letters, and in one of ten cases ORIGINAL somewhere among them.
pub fn data(random: &mut Random, text: &mut Vec<u8>) {
    const ORIGINAL: &[u8] = b"ORIGINAL";
    let start = text.len();
    letters(random, text, 26, 50);
    if percent(random, 10) {
        let last = (text.len() - start - ORIGINAL.len()) as i64;
        let at = start + between(random, 0, last) as usize;
        text[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}

/// Whether the data of an item or a stock hold ORIGINAL.
pub fn is_original(data: &[u8]) -> bool {
    data.windows(8).any(|window| window == b"ORIGINAL")
}

/// The numbers from 1 to `count` in a random order.
pub fn permutation(random: &mut Random, count: i64) -> Vec<i64> {
    let mut all: Vec<i64> = (1..=count).collect();
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at as u64 + 1) as usize);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of draws that the hottest `share` of `of` values get.
    fn hottest(mut draw: impl FnMut() -> i64, of: usize, draws: usize, share: usize) -> f64 {
        let mut counts = vec![0u32; of + 1];
        (0..draws).for_each(|_| counts[draw() as usize] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top: u32 = counts[..of / share].iter().sum();
        f64::from(top) / draws as f64
    }

    #[test]
    fn items_are_as_skewed_as_the_specification_makes_them() {
        let mut random = Random::new(1);
        let constants = Constants::for_run(&mut random, 100);
        let top_10 = hottest(|| constants.item(&mut random, 100_000), 100_000, 3_000_000, 10);
        assert!((0.71..0.73).contains(&top_10), "{top_10}");
        let top_1 = hottest(|| constants.item(&mut random, 100_000), 100_000, 3_000_000, 100);
        assert!((0.30..0.31 + 0.005).contains(&top_1), "{top_1}");
        // A constant that is drawn again each time makes the draws nearly uniform.
        let mut other = Random::new(2);
        let anew = hottest(
            || Constants::for_run(&mut other, 100).item(&mut random, 100_000),
            100_000,
            1_000_000,
            10,
        );
        assert!(anew < 0.16, "{anew}");
    }

    #[test]
    fn constants_of_a_run_are_legal() {
        let mut random = Random::new(3);
        for c_load in 0..=255 {
            let run = Constants::for_run(&mut random, c_load);
            let apart = (run.last - c_load).abs();
            assert!((65..=119).contains(&apart) && apart != 96 && apart != 112);
        }
    }

    #[test]
    fn names_and_data_are_as_specified() {
        let mut name = Vec::new();
        last_name(&mut name, 371);
        assert_eq!(name, b"PRICALLYOUGHT");
        let mut random = Random::new(4);
        let (mut originals, mut text) = (0, Vec::new());
        for _ in 0..20_000 {
            text.clear();
            data(&mut random, &mut text);
            assert!((26..=50).contains(&text.len()));
            originals += usize::from(is_original(&text));
        }
        assert!((1_850..2_150).contains(&originals), "{originals}");
        let mut all = permutation(&mut random, 3_000);
        assert_ne!(all[..5], [1, 2, 3, 4, 5]);
        all.sort_unstable();
        assert!(all.iter().copied().eq(1..=3_000));
    }

    #[test]
    fn numbers_keep_their_bounds() {
        let mut random = Random::new(5);
        let constants = Constants::of_load(&mut random);
        for _ in 0..100_000 {
            assert!((1..=3_000).contains(&constants.customer(&mut random, 3_000)));
            assert!((0..=999).contains(&constants.last(&mut random)));
        }
    }
}
