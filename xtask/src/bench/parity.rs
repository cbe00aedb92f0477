//! `cargo xtask bench parity`: the same I/O by both programs on one prefilled file, and the same
//! lines of fio's where `iostrata io` has no words for them; and `bench null`: the cost of one
//! operation that does nothing.
//!
//! Purpose: IOPS equal to fio's within the intervals and processor time per I/O at most fio's, or
//! the difference stated.
//! Both use one file, really written before, so that its place on the device cannot differ.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use iostrata_stats::units::Size;
use iostrata_stats::{PAIRS_MIN, paired};

use super::fio_lines::{FioLine, Ground, LINES, LoopDevice};
use super::pairs::{self, BenchSample, Iostrata, Pairs, ParityCase, TableRow};
use crate::args::Args;
use crate::test::execute;
use crate::workspace::Workspace;

/// Block, memory, engine, jobs, depth.
const SHAPES: [(&str, &str, &str, u32, u32); 11] = [
    ("4k", "malloc", "sync", 1, 1),
    ("4k", "malloc", "sync", 4, 1),
    ("4k", "malloc", "sync", 16, 1),
    ("4k", "malloc", "io_uring", 1, 1),
    ("4k", "malloc", "io_uring", 1, 32),
    ("16k", "malloc", "sync", 1, 1),
    ("16k", "malloc", "libaio", 1, 16),
    ("16k", "malloc", "io_uring", 1, 16),
    ("1m", "malloc", "sync", 8, 1),
    ("1m", "malloc", "io_uring", 1, 8),
    ("1m", "mmaphuge", "io_uring", 1, 8),
];

/// What fio takes for 8 buffers of a megabyte, rounded up.
const HUGE_PAGES_MIN: u64 = 16;

fn cases() -> impl Iterator<Item = ParityCase> {
    ["randread", "randwrite"].into_iter().flat_map(|rw| {
        SHAPES.map(|(block, memory, engine, jobs, depth)| ParityCase {
            rw,
            block,
            memory,
            engine,
            jobs,
            depth,
        })
    })
}

/// Runs every case and prints one table.
///
/// # Errors
/// When a run fails.
pub fn run(mut args: Args) -> Result<()> {
    let pairs: usize = args.option("--pairs", 12)?;
    let runtime_s: u32 = args.option("--runtime", 2)?;
    let size: String = args.option("--size", "512M".to_owned())?;
    let dir: String = args.option("--dir", String::new())?;
    let only: String = args.option("--only", String::new())?;
    args.finish()?;
    ensure!(pairs >= PAIRS_MIN, "--pairs {pairs}: a conclusion needs at least {PAIRS_MIN}");
    let workspace = Workspace::read()?;
    let iostrata = Iostrata::build(&workspace)?;
    let scratch = workspace.target.join("xtask");
    let _lock = execute::lock()?;
    let dir = if dir.is_empty() { scratch } else { PathBuf::from(dir) };
    let file = dir.join(format!("iostrata-parity-{}.dat", std::process::id()));
    let mut cases: Vec<ParityCase> = cases().filter(|case| name(case).contains(&only)).collect();
    if free_huge_pages() < HUGE_PAGES_MIN {
        println!("without mmaphuge: fio needs {HUGE_PAGES_MIN} free huge pages (vm.nr_hugepages)");
        cases.retain(|case| case.memory == "malloc");
    }
    let lines: Vec<FioLine> = LINES.into_iter().filter(|line| line.name.contains(&only)).collect();
    let is_empty = cases.is_empty() && lines.is_empty();
    ensure!(!is_empty, "--only {only}: no case has that in its name");
    let bench = ParityBench { iostrata: &iostrata, file: &file, size: &size, pairs, runtime_s };
    let outcome = bench.all(&cases, &lines);
    if file.exists() {
        fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    }
    let rows = outcome?;
    println!();
    pairs::print(&rows);
    Ok(())
}

/// Huge pages that fio can take; iostrata needs none to be reserved.
fn free_huge_pages() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("HugePages_Free:"));
    line.and_then(|line| line.trim().parse().ok()).unwrap_or(0)
}

/// What all cases have in common.
struct ParityBench<'a> {
    iostrata: &'a Iostrata,
    file: &'a Path,
    size: &'a str,
    pairs: usize,
    runtime_s: u32,
}

impl ParityBench<'_> {
    fn all(&self, cases: &[ParityCase], lines: &[FioLine]) -> Result<Vec<TableRow>> {
        let (file, size, runtime_s) = (self.file, self.size, self.runtime_s);
        println!("filling {size} and warming up");
        for case in cases {
            self.iostrata.case(case, file, size, 1)?;
        }
        let (pairs, shown) = (self.pairs, file.display());
        println!("direct on {shown}, {pairs} pairs of {runtime_s} s, order alternated");
        let mut rows = Vec::new();
        for case in cases {
            let ours = || self.iostrata.case(case, file, size, runtime_s);
            rows.push(self.row(
                name(case),
                || pairs::fio_case(case, file, size, runtime_s),
                ours,
            )?);
        }
        for line in lines {
            rows.push(self.line(line)?);
        }
        Ok(rows)
    }

    fn line(&self, line: &FioLine) -> Result<TableRow> {
        let (size, runtime_s) = (self.size, self.runtime_s);
        let bytes = size.parse::<Size>().context("--size")?.0;
        let device = match line.ground {
            Ground::File => None,
            Ground::Loop => Some(LoopDevice::attach(self.file.with_extension("loop"), bytes)?),
        };
        let place = device.as_ref().map_or(self.file, LoopDevice::path);
        // Made by us, so that both find the same file, and read into the cache by both.
        line.by_iostrata(self.iostrata, place, size, 1)?;
        line.by_fio(place, size, 1)?;
        let ours = || line.by_iostrata(self.iostrata, place, size, runtime_s);
        self.row(line.name.to_owned(), || line.by_fio(place, size, runtime_s), ours)
    }

    fn row(
        &self,
        name: String,
        fio: impl FnMut() -> Result<BenchSample>,
        ours: impl FnMut() -> Result<BenchSample>,
    ) -> Result<TableRow> {
        println!("{name}");
        let found = Pairs::alternate(self.pairs, fio, ours, |fio, ours| {
            print!("  fio {:>9.0} IOPS {:>7.0} ns/IO", fio.iops, fio.cpu_ns_per_io);
            println!("   iostrata {:>9.0} IOPS {:>7.0} ns/IO", ours.iops, ours.cpu_ns_per_io);
        })?;
        row(name, &found)
    }
}

fn name(case: &ParityCase) -> String {
    let ParityCase { rw, block, memory, engine, jobs, depth } = case;
    let memory = if *memory == "malloc" { String::new() } else { format!(" {memory}") };
    format!("{rw} {block} {engine} jobs {jobs} depth {depth}{memory}")
}

fn row(name: String, found: &Pairs) -> Result<TableRow> {
    let (fio_iops, our_iops) = found.figures(|sample| sample.iops);
    let (fio_cpu, our_cpu) = found.figures(|sample| sample.cpu_ns_per_io);
    Ok(TableRow {
        iops: paired(&fio_iops, &our_iops).with_context(|| format!("IOPS of {name}"))?,
        cpu: paired(&fio_cpu, &our_cpu).with_context(|| format!("CPU of {name}"))?,
        verdicts: found.verdicts(),
        name,
    })
}

// `cargo xtask bench null`: the cost of one operation that does nothing.
//
// Both programs make an offset, take their stamps, fill their histograms and statistics, and do no
// I/O: what remains is the tool itself.

/// How many times less than fio's the cost should be at least.
const TIMES_LESS_WANTED: f64 = 10.0;

/// Runs the pairs and prints them.
///
/// # Errors
/// When a run fails.
pub fn run_null(mut args: Args) -> Result<()> {
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
        || pairs::fio_null(runtime_s),
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
    println!("{}", conclusion(comparison.ratio.ci95));
    pairs::print_verdicts(&found.verdicts());
    Ok(())
}

fn conclusion(interval: Option<[f64; 2]>) -> String {
    let wanted = format!("wanted: at least {TIMES_LESS_WANTED} times less than fio");
    match interval {
        Some([low, _]) if low >= TIMES_LESS_WANTED => format!("{wanted}: reached"),
        Some([_, high]) if high < TIMES_LESS_WANTED => format!("{wanted}: not reached"),
        _ => format!("{wanted}: the interval does not decide"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_there_once() {
        let all: Vec<ParityCase> = cases().collect();
        assert_eq!(all.len(), 22);
        assert!(all.iter().enumerate().all(|(at, case)| !all[..at].contains(case)));
    }

    #[test]
    fn a_row_compares_ours_with_fios() {
        let side = |iops: [f64; 3], cpu: f64| {
            let sample = |iops| BenchSample { iops, cpu_ns_per_io: cpu, verdicts: Vec::new() };
            iops.map(sample).to_vec()
        };
        let found =
            Pairs { fio: side([10.0, 10.1, 9.9], 100.0), ours: side([20.0, 20.2, 19.9], 50.0) };
        let case = cases().next().unwrap();
        let row = row(name(&case), &found).unwrap();
        assert!(row.iops.ratio.value > 1.9 && row.cpu.ratio.value < 0.6, "{:?}", row.iops);
    }
}

#[cfg(test)]
mod null_tests {
    use super::*;

    #[test]
    fn the_conclusion_rests_on_the_interval() {
        assert!(conclusion(Some([10.5, 12.0])).ends_with(": reached"));
        assert!(conclusion(Some([8.0, 9.0])).ends_with("not reached"));
        assert!(conclusion(Some([9.0, 12.0])).ends_with("does not decide"));
        assert!(conclusion(None).ends_with("does not decide"));
    }
}
