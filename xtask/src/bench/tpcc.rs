//! `cargo xtask bench tpcc`: TPC-C on the embedded engine beside a private MariaDB, by the same
//! driver, flushed at each commit.
//!
//! Sides take turns in every round, and the order is turned round from round to round. A server is
//! started, loaded and removed for each of its runs.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use iostrata_stats::paired;
use serde_json::Value;

use super::iostrata::Iostrata;
use super::table::ratio;
use crate::args::Args;
use crate::workspace::Workspace;

/// One side: its name, and the words of its run.
const SIDES: [(&str, &[&str]); 3] = [
    ("engine", &["--target", "engine:"]),
    ("MariaDB", &["--server", "mariadbd"]),
    ("MariaDB, sysbench-tpcc", &["--server", "mariadbd", "--compat", "sysbench-tpcc"]),
];
/// Of servers: memory and redo as the engine has them, and no cache of the system's.
const SERVER_OPTIONS: [&str; 3] =
    ["innodb_buffer_pool_size=2G", "innodb_log_file_size=2G", "innodb_flush_method=O_DIRECT"];
const ENGINE_SETTINGS: [&str; 2] = ["buffer_pool_size=2G", "redo_log_capacity=2G"];

/// What one run measured.
struct TpccSample {
    tps: f64,
    nopm: f64,
    steadiness: f64,
    cpu_us: f64,
    round_trips: f64,
    verdicts: String,
}

/// Runs the benchmark.
///
/// # Errors
/// When iostrata does not build, or a run fails.
pub fn run(mut args: Args) -> Result<()> {
    let rounds = args.option("--rounds", 5_usize)?;
    let seconds = args.option("--seconds", 10_u32)?.to_string();
    let threads = args.option("--threads", 8_u32)?.to_string();
    let warehouses = args.option("--warehouses", 4_u32)?.to_string();
    let dir: PathBuf = args.option("--dir", std::env::temp_dir())?;
    args.finish()?;
    let iostrata = Iostrata::build(&Workspace::read()?)?;
    let home = dir.join(format!("iostrata-bench-{}", std::process::id()));
    fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    let bench = TpccBench { iostrata, home, seconds, threads, warehouses };
    let measured = bench.rounds(rounds);
    fs::remove_dir_all(&bench.home)?;
    print(&measured?);
    Ok(())
}

struct TpccBench {
    iostrata: Iostrata,
    home: PathBuf,
    seconds: String,
    threads: String,
    warehouses: String,
}

impl TpccBench {
    fn rounds(&self, rounds: usize) -> Result<Vec<Vec<TpccSample>>> {
        let mut prepare = vec!["tpcc", "prepare", "--warehouses", &self.warehouses];
        let target = format!("engine:{}", self.home.join("db").display());
        prepare.extend(["--target", &target, "--json", "--quiet"]);
        for setting in ENGINE_SETTINGS {
            prepare.extend(["--engine", setting]);
        }
        let loaded = self.call(&prepare)?;
        println!("engine: loaded in {:.1} s", loaded["duration_s"].as_f64().unwrap_or_default());
        let mut all: Vec<Vec<TpccSample>> = SIDES.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..SIDES.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for side in order {
                let sample = self.sample(side)?;
                println!("{}: {:.0} transactions/s", SIDES[side].0, sample.tps);
                all[side].push(sample);
            }
        }
        Ok(all)
    }

    fn sample(&self, side: usize) -> Result<TpccSample> {
        let (name, place) = SIDES[side];
        let target = format!("engine:{}", self.home.join("db").display());
        let server = self.home.join("s").display().to_string();
        let mut words = vec!["tpcc", "run", "--json", "--quiet", "--warehouses", &self.warehouses];
        words.extend(["--threads", &self.threads, "--time", &self.seconds]);
        words.extend(place.iter().map(|word| if *word == "engine:" { &target } else { *word }));
        if place.contains(&"--server") {
            words.extend(["--server-dir", &server]);
            for option in SERVER_OPTIONS {
                words.extend(["--server-option", option]);
            }
        }
        let run = self.call(&words)?;
        let number = |path: &str| {
            run.pointer(path).and_then(Value::as_f64).with_context(|| format!("{name}: no {path}"))
        };
        let verdicts = run["verdicts"].as_array().context("no verdicts[]")?;
        let verdicts: Vec<&str> = verdicts.iter().filter_map(Value::as_str).collect();
        Ok(TpccSample {
            tps: number("/tps")?,
            nopm: number("/nopm")?,
            steadiness: number("/stability/min_over_mean_1s")?,
            cpu_us: number("/driver/us_per_txn")?,
            round_trips: number("/driver/round_trips_per_txn")?,
            verdicts: verdicts.join(","),
        })
    }

    fn call(&self, words: &[&str]) -> Result<Value> {
        let mut command = Command::new(self.iostrata.program());
        command.args(words).current_dir(&self.home).stderr(Stdio::piped());
        let output = command.output().context("cannot run iostrata")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("iostrata {}: {}: {}", words.join(" "), output.status, said.trim());
        }
        serde_json::from_slice(&output.stdout).context("stdout is not one document")
    }
}

fn median(samples: &[TpccSample], of: fn(&TpccSample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn print(all: &[Vec<TpccSample>]) {
    println!("\nmedians of {} rounds; worst s: the worst second over the mean", all[0].len());
    println!(
        "{:<24} {:>8} {:>9} {:>8} {:>10} {:>12}  engine over it",
        "", "tps", "NOPM", "worst s", "CPU us/txn", "trips/txn"
    );
    for ((name, _), samples) in SIDES.iter().zip(all) {
        let rates =
            |samples: &[TpccSample]| samples.iter().map(|one| one.tps).collect::<Vec<f64>>();
        let over = paired(&rates(samples), &rates(&all[0]));
        println!(
            "{name:<24} {:>8.0} {:>9.0} {:>8.2} {:>10.1} {:>12.1}  {}",
            median(samples, |one| one.tps),
            median(samples, |one| one.nopm),
            median(samples, |one| one.steadiness),
            median(samples, |one| one.cpu_us),
            median(samples, |one| one.round_trips),
            over.as_ref().map_or_else(|_few| String::new(), ratio),
        );
    }
    let mut verdicts: Vec<String> =
        all.iter().flatten().map(|sample| sample.verdicts.clone()).collect();
    verdicts.sort();
    verdicts.dedup();
    super::table::print_verdicts(&verdicts);
}
