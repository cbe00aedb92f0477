//! `cargo xtask bench tune`: the stall of a full redo on real servers, with `iostrata tune` and
//! without.
//!
//! A private server with a small redo on a volume that is held to so many requests per second runs
//! sysbench-tpcc's load. Sides take turns, each on a copy of the same loaded data. Invariants: a
//! run that has ended is kept, so that a bench that was killed goes on where it was; only one run
//! is measured at a time.

mod course;
mod figures;
mod judge;
mod kept;
mod limit;
mod measure;
mod picture;
mod run;
mod scenario;
mod server;
mod table;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::iostrata::Iostrata;
use crate::args::Args;
use crate::test::execute;
use crate::workspace::Workspace;
use kept::Kept;
use measure::Measure;
use run::{RunKey, RunTimes};
use scenario::{Scenario, Side};
use server::BenchServer;

/// What is asked for.
struct TuneBench {
    servers: Vec<BenchServer>,
    scenarios: Vec<&'static Scenario>,
    sides: Vec<Side>,
    rounds: usize,
    /// Whether every scenario runs on every server.
    is_everywhere: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// When a program does not build or a run fails.
pub fn run(mut args: Args) -> Result<()> {
    let workspace = Workspace::read()?;
    let named = |text: String| -> Vec<String> {
        text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let servers = named(args.option("--server", String::new())?);
    let bench = TuneBench {
        is_everywhere: !servers.is_empty(),
        servers: server::found(&workspace, &servers)?,
        scenarios: scenario::named(&named(args.option("--scenario", String::new())?))?,
        sides: scenario::sides(&named(args.option("--side", String::new())?))?,
        rounds: args.option("--rounds", 2_usize)?,
    };
    let default = workspace.target.join("xtask/tune");
    let kept = Kept::in_dir(args.option("--keep", default)?)?;
    let dir: PathBuf = args.option("--dir", std::env::temp_dir())?;
    let tuner: String = args.option("--tune", String::new())?;
    let (warm_up_s, seconds) = (args.option("--warm-up", 60)?, args.option("--seconds", 300)?);
    let program: PathBuf = args.option("--program", PathBuf::new())?;
    let picture: PathBuf = args.option("--svg", PathBuf::new())?;
    let (is_json, only_table) = (args.flag("--json"), args.flag("--table"));
    args.finish()?;
    if seconds < 60 {
        bail!("--seconds {seconds}: use 60 or more, so that there are stalls to be seen");
    }
    let iostrata = match program.as_os_str().is_empty() {
        true => Iostrata::build(&workspace)?.program().to_owned(),
        false => program.canonicalize().context("--program")?,
    };
    if !only_table {
        let _lock = execute::lock()?;
        let home = dir.join(format!("iostrata-tune-{}", std::process::id()));
        fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
        let tuner = tuner.split_whitespace().map(str::to_owned).collect();
        let measure =
            Measure { iostrata: iostrata.clone(), home, prepared: kept.prepared(), tuner };
        let times = RunTimes { warm_up_s, seconds };
        let measured = bench.measure(&measure, times, &kept);
        fs::remove_dir_all(&measure.home)?;
        measured?;
    }
    let mut runs = kept.all()?;
    runs.retain(|run| bench.is_meant(&run.key));
    let rows = judge::rows(&runs);
    if !picture.as_os_str().is_empty() {
        picture::draw(&kept, &iostrata, &rows, &picture)?;
    }
    if is_json { table::print_json(&rows) } else { table::print(&rows) }
}

impl TuneBench {
    /// Whether a run is one of those that are asked for.
    fn is_meant(&self, key: &RunKey) -> bool {
        let is_server = self.servers.iter().any(|one| one.name == key.server);
        self.scenarios.contains(&key.scenario) && (is_server || !self.is_everywhere)
    }

    /// Measures what is not kept yet.
    fn measure(&self, measure: &Measure, times: RunTimes, kept: &Kept) -> Result<()> {
        for key in self.keys() {
            if kept.has(&key, times) {
                eprintln!("{key}: kept");
                continue;
            }
            let Some(server) = self.servers.iter().find(|one| one.name == key.server) else {
                continue;
            };
            let fixed = match key.side {
                Side::Fixed => kept.fixed_of(&key)?,
                Side::Untuned | Side::Tuned => Vec::new(),
            };
            let recording = kept.recording_of(&key)?;
            let run = measure.run(&key, server, times, (&fixed, &recording))?;
            eprintln!("{key}: {}", figures::of_run(&run)?);
            kept.keep(&run)?;
        }
        Ok(())
    }

    /// All runs that are asked for, those of a round one after the other.
    fn keys(&self) -> Vec<RunKey> {
        let mut keys = Vec::new();
        for scenario in &self.scenarios {
            for (at, server) in self.servers.iter().enumerate() {
                if at > 0 && !scenario.is_everywhere && !self.is_everywhere {
                    continue;
                }
                for round in 1..=self.rounds {
                    let has = |side: &Side| *side != Side::Fixed || scenario.change.is_some();
                    let mut order: Vec<Side> = self.sides.iter().copied().filter(has).collect();
                    // What is fixed is what tuning came to, so it stays behind it.
                    if round % 2 == 0 && order.len() > 1 {
                        order.swap(0, 1);
                    }
                    let server = server.name.clone();
                    let key = |side| RunKey { server: server.clone(), scenario, side, round };
                    keys.extend(order.into_iter().map(key));
                }
            }
        }
        keys
    }
}
