//! One run of TPC-C on a target: load where nothing is loaded, every level, then the conditions.
//!
//! Invariant: figures come out only if the twelve conditions hold on what is there afterwards.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_database::target::{Isolation, Target, TargetError};
use iostrata_linux::host::Root;
use iostrata_load::TransactionLoad;
use iostrata_plan::TransactionSpec;
use iostrata_run::TransactionDocument;
use iostrata_study::{
    Meter, StudyError, TransactionFacts, transaction_document, transaction_point,
};
use iostrata_workload::tpcc::{
    self, CheckPlan, Dataset, Mix, PrepareOptions, Stage, TerminalOptions, Terminals, Waits,
};
use thiserror::Error;

/// Memory of a peer's cache, as the engine's and the server's pools.
pub(super) const CACHE_BYTES: u64 = 2 << 30;

/// What is run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// Warehouses.
    pub warehouses: i64,
    /// Sessions of each level.
    pub threads: Vec<u32>,
    /// Measured time of each level.
    pub time: Duration,
    /// Of everything that is drawn.
    pub seed: u64,
}

/// Why there are no figures.
#[derive(Debug, Error)]
pub enum TpccError {
    /// What the target said.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// What measuring said.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// Conditions that do not hold.
    #[error("{target}: TPC-C's consistency conditions do not hold after the run: {told}")]
    Inconsistent {
        /// Which target.
        target: String,
        /// Which conditions, and where.
        told: String,
    },
    /// Nothing completed, or a signal came.
    #[error("{target}: the run was ended before there were figures")]
    NoFigures {
        /// Which target.
        target: String,
    },
}

/// Runs TPC-C; of several levels the best one is on top.
///
/// # Errors
/// [`TpccError`].
pub fn run(
    target: &dyn Target,
    plan: &RunPlan,
    stop: &AtomicBool,
) -> Result<TransactionDocument, TpccError> {
    let prepare = PrepareOptions {
        warehouses: plan.warehouses,
        threads: 1,
        seed: plan.seed,
        now_s: tpcc::now_s(),
        reset: false,
    };
    let mut dataset = tpcc::prepare(target, &prepare, stop, &|_progress| {})?.dataset;
    dataset.mark_used(target)?;
    let options = TerminalOptions {
        mix: Mix::default(),
        waits: Waits::NONE,
        isolation: Isolation::RepeatableRead,
        seed: plan.seed,
        as_text: false,
        blocks: true,
        sharing: None,
    };
    let source = Terminals::new(target, &dataset, options);
    let mut meter = Meter::new(&Root::system(), None, stop, None);
    let mut replicates = Vec::new();
    for (threads, at) in plan.threads.iter().zip(0..) {
        let spec = TransactionSpec {
            threads: *threads,
            runtime: Some(plan.time),
            seed: plan.seed,
            ..TransactionSpec::new("tpcc", target.name())
        };
        let load = TransactionLoad::new(&source, &spec, true);
        let point = transaction_point(&spec);
        let measured = meter.measure(&point, at, &load, &mut |_elapsed_s| {}, &mut [])?;
        if let Some(error) = measured.error {
            return Err(error.into());
        }
        if measured.interrupted {
            return Err(TpccError::NoFigures { target: target.name() });
        }
        replicates.push(measured.replicate);
    }
    check(target, &dataset)?;
    let facts = facts(target, &options)?;
    let document = transaction_document(&replicates, &facts);
    document.ok_or_else(|| TpccError::NoFigures { target: target.name() })
}

fn check(target: &dyn Target, dataset: &Dataset) -> Result<(), TpccError> {
    let plan =
        CheckPlan { warehouses: dataset.warehouses, is_fresh: dataset.stage == Stage::Loaded };
    let outcome = tpcc::check(target, plan, &mut |_share| {})?;
    if outcome.is_ok() {
        return Ok(());
    }
    let broken = outcome.conditions.iter().zip(1..).filter(|(one, _)| one.violations > 0);
    let told: Vec<String> =
        broken.map(|(one, id)| format!("{id} ({})", one.told.join(", "))).collect();
    Err(TpccError::Inconsistent { target: target.name(), told: told.join("; ") })
}

fn facts(target: &dyn Target, options: &TerminalOptions) -> Result<TransactionFacts, TargetError> {
    let facts = target.facts()?;
    Ok(TransactionFacts {
        target: facts.identity(|_| false),
        durability: facts.durability,
        // What was asked for; SQLite gives more.
        isolation: "repeatable read".to_owned(),
        deviations: tpcc::deviations(options).into_iter().map(str::to_owned).collect(),
        ..TransactionFacts::default()
    })
}
