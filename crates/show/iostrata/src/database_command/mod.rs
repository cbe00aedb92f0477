//! `iostrata tpcc`, `oltp`, `stress` and `insert`: a workload on a target.
//!
//! Invariant: the same words and the same steps for every target; what a target cannot do is its
//! own answer.

mod check;
mod growth;
mod insert;
mod levels;
mod live;
mod loading;
mod new_engine;
mod opened;
mod plan;
mod prepare;
mod private;
mod run;
mod stress;

pub use insert::insert;
pub use opened::{ending, server_address};
pub use stress::stress;

use crate::args::{OltpAction, OltpArgs, TpccAction, TpccArgs};
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// Runs `tpcc`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn tpcc(args: &TpccArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        TpccAction::Prepare(args) => prepare::tpcc(args, interruption),
        TpccAction::Run(args) => run::tpcc(args, interruption),
        TpccAction::Check(args) => check::TPCC.run(args),
        TpccAction::Cleanup(args) => prepare::tpcc_cleanup(args),
    }
}

/// Runs `oltp`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn oltp(args: &OltpArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        OltpAction::Prepare(prepare) => prepare::oltp(args.member, prepare, interruption),
        OltpAction::Run(run) => run::oltp(args.member, run, interruption),
        OltpAction::Cleanup(cleanup) => prepare::oltp_cleanup(args.member, cleanup),
    }
}
