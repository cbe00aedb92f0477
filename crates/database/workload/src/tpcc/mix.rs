//! Which transaction comes next, and how long people take over it (clauses 5.2.3 and 5.2.5).
//!
//! Invariant: a terminal's number and the number of its transaction decide everything, so that
//! equal seeds ask for equal work, whoever runs it.

use std::time::Duration;

use iostrata_plan::OpKind;
use iostrata_stats::Random;

/// The five kinds, in the order of weights.
pub const KINDS: [OpKind; 5] =
    [OpKind::NewOrder, OpKind::Payment, OpKind::OrderStatus, OpKind::Delivery, OpKind::StockLevel];
/// Cards of each kind in a deck (clause 5.2.4.2).
const CARDS: [u64; 5] = [10, 10, 1, 1, 1];
const DECK: usize = 23;
/// Seconds of keying and mean seconds of thinking.
const KEYING_S: [f64; 5] = [18.0, 3.0, 2.0, 2.0, 2.0];
const THINK_S: [f64; 5] = [12.0, 12.0, 10.0, 5.0, 5.0];
/// A think time is cut at so many times its mean.
const THINK_CUT: f64 = 10.0;

/// How kinds are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// By chance, with these weights.
    Weights([u64; 5]),
    /// From a deck of 23 cards for each terminal, shuffled when it is used up.
    Deck,
}

impl Default for Mix {
    fn default() -> Self {
        Self::Weights([45, 43, 4, 4, 4])
    }
}

impl Mix {
    /// The kind of a terminal's transaction, which counts from 0; drawn from the stream of that
    /// transaction. Decks are shuffled by streams of the seed.
    pub fn kind(self, random: &mut Random, seed: u64, (home, nth): (u32, u64)) -> OpKind {
        match self {
            Self::Weights(weights) => weighted(random.below(weights.iter().sum()), weights),
            Self::Deck => {
                let (deck, at) = (nth / DECK as u64, nth as usize % DECK);
                let mut shuffled = Random::of_stream(seed ^ deck, !u64::from(home));
                let mut cards: [u64; DECK] = std::array::from_fn(|card| card as u64);
                // A shuffle from the front, as far as the card that is wanted.
                for place in 0..=at {
                    cards.swap(place, place + shuffled.below((DECK - place) as u64) as usize);
                }
                weighted(cards[at], CARDS)
            }
        }
    }
}

/// The kind in whose share of the weights this lies.
fn weighted(drawn: u64, weights: [u64; 5]) -> OpKind {
    let mut left = drawn;
    for (kind, weight) in KINDS.into_iter().zip(weights) {
        match left.checked_sub(weight) {
            Some(rest) => left = rest,
            None => return kind,
        }
    }
    OpKind::NewOrder
}

/// Factors of keying and think times; both 0 where terminals do not wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waits {
    /// Of keying times.
    pub keying: f64,
    /// Of think times.
    pub think: f64,
}

impl Waits {
    /// Nobody waits.
    pub const NONE: Self = Self { keying: 0.0, think: 0.0 };
    /// As specified.
    pub const FULL: Self = Self { keying: 1.0, think: 1.0 };

    /// Keying time, and a think time that is drawn.
    pub fn draw(&self, random: &mut Random, kind: OpKind) -> (Duration, Duration) {
        let at = KINDS.iter().position(|one| *one == kind).unwrap_or_default();
        let think = match self.think {
            0.0 => 0.0,
            factor => (-random.unit().ln()).min(THINK_CUT) * THINK_S[at] * factor,
        };
        let keying = Duration::from_secs_f64(KEYING_S[at] * self.keying);
        (keying, Duration::from_secs_f64(think))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(mix: Mix, draws: u64) -> [f64; 5] {
        let mut counts = [0u64; 5];
        for nth in 0..draws {
            let kind = mix.kind(&mut Random::of_stream(3, nth), 3, (7, nth));
            counts[KINDS.iter().position(|one| *one == kind).unwrap()] += 1;
        }
        counts.map(|count| 100.0 * count as f64 / draws as f64)
    }

    #[test]
    fn weights_and_decks_give_their_shares() {
        let weighted = shares(Mix::default(), 500_000);
        for (share, weight) in weighted.iter().zip([45.0, 43.0, 4.0, 4.0, 4.0]) {
            assert!((share - weight).abs() < 0.3, "{weighted:?}");
        }
        // After whole decks the shares are exact.
        let dealt = shares(Mix::Deck, DECK as u64 * 100);
        for (share, cards) in dealt.iter().zip(CARDS) {
            assert!((share - 100.0 * cards as f64 / 23.0).abs() < 1e-9, "{dealt:?}");
        }
    }

    #[test]
    fn a_deck_is_shuffled_anew_and_for_each_terminal() {
        let deck = |home, first: u64| -> Vec<OpKind> {
            let kind = |nth| Mix::Deck.kind(&mut Random::new(0), 5, (home, nth));
            (first..first + DECK as u64).map(kind).collect()
        };
        assert_ne!(deck(1, 0), deck(1, DECK as u64));
        assert_ne!(deck(1, 0), deck(2, 0));
    }

    #[test]
    fn a_weight_of_zero_never_comes() {
        assert_eq!(shares(Mix::Weights([1, 0, 0, 0, 0]), 1_000), [100.0, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn a_cycle_takes_as_long_as_specified() {
        for (mix, cycle_s) in [(Mix::default(), 20.99), (Mix::Deck, 20.70)] {
            const N: u64 = 400_000;
            let mut sum = 0.0;
            for nth in 0..N {
                let random = &mut Random::of_stream(5, nth);
                let kind = mix.kind(random, 5, (1, nth));
                let (keying, think) = Waits::FULL.draw(random, kind);
                assert!(think.as_secs_f64() <= 120.0);
                sum += keying.as_secs_f64() + think.as_secs_f64();
            }
            let mean = sum / N as f64;
            assert!((mean - cycle_s).abs() < 0.1, "{mix:?}: {mean}");
        }
        let (keying, think) = Waits::NONE.draw(&mut Random::new(1), OpKind::Payment);
        assert!(keying.is_zero() && think.is_zero());
    }
}
