//! The family for the driver: what a terminal runs in its turn.

use std::sync::Arc;

use iostrata_database::target::{OpId, Rows, Session, SessionOptions, Target, TargetError, Value};
use iostrata_load::Turn;
use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::oltp::spec::{Chooser, Member, OltpSpec};
use crate::oltp::statements::{Statement, c_value, last_ids, ops, pad_value};
use crate::slots::{Conclusion, PlainTerminals, Transactions, refuse_without_tables};

/// All terminals of a run.
pub type OltpTerminals<'a> = PlainTerminals<'a, OltpTransactions>;

impl<'a> OltpTerminals<'a> {
    /// Terminals over tables that are there. `blocks`: whether a session keeps its thread waiting.
    ///
    /// # Errors
    /// When a table is missing, or the target's error.
    pub fn new(target: &'a dyn Target, spec: OltpSpec, blocks: bool) -> Result<Self, TargetError> {
        let schema = spec.schema();
        let fix = "make it with `oltp ... prepare` and the same --tables";
        refuse_without_tables(target, &schema, fix)?;
        let mut last_ids = Vec::new();
        match spec.member {
            Member::BulkInsert => last_ids = ids(target, &spec)?,
            _ => refuse_small_tables(target, &spec)?,
        }
        let session = SessionOptions {
            ops: ops(&spec, blocks),
            isolation: spec.isolation,
            autocommit: spec.skip_trx,
            as_text: spec.as_text,
        };
        let (seed, ids) = (spec.seed, spec.chooser());
        let transactions = OltpTransactions { spec, ids, last_ids, is_server: blocks };
        Ok(Self { target, schema: Arc::new(schema), session, seed, blocks, transactions })
    }
}

/// Refuses tables that end before the rows that would be accessed: statements that find nothing are
/// quick.
fn refuse_small_tables(target: &dyn Target, spec: &OltpSpec) -> Result<(), TargetError> {
    let schema = spec.schema();
    for (table, last) in schema.tables.iter().zip(ids(target, spec)?) {
        if last < spec.table_size {
            let (name, asked) = (&table.name, spec.table_size);
            let held = match last {
                0 => "is empty".to_owned(),
                last => format!("holds rows up to id {last}"),
            };
            let text = format!("--table-size {asked}: table {name} {held}");
            let fix = match last {
                0 => "fill the tables with `oltp ... prepare`".to_owned(),
                last => format!("use --table-size {last}, or load larger tables"),
            };
            return Err(TargetError::not_ready(&target.name(), "table_size", text, &fix));
        }
    }
    Ok(())
}

/// The greatest id of each table; 0 of an empty one.
fn ids(target: &dyn Target, spec: &OltpSpec) -> Result<Vec<i64>, TargetError> {
    let options = SessionOptions { ops: last_ids(spec.tables), ..SessionOptions::default() };
    let schema = Arc::new(spec.schema());
    let (mut session, mut rows) = (target.session(&schema, &options)?, Rows::default());
    session.begin()?;
    let mut ids = Vec::new();
    for at in 0..schema.tables.len() {
        session.run(OpId(at), &[], &mut rows)?;
        ids.push(if rows.is_empty() { 0 } else { rows.get(0, 0).int() });
    }
    session.rollback()?;
    Ok(ids)
}

/// Transactions of one member of the family.
pub struct OltpTransactions {
    spec: OltpSpec,
    ids: Chooser,
    /// Of bulk inserts: where each table ends.
    last_ids: Vec<i64>,
    /// Whether the target takes SQL.
    is_server: bool,
}

/// Rows of a bulk insert.
pub const BULK_ROWS: i64 = 1_000;

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
        turn: Turn,
        random: &mut Random,
    ) -> Result<Conclusion, TargetError> {
        let OltpBuffers { rows, text } = buffers;
        let mut statements = Statements { of: self, rows, text };
        match self.spec.member {
            Member::BulkInsert => statements.bulk(session, turn)?,
            _ => statements.all(session, turn, random)?,
        }
        Ok(Conclusion::Commit)
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
    fn all(
        &mut self,
        session: &mut dyn Session,
        turn: Turn,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let counts = self.of.spec.counts;
        session.begin()?;
        self.some(session, random, Statement::PointSelect, counts.point_selects)?;
        self.some(session, random, Statement::SimpleRange, counts.simple_ranges)?;
        self.some(session, random, Statement::SumRange, counts.sum_ranges)?;
        self.some(session, random, Statement::OrderRange, counts.order_ranges)?;
        self.some(session, random, Statement::DistinctRange, counts.distinct_ranges)?;
        self.some(session, random, Statement::IndexUpdate, counts.index_updates)?;
        self.some(session, random, Statement::NonIndexUpdate, counts.non_index_updates)?;
        self.some(session, random, Statement::Delete, counts.delete_inserts)?;
        (0..counts.inserts).try_for_each(|_| self.insert(session, random))?;
        (0..counts.deletes).try_for_each(|_| self.delete(session, random))?;
        (0..counts.random_points).try_for_each(|_| self.points(session, turn, random))?;
        (0..counts.random_ranges).try_for_each(|_| self.ranges(session, turn, random))
    }

    fn table(&self, random: &mut Random) -> u32 {
        random.below(self.of.spec.tables.into()) as u32
    }

    fn draw_texts(&mut self, random: &mut Random) {
        for (text, value) in self.text.iter_mut().zip([c_value, pad_value]) {
            text.clear();
            value(random, text);
        }
    }

    /// A new row. Where no server counts its id up, the id is any number below those of the load,
    /// as sysbench has it.
    fn insert(
        &mut self,
        session: &mut dyn Session,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let (table, k) = (self.table(random), self.of.ids.draw(random));
        self.draw_texts(random);
        let id = match self.of.spec.auto_inc {
            true => Value::Null,
            false => Value::Int(random.below(1 << 31) as i64 - (1 << 31)),
        };
        let [c, pad] = &*self.text;
        let args = [id, k.into(), Value::Text(c), Value::Text(pad)];
        session.run(Statement::Insert.of(table), &args, self.rows).map(drop)
    }

    fn delete(
        &mut self,
        session: &mut dyn Session,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let (table, id) = (self.table(random), self.of.ids.draw(random));
        session.run(Statement::Delete.of(table), &[id.into()], self.rows).map(drop)
    }

    /// A value of this session's share of the first table, so that sessions do not meet.
    fn shared_out(&self, turn: Turn, random: &mut Random) -> i64 {
        let spec = &self.of.spec;
        let threads = i64::from(spec.threads.max(1));
        let share = (spec.table_size / threads).max(1);
        let first = share * (i64::from(turn.home) % threads);
        first + 1 + (self.of.ids.draw(random) - 1) * share / spec.table_size
    }

    fn points(
        &mut self,
        session: &mut dyn Session,
        turn: Turn,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let points = self.of.spec.points;
        let values: Vec<Value<'_>> =
            (0..points).map(|_| self.shared_out(turn, random).into()).collect();
        self.selected(session, Statement::Points, &values, 1)
    }

    fn ranges(
        &mut self,
        session: &mut dyn Session,
        turn: Turn,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let (ranges, delta) = (self.of.spec.ranges, self.of.spec.range_delta);
        let of = |first: i64| [first, first + delta].map(Value::Int);
        let values: Vec<Value<'_>> =
            (0..ranges).flat_map(|_| of(self.shared_out(turn, random))).collect();
        self.selected(session, Statement::Ranges, &values, 2)
    }

    /// A select over all values: a statement of a server, a scan for each of an engine.
    fn selected(
        &mut self,
        session: &mut dyn Session,
        statement: Statement,
        values: &[Value<'_>],
        each: usize,
    ) -> Result<(), TargetError> {
        let at_once = if self.of.is_server { values.len().max(1) } else { each };
        for values in values.chunks(at_once) {
            session.run(statement.of(0), values, self.rows)?;
        }
        Ok(())
    }

    /// The next rows of a session's own table. Numbers go on where the table ended before the run.
    fn bulk(&mut self, session: &mut dyn Session, turn: Turn) -> Result<(), TargetError> {
        let (tables, home) = (u64::from(self.of.spec.tables), u64::from(turn.home));
        let table = (home % tables) as usize;
        // Sessions that share a table leave room for each other.
        let sharing = u64::from(self.of.spec.threads).div_ceil(tables);
        let nth = turn.nth * sharing + home / tables;
        let first = self.of.last_ids[table] + 1 + nth as i64 * BULK_ROWS;
        let values: Vec<Value<'_>> =
            (first..first + BULK_ROWS).flat_map(|id| [Value::Int(id), Value::Int(id)]).collect();
        session.begin()?;
        session.run(OpId(table), &values, self.rows).map(drop)
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
        let table = self.table(random);
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
        self.draw_texts(random);
        session.run(Statement::Delete.of(table), &[id.into()], self.rows)?;
        let [c, pad] = &*self.text;
        let args = [id.into(), k.into(), Value::Text(c), Value::Text(pad)];
        session.run(Statement::Insert.of(table), &args, self.rows)?;
        Ok(())
    }
}
