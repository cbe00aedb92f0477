//! The commands of all workloads of transactions: `iostrata tpcc`, `oltp`, `stress`, `insert`.
//!
//! Invariant: the same words and the same steps for every workload and every target; what a target
//! cannot do is its own answer.

mod check;
mod growth;
mod levels;
mod prepare;
mod private;
mod run;

use iostrata_workload::WorkloadError;

use crate::args::{WorkloadAction, WorkloadCommand};
use crate::exit_error::ExitError;
use crate::signals::Interruption;
use crate::test_database::ending;

/// Runs a command of a workload.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(command: &WorkloadCommand, interruption: &Interruption) -> Result<(), ExitError> {
    let workload = command.workload().map_err(refused)?;
    match &command.action {
        WorkloadAction::Prepare(args) => prepare::prepare(&*workload, args, interruption),
        WorkloadAction::Run(args) => run::run(command.kind, &*workload, args, interruption),
        WorkloadAction::Check(args) => check::check(&*workload, args),
        WorkloadAction::Cleanup(args) => prepare::cleanup(&*workload, args),
    }
}

/// How a command ends whose workload is none, or does not run on these tables.
fn refused(error: WorkloadError) -> ExitError {
    match error {
        WorkloadError::Setting(text) => ExitError::Usage(text),
        WorkloadError::Target(error) => ending(error),
    }
}
