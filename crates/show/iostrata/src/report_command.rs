//! `iostrata report`.
use crate::args::ReportArgs;
use crate::ending::Ending;

/// Runs the command.
pub fn run(_args: &ReportArgs) -> Result<(), Ending> {
    Ok(())
}
