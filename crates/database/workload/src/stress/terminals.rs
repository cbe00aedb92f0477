//! The load for the driver: what a terminal runs in its turn.

use std::sync::Arc;

use iostrata_database::target::{
    Op, OpId, Rows, Session, SessionOptions, Target, TargetError, Value,
};
use iostrata_load::Turn;
use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::plain_terminals::{PlainTerminals, Transactions};
use crate::slots::Conclusion;
use crate::stress::mix::StressMix;
use crate::stress::ops::{
    CHANGE_OBJECT, DELETE_OLDEST, HISTORY, INSERT_LATEST, LOCK_OBJECT, OBJECT, SECTION, STATUSES,
    ZONE, ops,
};
use crate::stress::population::{NOTE, amount, status};
use crate::stress::prepare::{StressSpec, dataset};
use crate::stress::schema::schema;
use crate::tpcc::draw::letters;
use crate::tpcc::now_s;

/// How it differs from dbSTRESS, which inspired it.
pub const DEVIATIONS: [&str; 3] = [
    "inspired by dbSTRESS, whose sources are not public: tables, columns and statements are \
     iostrata's own",
    "a read takes five statements by key in place of two joins",
    "foreign keys are not declared; `stress check` verifies that they hold",
];

/// All terminals of a run.
pub type StressTerminals<'a> = PlainTerminals<'a, StressTransactions<'a>>;

impl<'a> StressTerminals<'a> {
    /// Terminals over tables that are there. `blocks`: whether a session keeps its thread waiting.
    ///
    /// # Errors
    /// When nothing was prepared, or other numbers of rows than the spec's; what the target said.
    pub fn new(
        target: &'a dyn Target,
        spec: StressSpec,
        blocks: bool,
    ) -> Result<Self, TargetError> {
        let (objects, history) = dataset(target)?;
        if (objects, history) != (spec.objects, spec.history) {
            let what = format!(
                "{objects} objects with {history} history rows are there, and {} with {} are \
                 asked for",
                spec.objects, spec.history
            );
            let fix = "load those with `stress prepare --reset`";
            return Err(TargetError::not_ready(&target.name(), "other_dataset", what, fix));
        }
        let schema = Arc::new(schema());
        let ops = ops(&schema, spec.history);
        let session = SessionOptions {
            ops: Arc::clone(&ops),
            isolation: spec.isolation,
            autocommit: false,
            as_text: spec.as_text,
        };
        let (seed, transactions) = (spec.seed, StressTransactions { target, ops, spec });
        Ok(Self { target, schema, session, seed, blocks, transactions })
    }
}

/// Reads, read-writes and writes of one object each.
pub struct StressTransactions<'a> {
    target: &'a dyn Target,
    ops: Arc<[Op]>,
    spec: StressSpec,
}

/// What a worker keeps.
#[derive(Default)]
pub struct StressBuffers {
    rows: Rows,
    note: Vec<u8>,
    keys: Vec<i64>,
}

impl Transactions for StressTransactions<'_> {
    type Buffers = StressBuffers;

    fn buffers(&self) -> StressBuffers {
        StressBuffers::default()
    }

    fn kinds(&self) -> Vec<OpKind> {
        StressMix::KINDS.to_vec()
    }

    fn kind(&self, random: &mut Random) -> OpKind {
        self.spec.mix.kind(random)
    }

    fn run(
        &self,
        buffers: &mut StressBuffers,
        session: &mut dyn Session,
        kind: OpKind,
        _turn: Turn,
        random: &mut Random,
    ) -> Result<Conclusion, TargetError> {
        let StressBuffers { rows, note, keys } = buffers;
        let mut statements = Statements { of: self, rows, note, keys };
        statements.all(session, kind, random).map(|()| Conclusion::Commit)
    }
}

/// Runs the statements of transactions.
struct Statements<'a> {
    of: &'a StressTransactions<'a>,
    rows: &'a mut Rows,
    note: &'a mut Vec<u8>,
    keys: &'a mut Vec<i64>,
}

impl Statements<'_> {
    /// One transaction, on one object.
    fn all(
        &mut self,
        session: &mut dyn Session,
        kind: OpKind,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let object = 1 + random.below(self.of.spec.objects as u64) as i64;
        session.begin()?;
        if kind != OpKind::Write {
            self.read(session, object)?;
        }
        if kind != OpKind::Read {
            self.write(session, object, random)?;
        }
        Ok(())
    }

    /// The object with its section, zone and status, and its latest history with theirs.
    fn read(&mut self, session: &mut dyn Session, object: i64) -> Result<(), TargetError> {
        let [section, status] = self.one(session, OBJECT, object)?;
        let [zone] = self.one(session, SECTION, section)?;
        session.run(ZONE, &[zone.into()], self.rows)?;
        session.run(HISTORY, &[object.into()], self.rows)?;
        self.keys.clear();
        self.keys.push(status);
        self.keys.extend((0..self.rows.len()).map(|row| self.rows.get(row, 1).int()));
        let keys: Vec<Value<'_>> = self.keys.iter().map(|key| Value::Int(*key)).collect();
        session.run(STATUSES, &keys, self.rows)?;
        Ok(())
    }

    /// Changes the object, and replaces the oldest row of its history.
    fn write(
        &mut self,
        session: &mut dyn Session,
        object: i64,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let [last] = self.one(session, LOCK_OBJECT, object)?;
        let (oldest, latest) = (last - self.of.spec.history + 1, last + 1);
        let (status, added) = (status(random), amount(object, latest));
        self.note.clear();
        letters(random, self.note, NOTE.0, NOTE.1);
        let note = Value::Text(self.note);
        let more = added - amount(object, oldest);
        let rows = &mut *self.rows;
        session.run(CHANGE_OBJECT, &[object.into(), status.into(), note, more.into()], rows)?;
        session.run(DELETE_OLDEST, &[object.into(), oldest.into()], rows)?;
        let row = [object, latest, status, added, now_s()].map(Value::Int);
        let [object, latest, status, added, at] = row;
        session.run(INSERT_LATEST, &[object, latest, status, added, at, note], rows)?;
        Ok(())
    }

    /// The first numbers of the row with a key, which has to be there.
    fn one<const N: usize>(
        &mut self,
        session: &mut dyn Session,
        op: OpId,
        key: i64,
    ) -> Result<[i64; N], TargetError> {
        session.run(op, &[key.into()], self.rows)?;
        if self.rows.is_empty() {
            let text = format!("{}: there is no row {key}", self.of.ops[op.0].name);
            let fix = "see what is missing by `stress check`";
            let name = self.of.target.name();
            return Err(TargetError::not_ready(&name, "missing_row", text, fix));
        }
        Ok(std::array::from_fn(|at| self.rows.get(0, at).int()))
    }
}
