//! Sessions in the hands of one worker: how a transaction is tried again, committed and settled;
//! and terminals that neither key nor think.
//!
//! Invariant: a transaction that must be begun again is begun with the same work; commits of a
//! session are settled in their order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use iostrata_database::target::{
    Schema, Session, SessionOptions, Target, TargetError, Ticket, Trouble,
};
use iostrata_load::{
    FailedTransaction, NextTransaction, Ran, Reach, SessionError, Settlement, TransactionCost,
    TransactionEnd, TransactionSource, TransactionWorker, Turn,
};
use iostrata_plan::OpKind;
use iostrata_stats::Random;

/// Times that a transaction is begun at most.
const TRIES_MAX: u32 = 100;

/// How the work of a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    Commit,
    /// As the workload wants it.
    RollBack,
}

/// One session.
struct SlotSession<T> {
    session: Box<dyn Session>,
    /// Commits that are not settled, with the workload's data about them.
    pending: VecDeque<(Ticket, T)>,
}

impl<T> SlotSession<T> {
    fn new(session: Box<dyn Session>) -> Self {
        Self { session, pending: VecDeque::new() }
    }
}

/// Sessions, each with its pending commits, for each of which the workload keeps a `T`.
pub(crate) struct Slots<T> {
    slots: Vec<SlotSession<T>>,
    /// What sessions cost that are closed.
    before: TransactionCost,
}

impl<T: Copy> Slots<T> {
    /// Opens so many.
    pub fn open(
        count: u32,
        open: impl Fn() -> Result<Box<dyn Session>, TargetError>,
    ) -> Result<Self, TargetError> {
        let slots: Result<Vec<SlotSession<T>>, TargetError> =
            (0..count).map(|_| open().map(SlotSession::new)).collect();
        Ok(Self { slots: slots?, before: TransactionCost::default() })
    }

    /// Runs a transaction up to its commit, again where the target wants it. Gives how it ended and
    /// how often it was begun again.
    pub fn run(
        &mut self,
        slot: u32,
        known: T,
        mut work: impl FnMut(&mut dyn Session) -> Result<Conclusion, TargetError>,
    ) -> (TransactionEnd, u32) {
        let slot = &mut self.slots[slot as usize];
        let mut retries = 0;
        loop {
            let session = &mut *slot.session;
            let done = work(session).and_then(|work| match work {
                Conclusion::Commit => session.commit().map(Some),
                Conclusion::RollBack => session.rollback().map(|()| None),
            });
            match done {
                Ok(Some(ticket)) => {
                    slot.pending.push_back((ticket, known));
                    return (TransactionEnd::Pending, retries);
                }
                Ok(None) => return (TransactionEnd::Done, retries),
                Err(error) => {
                    if error.trouble != Trouble::Gone {
                        // What is wrong with the session shows when it is used next.
                        let _also_failed = session.rollback();
                    }
                    if error.trouble != Trouble::Retry || retries + 1 == TRIES_MAX {
                        return (TransactionEnd::Failed(failed(error)), retries);
                    }
                    retries += 1;
                }
            }
        }
    }

    /// Polls the oldest pending commit of a slot; returns the data about it once it is durable.
    pub fn settle(&mut self, slot: u32, waits: bool) -> (Option<T>, Settlement) {
        let slot = &mut self.slots[slot as usize];
        let Some((ticket, known)) = slot.pending.front().copied() else {
            return (None, Settlement::Durable);
        };
        let settled = match slot.session.settle(ticket, waits) {
            Ok(false) => return (None, Settlement::NotYet),
            Ok(true) => (Some(known), Settlement::Durable),
            Err(error) => (None, Settlement::Failed(failed(error))),
        };
        slot.pending.pop_front();
        settled
    }

    /// Puts another session in the place of one that is gone.
    ///
    /// # Errors
    /// The code under which the target refuses.
    pub fn reopen(
        &mut self,
        slot: u32,
        session: Result<Box<dyn Session>, TargetError>,
    ) -> Result<(), String> {
        let session = session.map_err(|error| error.code)?;
        let slot = &mut self.slots[slot as usize];
        add(&mut self.before, &*slot.session);
        *slot = SlotSession::new(session);
        Ok(())
    }

    /// What all sessions have cost so far.
    pub fn cost(&self) -> TransactionCost {
        let mut all = self.before;
        self.slots.iter().for_each(|slot| add(&mut all, &*slot.session));
        all
    }
}

/// What is over with a failure: what is missing, forbidden or closed now stays so.
fn failed(error: TargetError) -> FailedTransaction {
    let reach = match error.trouble {
        Trouble::Gone => Reach::Session,
        Trouble::NotReady | Trouble::Stopped => Reach::Run,
        Trouble::NoSpace => Reach::Window,
        Trouble::Retry | Trouble::Exists | Trouble::Failed => Reach::Transaction,
    };
    FailedTransaction { text: error.to_string(), code: error.code, reach }
}

fn add(all: &mut TransactionCost, session: &dyn Session) {
    let cost = session.cost();
    all.round_trips += cost.round_trips;
    all.statements += cost.statements;
}

// Terminals that neither key nor think: what they share, whatever they run.

/// The transactions of a workload.
pub trait Transactions: Sync {
    /// What a worker keeps from one transaction to the next.
    type Buffers: 'static;

    /// Empty ones.
    fn buffers(&self) -> Self::Buffers;

    /// All kinds of them.
    fn kinds(&self) -> Vec<OpKind> {
        vec![OpKind::Transaction]
    }

    /// The kind of a turn; it is the first that is drawn from the turn's stream.
    fn kind(&self, _random: &mut Random) -> OpKind {
        OpKind::Transaction
    }

    /// Runs the statements of one, from its begin up to its commit.
    ///
    /// # Errors
    /// The target's error.
    fn run(
        &self,
        buffers: &mut Self::Buffers,
        session: &mut dyn Session,
        kind: OpKind,
        turn: Turn,
        random: &mut Random,
    ) -> Result<Conclusion, TargetError>;

    /// A commit was acknowledged.
    fn committed(&self) {}
}

/// All terminals of a run.
pub struct PlainTerminals<'a, T> {
    pub(crate) target: &'a dyn Target,
    pub(crate) schema: Arc<Schema>,
    pub(crate) session: SessionOptions,
    /// Of everything that is drawn.
    pub(crate) seed: u64,
    /// Whether a session keeps its thread waiting.
    pub(crate) blocks: bool,
    pub(crate) transactions: T,
}

impl<T: Transactions> PlainTerminals<'_, T> {
    fn session(&self) -> Result<Box<dyn Session>, TargetError> {
        self.target.session(&self.schema, &self.session)
    }

    /// The kind of a turn, and the stream that the rest of it is drawn from.
    fn turn(&self, turn: Turn) -> (OpKind, Random) {
        let mut random = Random::of_stream(self.seed, u64::from(turn.home) << 40 ^ turn.nth);
        (self.transactions.kind(&mut random), random)
    }
}

impl<T: Transactions> TransactionSource for PlainTerminals<'_, T> {
    fn kinds(&self) -> Vec<OpKind> {
        self.transactions.kinds()
    }

    fn blocks(&self) -> bool {
        self.blocks
    }

    fn worker(
        &self,
        _first_slot: u32,
        slots: u32,
    ) -> Result<Box<dyn TransactionWorker + '_>, SessionError> {
        let slots = Slots::open(slots, || self.session())?;
        Ok(Box::new(Worker { of: self, slots, buffers: self.transactions.buffers() }))
    }
}

struct Worker<'a, T: Transactions> {
    of: &'a PlainTerminals<'a, T>,
    slots: Slots<()>,
    buffers: T::Buffers,
}

impl<T: Transactions> TransactionWorker for Worker<'_, T> {
    fn next(&mut self, turn: Turn) -> NextTransaction {
        let (kind, _) = self.of.turn(turn);
        NextTransaction { kind, keying: Duration::ZERO, think: Duration::ZERO, is_deferred: false }
    }

    fn run(&mut self, slot: u32, turn: Turn) -> Ran {
        let (kind, start) = self.of.turn(turn);
        let (transactions, buffers) = (&self.of.transactions, &mut self.buffers);
        let (ended, retries) = self.slots.run(slot, (), |session| {
            transactions.run(buffers, session, kind, turn, &mut start.clone())
        });
        Ran { kind, ended, retries }
    }

    fn settle(&mut self, slot: u32, waits: bool) -> Settlement {
        let (acknowledged, settled) = self.slots.settle(slot, waits);
        acknowledged.into_iter().for_each(|()| self.of.transactions.committed());
        settled
    }

    fn reopen(&mut self, slot: u32) -> Result<(), String> {
        self.slots.reopen(slot, self.of.session())
    }

    fn cost(&self) -> TransactionCost {
        self.slots.cost()
    }
}

/// Refuses a target that lacks a table of the schema.
///
/// # Errors
/// A table is missing; the target's error.
pub(crate) fn refuse_without_tables(
    target: &dyn Target,
    schema: &Schema,
    fix: &str,
) -> Result<(), TargetError> {
    let present = target.present(schema)?;
    let missing = (0..schema.tables.len()).find(|table| !present.contains(table));
    missing.map_or(Ok(()), |table| {
        let text = format!("table {} is not there", schema.tables[table].name);
        Err(TargetError::not_ready(&target.name(), "not_prepared", text, fix))
    })
}
