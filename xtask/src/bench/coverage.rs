//! `cargo xtask bench coverage`: does what is called a 95 % interval hold the truth?
//!
//! Purpose: for every interval that is printed, the share of simulated runs in which it holds the
//! truth, over processes that storage and machines show in practice; next to it the share of runs
//! that a verdict flags, and the coverage of the others. With `--update` the table replaces the one
//! in docs/statistics.md.
//! Invariant: the truth is the process's, not the window's: its long-run mean, or its percentile.
//! Everything is simulated with fixed seeds; nothing is measured.

use std::{fmt, fs};

use anyhow::{Context, Result, bail, ensure};
use iostrata_stats::{
    Cells, FigurePair, Interval, LatencyHistogram, Measured, Need, Random, Stop, StoppingRule,
    Verdicts, combine, compare, difference, estimate, estimate_ratio, loss_pct, more_needed,
    paired, pooled_percentiles, repeat, until_precise,
};

use crate::args::Args;

/// Slices of a window, of a millisecond each.
const SLICES: usize = 500;
/// Runs of a row.
const RUNS: usize = 2_000;
/// The page that holds the table.
const PAGE: &str = "docs/statistics.md";

/// What one simulated run came to.
struct Run {
    /// Whether the interval holds the truth.
    holds: bool,
    /// Whether a verdict, or a missing interval, warns that it may not.
    is_flagged: bool,
}

impl Run {
    fn of(ci95: Option<Interval>, truth: f64, verdicts: &Verdicts) -> Self {
        let holds = ci95.is_some_and(|[low, high]| low <= truth && truth <= high);
        Self { holds, is_flagged: ci95.is_none() || !verdicts.is_sound() }
    }

    fn measured(figure: &Measured, truth: f64) -> Self {
        Self::of(figure.ci95, truth, &figure.verdicts)
    }
}

/// One row of the table.
struct Row {
    interval: &'static str,
    process: String,
    runs: Vec<Run>,
}

impl Row {
    fn of(
        interval: &'static str,
        process: impl Into<String>,
        runs: usize,
        mut one: impl FnMut(&mut Random) -> Run,
    ) -> Self {
        let process = process.into();
        let seed = process.bytes().chain(interval.bytes()).map(u64::from).sum();
        let mut rng = Random::new(seed);
        Self { interval, process, runs: (0..runs).map(|_| one(&mut rng)).collect() }
    }

    /// Coverage in percent, the share that is flagged, and the coverage of what is not; that is
    /// absent where next to nothing is.
    fn shares(&self) -> (f64, f64, Option<f64>) {
        let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
        let all = self.runs.len();
        let sound: Vec<&Run> = self.runs.iter().filter(|run| !run.is_flagged).collect();
        let held = self.runs.iter().filter(|run| run.holds).count();
        let sound_held = sound.iter().filter(|run| run.holds).count();
        let of_sound = (20 * sound.len() >= all).then(|| share(sound_held, sound.len()));
        (share(held, all), share(all - sound.len(), all), of_sound)
    }

    fn line(&self) -> String {
        let (held, flagged, sound) = self.shares();
        let sound = sound.map_or_else(|| "-".to_owned(), |sound| format!("{sound:.1}"));
        let Self { interval, process, .. } = self;
        format!("| {interval} | {process} | {held:.1} | {flagged:.0} | {sound} |")
    }
}

/// Prints the table, and writes it into its page on request.
///
/// # Errors
/// When an option is wrong, or the page cannot be read or written.
pub fn run(mut args: Args) -> Result<()> {
    let runs: usize = args.option("--runs", RUNS)?;
    let is_update = args.flag("--update");
    args.finish()?;
    ensure!(runs >= 100, "--runs {runs}: a share needs at least 100");
    let lines = table(runs);
    lines.iter().for_each(|line| println!("{line}"));
    if is_update {
        let page = fs::read_to_string(PAGE).with_context(|| format!("read {PAGE}"))?;
        fs::write(PAGE, updated(&page, &lines)?).with_context(|| format!("write {PAGE}"))?;
    }
    Ok(())
}

fn table(runs: usize) -> Vec<String> {
    let head = ["| interval | process | held, % | flagged, % | held where not flagged, % |"];
    let mut lines = head.map(str::to_owned).to_vec();
    lines.push("|---|---|---|---|---|".to_owned());
    for rows in [windows, replicates, comparisons, percentiles] {
        lines.extend(rows(runs).iter().map(Row::line));
    }
    lines.extend(["", "| a true loss | is | % of runs |", "|---|---|---|"].map(str::to_owned));
    let loss = |(name, what, share)| format!("| {name} | {what} | {share:.1} |");
    lines.extend(losses(runs).into_iter().map(loss));
    lines
}

/// The page with other tables, from the first line of a table to the last.
fn updated(page: &str, table: &[String]) -> Result<String> {
    let lines: Vec<&str> = page.lines().collect();
    let is_row = |line: &&str| line.starts_with('|');
    let (Some(first), Some(last)) = (lines.iter().position(is_row), lines.iter().rposition(is_row))
    else {
        bail!("{PAGE} holds no table to replace");
    };
    let table = table.iter().map(String::as_str);
    let all = lines[..first].iter().copied().chain(table).chain(lines[last + 1..].iter().copied());
    Ok(all.flat_map(|line| [line, "\n"]).collect())
}

/// Rates and latencies of one window.
fn windows(runs: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Process::ALL
        .into_iter()
        .map(|process| {
            Row::of("rate of a window", process.to_string(), runs, |rng| {
                let slices = process.series(rng, SLICES);
                estimate(&slices).map_or(FLAGGED, |one| Run::measured(&one, LEVEL))
            })
        })
        .collect();
    rows.extend(Process::ALL.into_iter().map(|process| {
        Row::of("rate of a window that a precision of 3 % ends", process.to_string(), runs, |rng| {
            stopped(&process.series(rng, 2 * SLICES))
        })
    }));
    rows.push(Row::of("mean latency of a window", "exponential latencies", runs, |rng| {
        let (sums, counts): (Vec<f64>, Vec<f64>) = (0..SLICES)
            .map(|_| ((0..20).map(|_| 100.0 * rng.exponential()).sum::<f64>(), 20.0))
            .unzip();
        let found = estimate_ratio(&sums, &counts);
        found.map_or(FLAGGED, |one| Run::measured(&one, 100.0))
    }));
    for drift in [0.0, 0.05, 0.1] {
        let process = format!("machine that drifts by {:.0} % from run to run", 100.0 * drift);
        rows.push(Row::of("the next run (repeat), after 5", process, runs, |rng| {
            let mut next = || {
                let level = LEVEL * (drift * rng.normal()).exp();
                let slices = Process::White.series(rng, SLICES);
                slices.iter().map(|value| value * level / LEVEL).collect::<Vec<f64>>()
            };
            let all: Vec<Vec<f64>> = (0..7).map(|_| next()).collect();
            let mean = |slices: &Vec<f64>| slices.iter().sum::<f64>() / SLICES as f64;
            let means: Vec<f64> = all.iter().map(mean).collect();
            let Some(this) = estimate(&all[5]) else { return FLAGGED };
            let again = repeat(&this, &all[5], &means[..5]);
            Run::of(again.map(|again| again.ci95), means[6], &Verdicts::none())
        }));
    }
    rows
}

/// A run without an interval.
const FLAGGED: Run = Run { holds: false, is_flagged: true };

/// A window that ends when it is precise.
fn stopped(slices: &[f64]) -> Run {
    let rule = StoppingRule::new(0.03, 250);
    let moments =
        std::iter::successors(Some(rule.next_check(0)), |&moment| Some(rule.next_check(moment)));
    let mut moments = moments.take_while(|&moment| moment <= slices.len());
    let end = moments.find(|&moment| rule.decide(&slices[..moment]) == Stop::Enough);
    let found = rule.estimate(&slices[..end.unwrap_or(slices.len())]);
    found.map_or(FLAGGED, |one| Run::measured(&one, LEVEL))
}

/// A replicate whose own interval is narrow.
fn sharp(value: f64) -> Measured {
    Measured::new(value, [0.999 * value, 1.001 * value], 40, Verdicts::none())
}

/// Figures of several windows.
fn replicates(runs: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for n in [3, 5] {
        for noise in [0.03, 0.1] {
            let process = format!("{n} replicates, {:.0} % between them", 100.0 * noise);
            rows.push(Row::of("figure of replicates", process, runs, |rng| {
                let all: Vec<Measured> =
                    (0..n).map(|_| sharp(100.0 * (1.0 + noise * rng.normal()))).collect();
                combine(&all).map_or(FLAGGED, |one| Run::measured(&one, 100.0))
            }));
        }
        let process = format!("{n} replicates, one in five at 60 % (two rates from run to run)");
        rows.push(Row::of("figure of replicates", process, runs, |rng| {
            let one = |rng: &mut Random| {
                sharp(
                    if rng.uniform() < 0.2 { 600.0 } else { 1_000.0 } * (1.0 + 0.01 * rng.normal()),
                )
            };
            let all: Vec<Measured> = (0..n).map(|_| one(rng)).collect();
            combine(&all).map_or(FLAGGED, |one| Run::measured(&one, 920.0))
        }));
    }
    for noise in [0.03, 0.05, 0.08] {
        let process = format!("{:.0} % between replicates, until 5 %", 100.0 * noise);
        rows.push(Row::of("figure of replicates added until precise", process, runs, |rng| {
            let one = |rng: &mut Random| sharp(100.0 * (1.0 + noise * rng.normal()));
            let mut all: Vec<Measured> = (0..3).map(|_| one(rng)).collect();
            while more_needed(&all, 0.05) != Need::Enough && all.len() < 24 {
                all.push(one(rng));
            }
            let figure = combine(&all).map(|figure| until_precise(figure, all.len()));
            figure.map_or(FLAGGED, |one| Run::measured(&one, 100.0))
        }));
    }
    rows
}

/// Logarithms of ratios of two treatments by cell and replicate: noise of each, and what is common
/// to all cells of a replicate.
fn pairs(
    rng: &mut Random,
    [cells, replicates]: [usize; 2],
    [noise, common]: [f64; 2],
    effect: f64,
) -> Vec<(usize, u32, [Measured; 2])> {
    let of_replicate: Vec<f64> = (0..replicates).map(|_| common * rng.normal()).collect();
    let mut all = Vec::new();
    for cell in 0..cells {
        for (replicate, common) in (0..).zip(&of_replicate) {
            let bare =
                |value: f64| Measured { value, ci95: None, n: 1, verdicts: Verdicts::none() };
            let first = bare(100.0 * (noise * rng.normal()).exp());
            let second = bare(100.0 * effect * (noise * rng.normal() + common).exp());
            all.push((cell, replicate, [first, second]));
        }
    }
    all
}

fn as_pairs(all: &[(usize, u32, [Measured; 2])]) -> Vec<FigurePair<'_>> {
    all.iter()
        .map(|(cell, replicate, [first, second])| FigurePair {
            cell: *cell,
            replicate: *replicate,
            first,
            second,
        })
        .collect()
}

/// Two treatments.
fn comparisons(runs: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for sizes @ [cells, replicates] in [[1, 4], [4, 3], [10, 3]] {
        for common in [0.0, 0.05, 0.1] {
            if cells == 1 && common > 0.0 {
                continue;
            }
            let process = format!(
                "{cells} cells x {replicates}, noise 3 %, {:.0} % common to a replicate",
                100.0 * common
            );
            rows.push(Row::of("ratio of pairs", process.clone(), runs, |rng| {
                let all = pairs(rng, sizes, [0.03, common], 1.1);
                let found = compare(&as_pairs(&all), Cells::Planned);
                found.map_or(FLAGGED, |one| Run::measured(&one.ratio, 1.1))
            }));
            rows.push(Row::of("difference of pairs", process, runs, |rng| {
                let all = pairs(rng, sizes, [0.03, common], 1.0);
                let found = difference(&as_pairs(&all), Cells::Planned);
                found.map_or(FLAGGED, |one| Run::measured(&one.value, 0.0))
            }));
        }
    }
    rows.push(Row::of("loss of figures that were not paired", "5 % of noise each", runs, |rng| {
        let mut draw = |mean: f64| {
            let value = mean * (1.0 + 0.05 * rng.normal());
            Measured::new(value, [0.902 * value, 1.098 * value], 3, Verdicts::none())
        };
        let found = loss_pct(&draw(1_000.0), &draw(700.0));
        found.map_or(FLAGGED, |one| Run::measured(&one, 30.0))
    }));
    rows
}

/// Percentiles of windows of half a second in which requests stall now and then.
fn percentiles(runs: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for stalls @ [stall_ms, every_ms] in [[0, 1], [5, 100], [20, 500], [50, 2_000]] {
        let what = match stall_ms {
            0 => "response times without a stall".to_owned(),
            _ => format!("stalls of {stall_ms} ms each {every_ms} ms"),
        };
        for percent in [50.0, 95.0, 99.0, 99.9] {
            let truth_us = stalled_percentile_us(stalls, percent);
            for windows in [1, 4] {
                let s = if windows == 1 { "" } else { "s" };
                let process = format!("p{percent}, {windows} window{s} of 0.5 s; {what}");
                rows.push(Row::of("percentile", process, runs / 2, |rng| {
                    let all: Vec<(LatencyHistogram, Measured)> =
                        (0..windows).map(|_| stalled_latencies(rng, stalls, 500)).collect();
                    let parts: Vec<(&LatencyHistogram, &Measured)> =
                        all.iter().map(|(histogram, mean)| (histogram, mean)).collect();
                    let found = pooled_percentiles(&parts, &[percent]);
                    let ci95 = found.first().and_then(|one| one.us_ci95);
                    Run::of(ci95, truth_us, &Verdicts::none())
                }));
            }
        }
    }
    rows
}

/// The verdicts on a true loss.
fn losses(runs: usize) -> Vec<(String, &'static str, f64)> {
    let mut rows = Vec::new();
    for (true_pct, noise) in [(10.0, 0.03), (30.0, 0.15), (40.0, 0.25)] {
        let name = format!("of {true_pct:.0} % at {:.0} % noise, 4 pairs", 100.0 * noise);
        let mut rng = Random::new(91);
        let mut counts = [0_usize; 3];
        for _ in 0..runs {
            let mut draw = |mean: f64| [0; 4].map(|_| mean * (noise * rng.normal()).exp());
            let (lower, upper) = (draw(100.0), draw(100.0 - true_pct));
            let Ok(found) = paired(&lower, &upper) else { continue };
            let stated = found.loss_pct();
            counts[0] += usize::from(found.equal_within_pct().is_some_and(|within| within <= 10.0));
            counts[1] += usize::from(found.loss_pct_max() < true_pct);
            counts[2] += usize::from(stated.is_below(20.0));
        }
        let says = [
            "called none: equal within 10 %",
            "said to cost less at most than it does",
            "cleared: below the 20 % that count",
        ];
        let share = |count: usize| 100.0 * count as f64 / runs as f64;
        rows.extend(says.into_iter().zip(counts).map(|(says, n)| (name.clone(), says, share(n))));
    }
    rows
}

// Processes that rates and latencies follow in practice, whose truth is known.
//
// Invariant: the same random numbers give the same series on every machine.

/// Mean of every process, in requests per slice.
const LEVEL: f64 = 1_000.0;
/// Standard deviation of its noise.
const NOISE: f64 = 150.0;

/// How a rate moves from slice to slice.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Process {
    /// Independent noise.
    White,
    /// Noise with this correlation of neighbours.
    Autocorrelated(f64),
    /// Values with a tail of this power.
    Pareto(f64),
    /// Two rates, 20 % above and 20 % below the mean; a slice keeps its rate for so many on
    /// average.
    TwoRates(f64),
    /// A rate that stands for so many slices in each so many, at a random place.
    Stalls(usize, usize),
    /// Noise of all time scales (1/f).
    Flicker,
    /// A sine with so many slices per cycle.
    Wave(f64),
}

impl Process {
    /// Those of the table.
    pub const ALL: [Self; 14] = [
        Self::White,
        Self::Autocorrelated(0.8),
        Self::Autocorrelated(0.9),
        Self::Autocorrelated(0.95),
        Self::Autocorrelated(0.99),
        Self::Pareto(2.2),
        Self::Pareto(1.5),
        Self::TwoRates(10.0),
        Self::TwoRates(100.0),
        Self::Stalls(10, 300),
        Self::Stalls(50, 1_000),
        Self::Flicker,
        Self::Wave(12.0),
        Self::Wave(170.0),
    ];

    /// Whether a window shows what the process does: no window shows what comes more rarely than it
    /// lasts, or a mean that hangs on values rarer than it has.
    #[cfg(test)]
    pub fn shows_itself(self) -> bool {
        match self {
            Self::Stalls(_, every) => every < 100,
            Self::Pareto(power) => power > 2.0,
            Self::TwoRates(stay) => stay < 50.0,
            Self::Autocorrelated(rho) => rho < 0.97,
            Self::Flicker => false,
            Self::White | Self::Wave(_) => true,
        }
    }

    /// A series of so many slices.
    pub fn series(self, rng: &mut Random, slices: usize) -> Vec<f64> {
        match self {
            Self::White => noisy(&autocorrelated(rng, slices, 0.0)),
            Self::Autocorrelated(rho) => noisy(&autocorrelated(rng, slices, rho)),
            Self::Pareto(power) => {
                let mean = power / (power - 1.0);
                (0..slices).map(|_| LEVEL / mean * rng.uniform().powf(-1.0 / power)).collect()
            }
            Self::TwoRates(stay) => {
                let mut sign = if rng.uniform() < 0.5 { 1.0 } else { -1.0 };
                let mut next = || {
                    sign = if rng.uniform() < 1.0 / stay { -sign } else { sign };
                    LEVEL * (1.0 + 0.2 * sign) + 0.3 * NOISE * rng.normal()
                };
                (0..slices).map(|_| next()).collect()
            }
            Self::Stalls(lasts, every) => {
                let busy = LEVEL * every as f64 / (every - lasts) as f64;
                let first = rng.below(every as u64) as usize;
                let is_stalled = |at: usize| (at + first) % every < lasts;
                let noise = autocorrelated(rng, slices, 0.3);
                let value = |(at, noise): (usize, &f64)| match is_stalled(at) {
                    true => 0.0,
                    false => busy + 0.5 * NOISE * noise,
                };
                noise.iter().enumerate().map(value).collect()
            }
            Self::Flicker => {
                let parts = [0.5, 0.9, 0.98, 0.996].map(|rho| autocorrelated(rng, slices, rho));
                let sum = |at: usize| parts.iter().map(|part| part[at]).sum::<f64>() / 2.0;
                noisy(&(0..slices).map(sum).collect::<Vec<f64>>())
            }
            Self::Wave(period) => {
                let phase = rng.uniform();
                let noise = noisy(&autocorrelated(rng, slices, 0.3));
                let turn = |at: usize| std::f64::consts::TAU * (phase + at as f64 / period);
                (0..).zip(noise).map(|(at, value)| value + 0.2 * LEVEL * turn(at).sin()).collect()
            }
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::White => write!(f, "independent noise"),
            Self::Autocorrelated(rho) => write!(f, "correlation of neighbours {rho}"),
            Self::Pareto(power) => write!(f, "Pareto, power {power}"),
            Self::TwoRates(stay) => write!(f, "two rates, each for {stay} slices"),
            Self::Stalls(lasts, every) => write!(f, "stall of {lasts} slices in each {every}"),
            Self::Flicker => write!(f, "1/f noise"),
            Self::Wave(period) => write!(f, "wave of {period} slices"),
        }
    }
}

fn noisy(noise: &[f64]) -> Vec<f64> {
    noise.iter().map(|noise| LEVEL + NOISE * noise).collect()
}

/// First-order autoregressive noise of unit variance, in its stationary state.
fn autocorrelated(rng: &mut Random, slices: usize, rho: f64) -> Vec<f64> {
    let mut state = rng.normal();
    let fresh = (1.0 - rho * rho).sqrt();
    let mut next = || {
        let now = state;
        state = rho * now + fresh * rng.normal();
        now
    };
    (0..slices).map(|_| next()).collect()
}

/// Requests that are due in each millisecond.
const DUE: usize = 20;
/// Mean of their service time, in microseconds.
const SERVICE_US: f64 = 100.0;

/// Response times of a window of so many milliseconds: while it stalls, which begins at random, all
/// that are due wait for the end. With the mean and its interval, as a window has it.
fn stalled_latencies(
    rng: &mut Random,
    [stall_ms, every_ms]: [usize; 2],
    window_ms: usize,
) -> (LatencyHistogram, Measured) {
    let mut histogram = LatencyHistogram::default();
    let mut slowest = vec![0; window_ms];
    let (mut sums, mut counts) = (vec![0.0; window_ms], vec![0.0; window_ms]);
    let mut slice = 0;
    while slice < window_ms {
        let begins = stall_ms > 0 && rng.uniform() < 1.0 / every_ms as f64;
        let lasts = if begins { stall_ms } else { 1 };
        // What stalls beyond the end of a window ends in none of its slices.
        let end = slice + lasts - 1;
        for due in 0..lasts * DUE {
            let waits_us =
                if begins { 1e3 * (lasts as f64 - due as f64 / DUE as f64) } else { 0.0 };
            let us = waits_us + SERVICE_US * rng.exponential();
            if end < window_ms {
                let ns = (1e3 * us) as u64 + 1;
                histogram.record_ns(ns);
                slowest[end] = slowest[end].max(ns);
                sums[end] += us;
                counts[end] += 1.0;
            }
        }
        slice += lasts;
    }
    histogram.note_slices(&slowest);
    let none = Measured::without_interval(0.0, 0, Verdicts::none());
    let mean = iostrata_stats::estimate_ratio(&sums, &counts);
    (histogram, mean.unwrap_or(none))
}

/// A percentile of these response times.
fn stalled_percentile_us([stall_ms, every_ms]: [usize; 2], percent: f64) -> f64 {
    let stalled = stall_ms as f64 / (stall_ms + every_ms - 1).max(1) as f64;
    let beyond = |us: f64| {
        let served = (-us / SERVICE_US).exp();
        let waiting = 1.0 - (us - SERVICE_US).max(0.0) / (1e3 * stall_ms as f64).max(1e-9);
        (1.0 - stalled) * served + stalled * waiting.clamp(0.0, 1.0)
    };
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if beyond(middle) > 1.0 - percent / 100.0 { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small form of the table, of processes that show themselves in a window.
    #[test]
    fn what_no_verdict_flags_holds_the_truth() {
        let hides = |row: &Row| {
            let mut hiding = Process::ALL.into_iter().filter(|process| !process.shows_itself());
            row.process.contains("stalls of") || hiding.any(|one| row.process == one.to_string())
        };
        let runs = if std::env::var_os("IOSTRATA_SOAK").is_some() { 600 } else { 120 };
        let all = [windows(runs), comparisons(runs), percentiles(runs)];
        for row in all.iter().flatten().filter(|row| !hides(row)) {
            let (_, flagged, sound) = row.shares();
            let Some(sound) = sound else { continue };
            // Three standard errors of so few runs.
            let count = runs as f64 * (1.0 - flagged / 100.0);
            let least = 92.0 - 300.0 * (0.05_f64 * 0.95 / count.max(1.0)).sqrt();
            assert!(sound >= least, "{}, {}: {sound:.1} %", row.interval, row.process);
        }
    }

    #[test]
    fn the_table_of_the_page_is_replaced_and_nothing_else() {
        let page = "# Title\n\n| a |\n|---|\n\n| b |\n\nAfter.\n";
        let found = updated(page, &["| c |".to_owned()]).unwrap();
        assert_eq!(found, "# Title\n\n| c |\n\nAfter.\n");
        assert!(updated("# Title\n", &[]).is_err());
    }

    #[test]
    fn a_loss_is_not_talked_away() {
        for (name, says, share) in losses(2_000) {
            let most = match says {
                says if says.starts_with("said") => 1.2,
                _ if name.starts_with("of 10 %") && says.starts_with("cleared") => 100.0,
                _ => 2.0,
            };
            assert!(share <= most, "{name}, {says}: {share} %");
        }
    }
}
