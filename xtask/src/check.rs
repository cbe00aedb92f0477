//! `cargo xtask check`: what must hold before every commit, in well under two minutes.
//!
//! It runs no integration test: those may touch a disk, wait or need a package.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::workspace::{self, Workspace};
use crate::{test, tidy};

/// One step; false when what it judges is not in order.
type CheckStep<'a> = &'a dyn Fn() -> Result<bool>;

/// Runs every step, also after one failed, and prints which did. `--changed` leaves out only the
/// unit tests that cannot see the change: the other steps redo only what changed.
///
/// # Errors
/// When a step could not be run at all.
pub fn run(mut args: Args) -> Result<bool> {
    let changed = args.flag_with_option("--changed");
    args.finish()?;
    let unit_tests = || unit_tests(changed.as_ref());
    let steps: [(&str, CheckStep); 4] =
        [("format", &format), ("tidy", &tidy::run), ("lints", &lints), ("unit tests", &unit_tests)];
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

fn unit_tests(changed: Option<&Option<String>>) -> Result<bool> {
    let workspace = Workspace::read()?;
    let concern = changed.map(|base| test::changed::Concern::since(&workspace, base.as_deref()));
    let concern = concern.transpose()?;
    let Some(built) = test::targets::build(&workspace, test::targets::Which::Unit, "")? else {
        return Ok(false);
    };
    let runner = test::execute::Runner::new(&workspace, test::Length::of_environment())?;
    let (tally, _) = test::run_all(&runner, &workspace, &built.targets, concern.as_ref())?;
    println!("   {} unit tests passed, {} failed", tally.passed, tally.failed);
    Ok(tally.failed == 0)
}

fn cargo(words: &[&str]) -> Result<bool> {
    let status = workspace::cargo(&workspace::root()).args(words).status();
    Ok(status.with_context(|| format!("cannot run cargo {}", words[0]))?.success())
}
