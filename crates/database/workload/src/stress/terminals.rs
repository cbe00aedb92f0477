//! The load for the driver: what a terminal runs in its turn.

use std::sync::Arc;
use std::time::Duration;

use iostrata_load::{
    Planned, Ran, SessionError, Settled, TransactionCost, TransactionSource, TransactionWorker,
    Turn,
};
use iostrata_spec::OpKind;
use iostrata_stats::Random;
use iostrata_target::{Op, Rows, Schema, Session, SessionOptions, Target, TargetError, Value};

use crate::slots::{Conclusion, Slots};
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
pub struct StressTerminals<'a> {
    target: &'a dyn Target,
    schema: Arc<Schema>,
    ops: Arc<[Op]>,
    spec: StressSpec,
    blocks: bool,
}

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
        Ok(Self { target, schema, ops, spec, blocks })
    }

    fn session(&self) -> Result<Box<dyn Session>, TargetError> {
        let options = SessionOptions {
            ops: Arc::clone(&self.ops),
            isolation: self.spec.isolation,
            autocommit: false,
            as_text: self.spec.as_text,
        };
        self.target.session(&self.schema, &options)
    }

    /// What a turn is, and the stream that the rest of it is drawn from.
    fn turn(&self, turn: Turn) -> (Random, OpKind) {
        let stream = u64::from(turn.home) << 40 ^ turn.nth;
        let mut random = Random::of_stream(self.spec.seed, stream);
        let kind = self.spec.mix.kind(&mut random);
        (random, kind)
    }
}

impl TransactionSource for StressTerminals<'_> {
    fn kinds(&self) -> Vec<OpKind> {
        StressMix::KINDS.to_vec()
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
        let work =
            Statements { of: self, rows: Rows::default(), note: Vec::new(), keys: Vec::new() };
        Ok(Box::new(StressWorker { of: self, slots, work }))
    }
}

struct StressWorker<'a> {
    of: &'a StressTerminals<'a>,
    slots: Slots<()>,
    work: Statements<'a>,
}

impl TransactionWorker for StressWorker<'_> {
    fn next(&mut self, turn: Turn) -> Planned {
        let (_, kind) = self.of.turn(turn);
        Planned { kind, keying: Duration::ZERO, think: Duration::ZERO, is_deferred: false }
    }

    fn run(&mut self, slot: u32, turn: Turn) -> Ran {
        let (start, kind) = self.of.turn(turn);
        let work = &mut self.work;
        let (ended, retries) = self.slots.run(slot, (), |session| {
            work.all(session, kind, &mut start.clone()).map(|()| Conclusion::Commit)
        });
        Ran { kind, ended, retries }
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
    of: &'a StressTerminals<'a>,
    rows: Rows,
    note: Vec<u8>,
    keys: Vec<i64>,
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
        session.run(ZONE, &[zone.into()], &mut self.rows)?;
        session.run(HISTORY, &[object.into()], &mut self.rows)?;
        self.keys.clear();
        self.keys.push(status);
        self.keys.extend((0..self.rows.len()).map(|row| self.rows.get(row, 1).int()));
        let keys: Vec<Value<'_>> = self.keys.iter().map(|key| Value::Int(*key)).collect();
        session.run(STATUSES, &keys, &mut self.rows)?;
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
        letters(random, &mut self.note, NOTE.0, NOTE.1);
        let note = Value::Text(&self.note);
        let more = added - amount(object, oldest);
        let rows = &mut self.rows;
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
        op: iostrata_target::OpId,
        key: i64,
    ) -> Result<[i64; N], TargetError> {
        session.run(op, &[key.into()], &mut self.rows)?;
        if self.rows.is_empty() {
            let text = format!("{}: there is no row {key}", self.of.ops[op.0].name);
            let fix = "see what is missing by `stress check`";
            let name = self.of.target.name();
            return Err(TargetError::not_ready(&name, "missing_row", text, fix));
        }
        Ok(std::array::from_fn(|at| self.rows.get(0, at).int()))
    }
}
