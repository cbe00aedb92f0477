//! The family for the driver: what a terminal runs in its turn.

use std::sync::Arc;

use iostrata_spec::OpKind;
use iostrata_stats::Random;
use iostrata_target::{Rows, Session, SessionOptions, Target, TargetError, Value};

use crate::oltp::distribution::Chooser;
use crate::oltp::spec::OltpSpec;
use crate::oltp::statements::{Statement, c_value, ops, pad_value, schema};
use crate::plain_terminals::{PlainTerminals, Transactions, refuse_without_tables};
use crate::slots::Conclusion;

/// All terminals of a run.
pub type OltpTerminals<'a> = PlainTerminals<'a, OltpTransactions>;

impl<'a> OltpTerminals<'a> {
    /// Terminals over tables that are there. `blocks`: whether a session keeps its thread waiting.
    ///
    /// # Errors
    /// When a table is missing, or what the target said.
    pub fn new(target: &'a dyn Target, spec: OltpSpec, blocks: bool) -> Result<Self, TargetError> {
        let schema = schema(spec.tables);
        let fix = "make it with `oltp ... prepare` and the same --tables";
        refuse_without_tables(target, &schema, fix)?;
        let session = SessionOptions {
            ops: ops(spec.tables),
            isolation: spec.isolation,
            autocommit: spec.skip_trx,
            as_text: spec.as_text,
        };
        let (seed, ids) = (spec.seed, spec.chooser());
        let transactions = OltpTransactions { spec, ids };
        Ok(Self { target, schema: Arc::new(schema), session, seed, blocks, transactions })
    }
}

/// Transactions of one member of the family.
pub struct OltpTransactions {
    spec: OltpSpec,
    ids: Chooser,
}

/// What a worker keeps.
#[derive(Default)]
pub struct OltpBuffers {
    rows: Rows,
    text: [Vec<u8>; 2],
}

impl Transactions for OltpTransactions {
    type Buffers = OltpBuffers;

    fn buffers(&self) -> OltpBuffers {
        OltpBuffers::default()
    }

    fn run(
        &self,
        buffers: &mut OltpBuffers,
        session: &mut dyn Session,
        _kind: OpKind,
        random: &mut Random,
    ) -> Result<Conclusion, TargetError> {
        let OltpBuffers { rows, text } = buffers;
        Statements { of: self, rows, text }.all(session, random).map(|()| Conclusion::Commit)
    }
}

/// Runs the statements of transactions.
struct Statements<'a> {
    of: &'a OltpTransactions,
    rows: &'a mut Rows,
    text: &'a mut [Vec<u8>; 2],
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
                    session.run(op, &[id.into()], self.rows)?;
                }
                Statement::NonIndexUpdate => {
                    self.text[0].clear();
                    c_value(random, &mut self.text[0]);
                    let args = [id.into(), Value::Text(&self.text[0])];
                    session.run(op, &args, self.rows)?;
                }
                Statement::Delete | Statement::Insert => {
                    self.delete_insert(session, random, (table, id))?;
                }
                _ => {
                    let last = id + self.of.spec.range_size - 1;
                    session.run(op, &[id.into(), last.into()], self.rows)?;
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
        session.run(Statement::Delete.of(table), &[id.into()], self.rows)?;
        let [c, pad] = &*self.text;
        let args = [id.into(), k.into(), Value::Text(c), Value::Text(pad)];
        session.run(Statement::Insert.of(table), &args, self.rows)?;
        Ok(())
    }
}
