//! Terminals that neither key nor think: what they share, whatever they run.

use std::sync::Arc;
use std::time::Duration;

use iostrata_database::target::{Schema, Session, SessionOptions, Target, TargetError};
use iostrata_load::{
    Planned, Ran, SessionError, Settled, TransactionCost, TransactionSource, TransactionWorker,
    Turn,
};
use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::slots::{Conclusion, Slots};

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
    /// What the target said.
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
    fn next(&mut self, turn: Turn) -> Planned {
        let (kind, _) = self.of.turn(turn);
        Planned { kind, keying: Duration::ZERO, think: Duration::ZERO, is_deferred: false }
    }

    fn run(&mut self, slot: u32, turn: Turn) -> Ran {
        let (kind, start) = self.of.turn(turn);
        let (transactions, buffers) = (&self.of.transactions, &mut self.buffers);
        let (ended, retries) = self.slots.run(slot, (), |session| {
            transactions.run(buffers, session, kind, turn, &mut start.clone())
        });
        Ran { kind, ended, retries }
    }

    fn settle(&mut self, slot: u32, waits: bool) -> Settled {
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
/// A table is missing; what the target said.
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
