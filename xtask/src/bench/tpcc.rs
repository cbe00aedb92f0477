//! `cargo xtask bench tpcc`: TPC-C on the embedded engine, on its peers and on a private MariaDB,
//! by the same driver, every commit synced.
//!
//! Each side first climbs a staircase of threads and then runs at its best level. Sides take turns
//! in every round, and the order is turned round from round to round. A server is started on a copy
//! of its loaded tables, and removed, for each of its runs. Invariant: a run after which one of the
//! twelve conditions does not hold ends the benchmark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::iostrata::Iostrata;
use super::peers;
use super::tpcc_table::{TpccRow, TpccSample, print, print_json};
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
