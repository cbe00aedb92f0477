//! The load for the driver: every turn inserts the rows of one commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use iostrata_database::target::{
    Access, Op, OpId, Rows, Session, SessionOptions, Target, TargetError, Value,
};
use iostrata_load::Turn;
use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::insert::prepare::{InsertSpec, rows_loaded};
use crate::insert::row::{COLUMNS, TABLE, push, schema};
use crate::plain_terminals::{PlainTerminals, Transactions};
use crate::slots::Conclusion;

/// How it differs from the load of 2009, which was a stored procedure.
pub const DEVIATIONS: [&str; 2] = [
    "rows come from sessions of clients, so that every commit costs a round trip",
    "strings are drawn and begin with the sum of the keys, in place of forty equal characters",
];

/// Rows of one statement at most.
const STATEMENT_ROWS: u32 = 1_000;
const INSERT: OpId = OpId(0);

/// All terminals of a run.
pub type InsertTerminals<'a> = PlainTerminals<'a, InsertTransactions>;

impl<'a> InsertTerminals<'a> {
    /// Terminals over a table that is there. `blocks`: whether a session keeps its thread waiting.
    ///
    /// # Errors
    /// When nothing was prepared, or what the target said.
    pub fn new(
        target: &'a dyn Target,
        spec: &InsertSpec,
        blocks: bool,
    ) -> Result<Self, TargetError> {
        rows_loaded(target)?;
        let rows_per_commit = spec.rows_per_commit;
        let session = SessionOptions {
            ops: [Op { name: "insert", table: TABLE, access: Access::Insert }].into(),
            isolation: spec.isolation,
            // One statement is a transaction of its own, and saves a round trip. Where commits may
            // be pending they are asked for.
            autocommit: blocks && rows_per_commit <= STATEMENT_ROWS,
            as_text: spec.as_text,
        };
        let transactions = InsertTransactions { rows_per_commit, committed: Arc::default() };
        let (schema, seed) = (Arc::new(schema()), spec.seed);
        Ok(Self { target, schema, session, seed, blocks, transactions })
    }

    /// Rows whose commits were acknowledged so far.
    pub fn committed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.transactions.committed)
    }
}

/// Transactions that insert the rows of one commit each.
pub struct InsertTransactions {
    rows_per_commit: u32,
    /// Rows.
    committed: Arc<AtomicU64>,
}

/// What a worker keeps.
pub struct InsertBuffers {
    rows: Rows,
    /// What an insert gives.
    none: Rows,
    text: Vec<u8>,
}

impl Transactions for InsertTransactions {
    type Buffers = InsertBuffers;

    fn buffers(&self) -> InsertBuffers {
        InsertBuffers { rows: Rows::new(COLUMNS), none: Rows::default(), text: Vec::new() }
    }

    fn run(
        &self,
        buffers: &mut InsertBuffers,
        session: &mut dyn Session,
        _kind: OpKind,
        _turn: Turn,
        random: &mut Random,
    ) -> Result<Conclusion, TargetError> {
        let InsertBuffers { rows, none, text } = buffers;
        let mut left = self.rows_per_commit;
        session.begin()?;
        while left > 0 {
            let count = left.min(STATEMENT_ROWS);
            rows.clear(COLUMNS);
            (0..count).for_each(|_| push(random, None, text, rows));
            let values: Vec<Value<'_>> =
                (0..count as usize).flat_map(|row| rows.row(row)).collect();
            session.run(INSERT, &values, none)?;
            left -= count;
        }
        Ok(Conclusion::Commit)
    }

    fn committed(&self) {
        self.committed.fetch_add(self.rows_per_commit.into(), Ordering::Relaxed);
    }
}
