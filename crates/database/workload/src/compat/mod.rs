//! The load of sysbench-tpcc on its own tables, for comparisons and for its own check.
//!
//! Purpose: the statements that kit sends, in its order and as text, with everything in which it
//! differs from TPC-C: statements one by one, warehouses that are never remote, constants of NURand
//! drawn again at each call, an order status that reads the order whose number is the district's.
//! Facts of the kit; names of tables and columns are its own, since its check reads them. Only
//! servers run it.

mod schema;
mod transaction;

use std::sync::Arc;

use iostrata_database::target::{Isolation, Schema, Session, SessionOptions, Target, TargetError};
use iostrata_load::Turn;
use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::loaded_mark::LoadCounts;
use crate::slots::{Conclusion, PlainTerminals, Transactions, refuse_without_tables};
use crate::tpcc::{CUSTOMERS, ITEMS, KINDS, now_s};
use crate::workload::{
    LoadOptions, RunnableWorkload, SourceOptions, Workload, WorkloadError, WorkloadKind,
    WorkloadSettings,
};
use transaction::{KitRunner, kind, ops};

pub use schema::{cleanup, prepare, schema, warehouses};

/// How large it is, in the kit's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompatSpec {
    /// Warehouses of each set of tables (`--scale`).
    pub scale: i64,
    /// Sets of tables (`--tables`).
    pub tables: u32,
    /// Customers of each district, each with a first order: the kit has 3,000.
    pub customers: i64,
    /// Items, and rows of stock of each warehouse: the kit has 100,000.
    pub items: i64,
    /// Foreign keys, as the kit has them by default (`--use_fk`).
    pub foreign_keys: bool,
    /// Of everything that is drawn.
    pub seed: u64,
}

impl Default for CompatSpec {
    /// One warehouse of the kit's size.
    fn default() -> Self {
        let (customers, items) = (CUSTOMERS, ITEMS);
        Self { scale: 1, tables: 1, customers, items, foreign_keys: true, seed: 1 }
    }
}

impl CompatSpec {
    /// The first of the last three tenths of a district's orders, which wait for their delivery.
    fn first_new_order(&self) -> i64 {
        self.customers - 3 * self.customers / 10 + 1
    }
}

/// In what the load differs from TPC-C.
pub const DEVIATIONS: &[&str] = &[
    "no remote warehouses: orders and payments stay at home, although orders say otherwise",
    "items and customers are drawn uniformly: the constants of NURand change at every draw",
    "warehouses are drawn for each transaction: there are no home terminals",
    "an order status reads the order whose number is the district's",
    "a rolled back order has its unused item on the second to last line, or on none",
    "stock changes its quantity alone, and is refilled at a remainder of 0",
    "amounts of lines include tax and discount and are cut to whole units",
    "payments and deliveries per customer: payments are not counted",
    "texts are one repeated letter; no data hold ORIGINAL",
    "no keying or think times; no prepared statements",
];

// The kit's load for the driver.

/// All terminals of a run.
pub type CompatTerminals<'a> = PlainTerminals<'a, CompatTransactions>;

impl<'a> CompatTerminals<'a> {
    /// Terminals over tables that are there.
    ///
    /// # Errors
    /// When a table is missing, or the target's error.
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

// The kit's load as a workload, made of its settings. Its options are those of `tpcc`.

/// Warehouses by default.
const WAREHOUSES: i64 = 4;

/// The load of sysbench-tpcc.
pub static WORKLOAD: WorkloadKind = WorkloadKind {
    name: "tpcc_compat",
    about: "",
    detail: "",
    members: &[],
    verbs: &[],
    keeps_loads: true,
    options: &[],
    named: |_, _| "tpcc_compat".to_owned(),
    has: |name| name == "tpcc_compat",
    of: |_, settings| Ok(Box::new(Kit::of(settings)?)),
};

/// The kit's load with its settings.
#[derive(Clone, Debug)]
struct Kit {
    /// Those of the tables, where none are set.
    warehouses: Option<i64>,
    /// With so many, or with as many as there are usually.
    spec: CompatSpec,
}

impl Kit {
    fn of(settings: &WorkloadSettings) -> Result<Self, WorkloadError> {
        let warehouses = settings.number::<u32>("warehouses")?.map(i64::from);
        if settings.loads && warehouses == Some(0) {
            return WorkloadError::setting("--warehouses 0: load at least one");
        }
        let spec = CompatSpec {
            scale: warehouses.unwrap_or(WAREHOUSES),
            tables: settings.number::<u32>("tables")?.unwrap_or(1).max(1),
            foreign_keys: settings.is_on("use-fk")?,
            ..CompatSpec::default()
        };
        Ok(Self { warehouses, spec })
    }

    /// How many warehouses the tables have; must match the requested number, if any.
    fn found(&self, target: &dyn Target) -> Result<i64, WorkloadError> {
        let found = warehouses(target)?.filter(|warehouses| *warehouses > 0);
        let Some(found) = found else {
            return WorkloadError::setting(format!(
                "{}: no tables of sysbench-tpcc are there; load them with `tpcc prepare --compat \
                 sysbench-tpcc`",
                target.name()
            ));
        };
        match self.warehouses {
            Some(asked) if asked != found => WorkloadError::setting(format!(
                "--warehouses {asked}: the tables of sysbench-tpcc hold {found}; leave it out, or \
                 load others"
            )),
            _ => Ok(found),
        }
    }
}

impl Workload for Kit {
    fn name(&self) -> String {
        "tpcc".to_owned()
    }

    fn schema(&self) -> Schema {
        schema(self.spec.tables)
    }

    fn size(&self) -> (u64, &'static str) {
        (self.spec.scale as u64, "warehouses")
    }

    fn data_bytes(&self) -> Option<u64> {
        None
    }

    fn tables_name(&self) -> String {
        format!("kit-{}", self.spec.scale)
    }

    fn contents(&self) -> String {
        let CompatSpec { tables, scale, foreign_keys, .. } = self.spec;
        format!("sysbench-tpcc, {tables} sets of {scale} warehouses, foreign keys {foreign_keys}")
    }

    fn loading(&self) -> String {
        format!("loading {} warehouses", self.spec.scale)
    }

    fn load(
        &self,
        target: &dyn Target,
        options: &LoadOptions<'_>,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<LoadCounts, TargetError> {
        if options.resets {
            cleanup(target, self.spec.tables)?;
        }
        let spec = CompatSpec { seed: options.seed, ..self.spec };
        prepare(target, &spec, (options.threads, now_s()), options.stop, &|rows, in_all| {
            progress(rows as f64 / in_all.max(1) as f64);
        })
    }

    fn source<'a>(
        &self,
        target: &'a dyn Target,
        options: &SourceOptions,
    ) -> Result<RunnableWorkload<'a>, WorkloadError> {
        let spec = CompatSpec { scale: self.found(target)?, seed: options.seed, ..self.spec };
        Ok(RunnableWorkload {
            settings: vec![
                ("compat", "sysbench-tpcc".to_owned()),
                ("warehouses", spec.scale.to_string()),
                ("tables", spec.tables.to_string()),
            ],
            deviations: DEVIATIONS.iter().map(|text| (*text).to_owned()).collect(),
            ..RunnableWorkload::new(CompatTerminals::new(target, spec, options.isolation)?)
        })
    }

    fn cleanup(&self, target: &dyn Target) -> Result<bool, TargetError> {
        cleanup(target, self.spec.tables).map(|tables| tables > 0)
    }
}
