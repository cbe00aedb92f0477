//! The examples in the documentation comments, which only cargo can build and run.

use anyhow::Result;

use super::execute::Runner;
use super::outcome::TestOutcome;
use crate::workspace;

/// Runs the documentation tests of all libraries.
///
/// # Errors
/// When cargo cannot be started.
pub fn run(runner: &Runner) -> Result<TestOutcome> {
    let mut command = workspace::cargo(&runner.root);
    command.args(["test", "--quiet", "--workspace", "--doc", "--no-fail-fast"]);
    command.args(["--", "--show-output"]);
    let outcome = runner.run_command(command, "documentation examples", "documentation")?;
    println!("{outcome}");
    Ok(outcome)
}
