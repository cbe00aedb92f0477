//! The loop of transactions against stand-ins, on virtual time: workloads whose transactions take
//! as long as a test sets.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use iostrata_plan::{OpKind, Overload, RateProcess, TransactionPacing, TransactionSpec};
use iostrata_run::StreamFigures;
use iostrata_stats::{Random, Verdict};

use crate::clock::{Clock, MonotonicClock, VirtualClock, clock_facts};
use crate::controller::{NoObserver, Surroundings, WindowEnd};
use crate::figures::WindowFigures;
use crate::outcome::LoadFailure;
use crate::transactions::TransactionWindow;
use crate::transactions::source::{
    FailedTransaction, NextTransaction, Ran, Reach, SessionError, Settlement, TransactionCost,
    TransactionEnd, TransactionSource, TransactionWorker, Turn,
};

/// What a transaction does: how long it runs, and how it ends.
enum Act {
    Done(Duration),
    /// Runs for so long; its commit is durable so much later.
    Pending(Duration, Duration),
    /// Its commit never will be.
    Undone(Duration),
    Fails(&'static str),
    /// Fails, and the window is worth nothing for it.
    Spoils(&'static str),
    /// Fails, as every other one would.
    Ends(&'static str),
    /// Fails, and the session with it, which cannot be opened again before so long has passed.
    Goes(Duration),
}

fn failed(code: &str, reach: Reach) -> FailedTransaction {
    FailedTransaction { code: code.to_owned(), text: format!("it said {code}"), reach }
}

/// What happened, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Ran { slot: u32, turn: Turn, at_ns: u64 },
    Settled { slot: u32, at_ns: u64 },
    Reopened { slot: u32, at_ns: u64 },
    Refused { at_ns: u64 },
}

type Plan = dyn Fn(Turn) -> NextTransaction + Sync;
type Acts = dyn Fn(u64, Turn) -> Act + Sync;

/// The workload.
struct StandIn {
    pub clock: VirtualClock,
    pub plan: Box<Plan>,
    pub acts: Box<Acts>,
    pub events: Mutex<Vec<Event>>,
}

fn plain(kind: OpKind) -> NextTransaction {
    NextTransaction { kind, keying: Duration::ZERO, think: Duration::ZERO, is_deferred: false }
}

impl StandIn {
    fn new(acts: impl Fn(u64, Turn) -> Act + Sync + 'static) -> Self {
        Self {
            clock: VirtualClock::default(),
            plan: Box::new(|_| plain(OpKind::Transaction)),
            acts: Box::new(acts),
            events: Mutex::default(),
        }
    }

    /// Measures a window with all slots in the hands of one thread.
    fn measure(&self, spec: &TransactionSpec) -> WindowFigures {
        let facts = clock_facts();
        let window =
            TransactionWindow::with_workers(1, self, spec, facts, self.clock.clone()).unwrap();
        let shared = &window.controller.shared;
        shared.post_start(1);
        shared.post_stop_after(u64::from(shared.layout().slices));
        let segments = window.work(0).unwrap();
        WindowFigures::of(&window.gather(vec![segments], WindowEnd::default(), false))
    }

    fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }
}

fn spec(threads: u32, seconds: f64, pacing: TransactionPacing) -> TransactionSpec {
    TransactionSpec {
        threads,
        pacing,
        warm_up: Some(Duration::ZERO),
        runtime: Some(Duration::from_secs_f64(seconds)),
        ..TransactionSpec::new("stand_in", "nothing")
    }
}

fn only(figures: &WindowFigures) -> &StreamFigures {
    assert_eq!(figures.streams.len(), 1);
    &figures.streams[0]
}

struct Sessions<'a> {
    of: &'a StandIn,
    ran: u64,
    /// When the commit of a slot is durable; absent where it never is.
    durable_ns: Vec<Option<u64>>,
    gone_until_ns: Vec<u64>,
}

impl Sessions<'_> {
    fn note(&self, event: Event) {
        self.of.events.lock().unwrap().push(event);
    }
}

impl TransactionSource for StandIn {
    fn kinds(&self) -> Vec<OpKind> {
        use OpKind::{Delivery, NewOrder, OrderStatus, Payment, StockLevel, Transaction};
        vec![NewOrder, Payment, OrderStatus, Delivery, StockLevel, Transaction]
    }

    fn blocks(&self) -> bool {
        false
    }

    fn worker(
        &self,
        _first_slot: u32,
        slots: u32,
    ) -> Result<Box<dyn TransactionWorker + '_>, SessionError> {
        let slots = slots as usize;
        let (durable_ns, gone_until_ns) = (vec![None; slots], vec![0; slots]);
        Ok(Box::new(Sessions { of: self, ran: 0, durable_ns, gone_until_ns }))
    }
}

impl TransactionWorker for Sessions<'_> {
    fn next(&mut self, turn: Turn) -> NextTransaction {
        (self.of.plan)(turn)
    }

    fn run(&mut self, slot: u32, turn: Turn) -> Ran {
        let clock = &self.of.clock;
        self.note(Event::Ran { slot, turn, at_ns: clock.now() });
        let pass = |time: Duration| clock.advance(time.as_nanos() as u64);
        let act = (self.of.acts)(self.ran, turn);
        self.ran += 1;
        let failed = |code: &str, reach| TransactionEnd::Failed(failed(code, reach));
        let ended = match act {
            Act::Done(time) => {
                pass(time);
                TransactionEnd::Done
            }
            Act::Pending(time, later) => {
                pass(time);
                self.durable_ns[slot as usize] = Some(clock.now() + later.as_nanos() as u64);
                TransactionEnd::Pending
            }
            Act::Undone(time) => {
                pass(time);
                self.durable_ns[slot as usize] = None;
                TransactionEnd::Pending
            }
            Act::Fails(code) => {
                pass(Duration::from_micros(1));
                failed(code, Reach::Transaction)
            }
            Act::Spoils(code) => {
                pass(Duration::from_micros(1));
                failed(code, Reach::Window)
            }
            Act::Ends(code) => {
                pass(Duration::from_micros(1));
                failed(code, Reach::Run)
            }
            Act::Goes(time) => {
                self.gone_until_ns[slot as usize] = clock.now() + time.as_nanos() as u64;
                failed("2013", Reach::Session)
            }
        };
        Ran { kind: (self.of.plan)(turn).kind, ended, retries: 0 }
    }

    fn settle(&mut self, slot: u32, waits: bool) -> Settlement {
        let Some(durable_ns) = self.durable_ns[slot as usize] else {
            return Settlement::Failed(failed("lost", Reach::Transaction));
        };
        if waits {
            self.of.clock.wait(durable_ns);
        }
        if self.of.clock.now() < durable_ns {
            return Settlement::NotYet;
        }
        self.note(Event::Settled { slot, at_ns: self.of.clock.now() });
        Settlement::Durable
    }

    fn reopen(&mut self, slot: u32) -> Result<(), String> {
        let at_ns = self.of.clock.now();
        if at_ns < self.gone_until_ns[slot as usize] {
            self.note(Event::Refused { at_ns });
            return Err("2002".to_owned());
        }
        self.note(Event::Reopened { slot, at_ns });
        Ok(())
    }

    fn cost(&self) -> TransactionCost {
        TransactionCost { round_trips: 3 * self.ran, statements: 5 * self.ran }
    }
}

// Closed and open loops: what is counted, what waits, what is turned away.

const MS: Duration = Duration::from_millis(1);

fn open(rate_per_s: f64, process: RateProcess, overload: Overload) -> TransactionPacing {
    TransactionPacing::Open { rate_per_s, process, queue_max: 10, overload }
}

#[test]
fn a_closed_loop_counts_what_ends_in_the_window() {
    // The 100th would end half a millisecond after the window.
    let figures = StandIn::new(|n, _| Act::Done(if n == 99 { MS * 3 / 2 } else { MS }))
        .measure(&spec(1, 0.1, TransactionPacing::Closed));
    let stream = only(&figures);
    let done = stream.ops[OpKind::Transaction].as_ref().unwrap();
    assert_eq!((done.ios, figures.duration_s), (99, 0.1));
    assert!((done.latency_us.mean / 1000.0 - 1.0).abs() < 1e-9);
    assert_eq!(done.response_us, None, "there is no schedule");
    let counts = stream.transactions.as_ref().unwrap();
    assert_eq!((counts.round_trips, counts.statements), (300, 500), "that of the last one, too");
    assert_eq!((counts.arrivals, counts.errors.len()), (0, 0));
    assert!(figures.failure.is_none() && figures.own_io.is_none());
}

#[test]
fn what_fails_is_counted_by_its_code_and_is_no_transaction() {
    let figures = StandIn::new(|n, _| match n % 10 {
        3 => Act::Fails("1213"),
        7 => Act::Fails("1205"),
        _ => Act::Done(MS),
    })
    .measure(&spec(1, 1.0, TransactionPacing::Closed));
    let stream = only(&figures);
    let done = stream.ops[OpKind::Transaction].as_ref().unwrap().ios;
    let errors = &stream.transactions.as_ref().unwrap().errors;
    assert!((998..=1000).contains(&done), "{done}");
    let of = |code: &str| errors.get(code).copied().unwrap_or(0);
    assert!(of("1213").abs_diff(done / 8) <= 1 && of("1205").abs_diff(done / 8) <= 1);
}

#[test]
fn a_warm_up_of_given_length_is_not_counted() {
    let mut spec = spec(1, 1.0, TransactionPacing::Closed);
    spec.warm_up = Some(Duration::from_millis(500));
    // Ten times as slow at first.
    let figures = StandIn::new(|n, _| Act::Done(if n < 49 { MS * 10 } else { MS })).measure(&spec);
    let done = only(&figures).ops[OpKind::Transaction].as_ref().unwrap();
    assert!((figures.duration_s - 1.0).abs() < 1e-9, "{}", figures.duration_s);
    assert!((999..=1000).contains(&done.ios) && done.latency_us.max < 1_001.0, "{done:?}");
}

#[test]
fn independent_arrivals_come_as_often_as_asked() {
    let clients = StandIn::new(|_, _| Act::Done(Duration::ZERO));
    let pacing = open(500.0, RateProcess::Poisson, Overload::Queue);
    let figures = clients.measure(&spec(4, 200.0, pacing));
    let stream = only(&figures);
    let arrivals = stream.transactions.as_ref().unwrap().arrivals as f64;
    assert!((arrivals / 100_000.0 - 1.0).abs() < 0.01, "{arrivals}");
    assert_eq!(arrivals as u64, stream.ops[OpKind::Transaction].as_ref().unwrap().ios);
    let starts: Vec<f64> = clients
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::Ran { at_ns, .. } => Some(*at_ns as f64),
            _ => None,
        })
        .collect();
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let variation = square.sqrt() / mean;
    assert!((variation - 1.0).abs() < 0.02, "variation of the gaps: {variation}");
}

#[test]
fn a_stall_is_seen_from_the_schedule_and_not_from_the_start() {
    for process in [RateProcess::Fixed, RateProcess::Poisson] {
        let act = |n| Act::Done(if n == 2_000 { Duration::from_secs(1) } else { MS });
        let figures = StandIn::new(move |n, _| act(n)).measure(&spec(
            1,
            40.0,
            open(200.0, process, Overload::Queue),
        ));
        let stream = only(&figures);
        let done = stream.ops[OpKind::Transaction].as_ref().unwrap();
        let (service, response) = (done.latency_us, done.response_us.unwrap());
        assert!(service.p99 < 1_100.0, "{service:?}");
        assert!(response.p99 > 400_000.0, "{response:?}");
        assert!(done.ios.abs_diff(8_000) < 300, "none is left out: {}", done.ios);
        assert!(stream.start_lateness_us_p99.unwrap() > 400_000.0);
    }
}

/// Twice as much as one session can do, for 10 s.
fn overloaded(overload: Overload) -> WindowFigures {
    let pacing = open(1000.0, RateProcess::Fixed, overload);
    StandIn::new(|_, _| Act::Done(MS * 2)).measure(&spec(1, 10.0, pacing))
}

#[test]
fn too_much_work_queues_or_is_turned_away() {
    let figures = overloaded(Overload::Queue);
    let stream = only(&figures);
    let (done, counts) =
        (stream.ops[OpKind::Transaction].as_ref().unwrap(), stream.transactions.as_ref().unwrap());
    assert!(done.ios.abs_diff(5_000) <= 2 && counts.dropped == 0, "{counts:?}");
    assert!(counts.waiting.abs_diff(5_000) <= 2, "{counts:?}");
    assert!(counts.arrivals.abs_diff(10_000) <= 2, "{counts:?}");
    assert!(done.response_us.unwrap().max > 4.9e6, "the queue grows all the time");

    let figures = overloaded(Overload::Drop);
    let stream = only(&figures);
    let (done, counts) =
        (stream.ops[OpKind::Transaction].as_ref().unwrap(), stream.transactions.as_ref().unwrap());
    assert!(done.ios.abs_diff(5_000) <= 2 && counts.waiting <= 10, "{counts:?}");
    assert!(counts.dropped.abs_diff(4_990) <= 5, "{counts:?}");
    assert!(counts.arrivals.abs_diff(10_000) <= 2, "{counts:?}");
    assert!(done.response_us.unwrap().max < 23e3, "ten wait at most");
    assert!(figures.failure.is_none());

    let figures = overloaded(Overload::Abort);
    assert_eq!(figures.failure, Some(LoadFailure::Overloaded { queue_max: 10 }));
    assert!(figures.duration_s < 0.1, "{} s", figures.duration_s);
    assert!(only(&figures).ops[OpKind::Transaction].as_ref().unwrap().ios >= 8);
}

// Commits that are durable later, and sessions that go away.

const US: Duration = Duration::from_micros(1);

#[test]
fn pending_commits_are_settled_in_order_and_only_then_counted() {
    let sessions = StandIn::new(|_, _| Act::Pending(100 * US, 3 * MS));
    let figures = sessions.measure(&spec(8, 1.0, TransactionPacing::Closed));
    let events = sessions.events();
    let mut committed = Vec::new();
    let (mut settled, mut most) = (0, 0);
    for event in &events {
        match event {
            Event::Ran { slot, .. } => committed.push(*slot),
            Event::Settled { slot, .. } => {
                assert_eq!(*slot, committed[settled], "in the order of the commits");
                settled += 1;
            }
            other => panic!("{other:?}"),
        }
        most = most.max(committed.len() - settled);
    }
    assert_eq!(most, 8, "the others run while one becomes durable");
    let in_window =
        |event: &&Event| matches!(event, Event::Settled { at_ns, .. } if *at_ns < 1_000_000_001);
    let expected = events.iter().filter(in_window).count() as u64;
    let done = only(&figures).ops[OpKind::Transaction].as_ref().unwrap();
    assert_eq!(done.ios, expected, "what is settled after the window is not counted");
    assert_eq!(settled, committed.len(), "nothing is left pending");
    assert!(done.latency_us.p50 >= 3_070.0, "the latency runs to the settlement: {done:?}");
    // Eight in flight, each for about 3.1 ms.
    assert!((2_400..=2_600).contains(&done.ios), "{}", done.ios);
}

#[test]
fn a_commit_that_never_is_durable_is_an_error() {
    let act = |n: u64| if n % 10 == 9 { Act::Undone(MS) } else { Act::Pending(MS, MS) };
    let figures =
        StandIn::new(move |n, _| act(n)).measure(&spec(4, 1.0, TransactionPacing::Closed));
    let stream = only(&figures);
    let done = stream.ops[OpKind::Transaction].as_ref().unwrap().ios;
    let lost = stream.transactions.as_ref().unwrap().errors["lost"];
    assert!(lost.abs_diff(done / 9) <= 1, "{lost} of {done}");
}

#[test]
fn what_is_due_is_not_kept_waiting_by_a_commit() {
    // Commits of 50 ms, and an arrival every 10 ms.
    let sessions = StandIn::new(|_, _| Act::Pending(MS, 50 * MS));
    let pacing = TransactionPacing::Open {
        rate_per_s: 100.0,
        process: iostrata_plan::RateProcess::Fixed,
        queue_max: 10,
        overload: iostrata_plan::Overload::Queue,
    };
    let figures = sessions.measure(&spec(16, 10.0, pacing));
    let stream = only(&figures);
    let response = stream.ops[OpKind::Transaction].as_ref().unwrap().response_us.unwrap();
    assert!(response.p50 < 52_000.0 && response.p99 < 53_000.0, "{response:?}");
    assert!(stream.start_lateness_us_p99.unwrap() < 300.0);
}

#[test]
fn a_session_that_is_gone_is_opened_again_with_growing_patience() {
    let away = Duration::from_secs(5);
    let act = move |n: u64| if n == 1_000 { Act::Goes(away) } else { Act::Done(MS) };
    let sessions = StandIn::new(move |n, _| act(n));
    let figures = sessions.measure(&spec(1, 20.0, TransactionPacing::Closed));
    let stream = only(&figures);
    let counts = stream.transactions.as_ref().unwrap();
    assert_eq!(counts.errors.iter().collect::<Vec<_>>(), [(&"2013".to_owned(), &1)]);
    let done = stream.ops[OpKind::Transaction].as_ref().unwrap().ios;
    assert!((14_000..=15_000).contains(&done), "{done}: 20 s less 5 to 6 s");
    let refused: Vec<u64> = sessions
        .events()
        .iter()
        .filter_map(|event| if let Event::Refused { at_ns } = event { Some(*at_ns) } else { None })
        .collect();
    assert!((8..=14).contains(&refused.len()), "{refused:?}");
    let patience: Vec<u64> = refused.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(patience.is_sorted() && patience.last().unwrap() <= &1_000_000_000, "{patience:?}");
}

#[test]
fn a_window_ends_early_when_every_session_stays_away() {
    let sessions = StandIn::new(|n, _| match n {
        0..50 => Act::Done(Duration::ZERO),
        _ => Act::Goes(Duration::MAX / 4),
    });
    let mut spec = spec(2, 60.0, TransactionPacing::Closed);
    spec.gone_max = Duration::from_millis(100);
    let interrupted = AtomicBool::new(false);
    let surroundings = Surroundings { interrupted: &interrupted, program: None };
    let outcome = TransactionWindow::new(&sessions, &spec, clock_facts(), MonotonicClock)
        .unwrap()
        .run(&surroundings, &mut NoObserver)
        .unwrap();
    let figures = WindowFigures::of(&outcome);
    let code = "2002".to_owned();
    assert_eq!(figures.failure, Some(LoadFailure::SessionsGone { sessions: 2, seconds: 0, code }));
    assert!(figures.duration_s < 30.0, "{} s", figures.duration_s);
    let done = only(&figures).ops[OpKind::Transaction].as_ref().unwrap().ios;
    assert!((50..=100).contains(&done), "what was measured until then is kept: {done}");
}

fn failure_of(act: impl Fn(u64) -> Act + Sync + 'static) -> (Option<LoadFailure>, f64) {
    let figures =
        StandIn::new(move |n, _| act(n)).measure(&spec(2, 10.0, TransactionPacing::Closed));
    (figures.failure, figures.duration_s)
}

#[test]
fn a_window_ends_at_a_failure_that_every_other_transaction_would_share() {
    let act = |n| if n < 100 { Act::Done(MS) } else { Act::Ends("1792") };
    let (failure, duration_s) = failure_of(act);
    let (code, text) = ("1792".to_owned(), "it said 1792".to_owned());
    assert_eq!(failure, Some(LoadFailure::Refused { code, text }));
    assert!(duration_s < 5.0, "{duration_s} s");
}

#[test]
fn a_window_of_which_most_transactions_fail_is_a_failure() {
    let share = |of: u64| move |n: u64| if n % 10 < of { Act::Fails("1") } else { Act::Done(MS) };
    assert_eq!(failure_of(share(4)).0, None);
    let Some(LoadFailure::TransactionsFailed { failed, done, code, text }) = failure_of(share(6)).0
    else {
        panic!("six of ten fail")
    };
    assert!(done > 0 && failed > done, "{failed} {done}");
    assert_eq!((code.as_str(), text.as_str()), ("1", "it said 1"));
}

#[test]
fn a_window_in_which_the_disk_was_full_is_a_failure_and_no_burst() {
    let rate = |n: u64| match n {
        5_000 => Act::Spoils("no_space"),
        0..5_000 => Act::Done(Duration::from_micros(500)),
        _ => Act::Done(8 * MS),
    };
    let spec = spec(1, 20.0, TransactionPacing::Closed);
    let fallen = StandIn::new(move |n, _| rate(n + u64::from(n >= 5_000))).measure(&spec);
    let total = |figures: &WindowFigures| only(figures).total.clone().unwrap().verdicts;
    assert!(total(&fallen).has(Verdict::BurstLimited), "{:?}", total(&fallen));
    let full = StandIn::new(move |n, _| rate(n)).measure(&spec);
    let Some(LoadFailure::TransactionsFailed { failed: 1, code, .. }) = &full.failure else {
        panic!("{:?}", full.failure)
    };
    assert_eq!(code, "no_space");
    assert!(!total(&full).has(Verdict::BurstLimited));
    assert!(!only(&full).verdicts.has(Verdict::BurstLimited));
}

// Terminals that key in, wait and think: rates that the waits alone decide.

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

fn planned(of: usize, turn: Turn) -> NextTransaction {
    let (kind, _, _, keying_s, think_s) = TYPES[of];
    NextTransaction {
        kind,
        keying: Duration::from_secs(keying_s),
        think: Duration::from_secs_f64(random(turn, 1).exponential() * think_s),
        is_deferred: kind == OpKind::Delivery,
    }
}

fn by_weight(turn: Turn) -> NextTransaction {
    let mut drawn = random(turn, 2).below(100);
    let of = TYPES.iter().position(|(_, weight, ..)| {
        let is_it = drawn < *weight;
        drawn = drawn.saturating_sub(*weight);
        is_it
    });
    planned(of.unwrap(), turn)
}

fn by_deck(turn: Turn) -> NextTransaction {
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

fn new_orders_per_minute(plan: fn(Turn) -> NextTransaction) -> f64 {
    let mut terminals = StandIn::new(|_, _| Act::Done(Duration::from_millis(1)));
    terminals.plan = Box::new(plan);
    let pacing = TransactionPacing::Terminals { homes: 10 * WAREHOUSES };
    let figures = terminals.measure(&spec(8, HOURS * 3600.0, pacing));
    let stream = only(&figures);
    let new_orders = stream.ops[OpKind::NewOrder].as_ref().unwrap();
    let response = new_orders.response_us.unwrap();
    assert!(response.p50 < 1_100.0, "no terminal waits for a slot: {response:?}");
    new_orders.ios as f64 / (HOURS * 60.0) / f64::from(WAREHOUSES)
}

#[test]
fn full_waits_give_the_rate_that_the_specification_allows() {
    let weighted = new_orders_per_minute(by_weight);
    assert!((weighted / 12.86 - 1.0).abs() < 0.015, "{weighted} per minute and warehouse");
    let dealt = new_orders_per_minute(by_deck);
    assert!((dealt / 12.60 - 1.0).abs() < 0.015, "{dealt} per minute and warehouse");
}

fn constant(kind: OpKind, keying_s: u64, think_s: u64, is_deferred: bool) -> NextTransaction {
    let (keying, think) = (Duration::from_secs(keying_s), Duration::from_secs(think_s));
    NextTransaction { kind, keying, think, is_deferred }
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
