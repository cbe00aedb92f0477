//! `cargo xtask bench suite`: how long the suite takes, beside what the repository keeps.
//!
//! Purpose: show a slow test when it is added. It runs the suite, prints which tests are new, gone
//! or much slower than those kept, and with `--keep` keeps the new times, which also say on a clean
//! clone which tests begin first.
//! It judges nothing: a time of a shared machine is no proof.

use anyhow::Result;

use crate::args::Args;
use crate::test::times::Times;
use crate::test::{self, Choice, Length};
use crate::workspace::Workspace;

/// Shorter ones are not kept: they change no order that matters.
const KEPT_S_MIN: f64 = 1.0;
/// A test that takes so many times as long as the kept time, and so many seconds more, is named.
const SLOWER: f64 = 1.5;
const SLOWER_S: f64 = 2.0;

/// Runs the suite and compares.
///
/// # Errors
/// As the suite, or when the times cannot be kept.
pub fn run(mut args: Args) -> Result<()> {
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
