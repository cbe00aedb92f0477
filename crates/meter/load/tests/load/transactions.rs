//! Transactions on real threads: length, warm-up, live figures, the price of driving them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use iostrata_load::{
    LiveFigures, Load, NextTransaction, NoObserver, Ran, SessionError, Settlement, Surroundings,
    TransactionCost, TransactionEnd, TransactionLoad, TransactionSource, TransactionWorker, Turn,
    WindowFigures, WindowObserver,
};
use iostrata_plan::{OpKind, Overload, RateProcess, TransactionPacing, TransactionSpec};

/// Transactions that take so long, the first ones of each session longer.
pub(crate) struct Idle {
    pub time: Duration,
    pub cold: Duration,
    pub cold_until: Option<Instant>,
    opened: AtomicU32,
}

impl Idle {
    pub(crate) fn new(time: Duration) -> Self {
        Self { time, cold: time, cold_until: None, opened: AtomicU32::new(0) }
    }
}

struct Session<'a>(&'a Idle, u64);

impl TransactionSource for Idle {
    fn kinds(&self) -> Vec<OpKind> {
        vec![OpKind::Transaction]
    }

    fn blocks(&self) -> bool {
        true
    }

    fn worker(
        &self,
        _first_slot: u32,
        slots: u32,
    ) -> Result<Box<dyn TransactionWorker + '_>, SessionError> {
        assert_eq!(slots, 1, "a session that blocks has a thread of its own");
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Session(self, 0)))
    }
}

impl TransactionWorker for Session<'_> {
    fn next(&mut self, _turn: Turn) -> NextTransaction {
        let kind = OpKind::Transaction;
        NextTransaction { kind, keying: Duration::ZERO, think: Duration::ZERO, is_deferred: false }
    }

    fn run(&mut self, _slot: u32, _turn: Turn) -> Ran {
        self.1 += 1;
        let is_cold = self.0.cold_until.is_some_and(|until| Instant::now() < until);
        let time = if is_cold { self.0.cold } else { self.0.time };
        if !time.is_zero() {
            std::thread::sleep(time);
        }
        Ran { kind: OpKind::Transaction, ended: TransactionEnd::Done, retries: 0 }
    }

    fn settle(&mut self, _slot: u32, _waits: bool) -> Settlement {
        Settlement::Durable
    }

    fn reopen(&mut self, _slot: u32) -> Result<(), String> {
        Ok(())
    }

    fn cost(&self) -> TransactionCost {
        TransactionCost { round_trips: 2 * self.1, statements: self.1 }
    }
}

pub(crate) fn spec(threads: u32, millis: u64) -> TransactionSpec {
    TransactionSpec {
        threads,
        runtime: Some(Duration::from_millis(millis)),
        warm_up: Some(Duration::ZERO),
        ..TransactionSpec::new("idle", "nothing")
    }
}

pub(crate) fn measured(
    source: &Idle,
    spec: &TransactionSpec,
    observer: &mut dyn WindowObserver,
) -> WindowFigures {
    let interrupted = AtomicBool::new(false);
    let surroundings = Surroundings { interrupted: &interrupted, program: None };
    TransactionLoad::new(source, spec, false).run(&surroundings, observer).unwrap()
}

pub(crate) fn done(figures: &WindowFigures) -> u64 {
    figures.streams[0].ops[OpKind::Transaction].as_ref().unwrap().ios
}

#[test]
fn a_window_is_exactly_as_long_as_asked_and_its_rate_fits() {
    let _turn = crate::one_at_a_time();
    let source = Idle::new(Duration::from_millis(1));
    let figures = measured(&source, &spec(8, 700), &mut NoObserver);
    assert!((figures.duration_s - 0.7).abs() < 1e-4, "{}", figures.duration_s);
    assert_eq!(source.opened.load(Ordering::Relaxed), 8);
    let stream = &figures.streams[0];
    let total = stream.total.as_ref().unwrap();
    assert!((total.value * 0.7 / done(&figures) as f64 - 1.0).abs() < 1e-6, "{total:?}");
    assert!(total.ci95.is_some() && stream.depth_mean <= 8.0);
    let counts = stream.transactions.as_ref().unwrap();
    // Each session's last transaction ends after the window.
    assert!(counts.statements.abs_diff(done(&figures)) <= 8, "{counts:?}");
    assert_eq!(counts.round_trips, 2 * counts.statements);
}

#[test]
fn a_warm_up_that_is_found_does_not_shorten_the_window() {
    let _turn = crate::one_at_a_time();
    let mut source = Idle::new(Duration::from_millis(1));
    source.cold = Duration::from_millis(5);
    source.cold_until = Some(Instant::now() + Duration::from_millis(300));
    let spec = TransactionSpec { warm_up: None, ..spec(4, 2_000) };
    let figures = measured(&source, &spec, &mut NoObserver);
    assert!((figures.duration_s - 2.0).abs() < 1e-4, "{}", figures.duration_s);
    // The smallest cut that leaves it out, and no more than a quarter.
    assert!(figures.warm_up_s > 0.15 && figures.warm_up_s <= 0.5, "{}", figures.warm_up_s);
}

#[derive(Default)]
struct Watching {
    seen: Vec<LiveFigures>,
    /// How many seconds were seen whenever the warm-up was over.
    warmed_up: Vec<usize>,
}

impl WindowObserver for Watching {
    fn opened(&mut self) {}
    fn open(&mut self, _elapsed_s: f64) {}
    fn warmed_up(&mut self) {
        self.warmed_up.push(self.seen.len());
    }
    fn live(&mut self, figures: &LiveFigures) {
        self.seen.push(*figures);
    }
    fn closed(&mut self) {}
}

#[test]
fn somebody_who_watches_sees_every_second() {
    let _turn = crate::one_at_a_time();
    let spec = TransactionSpec { warm_up: Some(Duration::from_millis(1_500)), ..spec(2, 2_000) };
    let mut watching = Watching::default();
    let figures = measured(&Idle::new(Duration::from_millis(2)), &spec, &mut watching);
    assert_eq!(watching.warmed_up, [1], "once, between the first second and the second");
    let seen = watching.seen;
    assert!(seen.len() == 3 || seen.len() == 2, "{seen:?}");
    assert!(seen[0].is_warm_up && !seen[1].is_warm_up, "{seen:?}");
    let live: f64 = seen.iter().map(|one| one.tps).sum::<f64>() / seen.len() as f64;
    let tps = done(&figures) as f64 / figures.duration_s;
    assert!((live / tps - 1.0).abs() < 0.5, "{live} live, {tps} measured");
    assert!(seen.iter().all(|one| one.percentile_us.is_some_and(|us| us > 1_900.0)), "{seen:?}");
}

/// Is held up between the last look of a second and its end.
#[derive(Default)]
struct HeldUp {
    seen: usize,
}

impl WindowObserver for HeldUp {
    fn opened(&mut self) {}
    fn open(&mut self, elapsed_s: f64) {
        if (0.98..1.0).contains(&elapsed_s) {
            std::thread::sleep(Duration::from_millis(40));
        }
    }
    fn live(&mut self, _figures: &LiveFigures) {
        self.seen += 1;
    }
    fn closed(&mut self) {}
}

#[test]
fn the_last_second_is_seen_although_the_window_ends_between_two_looks() {
    let _turn = crate::one_at_a_time();
    let mut held_up = HeldUp::default();
    measured(&Idle::new(Duration::from_millis(2)), &spec(2, 1_000), &mut held_up);
    assert_eq!(held_up.seen, 1);
}

#[test]
fn workers_share_one_schedule() {
    let _turn = crate::one_at_a_time();
    let pacing = TransactionPacing::Open {
        rate_per_s: 1_000.0,
        process: RateProcess::Poisson,
        queue_max: 1_000,
        overload: Overload::Queue,
    };
    let spec = TransactionSpec { pacing, ..spec(16, 1_500) };
    let figures = measured(&Idle::new(Duration::from_millis(2)), &spec, &mut NoObserver);
    let counts = figures.streams[0].transactions.as_ref().unwrap();
    let scatter = 6.0 * 1_500.0_f64.sqrt();
    assert!((counts.arrivals as f64 - 1_500.0).abs() < scatter, "{counts:?}");
    assert!(counts.arrivals >= done(&figures) && counts.dropped == 0, "{counts:?}");
    let late_us = figures.streams[0].start_lateness_us_p99.unwrap();
    eprintln!("start lateness p99 {late_us:.0} us at 1,000 per second by 16 threads");
}

#[test]
fn a_source_that_opens_no_session_is_an_error() {
    struct Closed;
    impl TransactionSource for Closed {
        fn kinds(&self) -> Vec<OpKind> {
            vec![OpKind::Transaction]
        }
        fn blocks(&self) -> bool {
            true
        }
        fn worker(
            &self,
            _first_slot: u32,
            _slots: u32,
        ) -> Result<Box<dyn TransactionWorker + '_>, SessionError> {
            Err("the target refuses; start it".into())
        }
    }
    let interrupted = AtomicBool::new(false);
    let surroundings = Surroundings { interrupted: &interrupted, program: None };
    let spec = spec(2, 60_000);
    let error = TransactionLoad::new(&Closed, &spec, false)
        .run(&surroundings, &mut NoObserver)
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the target refuses; start it"), "{text}");
}

/// Commits that are durable a little later, and a note of who had which turn.
struct Grouped {
    turns: Mutex<Vec<Turn>>,
    under_way: AtomicU32,
}

struct Group<'a> {
    of: &'a Grouped,
    durable_at: Vec<Instant>,
}

impl TransactionSource for Grouped {
    fn kinds(&self) -> Vec<OpKind> {
        vec![OpKind::Payment]
    }

    fn blocks(&self) -> bool {
        false
    }

    fn worker(
        &self,
        _first_slot: u32,
        slots: u32,
    ) -> Result<Box<dyn TransactionWorker + '_>, SessionError> {
        let durable_at = vec![Instant::now(); slots as usize];
        Ok(Box::new(Group { of: self, durable_at }))
    }
}

impl TransactionWorker for Group<'_> {
    fn next(&mut self, turn: Turn) -> NextTransaction {
        let waits = Duration::from_millis(1 + (u64::from(turn.home) + turn.nth) % 7);
        NextTransaction { kind: OpKind::Payment, keying: waits, think: waits, is_deferred: false }
    }

    fn run(&mut self, slot: u32, turn: Turn) -> Ran {
        self.of.turns.lock().unwrap().push(turn);
        self.of.under_way.fetch_add(1, Ordering::Relaxed);
        self.durable_at[slot as usize] = Instant::now() + Duration::from_millis(3);
        Ran { kind: OpKind::Payment, ended: TransactionEnd::Pending, retries: 0 }
    }

    fn settle(&mut self, slot: u32, waits: bool) -> Settlement {
        let left = self.durable_at[slot as usize].saturating_duration_since(Instant::now());
        if !left.is_zero() && !waits {
            return Settlement::NotYet;
        }
        std::thread::sleep(left);
        self.of.under_way.fetch_sub(1, Ordering::Relaxed);
        Settlement::Durable
    }

    fn reopen(&mut self, _slot: u32) -> Result<(), String> {
        Ok(())
    }

    fn cost(&self) -> TransactionCost {
        TransactionCost::default()
    }
}

#[test]
fn terminals_keep_their_order_over_all_threads() {
    let _turn = crate::one_at_a_time();
    let source = Grouped { turns: Mutex::default(), under_way: AtomicU32::new(0) };
    let pacing = TransactionPacing::Terminals { homes: 40 };
    let spec = TransactionSpec { pacing, ..spec(8, 800) };
    let interrupted = AtomicBool::new(false);
    let surroundings = Surroundings { interrupted: &interrupted, program: None };
    let figures =
        TransactionLoad::new(&source, &spec, false).run(&surroundings, &mut NoObserver).unwrap();
    let turns = source.turns.lock().unwrap();
    let mut next = [0; 40];
    for turn in turns.iter() {
        assert_eq!(turn.nth, next[turn.home as usize], "of terminal {}", turn.home);
        next[turn.home as usize] += 1;
    }
    assert!(next.iter().all(|turns| *turns >= 5), "{next:?}");
    assert_eq!(source.under_way.load(Ordering::Relaxed), 0, "some commit was never settled");
    let stream = &figures.streams[0];
    let payments = stream.ops[OpKind::Payment].as_ref().unwrap();
    // What the last moment cut off was run and settled, and is not counted.
    assert!(payments.ios.abs_diff(turns.len() as u64) <= 8, "{} of {}", payments.ios, turns.len());
    assert!(payments.latency_us.p50 >= 2_900.0 && stream.depth_mean <= 8.0, "{payments:?}");
    let counts = stream.transactions.as_ref().unwrap();
    assert!(counts.arrivals >= payments.ios, "{counts:?}");
}
