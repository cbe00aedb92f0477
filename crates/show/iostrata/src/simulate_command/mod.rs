//! `iostrata simulate`: what happens in virtual time.

mod expected;
#[cfg(test)]
mod expected_tests;
mod flush;
mod flush_plan;
mod parallel;
mod queue;
mod recorded_settings;
mod recording;

use crate::args::{SimulateAction, SimulateArgs};
use crate::exit_error::ExitError;
use crate::signals::Interruption;
pub use expected::expect;
pub use recorded_settings::is_recorded;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &SimulateArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        SimulateAction::Flush(args) => flush::run(args, interruption),
        SimulateAction::Queue(args) => queue::run(args, interruption),
        SimulateAction::Unknown(words) => {
            let found = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
            Err(ExitError::Usage(format!(
                "simulate {found}: there is no such simulation; there are `flush` and `queue`"
            )))
        }
    }
}
