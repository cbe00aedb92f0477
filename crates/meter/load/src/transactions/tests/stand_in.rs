//! A workload whose transactions take as long as a test says, on virtual time.

use std::sync::Mutex;
use std::time::Duration;

use iostrata_plan::{OpKind, TransactionPacing, TransactionSpec};
use iostrata_run::StreamFigures;

use crate::clock::{Clock, VirtualClock, clock_facts};
use crate::controller::Conducted;
use crate::figures::WindowFigures;
use crate::transactions::source::{
    Ended, FailedTransaction, Planned, Ran, Reach, SessionError, Settled, TransactionCost,
    TransactionSource, TransactionWorker, Turn,
};
use crate::transactions::window::TransactionWindow;

/// What a transaction does: how long it runs, and how it ends.
pub(super) enum Act {
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
pub(super) enum Event {
    Ran { slot: u32, turn: Turn, at_ns: u64 },
    Settled { slot: u32, at_ns: u64 },
    Reopened { slot: u32, at_ns: u64 },
    Refused { at_ns: u64 },
}

type Plan = dyn Fn(Turn) -> Planned + Sync;
type Acts = dyn Fn(u64, Turn) -> Act + Sync;

/// The workload.
pub(super) struct StandIn {
    pub clock: VirtualClock,
    pub plan: Box<Plan>,
    pub acts: Box<Acts>,
    pub events: Mutex<Vec<Event>>,
}

pub(super) fn plain(kind: OpKind) -> Planned {
    Planned { kind, keying: Duration::ZERO, think: Duration::ZERO, is_deferred: false }
}

impl StandIn {
    pub(super) fn new(acts: impl Fn(u64, Turn) -> Act + Sync + 'static) -> Self {
        Self {
            clock: VirtualClock::default(),
            plan: Box::new(|_| plain(OpKind::Transaction)),
            acts: Box::new(acts),
            events: Mutex::default(),
        }
    }

    /// Measures a window with all slots in the hands of one thread.
    pub(super) fn measure(&self, spec: &TransactionSpec) -> WindowFigures {
        let facts = clock_facts();
        let window =
            TransactionWindow::with_workers(1, self, spec, facts, self.clock.clone()).unwrap();
        let shared = &window.controller.shared;
        shared.post_start(1);
        shared.post_stop_after(u64::from(shared.layout().slices));
        let segments = window.work(0).unwrap();
        WindowFigures::of(&window.gather(vec![segments], Conducted::default(), false))
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }
}

pub(super) fn spec(threads: u32, seconds: f64, pacing: TransactionPacing) -> TransactionSpec {
    TransactionSpec {
        threads,
        pacing,
        warm_up: Some(Duration::ZERO),
        runtime: Some(Duration::from_secs_f64(seconds)),
        ..TransactionSpec::new("stand_in", "nothing")
    }
}

pub(super) fn only(figures: &WindowFigures) -> &StreamFigures {
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
    fn next(&mut self, turn: Turn) -> Planned {
        (self.of.plan)(turn)
    }

    fn run(&mut self, slot: u32, turn: Turn) -> Ran {
        let clock = &self.of.clock;
        self.note(Event::Ran { slot, turn, at_ns: clock.now() });
        let pass = |time: Duration| clock.advance(time.as_nanos() as u64);
        let act = (self.of.acts)(self.ran, turn);
        self.ran += 1;
        let failed = |code: &str, reach| Ended::Failed(failed(code, reach));
        let ended = match act {
            Act::Done(time) => {
                pass(time);
                Ended::Done
            }
            Act::Pending(time, later) => {
                pass(time);
                self.durable_ns[slot as usize] = Some(clock.now() + later.as_nanos() as u64);
                Ended::Pending
            }
            Act::Undone(time) => {
                pass(time);
                self.durable_ns[slot as usize] = None;
                Ended::Pending
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

    fn settle(&mut self, slot: u32, waits: bool) -> Settled {
        let Some(durable_ns) = self.durable_ns[slot as usize] else {
            return Settled::Failed(failed("lost", Reach::Transaction));
        };
        if waits {
            self.of.clock.wait(durable_ns);
        }
        if self.of.clock.now() < durable_ns {
            return Settled::NotYet;
        }
        self.note(Event::Settled { slot, at_ns: self.of.clock.now() });
        Settled::Durable
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
