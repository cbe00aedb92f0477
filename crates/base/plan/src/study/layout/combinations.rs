//! Every combination of the levels of some factors.

use crate::study::text::factor::{Factor, Level};

/// Combinations in order: the last factor changes fastest.
pub(in crate::study) struct Combinations<'a> {
    factors: &'a [Factor],
    next: Option<Vec<usize>>,
}

impl<'a> Combinations<'a> {
    /// All of them.
    pub fn of(factors: &'a [Factor]) -> Self {
        let empty = factors.iter().any(|factor| factor.levels.is_empty());
        Self { factors, next: (!empty).then(|| vec![0; factors.len()]) }
    }

    /// How many there are.
    pub fn count(factors: &[Factor]) -> usize {
        factors.iter().map(|factor| factor.levels.len()).fold(1, usize::saturating_mul)
    }
}

impl<'a> Iterator for Combinations<'a> {
    type Item = Vec<&'a Level>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut at = self.next.take()?;
        let chosen = self.factors.iter().zip(&at).map(|(factor, at)| &factor.levels[*at]).collect();
        for (place, factor) in self.factors.iter().enumerate().rev() {
            at[place] += 1;
            if at[place] < factor.levels.len() {
                self.next = Some(at);
                break;
            }
            at[place] = 0;
        }
        Some(chosen)
    }
}
