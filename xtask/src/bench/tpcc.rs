//! `cargo xtask bench tpcc`: TPC-C on the embedded engine, on its peers and on a private MariaDB,
//! by the same driver, every commit synced; and its table.
//!
//! Each side first climbs a staircase of threads and then runs at its best level. Sides take turns
//! in every round, and the order is turned round from round to round. A server is started on a copy
//! of its loaded tables, and removed, for each of its runs. Invariant: a run after which one of the
//! twelve conditions does not hold ends the benchmark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use iostrata_stats::{Comparison, paired};
use serde_json::{Value, json};

use super::pairs::{Iostrata, print_verdicts, ratio};
use super::peers;
use crate::args::Args;
use crate::test::execute;
use crate::workspace::Workspace;

/// All sides by the names of `--sides`, and as the table calls them.
const SIDES: [(&str, &str); 5] = [
    ("engine", "engine, tickets"),
    ("sqlite", "SQLite"),
    ("rocksdb", "RocksDB"),
    ("mariadb", "MariaDB"),
    ("compat", "MariaDB, sysbench-tpcc"),
];
/// Of servers: memory and redo as the engine has them, and no cache of the system's.
const SERVER_OPTIONS: [&str; 3] =
    ["innodb_buffer_pool_size=2G", "innodb_log_file_size=2G", "innodb_flush_method=O_DIRECT"];
const ENGINE_SETTINGS: [&str; 2] = ["buffer_pool_size=2G", "redo_log_capacity=2G"];

/// Runs the benchmark.
///
/// # Errors
/// When a program does not build, a run fails, or a condition does not hold after one.
pub fn run(mut args: Args) -> Result<()> {
    let rounds = args.option("--rounds", 5_usize)?;
    let seconds = args.option("--seconds", 10_u32)?;
    let step_seconds = args.option("--step-seconds", 3_u32)?;
    let threads = args.option("--threads", "1,4,8,16,32".to_owned())?;
    let warehouses = args.option("--warehouses", 4_u32)?;
    let dir: PathBuf = args.option("--dir", std::env::temp_dir())?;
    let names = SIDES.map(|(name, _)| name).join(",");
    let chosen = args.option("--sides", names.clone())?;
    let is_json = args.flag("--json");
    args.finish()?;
    let is_chosen = |name: &str| chosen.split(',').any(|one| one == name);
    if let Some(unknown) = chosen.split(',').find(|one| SIDES.iter().all(|(name, _)| name != one)) {
        bail!("--sides {unknown}: there are {names}");
    }
    let workspace = Workspace::read()?;
    let iostrata = Iostrata::build(&workspace)?;
    let peers = peers::build(&workspace)?;
    let _lock = execute::lock()?;
    let home = dir.join(format!("iostrata-bench-{}", std::process::id()));
    fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    let bench = TpccBench { iostrata, peers: peers.path, home, warehouses };
    let is_here = |name: &str| is_chosen(name) && (name != "rocksdb" || peers.has_rocksdb);
    let sides = SIDES.into_iter().filter(|(name, _)| is_here(name));
    let sides: Vec<Side> = sides.map(|(name, title)| bench.side(name, title)).collect();
    let measured = bench.measure(&sides, (&threads, step_seconds), (rounds, seconds));
    fs::remove_dir_all(&bench.home)?;
    let rows = measured?;
    match is_json {
        true => print_json(&rows),
        false => {
            print(&rows, rounds, seconds);
            Ok(())
        }
    }
}

/// One side: how it is run.
struct Side {
    name: &'static str,
    title: &'static str,
    program: PathBuf,
    words: Vec<String>,
}

struct TpccBench {
    iostrata: Iostrata,
    peers: PathBuf,
    home: PathBuf,
    warehouses: u32,
}

impl TpccBench {
    fn side(&self, name: &'static str, title: &'static str) -> Side {
        let place = |dir: &str| self.home.join(dir).display().to_string();
        let run = ["tpcc", "run", "--json", "--quiet"].map(str::to_owned);
        let mut words: Vec<String> = match name {
            "engine" => {
                let on = ["--check".to_owned(), "--target".to_owned(), self.engine()];
                run.into_iter().chain(on).collect()
            }
            "sqlite" | "rocksdb" => {
                ["tpcc", "--engine", name, "--dir", &place(name)].map(str::to_owned).to_vec()
            }
            _ => {
                let (kept, dir) = (place(name), place("s"));
                let on = ["--server", "mariadbd", "--server-dir", &dir, "--prepared", &kept];
                let mode: &[&str] = match name {
                    "compat" => &["--compat", "sysbench-tpcc"],
                    _ => &["--check"],
                };
                let options = SERVER_OPTIONS.iter().flat_map(|option| ["--server-option", *option]);
                let on = on.into_iter().chain(mode.iter().copied()).chain(options);
                run.into_iter().chain(on.map(str::to_owned)).collect()
            }
        };
        words.extend(["--warehouses".to_owned(), self.warehouses.to_string()]);
        let is_peer = matches!(name, "sqlite" | "rocksdb");
        let program = if is_peer { &self.peers } else { self.iostrata.program() };
        Side { name, title, program: program.to_owned(), words }
    }

    fn engine(&self) -> String {
        format!("engine:{}", self.home.join("db").display())
    }

    /// Loads what is not loaded by a run itself, finds each side's level, and measures the rounds.
    fn measure(
        &self,
        sides: &[Side],
        (levels, step_seconds): (&str, u32),
        (rounds, seconds): (usize, u32),
    ) -> Result<Vec<TpccRow>> {
        let mut rows = Vec::new();
        for side in sides {
            match side.name {
                "engine" => self.load_engine()?,
                "sqlite" | "rocksdb" => fs::create_dir(self.home.join(side.name))?,
                // The first run makes the kept copy of a server's tables.
                _ => {}
            }
            let steps = self.call(side, levels, step_seconds)?;
            let threads = steps["threads"].as_u64().context("no threads")?;
            eprintln!("{}: best with {threads} threads of {levels}", side.title);
            let (is_base, is_apart) =
                (side.name == "compat", matches!(side.name, "mariadb" | "compat"));
            rows.push(TpccRow {
                side: side.title,
                threads,
                is_base,
                is_apart,
                is_checked: side.name != "compat",
                samples: Vec::new(),
            });
        }
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..sides.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let run = self.call(&sides[at], &rows[at].threads.to_string(), seconds)?;
                let sample = TpccSample::of(&run).with_context(|| sides[at].title)?;
                eprintln!("{}: {:.0} transactions/s", sides[at].title, sample.tps);
                rows[at].samples.push(sample);
            }
        }
        Ok(rows)
    }

    fn load_engine(&self) -> Result<()> {
        let mut words = vec!["tpcc".to_owned(), "prepare".to_owned(), "--quiet".to_owned()];
        words.extend(["--warehouses".to_owned(), self.warehouses.to_string()]);
        words.extend(["--target".to_owned(), self.engine()]);
        words.extend(ENGINE_SETTINGS.iter().flat_map(|one| ["--engine".to_owned(), (*one).into()]));
        run_program(self.iostrata.program(), &words, &self.home).map(drop)
    }

    /// The document of a run of this length at these levels.
    fn call(&self, side: &Side, threads: &str, seconds: u32) -> Result<Value> {
        let mut words = side.words.clone();
        words.extend(["--threads".to_owned(), threads.to_owned()]);
        words.extend(["--time".to_owned(), seconds.to_string()]);
        let printed = run_program(&side.program, &words, &self.home)?;
        serde_json::from_slice(&printed).context("stdout is not one document")
    }
}

/// What a program printed.
fn run_program(program: &Path, words: &[String], dir: &Path) -> Result<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(words).current_dir(dir).stderr(Stdio::piped());
    let output = command.output().with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} {}: {}: {}", program.display(), words.join(" "), output.status, said.trim());
    }
    Ok(output.stdout)
}

// The table of `bench tpcc`: stability next to speed, and ratios of pairs.

/// What one run measured.
struct TpccSample {
    /// Transactions per second.
    pub tps: f64,
    min_over_mean: f64,
    p95_us: f64,
    cpu_us: f64,
    verdicts: Vec<String>,
}

impl TpccSample {
    /// The figures of the document of a run.
    ///
    /// # Errors
    /// When one is missing.
    pub fn of(run: &Value) -> Result<Self> {
        let number = |path: &str| {
            run.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"))
        };
        let verdicts = run["verdicts"].as_array().context("no verdicts[]")?;
        Ok(Self {
            tps: number("/tps")?,
            min_over_mean: number("/stability/min_over_mean_1s")?,
            p95_us: number("/latency_us/new_order/p95")?,
            cpu_us: number("/driver/us_per_txn")?,
            verdicts: verdicts.iter().filter_map(|one| Some(one.as_str()?.to_owned())).collect(),
        })
    }
}

/// One side and all its rounds.
struct TpccRow {
    /// Its name.
    pub side: &'static str,
    /// Sessions.
    pub threads: u64,
    /// Whether the others are set over it.
    pub is_base: bool,
    /// Whether the target is another process than the driver.
    pub is_apart: bool,
    /// Whether the twelve conditions were checked after every run.
    pub is_checked: bool,
    /// In the order of the rounds.
    pub samples: Vec<TpccSample>,
}

impl TpccRow {
    fn rates(&self) -> Vec<f64> {
        self.samples.iter().map(|one| one.tps).collect()
    }

    fn sorted(&self, of: fn(&TpccSample) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.samples.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn median(&self, of: fn(&TpccSample) -> f64) -> f64 {
        let values = self.sorted(of);
        let middle = values.len() / 2;
        match values.len() {
            0 => 0.0,
            even if even % 2 == 0 => (values[middle - 1] + values[middle]) / 2.0,
            _ => values[middle],
        }
    }

    fn range(&self) -> [f64; 2] {
        let values = self.sorted(|one| one.tps);
        [0, values.len().saturating_sub(1)].map(|at| values.get(at).copied().unwrap_or_default())
    }
}

/// Each side over the base side; none for the base itself.
fn ratios(rows: &[TpccRow]) -> Vec<Option<Comparison>> {
    let base = rows.iter().find(|row| row.is_base);
    let over = |row: &TpccRow| {
        let base = base.filter(|_| !row.is_base)?;
        paired(&base.rates(), &row.rates()).ok()
    };
    rows.iter().map(over).collect()
}

/// Prints the table.
fn print(rows: &[TpccRow], rounds: usize, seconds: u32) {
    println!("TPC-C-like, {rounds} rounds of {seconds} s, every commit synced; medians");
    println!("worst s: the worst second over the mean; p95: of new orders; CPU: of the driver");
    println!(
        "{:<24} {:>7} {:>8} {:>15} {:>25} {:>8} {:>8} {:>11}  conditions",
        "", "threads", "tps", "range", "over sysbench-tpcc", "worst s", "p95 ms", "CPU us/txn"
    );
    for (row, over) in rows.iter().zip(ratios(rows)) {
        let [least, most] = row.range();
        let cpu = match row.is_apart {
            true => format!("{:.1}", row.median(|one| one.cpu_us)),
            false => "-".to_owned(),
        };
        println!(
            "{:<24} {:>7} {:>8.0} {:>15} {:>25} {:>8.2} {:>8.2} {cpu:>11}  {}",
            row.side,
            row.threads,
            row.median(|one| one.tps),
            format!("{least:.0}-{most:.0}"),
            over.as_ref().map_or_else(String::new, ratio),
            row.median(|one| one.min_over_mean),
            row.median(|one| one.p95_us) / 1e3,
            if row.is_checked { "12 of 12 hold" } else { "none: tables of the kit" },
        );
    }
    let samples = rows.iter().flat_map(|row| &row.samples);
    let mut verdicts: Vec<String> = samples.flat_map(|one| one.verdicts.clone()).collect();
    verdicts.sort();
    verdicts.dedup();
    print_verdicts(&verdicts);
}

/// Prints one document.
///
/// # Errors
/// None that is known: figures are numbers.
fn print_json(rows: &[TpccRow]) -> Result<()> {
    let all: Vec<Value> =
        rows.iter().zip(ratios(rows)).map(|(row, over)| document(row, over.as_ref())).collect();
    println!("{}", serde_json::to_string_pretty(&Value::Array(all))?);
    Ok(())
}

fn document(row: &TpccRow, over: Option<&Comparison>) -> Value {
    json!({
        "side": row.side,
        "threads": row.threads,
        "tps": row.rates(),
        "tps_median": row.median(|one| one.tps),
        "tps_range": row.range(),
        "over_compat": over.map(|over| over.ratio.value),
        "over_compat_ci95": over.and_then(|over| over.ratio.ci95),
        "min_over_mean_1s": row.median(|one| one.min_over_mean),
        "new_order_p95_us": row.median(|one| one.p95_us),
        "driver_cpu_us_per_txn": row.is_apart.then(|| row.median(|one| one.cpu_us)),
        "conditions_hold": row.is_checked.then_some(true),
        "verdicts": row.samples.iter().map(|one| &one.verdicts).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(tps: f64) -> TpccSample {
        let run = json!({
            "tps": tps, "stability": {"min_over_mean_1s": 0.9}, "driver": {"us_per_txn": 80.0},
            "latency_us": {"new_order": {"p95": 900.0}}, "verdicts": ["not_steady"],
        });
        TpccSample::of(&run).unwrap()
    }

    fn row(is_base: bool, rates: &[f64]) -> TpccRow {
        let samples = rates.iter().map(|tps| sample(*tps)).collect();
        TpccRow { side: "a", threads: 8, is_base, is_apart: is_base, is_checked: !is_base, samples }
    }

    #[test]
    fn sides_are_set_over_the_base_by_pairs() {
        let rows = [row(false, &[100.0, 240.0, 150.0]), row(true, &[10.0, 20.0, 15.0])];
        let found: Vec<Option<f64>> =
            ratios(&rows).iter().map(|over| over.as_ref().map(|over| over.ratio.value)).collect();
        assert!((found[0].unwrap() - (10.0_f64 * 12.0 * 10.0).cbrt()).abs() < 1e-9, "{found:?}");
        assert_eq!(found[1], None);
        assert_eq!((rows[0].median(|one| one.tps), rows[0].range()), (150.0, [100.0, 240.0]));
        assert_eq!(row(false, &[1.0, 3.0]).median(|one| one.tps), 2.0);
    }

    #[test]
    fn a_document_says_what_is_not_known() {
        let rows = [row(false, &[100.0, 110.0]), row(true, &[10.0, 10.0])];
        let [peer, base] = [0, 1].map(|at| document(&rows[at], ratios(&rows)[at].as_ref()));
        assert_eq!(
            (&peer["driver_cpu_us_per_txn"], &peer["conditions_hold"]),
            (&Value::Null, &json!(true))
        );
        assert_eq!((&base["over_compat"], &base["conditions_hold"]), (&Value::Null, &Value::Null));
        assert_eq!(base["new_order_p95_us"], json!(900.0));
        assert!(TpccSample::of(&json!({"tps": 1.0})).is_err());
    }
}
