//! `cargo xtask bench repeat`: the same measurement many times in a row.
//!
//! Purpose: how often the interval of a window holds the common mean of all runs, which it does not
//! promise on a machine that drifts, and how often the interval for repeats holds the other runs,
//! which it does: 92 to 98 in 100. The first run of each case finds no earlier ones next to it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::pairs::Iostrata;
use crate::args::Args;
use crate::test::execute;
use crate::workspace::Workspace;

const CASES: [(&str, &str, &str); 2] =
    [("io_uring depth 8", "io_uring", "8"), ("sync, one job", "sync", "1")];

/// The figures of one run.
#[derive(Clone, Copy, Debug)]
struct RepeatRun {
    iops: f64,
    window: [f64; 2],
    repeat: [f64; 2],
    sound: bool,
}

/// Runs both cases and prints what was held.
///
/// # Errors
/// When a run fails.
pub fn run(mut args: Args) -> Result<()> {
    let runs: usize = args.option("--runs", 30)?;
    let runtime_s: u32 = args.option("--runtime", 4)?;
    args.finish()?;
    ensure!(runs >= 3, "--runs {runs}: use 3 or more");
    let workspace = Workspace::read()?;
    let iostrata = Iostrata::build(&workspace)?;
    let scratch = workspace.target.join("xtask");
    let _lock = execute::lock()?;
    let place = scratch.join(format!("repeat-{}", std::process::id()));
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let outcome =
        CASES.iter().try_for_each(|case| measure(&iostrata, &place, case, runs, runtime_s));
    fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
    outcome
}

fn measure(
    iostrata: &Iostrata,
    place: &Path,
    (name, engine, depth): &(&str, &str, &str),
    runs: usize,
    runtime_s: u32,
) -> Result<()> {
    println!("{name}: 4K random reads, {runs} runs of {runtime_s} s");
    let file = place.join("data");
    let words = ["--keep", "--size", "512M", "--bs", "4k", "--rw", "randread", "--direct"];
    let words = [&words[..], &["--ioengine", engine, "--iodepth", depth]].concat();
    let mut found = Vec::new();
    for number in 0..runs {
        let out = place.join(format!("{engine}-{number}"));
        let text = iostrata.document(&file, &words, &format!("{runtime_s}s"), &out)?;
        let one = read(&text).context("an interval is missing")?;
        println!("  {:>8.0} {:>8.0?} again {:>8.0?}", one.iops, one.window, one.repeat);
        found.push(one);
    }
    let (windows, repeats) = held(&found);
    let sound = found.iter().filter(|one| one.sound).count();
    println!("  {windows:.0} % of the windows hold the common mean; {sound} have no caution");
    println!("  {repeats:.1} % of the repeats lie in the interval for repeats");
    Ok(())
}

fn read(text: &str) -> Option<RepeatRun> {
    let document: Value = serde_json::from_str(text).ok()?;
    let read = &document["read"];
    let pair = |name: &str| Some([read[name][0].as_f64()?, read[name][1].as_f64()?]);
    Some(RepeatRun {
        iops: read["iops"].as_f64()?,
        window: pair("iops_ci95")?,
        repeat: pair("iops_repeat_ci95")?,
        sound: document["verdicts"].as_array()?.is_empty(),
    })
}

/// Percent of windows that hold the mean of all runs; percent of other runs that lie in the
/// intervals for repeats.
fn held(runs: &[RepeatRun]) -> (f64, f64) {
    let holds = |[low, high]: [f64; 2], value: f64| low <= value && value <= high;
    let mean = runs.iter().map(|one| one.iops).sum::<f64>() / runs.len() as f64;
    let windows = runs.iter().filter(|one| holds(one.window, mean)).count();
    let (mut repeats, mut all) = (0, 0);
    for (at, one) in runs.iter().enumerate() {
        let others = runs.iter().enumerate().filter(|(other, _)| *other != at);
        for (_, other) in others {
            all += 1;
            repeats += usize::from(holds(one.repeat, other.iops));
        }
    }
    let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    (percent(windows, runs.len()), percent(repeats, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_compared_with_the_others_only() {
        let one = |iops: f64, half: f64, wide: f64| RepeatRun {
            iops,
            window: [iops - half, iops + half],
            repeat: [iops - wide, iops + wide],
            sound: true,
        };
        let runs = [one(90.0, 1.0, 15.0), one(100.0, 1.0, 5.0), one(110.0, 1.0, 50.0)];
        let (windows, repeats) = held(&runs);
        assert!((windows - 100.0 / 3.0).abs() < 1e-9 && (repeats - 50.0).abs() < 1e-9);
    }

    #[test]
    fn both_intervals_are_read() {
        let text = r#"{"read": {"iops": 5.0, "iops_ci95": [4, 6], "iops_repeat_ci95": [3, 7]},
            "verdicts": []}"#;
        let run = read(text).unwrap();
        assert_eq!((run.window, run.repeat, run.sound), ([4.0, 6.0], [3.0, 7.0], true));
        assert!(read(&text.replace("iops_repeat_ci95", "other")).is_none());
    }
}
