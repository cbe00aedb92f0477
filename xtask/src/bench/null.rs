//! `cargo xtask bench null`: the cost of one operation that does nothing.
//!
//! Both programs make an offset, take their stamps, fill their histograms and statistics, and do no
//! I/O: what remains is the tool itself.

use anyhow::{Result, ensure};
use iostrata_stats::{PAIRS_MIN, paired};

use super::fio;
use super::iostrata::Iostrata;
use super::pairs::{self, Pairs};
use crate::args::Args;
use crate::test::execute;
use crate::workspace::Workspace;

/// How many times less than fio's the cost should be at least.
const TIMES_LESS_WANTED: f64 = 10.0;

/// Runs the pairs and prints them.
///
/// # Errors
/// When a run fails.
pub fn run(mut args: Args) -> Result<()> {
    let pairs: usize = args.option("--pairs", 6)?;
    let runtime_s: u32 = args.option("--runtime", 3)?;
    args.finish()?;
    ensure!(pairs >= PAIRS_MIN, "--pairs {pairs}: a conclusion needs at least {PAIRS_MIN}");
    let workspace = Workspace::read()?;
    let iostrata = Iostrata::build(&workspace)?;
    let _lock = execute::lock()?;
    println!("null engine, 4K random read, 1 job, {runtime_s} s each, order alternated");
    println!("{:>14} {:>16} {:>8}", "fio ns/op", "iostrata ns/op", "ratio");
    let found = Pairs::alternate(
        pairs,
        || fio::null(runtime_s),
        || iostrata.null(runtime_s),
        |fio, ours| {
            let (fio, ours) = (1e9 / fio.iops, 1e9 / ours.iops);
            println!("{fio:>14.1} {ours:>16.2} {:>8.2}", fio / ours);
        },
    )?;
    let (fio, ours) = found.figures(|sample| 1e9 / sample.iops);
    let comparison = paired(&ours, &fio)?;
    println!("fio costs {} times as much (95 % interval)", pairs::ratio(&comparison));
    let (fio_cpu, our_cpu) = found.figures(|sample| sample.cpu_ns_per_io);
    let cpu = pairs::ratio(&paired(&our_cpu, &fio_cpu)?);
    println!("fio takes {cpu} times the processor time (less hurt by a busy machine)");
    println!("{}", conclusion(comparison.ratio_ci95));
    pairs::print_verdicts(&found.verdicts());
    Ok(())
}

fn conclusion(interval: Option<[f64; 2]>) -> String {
    let wanted = format!("wanted: at least {TIMES_LESS_WANTED} times less than fio");
    match interval {
        Some([low, _]) if low >= TIMES_LESS_WANTED => format!("{wanted}: reached"),
        Some([_, high]) if high < TIMES_LESS_WANTED => format!("{wanted}: not reached"),
        _ => format!("{wanted}: the interval does not tell"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conclusion_rests_on_the_interval() {
        assert!(conclusion(Some([10.5, 12.0])).ends_with(": reached"));
        assert!(conclusion(Some([8.0, 9.0])).ends_with("not reached"));
        assert!(conclusion(Some([9.0, 12.0])).ends_with("does not tell"));
        assert!(conclusion(None).ends_with("does not tell"));
    }
}
