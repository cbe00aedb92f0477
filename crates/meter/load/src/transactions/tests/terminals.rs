//! Terminals that key in, wait and think: rates that the waits alone decide.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use iostrata_plan::{OpKind, TransactionPacing};
use iostrata_stats::Random;

use super::stand_in::{Act, Event, StandIn, only, spec};
use crate::transactions::source::{Planned, Turn};

/// Type, weight in percent, cards of a deck, seconds of keying, mean seconds of thinking.
const TYPES: [(OpKind, u64, usize, u64, f64); 5] = [
    (OpKind::NewOrder, 45, 10, 18, 12.0),
    (OpKind::Payment, 43, 10, 3, 12.0),
    (OpKind::OrderStatus, 4, 1, 2, 10.0),
    (OpKind::Delivery, 4, 1, 2, 5.0),
    (OpKind::StockLevel, 4, 1, 2, 5.0),
];

fn random(turn: Turn, what: u64) -> Random {
    Random::of_stream(u64::from(turn.home) << 32 | what, turn.nth)
}

fn planned(of: usize, turn: Turn) -> Planned {
    let (kind, _, _, keying_s, think_s) = TYPES[of];
    Planned {
        kind,
        keying: Duration::from_secs(keying_s),
        think: Duration::from_secs_f64(random(turn, 1).exponential() * think_s),
        is_deferred: kind == OpKind::Delivery,
    }
}

fn by_weight(turn: Turn) -> Planned {
    let mut drawn = random(turn, 2).below(100);
    let of = TYPES.iter().position(|(_, weight, ..)| {
        let is_it = drawn < *weight;
        drawn = drawn.saturating_sub(*weight);
        is_it
    });
    planned(of.unwrap(), turn)
}

fn by_deck(turn: Turn) -> Planned {
    let cards = TYPES.iter().enumerate().flat_map(|(of, row)| std::iter::repeat_n(of, row.2));
    let mut deck: Vec<usize> = cards.collect();
    let of_deck = Turn { nth: turn.nth / deck.len() as u64, ..turn };
    let mut random = random(of_deck, 3);
    for last in (1..deck.len()).rev() {
        deck.swap(last, random.below(last as u64 + 1) as usize);
    }
    planned(deck[turn.nth as usize % deck.len()], turn)
}

const WAREHOUSES: u32 = 10;
const HOURS: f64 = 6.0;

fn new_orders_per_minute(plan: fn(Turn) -> Planned) -> f64 {
    let mut terminals = StandIn::new(|_, _| Act::Done(Duration::from_millis(1)));
    terminals.plan = Box::new(plan);
    let pacing = TransactionPacing::Terminals { homes: 10 * WAREHOUSES };
    let figures = terminals.measure(&spec(8, HOURS * 3600.0, pacing));
    let stream = only(&figures);
    let new_orders = stream.ops[OpKind::NewOrder].as_ref().unwrap();
    let response = new_orders.response_us.unwrap();
    assert!(response.p50 < 1_100.0, "nobody waits for a slot: {response:?}");
    new_orders.ios as f64 / (HOURS * 60.0) / f64::from(WAREHOUSES)
}

#[test]
fn full_waits_give_the_rate_that_the_specification_allows() {
    let weighted = new_orders_per_minute(by_weight);
    assert!((weighted / 12.86 - 1.0).abs() < 0.015, "{weighted} per minute and warehouse");
    let dealt = new_orders_per_minute(by_deck);
    assert!((dealt / 12.60 - 1.0).abs() < 0.015, "{dealt} per minute and warehouse");
}

fn constant(kind: OpKind, keying_s: u64, think_s: u64, is_deferred: bool) -> Planned {
    let (keying, think) = (Duration::from_secs(keying_s), Duration::from_secs(think_s));
    Planned { kind, keying, think, is_deferred }
}

#[test]
fn a_terminal_that_finds_no_slot_free_waits_from_the_moment_it_is_due() {
    // Three terminals that key in and think for 6 s, one slot, and transactions of 4 s.
    let mut terminals = StandIn::new(|_, _| Act::Done(Duration::from_secs(4)));
    terminals.plan = Box::new(|_| constant(OpKind::Payment, 3, 3, false));
    let pacing = TransactionPacing::Terminals { homes: 3 };
    let figures = terminals.measure(&spec(1, 1200.0, pacing));
    let payments = only(&figures).ops[OpKind::Payment].as_ref().unwrap();
    // The slot is busy all the time: 3 terminals in 12 s, of which each waits 2 s for it.
    assert!((297..=300).contains(&payments.ios), "{}", payments.ios);
    let (service, response) = (payments.latency_us, payments.response_us.unwrap());
    assert!((service.p50 / 4e6 - 1.0).abs() < 0.01, "{service:?}");
    assert!((response.p50 / 6e6 - 1.0).abs() < 0.02, "{response:?}");
}

#[test]
fn a_deferred_transaction_keeps_nobody_waiting() {
    // Cycles of 4 s, and transactions of 3 s: a terminal that waited for them would need 7 s.
    for (is_deferred, expected) in [(true, 25), (false, 14)] {
        let mut terminals = StandIn::new(|_, _| Act::Done(Duration::from_secs(3)));
        terminals.plan = Box::new(move |_| constant(OpKind::Delivery, 2, 2, is_deferred));
        let pacing = TransactionPacing::Terminals { homes: 1 };
        let figures = terminals.measure(&spec(2, 100.0, pacing));
        let deliveries = only(&figures).ops[OpKind::Delivery].as_ref().unwrap();
        assert!(deliveries.ios.abs_diff(expected) <= 1, "{} of {expected}", deliveries.ios);
    }
}

#[test]
fn terminals_take_their_turns_in_order_and_all_of_them() {
    let longest = Arc::new(AtomicU64::new(0));
    let mut terminals = StandIn::new(|_, _| Act::Done(Duration::from_millis(20)));
    let seen = Arc::clone(&longest);
    terminals.plan = Box::new(move |turn| {
        seen.fetch_max(turn.nth, Ordering::Relaxed);
        by_weight(turn)
    });
    let pacing = TransactionPacing::Terminals { homes: 1000 };
    let _figures = terminals.measure(&spec(4, 120.0, pacing));
    let mut next = vec![0; 1000];
    for event in terminals.events() {
        let Event::Ran { turn, .. } = event else { continue };
        assert_eq!(turn.nth, next[turn.home as usize], "of terminal {}", turn.home);
        next[turn.home as usize] += 1;
    }
    assert!(next.iter().all(|turns| *turns > 0), "some terminal never had a turn");
    assert!(longest.load(Ordering::Relaxed) > 3);
}
