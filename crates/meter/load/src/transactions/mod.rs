//! A load of transactions: terminals, sessions and a schedule between them.
//!
//! Purpose: drive whatever a workload runs on a database, in a closed loop, at a rate, or as people
//! at terminals do. Invariant: it knows no database and no workload but by
//! [`source`]'s traits; figures are made as those of requests are.

mod agenda;
mod crew;
mod driver;
pub(crate) mod live;
mod source;
#[cfg(test)]
mod tests;
mod window;

use iostrata_plan::TransactionSpec;

use crate::clock::{MonotonicClock, TscClock, clock_facts};
use crate::error::LoadError;
use crate::figures::WindowFigures;
use crate::load::Load;
use crate::observer::{Surroundings, WindowObserver};
use crate::transactions::window::TransactionWindow;

pub use live::LiveFigures;
pub use source::{
    Ended, FailedTransaction, Planned, Ran, Reach, SessionError, Settled, TransactionCost,
    TransactionSource, TransactionWorker, Turn,
};

/// Transactions of a workload on a target.
#[derive(Clone, Copy)]
pub struct TransactionLoad<'a> {
    source: &'a dyn TransactionSource,
    spec: &'a TransactionSpec,
    reaches_storage: bool,
}

impl<'a> TransactionLoad<'a> {
    /// Transactions as a spec has them. `reaches_storage`: whether the target is on this machine,
    /// so that the machine is worth watching.
    pub fn new(
        source: &'a dyn TransactionSource,
        spec: &'a TransactionSpec,
        reaches_storage: bool,
    ) -> Self {
        Self { source, spec, reaches_storage }
    }
}

impl Load for TransactionLoad<'_> {
    fn reaches_storage(&self) -> bool {
        self.reaches_storage
    }

    fn run(
        &self,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
    ) -> Result<WindowFigures, LoadError> {
        let (source, spec, facts) = (self.source, self.spec, clock_facts());
        let outcome = match facts.tsc_ns_per_tick {
            Some(ns) => TransactionWindow::new(source, spec, facts, TscClock::new(ns))?
                .run(surroundings, observer)?,
            None => TransactionWindow::new(source, spec, facts, MonotonicClock)?
                .run(surroundings, observer)?,
        };
        Ok(WindowFigures::of(&outcome))
    }
}
