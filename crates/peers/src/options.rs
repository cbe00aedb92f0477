//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use iostrata_peers::drive::SLICE;
use iostrata_peers::emulated;
use iostrata_peers::engines::Engine;
use iostrata_peers::plan::{Choice, Part, Workload};
use iostrata_peers::tpcc::RunPlan;

/// The embedded engine compared with redb, fjall, SQLite and RocksDB: same data, same durability,
/// one run in which the engines take turns.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub struct Options {
    /// Something else than the tables
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Where the data goes: a directory on the file system to measure
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub dir: PathBuf,
    /// Run on an emulated disk of this model, which is mounted in --dir and taken away at the end;
    /// options follow it: nvme-no-plp,flush=2ms. Needs root and /dev/fuse
    #[arg(long, value_name = "MODEL")]
    pub emulated: Option<String>,
    /// The program that starts emulated disks
    #[arg(long, value_name = "PATH", default_value = emulated::PROGRAM)]
    pub iostrata: PathBuf,
    /// Small data and short windows: a first look in a few minutes
    #[arg(long)]
    pub quick: bool,
    /// Only these: commits, reads, scan, updates, space, recovery, orders; soak, which is run only
    /// where it is named
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',')]
    pub only: Vec<Part>,
    /// Only these engines: iostrata, redb, redb+group, fjall, fjall+group, sqlite, rocksdb. The
    /// forms with +group have this program's group commit lent to them; both forms of an engine run
    /// commits only
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub engines: Vec<Engine>,
    /// Rounds of every engine; below three nothing is concluded
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds of each window of commits, reads and scans [default: 3, quick: 0.5]
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Seconds of each window of updates [default: 12, quick: 1]
    #[arg(long)]
    pub update_seconds: Option<f64>,
    /// Seconds of updates while space is watched [default: 40, quick: 3]
    #[arg(long)]
    pub space_seconds: Option<f64>,
    /// Seconds of the soak [default: 180, quick: 10]
    #[arg(long)]
    pub soak_seconds: Option<f64>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
}

/// What is run in place of the tables.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// TPC-C on one peer; prints the document of `iostrata tpcc run`
    ///
    /// Loads what is not loaded yet, and prints nothing unless all twelve conditions hold
    /// afterwards. `cargo xtask bench tpcc` calls it.
    Tpcc(TpccOptions),
}

/// Arguments of `tpcc`.
#[derive(Args, Debug)]
pub struct TpccOptions {
    /// sqlite or rocksdb
    #[arg(long)]
    pub engine: Engine,
    /// The directory of its files, which stay
    #[arg(long)]
    pub dir: PathBuf,
    /// Warehouses
    #[arg(long, default_value_t = 4)]
    pub warehouses: u32,
    /// Sessions, each on a thread; a list is a staircase
    #[arg(long, value_delimiter = ',', default_value = "8")]
    pub threads: Vec<u32>,
    /// Seconds of each level
    #[arg(long, default_value_t = 10)]
    pub time: u32,
    /// Of everything that is drawn
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl TpccOptions {
    /// What they come to.
    pub fn plan(&self) -> RunPlan {
        RunPlan {
            warehouses: self.warehouses.max(1).into(),
            threads: self.threads.clone(),
            time: Duration::from_secs(self.time.max(1).into()),
            seed: self.seed,
        }
    }
}

impl Options {
    /// What they come to.
    ///
    /// # Errors
    /// When an engine is not in this build, or nothing would be measured.
    pub fn choice(&self) -> Result<Choice> {
        let mut engines =
            if self.engines.is_empty() { Engine::built() } else { self.engines.clone() };
        engines.sort();
        engines.dedup();
        if let Some(engine) = engines.iter().find(|engine| !engine.is_built()) {
            bail!("{engine} is not in this build; build with --features {engine}");
        }
        let is_asked = |part: Part| self.only.is_empty() || self.only.contains(&part);
        let workloads: Vec<Workload> =
            Workload::ALL.into_iter().filter(|&one| is_asked(Part::Compared(one))).collect();
        let is_recovering = is_asked(Part::Recovery) && engines.contains(&Engine::Iostrata);
        let is_ordering = is_asked(Part::Orders);
        let is_soaking = self.only.contains(&Part::Soak) && engines.contains(&Engine::Iostrata);
        let window = |given: Option<f64>, usual: f64, quick: f64| {
            let seconds = given.unwrap_or(if self.quick { quick } else { usual });
            Duration::try_from_secs_f64(seconds).context("seconds must be a number from 0.05 on")
        };
        let choice = Choice {
            engines,
            workloads,
            is_recovering,
            is_ordering,
            soak: is_soaking.then(|| window(self.soak_seconds, 180.0, 10.0)).transpose()?,
            rounds: self.rounds,
            window: window(self.seconds, 3.0, 0.5)?,
            update_window: window(self.update_seconds, 12.0, 1.0)?,
            space_window: window(self.space_seconds, 40.0, 3.0)?,
            is_quick: self.quick,
        };
        let least = choice.window.min(choice.update_window).min(choice.space_window);
        if choice.rounds == 0 || least < SLICE {
            bail!("nothing to measure: rounds must be at least 1 and seconds at least 0.05");
        }
        let has_others = choice.is_recovering || choice.is_ordering || choice.soak.is_some();
        if choice.workloads.is_empty() && !has_others {
            bail!(
                "nothing to measure: recovery and soak are those of iostrata, which is not among \
                 --engines"
            );
        }
        Ok(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(words: &str) -> Result<Choice> {
        let words = std::iter::once("iostrata-peers").chain(words.split_whitespace());
        Options::try_parse_from(words)?.choice()
    }

    #[test]
    fn what_is_not_said_is_chosen() {
        let found = choice("").unwrap();
        assert_eq!((found.engines, found.workloads.len()), (Engine::built(), 5));
        assert_eq!((found.rounds, found.window), (3, Duration::from_secs(3)));
        assert!(found.is_recovering && found.is_ordering && found.soak.is_none());
        let found = choice("--only soak --soak-seconds 600").unwrap();
        assert_eq!((found.soak, found.is_ordering), (Some(Duration::from_secs(600)), false));
        let found = choice("--quick --seconds 2").unwrap();
        assert_eq!(found.window, Duration::from_secs(2));
        assert_eq!(found.space_window, Duration::from_secs(3));
    }

    #[test]
    fn lists_are_read_and_put_in_order() {
        let words = "--engines sqlite,redb+group,redb,redb --only scan,commits";
        let found = choice(words).unwrap();
        assert_eq!(found.engines, [Engine::Redb, Engine::RedbGroup, Engine::Sqlite]);
        assert!(!found.is_recovering);
        assert_eq!(found.workloads, [Workload::Commits, Workload::Scan]);
    }

    #[test]
    fn nonsense_is_refused() {
        for words in ["--rounds 0", "--seconds 0", "--engines mysql", "--only tpcc"] {
            assert!(choice(words).is_err(), "{words}");
        }
        assert!(choice("--only recovery --engines redb").is_err());
        assert!(choice("--seconds=-1").is_err());
    }
}
