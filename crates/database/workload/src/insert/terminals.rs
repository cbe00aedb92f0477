//! The load for the driver: every turn inserts the rows of one commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use iostrata_load::{
    Ended, Planned, Ran, SessionError, Settled, TransactionCost, TransactionSource,
    TransactionWorker, Turn,
};
use iostrata_spec::OpKind;
use iostrata_stats::Random;
use iostrata_target::{
    Access, Op, OpId, Rows, Schema, Session, SessionOptions, Target, TargetError, Value,
};

use crate::insert::prepare::{InsertSpec, rows_loaded};
use crate::insert::row::{COLUMNS, TABLE, push, schema};
use crate::slots::{Conclusion, Slots};

/// How it differs from the load of 2009, which was a stored procedure.
pub const DEVIATIONS: [&str; 2] = [
    "rows come from sessions of clients, so that every commit costs a round trip",
    "strings are drawn and begin with the sum of the keys, in place of forty equal characters",
];

/// Rows of one statement at most.
const STATEMENT_ROWS: u32 = 1_000;
const INSERT: OpId = OpId(0);

/// All terminals of a run.
pub struct InsertTerminals<'a> {
    target: &'a dyn Target,
    schema: Arc<Schema>,
    ops: Arc<[Op]>,
    spec: InsertSpec,
    blocks: bool,
    committed: AtomicU64,
}

impl<'a> InsertTerminals<'a> {
    /// Terminals over a table that is there. `blocks`: whether a session keeps its thread waiting.
    ///
    /// # Errors
    /// When nothing was prepared, or what the target said.
    pub fn new(
        target: &'a dyn Target,
        spec: InsertSpec,
        blocks: bool,
    ) -> Result<Self, TargetError> {
        rows_loaded(target)?;
        let ops = [Op { name: "insert", table: TABLE, access: Access::Insert }].into();
        let (schema, committed) = (Arc::new(schema()), AtomicU64::new(0));
        Ok(Self { target, schema, ops, spec, blocks, committed })
    }

    /// Rows whose commits were acknowledged.
    pub fn rows(&self) -> u64 {
        self.committed.load(Ordering::Relaxed)
    }

    fn session(&self) -> Result<Box<dyn Session>, TargetError> {
        let options = SessionOptions {
            ops: Arc::clone(&self.ops),
            isolation: self.spec.isolation,
            // One statement is a transaction of its own, and saves a round trip. Where commits may
            // be pending they are asked for.
            autocommit: self.blocks && self.spec.rows_per_commit <= STATEMENT_ROWS,
            as_text: self.spec.as_text,
        };
        self.target.session(&self.schema, &options)
    }
}

impl TransactionSource for InsertTerminals<'_> {
    fn kinds(&self) -> Vec<OpKind> {
        vec![OpKind::Transaction]
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
        let (rows, none, text) = (Rows::new(COLUMNS), Rows::default(), Vec::new());
        Ok(Box::new(InsertWorker { of: self, slots, rows, none, text }))
    }
}

struct InsertWorker<'a> {
    of: &'a InsertTerminals<'a>,
    slots: Slots<()>,
    rows: Rows,
    /// What an insert gives.
    none: Rows,
    text: Vec<u8>,
}

impl TransactionWorker for InsertWorker<'_> {
    fn next(&mut self, _turn: Turn) -> Planned {
        let kind = OpKind::Transaction;
        Planned { kind, keying: Duration::ZERO, think: Duration::ZERO, is_deferred: false }
    }

    fn run(&mut self, slot: u32, turn: Turn) -> Ran {
        let spec = &self.of.spec;
        let start = Random::of_stream(spec.seed, u64::from(turn.home) << 40 ^ turn.nth);
        let Self { rows, none, text, .. } = self;
        let (ended, retries) = self.slots.run(slot, (), |session| {
            let (mut random, mut left) = (start.clone(), spec.rows_per_commit);
            session.begin()?;
            while left > 0 {
                let count = left.min(STATEMENT_ROWS);
                rows.clear(COLUMNS);
                (0..count).for_each(|_| push(&mut random, None, text, rows));
                let values: Vec<Value<'_>> =
                    (0..count as usize).flat_map(|row| rows.row(row)).collect();
                session.run(INSERT, &values, none)?;
                left -= count;
            }
            Ok(Conclusion::Commit)
        });
        if ended == Ended::Done {
            self.committed();
        }
        Ran { kind: OpKind::Transaction, ended, retries }
    }

    fn settle(&mut self, slot: u32, waits: bool) -> Settled {
        let (known, settled) = self.slots.settle(slot, waits);
        if known.is_some() {
            self.committed();
        }
        settled
    }

    fn reopen(&mut self, slot: u32) -> Result<(), String> {
        self.slots.reopen(slot, self.of.session())
    }

    fn cost(&self) -> TransactionCost {
        self.slots.cost()
    }
}

impl InsertWorker<'_> {
    fn committed(&self) {
        let rows = u64::from(self.of.spec.rows_per_commit);
        self.of.committed.fetch_add(rows, Ordering::Relaxed);
    }
}
