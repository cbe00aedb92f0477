//! `cargo xtask test` and `cargo xtask soak`: the whole suite, built once in the one profile.
//!
//! Order: unit tests first, in parallel threads; then every integration binary alone, one test at a
//! time, because integration tests may be real-time; then the documentation tests; last the tests
//! on database servers, which run only as long as these. A file lock keeps a second suite or
//! benchmark on the same clone waiting.
//! Invariant: every test is counted once, as passed, failed or skipped. A binary that dies or
//! exceeds its time counts as one failed test.
//! An integration test that fails is run once more and named, when it passes then.
//! A test skips by printing a line `skipped: <reason>` to stderr and returning.

mod doc;
pub mod execute;
pub mod outcome;
mod packages;
pub mod targets;

use std::path::PathBuf;

use anyhow::Result;

use crate::args::Args;
use crate::servers::suite;
use crate::workspace::Workspace;
use execute::Runner;
use outcome::TestTally;
use targets::{Target, Which};

/// Packages whose integration tests run on the servers that there are.
const SERVED: [&str; 2] = ["iostrata-server", "iostrata-workload"];

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
    let package = args.option("--package", String::new())?;
    args.finish()?;
    packages::prepare(install)?;
    let workspace = Workspace::read()?;
    let dir = std::env::var_os("IOSTRATA_FLEET").map(PathBuf::from);
    let dir = dir.unwrap_or_else(|| workspace.target.join("fleet"));
    let servers = suite::prepare(&dir, install || packages::is_ci())?;
    let mut runner = Runner::new(&workspace, length)?;
    println!("building every test");
    let Some(targets) = targets::build(&workspace, Which::All, &package)? else {
        println!("the tests do not build; nothing was run");
        return Ok(conclude(&TestTally { failed: 1, ..TestTally::default() }));
    };
    let (served, others): (Vec<Target>, Vec<Target>) =
        targets.into_iter().partition(|target| target.is_served(&SERVED));
    let mut tally = run_all(&runner, &others)?;
    if package.is_empty() {
        tally.add(doc::run(&runner)?);
    }
    tally.skips.extend(servers.missing.iter().cloned());
    let running = servers.start(&workspace)?;
    tally.skips.extend(running.missing.iter().cloned());
    runner.environment.clone_from(&running.environment);
    let on_servers = run_all(&runner, &served)?;
    drop(running);
    tally.join(on_servers);
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
        ("passed only when run again:", &tally.unsteady),
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
