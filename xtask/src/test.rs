//! `cargo xtask test` and `cargo xtask soak`: the whole suite, built once in the one profile.
//!
//! Order: unit tests first, in parallel threads; then every integration binary alone, one test at a
//! time, because integration tests may be real-time; then the documentation tests. A file lock
//! keeps a second suite or benchmark on the same clone waiting.
//! Invariant: every test is counted once, as passed, failed or skipped. A binary that dies or
//! exceeds its time counts as one failed test.
//! A test skips by printing a line `skipped: <reason>` to stderr and returning.

mod doc;
pub mod execute;
pub mod outcome;
mod packages;
pub mod targets;

use anyhow::Result;

use crate::args::Args;
use crate::workspace::Workspace;
use execute::Runner;
use outcome::TestTally;
use targets::{Target, Which};

/// Which forms of the tests run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// What every machine runs.
    Usual,
    /// `IOSTRATA_SOAK=1`: the long forms.
    Soak,
}

/// The whole suite. True when nothing failed.
///
/// # Errors
/// When cargo cannot be run, or packages were asked for that cannot be installed.
pub fn run(mut args: Args, length: Length) -> Result<bool> {
    let install = args.flag("--install");
    args.finish()?;
    packages::prepare(install)?;
    let workspace = Workspace::read()?;
    let runner = Runner::new(&workspace, length)?;
    println!("building every test");
    let Some(targets) = targets::build(&workspace, Which::All)? else {
        println!("the tests do not build; nothing was run");
        return Ok(conclude(&TestTally { failed: 1, ..TestTally::default() }));
    };
    let mut tally = run_all(&runner, &targets)?;
    tally.add(doc::run(&runner)?);
    Ok(conclude(&tally))
}

/// Runs each binary after the other and says how it went.
///
/// # Errors
/// When a binary cannot be started.
pub fn run_all(runner: &Runner, targets: &[Target]) -> Result<TestTally> {
    let mut tally = TestTally::default();
    for target in targets {
        let outcome = runner.run(target)?;
        println!("{outcome}");
        tally.add(outcome);
    }
    Ok(tally)
}

/// Prints the reasons and, last, the closing line.
fn conclude(tally: &TestTally) -> bool {
    let needless = |skip: &&String| packages::is_needless(skip, packages::is_installed);
    let needless: Vec<String> = tally.skips.iter().filter(needless).cloned().collect();
    for (title, lines) in [
        ("failed:", &tally.failures),
        ("skipped:", &tally.skips),
        ("skipped although what they need is installed, which counts as failing:", &needless),
    ] {
        if !lines.is_empty() {
            println!("\n{title}");
            lines.iter().for_each(|line| println!("  {line}"));
        }
    }
    println!("\n{tally}");
    tally.failed == 0 && needless.is_empty()
}
