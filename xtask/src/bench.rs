//! `cargo xtask bench`: iostrata compared with fio and sysbench, emulated disks with their models,
//! and the embedded engine with its peers, as pairs on the same machine in the same minutes; a
//! server tuned and untuned; and whether intervals hold what they should.
//!
//! Purpose: show that the meter costs less than what it measures, and that it measures the same.
//! Invariant: the two sides alternate (A B B A ...), so that a drift of the machine cancels within
//! pairs; a difference is stated only with its 95 % interval.
//! It judges no machine: it prints and returns success when every run could be made.

mod coverage;
mod fio_lines;
mod pairs;
mod parity;
mod peers;
mod repeat;
mod sysbench;
mod tpcc;
mod tune;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::test::schedule::Times;
use crate::test::{Choice, Length, execute};
use crate::workspace::Workspace;
use crate::{test, workspace};

/// Runs the benchmark that is named.
///
/// # Errors
/// When it is unknown, or fio or iostrata fails.
pub fn run(mut args: Args) -> Result<bool> {
    match args.word().as_deref() {
        Some("coverage") => coverage::run(args)?,
        Some("disk") => run_disk(args)?,
        Some("null") => parity::run_null(args)?,
        Some("parity") => parity::run(args)?,
        Some("peers") => peers::run(args)?,
        Some("repeat") => repeat::run(args)?,
        Some("suite") => run_suite(args)?,
        Some("sysbench") => sysbench::run(args)?,
        Some("tpcc") => tpcc::run(args)?,
        Some("tune") => tune::run(args)?,
        Some(other) => {
            bail!(
                "no benchmark is named {other}; there are coverage, disk, null, parity, peers, \
                 repeat, suite, sysbench, tpcc and tune"
            )
        }
        None => bail!(
            "name a benchmark: coverage, disk, null, parity, peers, repeat, suite, sysbench, tpcc \
             or tune"
        ),
    }
    Ok(true)
}

// `cargo xtask bench disk`: emulated disks compared with the same models in virtual time.
//
// The example of `sim` does the work: it serves each disk, lets fio measure its block device, and
// runs the model. Here it is only built as it ships and kept alone on the machine.

/// Models whose rates this way of serving can carry on a small machine.
const DISKS: &str = "hdd-7k2 hdd-15k raid10-hdd cloud-burst ssd-sata";

/// Runs the example; `--disks "A B"` names others, `--runtime` the seconds of each figure.
///
/// # Errors
/// When it does not build or fails.
fn run_disk(mut args: Args) -> Result<()> {
    let disks: String = args.option("--disks", DISKS.to_owned())?;
    let runtime_s: u32 = args.option("--runtime", 8)?;
    args.finish()?;
    let workspace = Workspace::read()?;
    let example = ["--release", "--package", "iostrata-sim", "--example", "agreement"];
    let mut build = workspace::cargo(&workspace.root);
    if !build.arg("build").args(example).status().context("cannot run cargo build")?.success() {
        bail!("the example does not build");
    }
    let _lock = execute::lock()?;
    // Without a disk it measures what the way to the server costs.
    for disks in ["", &disks] {
        let mut command = workspace::cargo(&workspace.root);
        command.args(["run", "--quiet"]).args(example).arg("--").args(disks.split_whitespace());
        command.env("SECONDS_EACH", runtime_s.to_string());
        if !command.status().context("cannot run the example")?.success() {
            bail!("the example failed; it needs root, /dev/fuse and fio");
        }
    }
    Ok(())
}

// `cargo xtask bench suite`: how long the suite takes, compared with the times kept in the
// repository.
//
// Purpose: show a slow test when it is added. It runs the suite, prints which tests are new, gone
// or much slower than those kept, and with `--keep` keeps the new times, which also determine on a
// clean clone which tests begin first. It judges nothing: a time of a shared machine is no proof.

/// Shorter ones are not kept: they change no order that matters.
const KEPT_S_MIN: f64 = 1.0;
/// A test that takes so many times as long as the kept time, and so many seconds more, is named.
const SLOWER: f64 = 1.5;
const SLOWER_S: f64 = 2.0;

/// Runs the suite and compares.
///
/// # Errors
/// As the suite, or when the times cannot be kept.
fn run_suite(mut args: Args) -> Result<()> {
    let keep = args.flag("--keep");
    args.finish()?;
    let choice =
        Choice { install: false, package: String::new(), changed: None, length: Length::Usual };
    let report = test::run_suite(&choice)?;
    println!();
    differences(&Times::committed(), &report.times).iter().for_each(|line| println!("{line}"));
    let mut times = report.times;
    for (phase, seconds) in &report.phases {
        times.set(&format!("phase: {phase}"), *seconds);
    }
    if keep {
        let path = Workspace::read()?.root.join("xtask/src/test/times.txt");
        times.write(&path, KEPT_S_MIN)?;
        println!("kept in {}", path.display());
    }
    Ok(())
}

/// What differs from the kept times, the slowest first.
fn differences(kept: &Times, now: &Times) -> Vec<String> {
    let line = |(name, seconds): (&str, f64)| match kept.get(name) {
        None if seconds >= KEPT_S_MIN => Some(format!("new     {seconds:>7.1} s  {name}")),
        Some(before) if seconds > before * SLOWER && seconds > before + SLOWER_S => {
            Some(format!("slower  {seconds:>7.1} s  {name}, {before:.1} s before"))
        }
        _ => None,
    };
    let gone = kept
        .longest()
        .into_iter()
        .filter(|(name, _)| now.get(name).is_none() && !name.starts_with("phase: "));
    let gone: Vec<String> =
        gone.map(|(name, seconds)| format!("gone    {seconds:>7.1} s  {name}")).collect();
    now.longest().into_iter().filter_map(line).chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_slower_and_gone_tests_are_named() {
        let times = |all: &[(&str, f64)]| {
            let mut times = Times::default();
            all.iter().for_each(|(name, seconds)| times.set(name, *seconds));
            times
        };
        let kept = times(&[("a", 4.0), ("b", 10.0), ("c", 2.0), ("phase: tests", 9.0)]);
        let now = times(&[("a", 7.0), ("b", 11.0), ("d", 1.5), ("e", 0.1)]);
        let lines = differences(&kept, &now);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("slower") && lines[0].contains("a, 4.0 s before"));
        assert!(lines[1].starts_with("new") && lines[2].starts_with("gone"));
    }
}
