//! The kit's load for the driver.

use std::sync::Arc;

use iostrata_database::target::{Isolation, Session, SessionOptions, Target, TargetError};
use iostrata_load::Turn;
use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::compat::CompatSpec;
use crate::compat::schema::schema;
use crate::compat::statements::ops;
use crate::compat::transaction::{KitRunner, kind};
use crate::plain_terminals::{PlainTerminals, Transactions, refuse_without_tables};
use crate::slots::Conclusion;
use crate::tpcc::KINDS;

/// All terminals of a run.
pub type CompatTerminals<'a> = PlainTerminals<'a, CompatTransactions>;

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
        let fix = "make it with `tpcc prepare --compat sysbench-tpcc`";
        refuse_without_tables(target, &schema, fix)?;
        let ops = ops(spec.tables);
        Ok(Self {
            target,
            schema: Arc::new(schema),
            session: SessionOptions { ops, isolation, autocommit: false, as_text: true },
            seed: spec.seed,
            blocks: true,
            transactions: CompatTransactions(spec),
        })
    }
}

/// The kit's transactions.
pub struct CompatTransactions(CompatSpec);

impl Transactions for CompatTransactions {
    type Buffers = KitRunner;

    fn buffers(&self) -> KitRunner {
        KitRunner::new(self.0)
    }

    fn kinds(&self) -> Vec<OpKind> {
        KINDS.to_vec()
    }

    fn kind(&self, random: &mut Random) -> OpKind {
        kind(random)
    }

    fn run(
        &self,
        runner: &mut KitRunner,
        session: &mut dyn Session,
        kind: OpKind,
        _turn: Turn,
        random: &mut Random,
    ) -> Result<Conclusion, TargetError> {
        runner.run(session, kind, random)
    }
}
