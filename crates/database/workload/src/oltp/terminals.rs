//! The family for the driver: what a terminal runs in its turn.

use std::sync::Arc;
use std::time::Duration;

use iostrata_load::{
    Planned, Ran, SessionError, Settled, TransactionCost, TransactionSource, TransactionWorker,
    Turn,
};
use iostrata_spec::OpKind;
use iostrata_stats::Random;
use iostrata_target::{Op, Rows, Schema, Session, SessionOptions, Target, TargetError, Value};

use crate::oltp::distribution::Chooser;
use crate::oltp::spec::OltpSpec;
use crate::oltp::statements::{Statement, c_value, ops, pad_value, schema};
use crate::slots::{Conclusion, Slots};

/// All terminals of a run.
pub struct OltpTerminals<'a> {
    target: &'a dyn Target,
    schema: Arc<Schema>,
    ops: Arc<[Op]>,
    spec: OltpSpec,
    ids: Chooser,
    blocks: bool,
}

impl<'a> OltpTerminals<'a> {
    /// Terminals over tables that are there. `blocks`: whether a session keeps its thread waiting.
    ///
    /// # Errors
    /// When a table is missing, or what the target said.
    pub fn new(target: &'a dyn Target, spec: OltpSpec, blocks: bool) -> Result<Self, TargetError> {
        let schema = schema(spec.tables);
        let present = target.present(&schema)?;
        let missing = (0..schema.tables.len()).find(|table| !present.contains(table));
        if let Some(table) = missing {
            let text = format!("table {} is not there", schema.tables[table].name);
            let fix = "make it with `oltp ... prepare` and the same --tables";
            return Err(TargetError::not_ready(&target.name(), "not_prepared", text, fix));
        }
        let ids = spec.chooser();
        let ops = ops(spec.tables);
        Ok(Self { target, schema: Arc::new(schema), ops, spec, ids, blocks })
    }

    fn session(&self) -> Result<Box<dyn Session>, TargetError> {
        let options = SessionOptions {
            ops: Arc::clone(&self.ops),
            isolation: self.spec.isolation,
            autocommit: self.spec.skip_trx,
            as_text: self.spec.as_text,
        };
        self.target.session(&self.schema, &options)
    }
}

impl TransactionSource for OltpTerminals<'_> {
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
        let (rows, text) = (Rows::default(), [Vec::new(), Vec::new()]);
        Ok(Box::new(OltpWorker {
            of: self,
            slots,
            statements: Statements { of: self, rows, text },
        }))
    }
}

struct OltpWorker<'a> {
    of: &'a OltpTerminals<'a>,
    slots: Slots<()>,
    statements: Statements<'a>,
}

impl TransactionWorker for OltpWorker<'_> {
    fn next(&mut self, _turn: Turn) -> Planned {
        let kind = OpKind::Transaction;
        Planned { kind, keying: Duration::ZERO, think: Duration::ZERO, is_deferred: false }
    }

    fn run(&mut self, slot: u32, turn: Turn) -> Ran {
        let stream = u64::from(turn.home) << 40 ^ turn.nth;
        let start = Random::of_stream(self.of.spec.seed, stream);
        let statements = &mut self.statements;
        let (ended, retries) = self.slots.run(slot, (), |session| {
            statements.all(session, &mut start.clone()).map(|()| Conclusion::Commit)
        });
        Ran { kind: OpKind::Transaction, ended, retries }
    }

    fn settle(&mut self, slot: u32, waits: bool) -> Settled {
        self.slots.settle(slot, waits).1
    }

    fn reopen(&mut self, slot: u32) -> Result<(), String> {
        self.slots.reopen(slot, self.of.session())
    }

    fn cost(&self) -> TransactionCost {
        self.slots.cost()
    }
}

/// Runs the statements of transactions.
struct Statements<'a> {
    of: &'a OltpTerminals<'a>,
    rows: Rows,
    text: [Vec<u8>; 2],
}

impl Statements<'_> {
    /// One transaction's, in sysbench's order.
    fn all(&mut self, session: &mut dyn Session, random: &mut Random) -> Result<(), TargetError> {
        let counts = self.of.spec.counts;
        session.begin()?;
        self.some(session, random, Statement::PointSelect, counts.point_selects)?;
        self.some(session, random, Statement::SimpleRange, counts.simple_ranges)?;
        self.some(session, random, Statement::SumRange, counts.sum_ranges)?;
        self.some(session, random, Statement::OrderRange, counts.order_ranges)?;
        self.some(session, random, Statement::DistinctRange, counts.distinct_ranges)?;
        self.some(session, random, Statement::IndexUpdate, counts.index_updates)?;
        self.some(session, random, Statement::NonIndexUpdate, counts.non_index_updates)?;
        self.some(session, random, Statement::Delete, counts.delete_inserts)
    }

    /// So many of one statement, on one table.
    fn some(
        &mut self,
        session: &mut dyn Session,
        random: &mut Random,
        statement: Statement,
        count: u32,
    ) -> Result<(), TargetError> {
        if count == 0 {
            return Ok(());
        }
        let table = random.below(self.of.spec.tables.into()) as u32;
        for _ in 0..count {
            let id = self.of.ids.draw(random);
            let op = statement.of(table);
            match statement {
                Statement::PointSelect | Statement::IndexUpdate => {
                    session.run(op, &[id.into()], &mut self.rows)?;
                }
                Statement::NonIndexUpdate => {
                    self.text[0].clear();
                    c_value(random, &mut self.text[0]);
                    let args = [id.into(), Value::Text(&self.text[0])];
                    session.run(op, &args, &mut self.rows)?;
                }
                Statement::Delete | Statement::Insert => {
                    self.delete_insert(session, random, (table, id))?;
                }
                _ => {
                    let last = id + self.of.spec.range_size - 1;
                    session.run(op, &[id.into(), last.into()], &mut self.rows)?;
                }
            }
        }
        Ok(())
    }

    /// Removes a row and puts another one in its place.
    fn delete_insert(
        &mut self,
        session: &mut dyn Session,
        random: &mut Random,
        (table, id): (u32, i64),
    ) -> Result<(), TargetError> {
        let k = self.of.ids.draw(random);
        for (text, value) in self.text.iter_mut().zip([c_value, pad_value]) {
            text.clear();
            value(random, text);
        }
        session.run(Statement::Delete.of(table), &[id.into()], &mut self.rows)?;
        let [c, pad] = &self.text;
        let args = [id.into(), k.into(), Value::Text(c), Value::Text(pad)];
        session.run(Statement::Insert.of(table), &args, &mut self.rows)?;
        Ok(())
    }
}
