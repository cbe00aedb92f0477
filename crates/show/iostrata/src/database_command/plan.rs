//! A run as it was planned: every level measured, one document of all of them.
//!
//! Invariant: what was measured is kept and printed before any failure is told.

use std::path::Path;
use std::sync::atomic::AtomicU32;

use iostrata_linux::host::Root;
use iostrata_load::TransactionSource;
use iostrata_plan::TransactionSpec;
use iostrata_run::{DatasetGrowth, RunKind, RunResult, TransactionDocument, TransactionDurability};
use iostrata_study::{FileSetCache, Meter, Pipeline, TransactionFacts, transaction_document};
use iostrata_target::Target;
use iostrata_workload::tpcc::Dataset;

use super::growth::{self, Growth};
use super::levels::Levels;
use super::opened::ending;
use crate::args::{Common, DriveArgs, IsolationWord, TargetArgs};
use crate::display::Display;
use crate::exit_error::{ExitError, exit_error};
use crate::io_parts::path_facts;
use crate::run_sink::RunSink;
use crate::signals::Interruption;
use crate::simulate_command::is_recorded;

/// A run as it was planned.
pub struct RunPlan<'a> {
    /// What it is kept as.
    pub kind: RunKind,
    /// Where the database is.
    pub target: &'a TargetArgs,
    /// How it is driven.
    pub drive: &'a DriveArgs,
    /// What every run takes.
    pub common: &'a Common,
    /// With its first level's threads.
    pub spec: TransactionSpec,
    /// How the workload differs from the specification that it follows.
    pub deviations: Vec<String>,
    /// The storage engine of the tables, where a server told it.
    pub storage_engine: Option<String>,
    /// What is to be seen of a table that grows.
    pub growth: Option<Growth<'a>>,
    /// Whether the tables are TPC-C's, whose orders can be counted.
    pub counts_orders: bool,
    /// In what else the workload differed, as is known after the run.
    pub found_out: Option<&'a dyn Fn() -> Option<String>>,
}

impl RunPlan<'_> {
    /// Notes a setting of the workload.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.spec.settings.insert(name.to_owned(), value.to_string());
    }

    /// Notes the storage engine of the tables where it was told.
    pub fn note_storage_engine(&mut self) {
        if let Some(engine) = self.storage_engine.clone() {
            self.set("storage_engine", engine);
        }
    }

    /// Measures every level, keeps and prints what came of it.
    ///
    /// # Errors
    /// What kept it from being measured, or ended it early.
    pub fn run(
        &self,
        target: &dyn Target,
        source: &dyn TransactionSource,
        interruption: &Interruption,
    ) -> Result<(), ExitError> {
        let mut facts = self.facts(target)?;
        let printing = self.common.printing;
        let display = Display::new(printing.quiet);
        let name = &self.spec.workload;
        let mut sink = RunSink::begin(self.kind, name, self.common.out.as_deref(), &display)?;
        let path = self.target.target.strip_prefix("engine:");
        let path = path.and_then(|dir| path_facts(Path::new(dir)));
        sink.amend_host(path.as_ref());
        let meter = Meter::new(&Root::system(), path.as_ref(), interruption.flag(), None);
        let (files, flag) = (FileSetCache::default(), interruption.flag());
        let mut pipeline = Pipeline::new(&mut sink, meter, files, flag);
        let (before, measuring) = (self.size(target), AtomicU32::new(0));
        let mut levels = Levels {
            pipeline: &mut pipeline,
            spec: &self.spec,
            drive: self.drive,
            max_time: self.common.max_time,
            target,
            source,
            reaches_storage: path.is_some(),
            measuring: &measuring,
            display: &display,
            replicates: Vec::new(),
            failure: None,
        };
        let measure = || match self.drive.latency_target {
            Some(objective) => levels.search(objective),
            None => levels.staircase().map(|()| None),
        };
        let growth = self.growth.as_ref();
        let (measured, grown) = growth::beside(growth, target, &measuring, measure);
        let Levels { replicates, failure, .. } = levels;
        display.finish();
        facts.latency_target = measured?;
        // A target that ended the run is not asked again.
        let after = if failure.is_none() { self.size(target) } else { Size::default() };
        facts.dataset = before.growth(after);
        let is_over = failure.is_none() && interruption.is_set();
        let outcome = pipeline.finish(&[], is_over).map_err(exit_error)?;
        let ended = match failure {
            Some(error) => Err(error),
            None if is_over => Err(ExitError::Interrupted(interruption.exit_code())),
            None => Ok(()),
        };
        let Some(mut document) = transaction_document(&replicates, &facts) else {
            return sink.end(ended);
        };
        document.deviations.extend(self.found_out.and_then(|found_out| found_out()));
        document.insert = growth
            .zip(grown)
            .map(|(growth, grown)| growth.figures(&document, self.storage_engine.clone(), grown));
        document.run = sink.shown();
        if !sink.keep_with_report(&document) {
            document.run = None;
        }
        sink.say_whether_kept();
        sink.print(&self.result(document), &outcome.events, printing.json)?;
        sink.end(ended)
    }

    fn result(&self, document: TransactionDocument) -> RunResult {
        match self.kind {
            RunKind::Tpcc => RunResult::Tpcc(Box::new(document)),
            _ => RunResult::Oltp(Box::new(document)),
        }
    }

    /// How much the tables hold; what the target does not tell is left out.
    fn size(&self, target: &dyn Target) -> Size {
        let orders = self.counts_orders.then(|| Dataset::orders(target).ok()).flatten();
        Size { orders, bytes: target.data_bytes().ok().flatten() }
    }

    fn facts(&self, target: &dyn Target) -> Result<TransactionFacts, ExitError> {
        let facts = target.facts().map_err(ending)?;
        let isolation = match self.drive.isolation {
            IsolationWord::ReadCommitted => "read committed",
            IsolationWord::RepeatableRead => "repeatable read",
            IsolationWord::Serializable => "serializable",
        };
        let is_innodb = |engine: &String| engine.eq_ignore_ascii_case("InnoDB");
        let durability = match &self.storage_engine {
            // What the server says of commits is said of InnoDB.
            Some(engine) if !is_innodb(engine) => TransactionDurability {
                flush_log_at_commit: None,
                doublewrite: None,
                flush_method: None,
                ..facts.durability.clone()
            },
            _ => facts.durability.clone(),
        };
        Ok(TransactionFacts {
            target: facts.identity(is_recorded),
            durability,
            isolation: isolation.to_owned(),
            deviations: self.deviations.clone(),
            ..TransactionFacts::default()
        })
    }
}

/// How much the tables hold at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Size {
    orders: Option<u64>,
    bytes: Option<u64>,
}

impl Size {
    fn growth(self, after: Self) -> Option<DatasetGrowth> {
        let growth = DatasetGrowth {
            orders_before: self.orders,
            orders_after: after.orders,
            bytes_before: self.bytes,
            bytes_after: after.bytes,
        };
        (growth != DatasetGrowth::default()).then_some(growth)
    }
}
