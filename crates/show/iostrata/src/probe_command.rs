//! `iostrata probe`.
use crate::args::ProbeArgs;
use crate::ending::Ending;
use crate::signals::Interruption;

/// Runs the command.
pub fn run(_args: &ProbeArgs, _interruption: &Interruption) -> Result<(), Ending> {
    Ok(())
}
