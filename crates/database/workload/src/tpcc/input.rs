//! The input of terminals (clauses 2.4.1 to 2.8.1): drawn before a transaction begins, and the same
//! when it is begun again; which transaction comes next, and how long people take over it.

use std::time::Duration;

use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::tpcc::draw::{Constants, between, percent};
use crate::tpcc::schema::{CUSTOMERS, DISTRICTS, ITEMS};

/// Most lines of an order.
pub const LINES_MAX: usize = 15;
/// An item that does not exist.
pub const UNUSED_ITEM: i64 = ITEMS + 1;

/// A line of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderItem {
    /// Which item.
    pub item: i64,
    /// Which warehouse supplies it.
    pub supply: i64,
    /// How many.
    pub quantity: i64,
}

/// Who is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Customer {
    /// By number.
    Id(i64),
    /// By last name, whose number this is.
    Name(i64),
}

/// A transaction that a terminal requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A customer orders.
    NewOrder {
        /// Warehouse and district of the terminal's order.
        place: (i64, i64),
        /// Who.
        customer: i64,
        /// What; the last one may be of [`UNUSED_ITEM`].
        lines: Vec<OrderItem>,
    },
    /// A customer pays.
    Payment {
        /// Where.
        place: (i64, i64),
        /// Warehouse and district of the customer.
        of: (i64, i64),
        /// Who.
        customer: Customer,
        /// How much, in cents.
        amount: i64,
    },
    /// A customer queries their last order.
    OrderStatus {
        /// Warehouse and district.
        place: (i64, i64),
        /// Who.
        customer: Customer,
    },
    /// The oldest order of every district is delivered.
    Delivery {
        /// Which warehouse.
        warehouse: i64,
        /// By whom.
        carrier: i64,
    },
    /// Recently sold items that run short.
    StockLevel {
        /// Warehouse and district.
        place: (i64, i64),
        /// Below how many.
        threshold: i64,
    },
}

impl Input {
    /// The kind of transaction.
    pub fn kind(&self) -> OpKind {
        match self {
            Self::NewOrder { .. } => OpKind::NewOrder,
            Self::Payment { .. } => OpKind::Payment,
            Self::OrderStatus { .. } => OpKind::OrderStatus,
            Self::Delivery { .. } => OpKind::Delivery,
            Self::StockLevel { .. } => OpKind::StockLevel,
        }
    }

    /// Whether it is to be rolled back.
    pub fn is_rolled_back(&self) -> bool {
        matches!(self, Self::NewOrder { lines, .. }
            if lines.last().is_some_and(|line| line.item == UNUSED_ITEM))
    }
}

/// Where a terminal stands: its warehouse, and for stock levels its district.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// From 1.
    pub warehouse: i64,
    /// From 1.
    pub district: i64,
}

impl Home {
    /// The home of a terminal, counted from 0: warehouses in turn, so that few terminals spread
    /// over all of them, and a district of its own for each of ten of a warehouse.
    pub fn of(terminal: u32, warehouses: i64) -> Self {
        let terminal = i64::from(terminal);
        let (warehouse, district) = (terminal % warehouses, terminal / warehouses % DISTRICTS);
        Self { warehouse: warehouse + 1, district: district + 1 }
    }
}

impl Home {
    /// Where a terminal works in one of its turns, when so many terminals share all warehouses:
    /// each has its own.
    pub fn shared(terminal: u32, terminals: u32, warehouses: i64, random: &mut Random) -> Self {
        let own = Self::of(terminal, warehouses);
        let terminals = i64::from(terminals.max(1));
        if terminals >= warehouses {
            return own;
        }
        let first = (own.warehouse - 1) % terminals;
        let share = (warehouses - first + terminals - 1) / terminals;
        let nth = random.below(share as u64) as i64;
        Self { warehouse: first + nth * terminals + 1, district: between(random, 1, DISTRICTS) }
    }
}

/// Draws inputs.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// Of non-uniform draws.
    pub constants: Constants,
    /// The number of warehouses.
    pub warehouses: i64,
}

impl Inputs {
    /// The input of a terminal for a transaction of this kind.
    pub fn draw(&self, random: &mut Random, kind: OpKind, home: Home) -> Input {
        let place = (home.warehouse, between(random, 1, DISTRICTS));
        match kind {
            OpKind::Payment => self.payment(random, place),
            OpKind::OrderStatus => Input::OrderStatus { place, customer: self.customer(random) },
            OpKind::Delivery => {
                Input::Delivery { warehouse: home.warehouse, carrier: between(random, 1, 10) }
            }
            OpKind::StockLevel => {
                let place = (home.warehouse, home.district);
                Input::StockLevel { place, threshold: between(random, 10, 20) }
            }
            _ => self.new_order(random, place),
        }
    }

    fn new_order(&self, random: &mut Random, place: (i64, i64)) -> Input {
        let customer = self.constants.customer(random, CUSTOMERS);
        let count = between(random, 5, LINES_MAX as i64);
        let is_rolled_back = percent(random, 1);
        let line = |number: i64| {
            let is_unused = is_rolled_back && number == count;
            let item = self.constants.item(random, ITEMS);
            let supply = if percent(random, 1) { self.other(random, place.0) } else { place.0 };
            let quantity = between(random, 1, 10);
            OrderItem { item: if is_unused { UNUSED_ITEM } else { item }, supply, quantity }
        };
        Input::NewOrder { place, customer, lines: (1..=count).map(line).collect() }
    }

    fn payment(&self, random: &mut Random, place: (i64, i64)) -> Input {
        let of = match percent(random, 85) {
            true => place,
            false => (self.other(random, place.0), between(random, 1, DISTRICTS)),
        };
        let customer = self.customer(random);
        Input::Payment { place, of, customer, amount: between(random, 100, 500_000) }
    }

    fn customer(&self, random: &mut Random) -> Customer {
        match percent(random, 60) {
            true => Customer::Name(self.constants.last(random)),
            false => Customer::Id(self.constants.customer(random, CUSTOMERS)),
        }
    }

    /// Another warehouse, if any.
    fn other(&self, random: &mut Random, home: i64) -> i64 {
        if self.warehouses == 1 {
            return home;
        }
        let other = between(random, 1, self.warehouses - 1);
        other + i64::from(other >= home)
    }
}

// Which transaction comes next, and how long people take over it (clauses 5.2.3 and 5.2.5).
//
// Invariant: a terminal's number and the number of its transaction decide everything, so that equal
// seeds make equal work on any thread.

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
    /// No waits.
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

    const N: usize = 200_000;

    fn inputs() -> (Inputs, Random) {
        let mut random = Random::new(11);
        let constants = Constants::for_run(&mut random, 100);
        (Inputs { constants, warehouses: 10 }, random)
    }

    fn share(of: impl Fn(&Input) -> bool, kind: OpKind) -> f64 {
        let (inputs, mut random) = inputs();
        let home = Home { warehouse: 4, district: 3 };
        let hits = (0..N).filter(|_| of(&inputs.draw(&mut random, kind, home))).count();
        100.0 * hits as f64 / N as f64
    }

    #[test]
    fn few_terminals_share_all_warehouses_and_none_meets_another_one() {
        let mut random = Random::new(3);
        for (terminals, warehouses) in [(1, 7), (3, 10), (4, 4), (5, 2)] {
            let mut owners = vec![std::collections::BTreeSet::new(); warehouses as usize];
            for terminal in 0..terminals {
                for _ in 0..400 {
                    let home = Home::shared(terminal, terminals, warehouses, &mut random);
                    assert!((1..=DISTRICTS).contains(&home.district), "{home:?}");
                    owners[home.warehouse as usize - 1].insert(terminal);
                }
            }
            assert!(owners.iter().all(|owners| !owners.is_empty()), "{terminals}: {owners:?}");
            let most = owners.iter().map(std::collections::BTreeSet::len).max();
            assert!(most == Some(1) || i64::from(terminals) > warehouses, "{owners:?}");
        }
        assert_eq!(Home::of(0, 7).warehouse, Home::of(7, 7).warehouse, "without sharing");
    }

    #[test]
    fn shares_are_those_of_the_specification() {
        let remote = |input: &Input| match input {
            Input::NewOrder { lines, .. } => lines.iter().any(|line| line.supply != 4),
            _ => false,
        };
        let found = share(remote, OpKind::NewOrder);
        assert!((9.2..9.9).contains(&found), "remote orders {found}");
        let found = share(Input::is_rolled_back, OpKind::NewOrder);
        assert!((0.9..1.1).contains(&found), "rollbacks {found}");
        let remote = |input: &Input| matches!(input, Input::Payment { of, .. } if of.0 != 4);
        let found = share(remote, OpKind::Payment);
        assert!((14.7..15.3).contains(&found), "remote payments {found}");
        for kind in [OpKind::Payment, OpKind::OrderStatus] {
            let by_name = |input: &Input| {
                matches!(
                    input,
                    Input::Payment { customer: Customer::Name(_), .. }
                        | Input::OrderStatus { customer: Customer::Name(_), .. }
                )
            };
            let found = share(by_name, kind);
            assert!((59.5..60.5).contains(&found), "by name {found}");
        }
    }

    #[test]
    fn stock_levels_stay_in_their_district_and_others_do_not() {
        let own = |input: &Input| matches!(input, Input::StockLevel { place: (4, 3), .. });
        assert_eq!(share(own, OpKind::StockLevel), 100.0);
        let own = |input: &Input| matches!(input, Input::NewOrder { place: (4, 3), .. });
        let found = share(own, OpKind::NewOrder);
        assert!((9.7..10.3).contains(&found), "{found}");
    }

    #[test]
    fn one_warehouse_has_no_other() {
        let (mut inputs, mut random) = inputs();
        inputs.warehouses = 1;
        let home = Home::of(0, 1);
        for _ in 0..1_000 {
            match inputs.draw(&mut random, OpKind::Payment, home) {
                Input::Payment { of, .. } => assert_eq!(of.0, 1),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn terminals_spread_over_warehouses_and_districts() {
        let homes: std::collections::BTreeSet<(i64, i64)> = (0..40)
            .map(|terminal| Home::of(terminal, 4))
            .map(|home| (home.warehouse, home.district))
            .collect();
        assert_eq!(homes.len(), 40);
        assert_eq!(Home::of(4, 4), Home { warehouse: 1, district: 2 });
    }
}

#[cfg(test)]
mod mix_tests {
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
