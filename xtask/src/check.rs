//! `cargo xtask check`: what must hold before every commit, in well under two minutes.
//!
//! It runs no integration test: those may touch a disk, wait or need a package.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::workspace::{self, Workspace};
use crate::{test, tidy};

/// One step; false when what it judges is not in order.
type CheckStep = fn() -> Result<bool>;

/// Runs every step, also after one failed, and says which did.
///
/// # Errors
/// When a step could not be run at all.
pub fn run() -> Result<bool> {
    let steps: [(&str, CheckStep); 4] =
        [("format", format), ("tidy", tidy::run), ("lints", lints), ("unit tests", unit_tests)];
    let mut failed = Vec::new();
    for (name, step) in steps {
        println!("== {name}");
        let start = Instant::now();
        if !step()? {
            failed.push(name);
        }
        println!("   {:.1} s", start.elapsed().as_secs_f64());
    }
    if failed.is_empty() {
        println!("check: in order");
    } else {
        println!("check: not in order: {}", failed.join(", "));
    }
    Ok(failed.is_empty())
}

fn format() -> Result<bool> {
    cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Result<bool> {
    cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn unit_tests() -> Result<bool> {
    let workspace = Workspace::read()?;
    let Some(targets) = test::targets::build(&workspace, test::targets::Which::Unit, "")? else {
        return Ok(false);
    };
    let logs = test::execute::Runner::new(&workspace, test::Length::Usual)?;
    let tally = test::run_all(&logs, &targets)?;
    println!("   {} unit tests passed, {} failed", tally.passed, tally.failed);
    Ok(tally.failed == 0)
}

fn cargo(words: &[&str]) -> Result<bool> {
    let status = workspace::cargo(&workspace::root()).args(words).status();
    Ok(status.with_context(|| format!("cannot run cargo {}", words[0]))?.success())
}
