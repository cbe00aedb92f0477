//! `cargo xtask bench tune`: the stall of a full redo on real servers, with `iostrata tune` and
//! without.
//!
//! A private server with a small redo on a volume that is held to so many requests per second runs
//! sysbench-tpcc's load. Sides take turns, each on a copy of the same loaded data. Invariants: a
//! run that has ended is kept, so that a bench that was killed goes on where it was; only one run
//! is measured at a time.

mod figures;
mod kept;
mod measure;
mod table;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::pairs::Iostrata;
use crate::args::Args;
use crate::test::execute;
use crate::workspace::Workspace;
use kept::{RunKey, RunStore, RunTimes};
use measure::{BenchServer, Measure};

/// The requested runs.
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
        servers: measure::found(&workspace, &servers)?,
        scenarios: scenarios_named(&named(args.option("--scenario", String::new())?))?,
        sides: sides(&named(args.option("--side", String::new())?))?,
        rounds: args.option("--rounds", 2_usize)?,
    };
    let default = workspace.target.join("xtask/tune");
    let kept = RunStore::in_dir(args.option("--keep", default)?)?;
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
    let rows = figures::rows(&runs);
    if !picture.as_os_str().is_empty() {
        table::draw(&kept, &iostrata, &rows, &picture)?;
    }
    if is_json { table::print_json(&rows) } else { table::print(&rows) }
}

impl TuneBench {
    /// Whether a run is requested.
    fn is_meant(&self, key: &RunKey) -> bool {
        let is_server = self.servers.iter().any(|one| one.name == key.server);
        self.scenarios.contains(&key.scenario) && (is_server || !self.is_everywhere)
    }

    /// Measures what is not kept yet.
    fn measure(&self, measure: &Measure, times: RunTimes, kept: &RunStore) -> Result<()> {
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

    /// All requested runs, round by round.
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

// What a server is put under, as data, and what is done with it.

/// A stall, or what takes another setting in the middle.
#[derive(Debug, PartialEq)]
struct Scenario {
    pub name: &'static str,
    /// In the words of a table.
    pub title: &'static str,
    /// Size of the redo in bytes.
    pub redo_bytes: u64,
    /// Reads per second and writes per second that the volume is held to.
    pub iops: u64,
    /// Transactions per second that arrive; absent where as many are done as can be.
    pub rate: Option<u32>,
    /// For so many seconds the load has run when tuning begins.
    pub head_start_s: u64,
    /// What becomes otherwise in the middle of the measured time.
    pub change: Option<TuneChange>,
    /// Whether it is for every server, or for the first alone.
    pub is_everywhere: bool,
}

/// What becomes otherwise in the middle of the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TuneChange {
    /// The volume is held to half as many requests.
    LimitHalved,
    /// As many threads again run the load.
    LoadDoubled,
}

const MIB: u64 = 1 << 20;

const BASE: Scenario = Scenario {
    name: "base",
    title: "redo 100 MB, 1,500 IOPS",
    redo_bytes: 100 * MIB,
    iops: 1500,
    rate: None,
    head_start_s: 0,
    change: None,
    is_everywhere: true,
};

const ONCE: Scenario = Scenario { is_everywhere: false, ..BASE };

/// All of them.
const SCENARIOS: [Scenario; 9] = [
    BASE,
    Scenario { name: "late", title: "tuned from the 60th second on", head_start_s: 60, ..ONCE },
    Scenario {
        name: "halved",
        title: "1,500 IOPS, then 750",
        change: Some(TuneChange::LimitHalved),
        ..ONCE
    },
    Scenario {
        name: "doubled",
        title: "8 threads, then 16",
        change: Some(TuneChange::LoadDoubled),
        ..ONCE
    },
    Scenario { name: "iops-800", title: "redo 100 MB, 800 IOPS", iops: 800, ..ONCE },
    Scenario { name: "iops-4000", title: "redo 100 MB, 4,000 IOPS", iops: 4000, ..ONCE },
    Scenario { name: "redo-500M", title: "redo 500 MB, 1,500 IOPS", redo_bytes: 500 * MIB, ..ONCE },
    Scenario {
        name: "quiet",
        title: "redo 8 MB, 30 transactions/s",
        redo_bytes: 8 * MIB,
        rate: Some(30),
        ..ONCE
    },
    Scenario {
        name: "quiet-32M",
        title: "redo 32 MB, 5 transactions/s",
        redo_bytes: 32 * MIB,
        rate: Some(5),
        ..ONCE
    },
];

/// How the server is tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    /// Never: it has the settings of the stall.
    Untuned,
    /// By `iostrata tune`.
    Tuned,
    /// Once: what tuning came to before the change.
    Fixed,
}

impl Side {
    pub const ALL: [Self; 3] = [Self::Untuned, Self::Tuned, Self::Fixed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Untuned => "untuned",
            Self::Tuned => "tuned",
            Self::Fixed => "fixed",
        }
    }
}

/// The scenarios of these names; all where none is named.
///
/// # Errors
/// A name that there is not.
fn scenarios_named(names: &[String]) -> Result<Vec<&'static Scenario>> {
    let known = SCENARIOS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
    if let Some(other) = names.iter().find(|name| SCENARIOS.iter().all(|one| one.name != **name)) {
        bail!("--scenario {other}: there are {known}");
    }
    let is_meant = |one: &&Scenario| names.is_empty() || names.iter().any(|name| name == one.name);
    Ok(SCENARIOS.iter().filter(is_meant).collect())
}

/// The sides of these names; all where none is named.
///
/// # Errors
/// A name that there is not.
fn sides(names: &[String]) -> Result<Vec<Side>> {
    if let Some(other) = names.iter().find(|name| Side::ALL.iter().all(|one| one.name() != **name))
    {
        bail!("--side {other}: there are untuned, tuned and fixed");
    }
    let is_meant = |one: &Side| names.is_empty() || names.iter().any(|name| name == one.name());
    Ok(Side::ALL.into_iter().filter(is_meant).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_not_there_is_refused_and_no_name_means_all() {
        assert_eq!(scenarios_named(&[]).unwrap().len(), SCENARIOS.len());
        let two = scenarios_named(&words("halved base")).unwrap();
        assert_eq!(two.iter().map(|one| one.name).collect::<Vec<_>>(), ["base", "halved"]);
        assert!(
            scenarios_named(&words("base bsae")).unwrap_err().to_string().contains("redo-500M")
        );
        assert_eq!(sides(&words("fixed tuned")).unwrap(), [Side::Tuned, Side::Fixed]);
        assert!(sides(&words("own")).is_err());
    }

    #[test]
    fn a_fixed_setting_is_for_what_changes() {
        let changed = SCENARIOS.iter().filter(|one| one.change.is_some());
        assert_eq!(changed.map(|one| one.name).collect::<Vec<_>>(), ["halved", "doubled"]);
    }
}
