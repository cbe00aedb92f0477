//! The loop of one worker: it starts transactions, settles commits and opens lost sessions again.
//!
//! Invariants: a transaction is counted when it is settled and only then; one that failed never is,
//! nor is one that ends after the window. In a closed loop nothing is allocated, no lock is taken,
//! and the stamp of an end is that of the next start. Service latency runs from the start to the
//! settlement, response latency from the moment at which the transaction was due.
//! It decides nothing: turns come from the agenda, transactions from the workload, the end from the
//! shared statistics.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::clock::{Clock, Ticks};
use crate::recorder::{Edge, Recorder};
use crate::shared_stats::SharedStats;
use crate::tally::Span;
use crate::transactions::agenda::{Next, WAIT_NS_MAX};
use crate::transactions::crew::Crew;
use crate::transactions::source::{
    FailedTransaction, NextTransaction, Reach, Settlement, TransactionCost, TransactionEnd,
    TransactionWorker, Turn,
};

/// While a transaction is due soon and a commit is pending, both are polled at this interval.
const POLL_NS: u64 = 200_000;
/// A lost session is opened again after this, then after twice as long, up to the longest.
const BACKOFF_NS: u64 = 10_000_000;
const BACKOFF_NS_MAX: u64 = 1_000_000_000;

/// What a slot does, or is to do next.
#[derive(Clone, Copy)]
struct Flight {
    turn: Turn,
    kind: OpKind,
    started: Ticks,
    /// Where its response latency begins.
    since: Ticks,
    think: Duration,
    /// Whether its terminal continued without waiting for it.
    is_deferred: bool,
}

/// A session that is gone.
#[derive(Clone, Copy)]
struct LostSession {
    slot: u32,
    retry_at: Ticks,
    backoff_ns: u64,
}

/// One worker, ready to start.
pub(crate) struct Driver<'a, C> {
    worker: Box<dyn TransactionWorker + 'a>,
    crew: &'a Crew,
    shared: &'a SharedStats,
    clock: C,
    recorder: Recorder,
    /// Number among the workers.
    number: u32,
    flights: Box<[Flight]>,
    free: Vec<u32>,
    /// Slots whose commits are pending, in the order of the commits.
    pending: VecDeque<u32>,
    lost: Vec<LostSession>,
    start: Ticks,
    closed: bool,
    /// The end that has just made room.
    stamp: Option<Ticks>,
    /// When the next transaction is due, as far as it is known.
    due: Ticks,
    /// A terminal that is to be given back at the next look at the agenda.
    back: Option<(Ticks, Turn)>,
    /// Mean time that a pending commit is waited for.
    settle_ticks: u64,
    cost_mark: TransactionCost,
}

impl<'a, C: Clock> Driver<'a, C> {
    /// A worker with so many slots, the first of which has this number among all.
    pub(crate) fn new(
        worker: Box<dyn TransactionWorker + 'a>,
        (crew, shared): (&'a Crew, &'a SharedStats),
        (clock, recorder): (C, Recorder),
        number: u32,
        (first_slot, slots): (u32, u32),
    ) -> Self {
        let flight = |slot| Flight {
            turn: Turn::first(first_slot + slot),
            kind: OpKind::Transaction,
            started: 0,
            since: 0,
            think: Duration::ZERO,
            is_deferred: false,
        };
        Self {
            worker,
            crew,
            shared,
            clock,
            recorder,
            number,
            flights: (0..slots).map(flight).collect(),
            free: (0..slots).rev().collect(),
            pending: VecDeque::with_capacity(slots as usize),
            lost: Vec::with_capacity(slots as usize),
            start: 0,
            closed: false,
            stamp: None,
            due: 0,
            back: None,
            settle_ticks: 0,
            cost_mark: TransactionCost::default(),
        }
    }

    /// Runs from `start` to the end of the window, and waits for what is then pending.
    pub(crate) fn run(mut self, start: Ticks, span: Span) -> Recorder {
        self.seat_terminals(start);
        self.clock.wait(start);
        self.start = start;
        if !self.recorder.open(start, span) {
            return self.recorder;
        }
        self.cost_mark = self.worker.cost();
        while !self.closed {
            self.settle_ready();
            self.reopen_due();
            if !self.start_one() {
                self.idle();
            }
        }
        let ended = self.recorder.finish(self.clock.now());
        self.shared.post_ended(self.number, ended.saturating_sub(start));
        while let Some(slot) = self.pending.pop_front() {
            self.worker.settle(slot, true);
        }
        self.recorder
    }

    /// Lets this worker's share of the terminals begin, each anywhere within its first cycle.
    fn seat_terminals(&mut self, start: Ticks) {
        let (Some(agenda), Some(homes)) = (&self.crew.agenda, self.crew.homes) else { return };
        for home in (self.number..homes).step_by(self.crew.workers as usize) {
            let turn = Turn::first(home);
            let NextTransaction { keying, think, .. } = self.worker.next(turn);
            let phase = Random::of_stream(self.crew.seed, u64::from(home)).uniform();
            let before_ns = (keying + think).as_nanos() as f64 * phase;
            agenda.add(start + self.clock.ticks_in(before_ns as u64), turn);
        }
    }

    fn ticks(&self, time: Duration) -> Ticks {
        self.clock.ticks_in(time.as_nanos() as u64)
    }

    /// Starts a transaction, if a slot is free and one is due; false otherwise.
    #[inline]
    fn start_one(&mut self) -> bool {
        let Some(&slot) = self.free.last() else { return false };
        let now = self.stamp.take().unwrap_or_else(|| self.clock.now());
        if self.recorder.is_beyond(now) && self.cross(now) == Edge::Closed {
            return true;
        }
        let (since, turn) = match &self.crew.agenda {
            None => (now, None),
            Some(agenda) => match agenda.take(&self.clock, self.start, now, self.back.take()) {
                Next::Due { since, turn } => (since, turn),
                Next::At(due) => {
                    self.due = due;
                    return false;
                }
                Next::Overloaded => {
                    self.crew.is_overloaded.store(true, Ordering::Relaxed);
                    self.shared.post_stop_soon(now);
                    self.due = Ticks::MAX;
                    return false;
                }
            },
        };
        if self.crew.events.as_ref().is_some_and(|events| !events.begin()) {
            self.due = Ticks::MAX;
            return false;
        }
        self.free.pop();
        // Another worker, whose clock was read a little later, may have let it queue.
        let now = now.max(since);
        if self.crew.agenda.is_some() {
            self.recorder.record_lateness(self.clock.to_ns(now - since));
            let segment = self.recorder.segment();
            self.recorder.transactions(segment).arrivals += 1;
        }
        self.run_turn(slot, turn, since, now);
        true
    }

    #[inline]
    fn run_turn(&mut self, slot: u32, of_terminal: Option<Turn>, since: Ticks, started: Ticks) {
        let flight = &mut self.flights[slot as usize];
        let turn = of_terminal.unwrap_or(flight.turn);
        let NextTransaction { kind, think, is_deferred, .. } = self.worker.next(turn);
        let is_deferred = is_deferred && of_terminal.is_some();
        *flight = Flight { turn, kind, started, since, think, is_deferred };
        if is_deferred {
            // Its terminal does not wait: neither for the answer nor for a slot.
            self.send_on(turn, since, think);
        }
        let ran = self.worker.run(slot, turn);
        self.flights[slot as usize].kind = ran.kind;
        if ran.retries > 0 && !self.closed {
            let segment = self.recorder.segment();
            self.recorder.transactions(segment).retries += u64::from(ran.retries);
        }
        match ran.ended {
            TransactionEnd::Done => self.complete(slot),
            TransactionEnd::Pending => self.pending.push_back(slot),
            TransactionEnd::Failed(failed) => self.fail(slot, &failed),
        }
    }

    /// Counts a transaction that is settled, and makes room.
    #[inline]
    fn complete(&mut self, slot: u32) {
        let now = self.clock.now();
        if self.recorder.is_beyond(now) {
            self.cross(now);
        }
        let Flight { kind, started, since, .. } = self.flights[slot as usize];
        if !self.closed {
            let service_ns = self.clock.to_ns(now.saturating_sub(started));
            let response_ns = self.clock.to_ns(now.saturating_sub(since));
            self.recorder.record(kind, service_ns, response_ns);
            self.crew.live.record(self.number, response_ns);
        }
        self.stamp = Some(now);
        self.free.push(slot);
        self.count_event(now);
        self.go_on(slot, now);
    }

    /// Ends the window with the last transaction to run.
    #[inline]
    fn count_event(&mut self, now: Ticks) {
        if self.crew.events.as_ref().is_some_and(|events| events.end()) {
            self.shared.post_stop_soon(now);
        }
    }

    /// Counts a transaction that failed, and makes room if its session is still there.
    #[cold]
    fn fail(&mut self, slot: u32, failed: &FailedTransaction) {
        let now = self.clock.now();
        if self.recorder.is_beyond(now) {
            self.cross(now);
        }
        if !self.closed {
            let segment = self.recorder.segment();
            self.recorder.transactions(segment).add_errors(&failed.code, 1);
            self.crew.live.fail(self.number);
        }
        let reach = self.crew.failures.add(failed);
        if reach == Reach::Run {
            self.shared.post_stop_soon(now);
        }
        self.count_event(now);
        if reach == Reach::Session {
            self.crew.gone.add(&failed.code);
            let retry_at = now + self.clock.ticks_in(BACKOFF_NS);
            self.lost.push(LostSession { slot, retry_at, backoff_ns: BACKOFF_NS });
        } else {
            self.free.push(slot);
        }
        self.go_on(slot, now);
        self.give_back();
    }

    /// What comes after the transaction of a slot.
    #[inline]
    fn go_on(&mut self, slot: u32, now: Ticks) {
        let Flight { turn, think, is_deferred, .. } = self.flights[slot as usize];
        if self.crew.homes.is_none() {
            self.flights[slot as usize].turn = turn.following();
        } else if !is_deferred {
            self.send_on(turn, now, think);
        }
    }

    /// Sends a terminal on to its next turn, after thinking from a moment on.
    fn send_on(&mut self, turn: Turn, from: Ticks, think: Duration) {
        self.give_back();
        let following = turn.following();
        let NextTransaction { keying, .. } = self.worker.next(following);
        self.back = Some((from + self.ticks(think) + self.ticks(keying), following));
    }

    /// Gives a terminal back where no look at the agenda may follow.
    fn give_back(&mut self) {
        if let (Some((due, turn)), Some(agenda)) = (self.back.take(), &self.crew.agenda) {
            agenda.add(due, turn);
        }
    }

    /// Settles what is durable, the oldest first, without waiting.
    #[inline]
    fn settle_ready(&mut self) {
        while let Some(&slot) = self.pending.front() {
            match self.worker.settle(slot, false) {
                Settlement::NotYet => break,
                settled => self.settled(slot, settled),
            }
        }
    }

    /// Takes note of what became of the oldest pending commit.
    fn settled(&mut self, slot: u32, settled: Settlement) {
        match settled {
            Settlement::NotYet => {}
            Settlement::Durable => {
                self.pending.pop_front();
                self.complete(slot);
            }
            Settlement::Failed(failed) => {
                self.pending.pop_front();
                self.fail(slot, &failed);
            }
        }
    }

    /// Opens lost sessions again whose time has come.
    #[inline]
    fn reopen_due(&mut self) {
        if self.lost.is_empty() {
            return;
        }
        let mut at = 0;
        while let Some(&LostSession { slot, retry_at, backoff_ns }) = self.lost.get(at) {
            if retry_at > self.clock.now() {
                at += 1;
                continue;
            }
            match self.worker.reopen(slot) {
                Ok(()) => {
                    // That may have taken long.
                    self.stamp = None;
                    self.lost.swap_remove(at);
                    self.crew.gone.remove();
                    self.free.push(slot);
                }
                Err(code) => {
                    self.crew.gone.note(&code);
                    let backoff_ns = (backoff_ns * 2).min(BACKOFF_NS_MAX);
                    let retry_at = self.clock.now() + self.clock.ticks_in(backoff_ns);
                    self.lost[at] = LostSession { slot, retry_at, backoff_ns };
                    at += 1;
                }
            }
        }
    }

    /// Nothing can be started now: waits for a commit, for what is due next, or for the end.
    #[cold]
    fn idle(&mut self) {
        self.stamp = None;
        let now = self.clock.now();
        if self.recorder.is_beyond(now) && self.cross(now) == Edge::Closed {
            return;
        }
        let due = if self.free.is_empty() { Ticks::MAX } else { self.due };
        let retry = self.lost.iter().map(|lost| lost.retry_at).min().unwrap_or(Ticks::MAX);
        let next = due.min(retry).min(now + self.clock.ticks_in(WAIT_NS_MAX));
        let Some(&slot) = self.pending.front() else {
            let spun_ns = match &self.crew.agenda {
                Some(agenda) if !self.free.is_empty() => agenda.wait(&self.clock, now, next),
                _ => self.clock.wait(next),
            };
            self.recorder.add_pacing(spun_ns);
            return;
        };
        // Who waits for a commit cannot start what is due meanwhile.
        if due.min(retry) > now.saturating_add(2 * self.settle_ticks) {
            let settled = self.worker.settle(slot, true);
            let waited = self.clock.now().saturating_sub(now);
            self.settle_ticks = (self.settle_ticks * 7 + waited) / 8;
            self.settled(slot, settled);
        } else {
            let until = next.min(now + self.clock.ticks_in(POLL_NS));
            let spun_ns = self.clock.wait(until);
            self.recorder.add_pacing(spun_ns);
        }
    }

    /// Moves on to the slice of `now`; also where costs are booked.
    #[cold]
    fn cross(&mut self, now: Ticks) -> Edge {
        let segment = self.recorder.segment();
        let edge = self.recorder.cross(now);
        self.closed = edge == Edge::Closed;
        if self.closed || self.recorder.segment() != segment {
            let cost = self.worker.cost();
            let dropped = self.crew.agenda.as_ref().map_or(0, |agenda| agenda.dropped());
            let counts = self.recorder.transactions(segment);
            counts.round_trips += cost.round_trips.saturating_sub(self.cost_mark.round_trips);
            counts.statements += cost.statements.saturating_sub(self.cost_mark.statements);
            counts.dropped += dropped;
            counts.arrivals += dropped;
            self.cost_mark = cost;
        }
        edge
    }
}
