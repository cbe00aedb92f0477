//! The command line.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;
use iostrata_peers::engines::Engine;
use iostrata_peers::plan::{Choice, Workload};

/// The embedded engine beside redb, fjall, SQLite and RocksDB: same data, same durability, one run
/// in which the engines take turns.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Options {
    /// Where the data goes: a directory on the file system to measure
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub dir: PathBuf,
    /// Small data and short windows: a first look in a few minutes
    #[arg(long)]
    pub quick: bool,
    /// Only these workloads: commits, reads, scan, updates, space
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',')]
    pub only: Vec<Workload>,
    /// Only these engines: iostrata, redb, fjall, sqlite, rocksdb
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub engines: Vec<Engine>,
    /// Rounds of every engine; below three nothing is concluded
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds of each window of commits, reads and scans [default: 5, quick: 1]
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Seconds of each window of updates [default: 20, quick: 3]
    #[arg(long)]
    pub update_seconds: Option<u64>,
    /// Seconds of updates while space is watched [default: 60, quick: 6]
    #[arg(long)]
    pub space_seconds: Option<u64>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
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
        let workloads: Vec<Workload> = Workload::ALL
            .into_iter()
            .filter(|one| self.only.is_empty() || self.only.contains(one))
            .collect();
        let seconds = |given: Option<u64>, usual, quick| {
            given.unwrap_or(if self.quick { quick } else { usual })
        };
        let choice = Choice {
            engines,
            workloads,
            rounds: self.rounds,
            seconds: seconds(self.seconds, 5, 1),
            update_seconds: seconds(self.update_seconds, 20, 3),
            space_seconds: seconds(self.space_seconds, 60, 6),
            is_quick: self.quick,
        };
        let least = choice.seconds.min(choice.update_seconds).min(choice.space_seconds);
        if choice.rounds == 0 || least == 0 {
            bail!("nothing to measure: rounds and seconds must be at least 1");
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
        assert_eq!((found.rounds, found.seconds, found.space_seconds), (3, 5, 60));
        let found = choice("--quick --seconds 2").unwrap();
        assert_eq!((found.seconds, found.update_seconds), (2, 3));
    }

    #[test]
    fn lists_are_read_and_put_in_order() {
        let found = choice("--engines sqlite,redb,redb --only scan,commits").unwrap();
        assert_eq!(found.engines, [Engine::Redb, Engine::Sqlite]);
        assert_eq!(found.workloads, [Workload::Commits, Workload::Scan]);
    }

    #[test]
    fn nonsense_is_refused() {
        for words in ["--rounds 0", "--seconds 0", "--engines mysql", "--only tpcc"] {
            assert!(choice(words).is_err(), "{words}");
        }
    }
}
