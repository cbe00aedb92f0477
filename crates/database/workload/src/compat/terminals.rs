//! The kit's load for the driver.

use std::sync::Arc;
use std::time::Duration;

use iostrata_load::{
    Planned, Ran, SessionError, Settled, TransactionCost, TransactionSource, TransactionWorker,
    Turn,
};
use iostrata_spec::OpKind;
use iostrata_stats::Random;
use iostrata_target::{Isolation, Op, Schema, Session, SessionOptions, Target, TargetError};

use crate::compat::CompatSpec;
use crate::compat::schema::schema;
use crate::compat::statements::ops;
use crate::compat::transaction::{KitRunner, kind};
use crate::slots::Slots;
use crate::tpcc::KINDS;

/// All terminals of a run.
pub struct CompatTerminals<'a> {
    target: &'a dyn Target,
    schema: Arc<Schema>,
    ops: Arc<[Op]>,
    spec: CompatSpec,
    isolation: Isolation,
}

impl<'a> CompatTerminals<'a> {
    /// Terminals over tables that are there.
    ///
    /// # Errors
    /// When a table is missing, or what the target said.
    pub fn new(
        target: &'a dyn Target,
        spec: CompatSpec,
        isolation: Isolation,
    ) -> Result<Self, TargetError> {
        let schema = schema(spec.tables);
        let present = target.present(&schema)?;
        let missing = (0..schema.tables.len()).find(|table| !present.contains(table));
        if let Some(table) = missing {
            let text = format!("table {} is not there", schema.tables[table].name);
            let fix = "make it with `tpcc prepare --compat sysbench-tpcc`";
            return Err(TargetError::not_ready(&target.name(), "not_prepared", text, fix));
        }
        Ok(Self { target, schema: Arc::new(schema), ops: ops(spec.tables), spec, isolation })
    }

    fn session(&self) -> Result<Box<dyn Session>, TargetError> {
        let (ops, isolation) = (Arc::clone(&self.ops), self.isolation);
        let options = SessionOptions { ops, isolation, autocommit: false, as_text: true };
        self.target.session(&self.schema, &options)
    }
}

impl TransactionSource for CompatTerminals<'_> {
    fn kinds(&self) -> Vec<OpKind> {
        KINDS.to_vec()
    }

    fn blocks(&self) -> bool {
        true
    }

    fn worker(
        &self,
        _first_slot: u32,
        slots: u32,
    ) -> Result<Box<dyn TransactionWorker + '_>, SessionError> {
        let slots = Slots::open(slots, || self.session())?;
        Ok(Box::new(CompatWorker { of: self, slots, runner: KitRunner::new(self.spec) }))
    }
}

struct CompatWorker<'a> {
    of: &'a CompatTerminals<'a>,
    slots: Slots<()>,
    runner: KitRunner,
}

impl CompatWorker<'_> {
    fn random(&self, turn: Turn) -> Random {
        Random::of_stream(self.of.spec.seed, u64::from(turn.home) << 40 ^ turn.nth)
    }
}

impl TransactionWorker for CompatWorker<'_> {
    fn next(&mut self, turn: Turn) -> Planned {
        let kind = kind(&mut self.random(turn));
        Planned { kind, keying: Duration::ZERO, think: Duration::ZERO, is_deferred: false }
    }

    fn run(&mut self, slot: u32, turn: Turn) -> Ran {
        let mut random = self.random(turn);
        let kind = kind(&mut random);
        let runner = &mut self.runner;
        let (ended, retries) =
            self.slots.run(slot, (), |session| runner.run(session, kind, &mut random.clone()));
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
