//! The values of all counters at one moment.

use std::ops::{AddAssign, Index, IndexMut};

use super::unit::CounterKind;
use super::{COUNTERS, Counter, CounterRow};

impl Counter {
    /// How many there are.
    pub const COUNT: usize = COUNTERS.len();

    /// What the catalogue says of it.
    #[must_use]
    pub fn row(self) -> &'static CounterRow {
        &COUNTERS[self as usize]
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The counter of this name; InnoDB's prefix and capitals make no difference.
    #[must_use]
    pub fn find(name: &str) -> Option<Counter> {
        let lower = name.trim().to_ascii_lowercase();
        let plain = lower.strip_prefix("innodb_").unwrap_or(&lower);
        let row = COUNTERS.iter().find(|row| row.name.eq_ignore_ascii_case(plain))?;
        Some(row.counter)
    }
}

/// The value of every counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters([u64; Counter::COUNT]);

impl Default for Counters {
    fn default() -> Counters {
        Counters([0; Counter::COUNT])
    }
}

impl Counters {
    /// Counters with these values, in the order of the catalogue.
    #[must_use]
    pub fn new(values: [u64; Counter::COUNT]) -> Counters {
        Counters(values)
    }

    /// The values in the order of the catalogue.
    #[must_use]
    pub fn values(&self) -> &[u64; Counter::COUNT] {
        &self.0
    }

    /// Every counter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static CounterRow, u64)> + '_ {
        COUNTERS.iter().zip(self.0)
    }

    /// What was counted since `earlier`: counters as differences, gauges as they are.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        let mut counted = self.clone();
        for (row, value) in COUNTERS.iter().zip(&mut counted.0) {
            if row.kind == CounterKind::Counter {
                *value = value.saturating_sub(earlier[row.counter]);
            }
        }
        counted
    }
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, more: &Counters) {
        self.0.iter_mut().zip(more.0).for_each(|(value, more)| *value += more);
    }
}

impl Index<Counter> for Counters {
    type Output = u64;

    #[inline]
    fn index(&self, counter: Counter) -> &u64 {
        &self.0[counter as usize]
    }
}

impl IndexMut<Counter> for Counters {
    #[inline]
    fn index_mut(&mut self, counter: Counter) -> &mut u64 {
        &mut self.0[counter as usize]
    }
}
