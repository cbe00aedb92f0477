//! What is measured: the workloads with their sizes.
//!
//! Invariant: everything that a table depends on is in here, so that two engines of a table cannot
//! have been given different things.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

use crate::drive::Window;
use crate::engines::Engine;
use crate::keys::RowSet;
use crate::orders::OrdersPlan;
use crate::orders::rows::Scale;
use crate::store::Setup;
use crate::work::Keys;

const MIB: u64 = 1 << 20;
/// The part that is no workload of all engines.
pub(crate) const RECOVERY: &str = "recovery";
/// The parts with transactions over several tables.
pub(crate) const ORDERS: &str = "orders";
pub(crate) const SOAK: &str = "soak";

/// One workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Durable commits of one row with a new random key.
    Commits,
    /// Point reads of rows that are in memory.
    Reads,
    /// Full scans in the order of the keys.
    Scan,
    /// Durable batches of random updates, data four times the cache.
    Updates,
    /// Updates of a fixed set of keys, and the space they take.
    Space,
}

impl Workload {
    /// All, in the order in which they run.
    pub const ALL: [Self; 5] = [Self::Commits, Self::Reads, Self::Scan, Self::Updates, Self::Space];

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Commits => "commits",
            Self::Reads => "reads",
            Self::Scan => "scan",
            Self::Updates => "updates",
            Self::Space => "space",
        }
    }

    /// What one operation is.
    pub fn operation(self) -> &'static str {
        match self {
            Self::Commits => "commit",
            Self::Reads => "read",
            Self::Scan => "row",
            Self::Updates | Self::Space => "update",
        }
    }

    /// Whether it changes what was loaded.
    pub fn is_writing(self) -> bool {
        matches!(self, Self::Commits | Self::Updates | Self::Space)
    }

    /// Which keys it commits.
    pub fn keys(self) -> Keys {
        if self == Self::Commits { Keys::New } else { Keys::Loaded }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        let names = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("no workload is named {name}; there are {}", names()))
    }
}

/// One line of cases of a workload: a table per case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Threads that do it at once.
    pub threads: usize,
    /// Rows of a batch; 1 where nothing is written.
    pub batch: usize,
}

/// A workload with its sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is done.
    pub workload: Workload,
    /// What the store is loaded with.
    pub set: RowSet,
    /// Memory of the engine, in bytes.
    pub cache_bytes: u64,
    /// Keep the page cache out where the engine can.
    pub is_direct: bool,
    /// Cases, one table each.
    pub cases: Vec<Case>,
    /// When to count.
    pub window: Window,
    /// Rounds of every engine.
    pub rounds: usize,
}

impl Plan {
    /// How a store is opened for a case.
    pub fn setup(&self, case: Case) -> Setup {
        let writers = if self.workload.is_writing() { case.threads } else { 1 };
        Setup { cache_bytes: self.cache_bytes, writers, is_direct: self.is_direct }
    }
}

/// How our recovery is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Redo to apply, in bytes, at least.
    pub redo_bytes: u64,
    /// Pages of 16 KiB that it changes, about.
    pub pages: u64,
    /// Rounds, each with data of its own.
    pub rounds: usize,
}

/// What can be asked for by name: a workload of all engines, or recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Engines beside each other.
    Compared(Workload),
    /// Our recovery; no peer has a comparable redo.
    Recovery,
    /// Transactions of the shape of TPC-C, all engines.
    Orders,
    /// The same for a long time, ours alone; only where it is asked for by name.
    Soak,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let others = [(RECOVERY, Self::Recovery), (ORDERS, Self::Orders), (SOAK, Self::Soak)];
        if let Some((_, part)) = others.into_iter().find(|(one, _)| *one == name) {
            return Ok(part);
        }
        let names = || others.map(|(one, _)| one).join(", ");
        name.parse().map(Self::Compared).map_err(|error: String| format!("{error}, {}", names()))
    }
}

/// What the caller may choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Engines, ours first when it is there.
    pub engines: Vec<Engine>,
    /// Workloads of all engines.
    pub workloads: Vec<Workload>,
    /// Whether our recovery is timed.
    pub is_recovering: bool,
    /// Whether orders are taken.
    pub is_ordering: bool,
    /// Orders for so long, ours alone.
    pub soak: Option<Duration>,
    /// Rounds.
    pub rounds: usize,
    /// Each measured window of commits, reads and scans.
    pub window: Duration,
    /// Each measured window of updates.
    pub update_window: Duration,
    /// Updates while space is watched.
    pub space_window: Duration,
    /// Small data: for a first look, and for tests.
    pub is_quick: bool,
}

impl Choice {
    /// The plans of the chosen workloads.
    pub fn plans(&self) -> Vec<Plan> {
        self.workloads.iter().map(|&workload| self.plan(workload)).collect()
    }

    /// The engines that run a workload. Both forms of one that can be lent our grouping run only
    /// where it is about commits; elsewhere one does.
    pub fn engines_of(&self, workload: Workload) -> Vec<Engine> {
        let form = |engine: &Engine| match workload {
            Workload::Commits => *engine,
            Workload::Updates => engine.with_grouping(),
            Workload::Reads | Workload::Scan | Workload::Space => engine.as_it_comes(),
        };
        let mut engines: Vec<Engine> = self.engines.iter().map(form).collect();
        engines.dedup();
        engines
    }

    /// How recovery is timed, where it was chosen.
    pub fn recovery(&self) -> Option<Recovery> {
        let shrink = if self.is_quick { 10 } else { 1 };
        let of = Recovery {
            redo_bytes: (1 << 30) / shrink,
            pages: 50_000 / shrink,
            rounds: self.rounds,
        };
        self.is_recovering.then_some(of)
    }

    /// The sizes of the orders.
    pub fn orders(&self) -> OrdersPlan {
        let cache_bytes = if self.is_quick { 256 * MIB } else { 1024 * MIB };
        let scale = Scale::new(self.is_quick);
        let (window, soak, rounds) = (self.window, self.soak, self.rounds);
        OrdersPlan { scale, cache_bytes, window, soak, rounds }
    }

    fn plan(&self, workload: Workload) -> Plan {
        let shrink = if self.is_quick { 10 } else { 1 };
        let (count, value_bytes, cache_bytes, length) = match workload {
            Workload::Commits => (200_000, 100, 256 * MIB, self.window),
            Workload::Reads => (1_000_000, 100, 512 * MIB, self.window),
            Workload::Scan => (2_000_000, 24, 512 * MIB, self.window),
            Workload::Updates => (256 * MIB / 108, 100, 64 * MIB, self.update_window),
            Workload::Space => (64 * MIB / 108, 100, 64 * MIB, self.space_window),
        };
        let is_larger_than_cache = workload == Workload::Updates;
        let cache_bytes =
            if self.is_quick && is_larger_than_cache { cache_bytes / shrink } else { cache_bytes };
        let warmup_ms = if is_larger_than_cache { 1_000 } else { 200 };
        let warmup = Duration::from_millis(warmup_ms / shrink);
        Plan {
            workload,
            set: RowSet { count: count / shrink, value_bytes },
            cache_bytes,
            is_direct: is_larger_than_cache || workload == Workload::Space,
            cases: cases(workload),
            window: Window { warmup, length },
            rounds: if workload == Workload::Space { 1 } else { self.rounds },
        }
    }
}

fn cases(workload: Workload) -> Vec<Case> {
    let of = |threads, batch| Case { threads, batch };
    match workload {
        Workload::Commits => vec![of(1, 1), of(4, 1), of(16, 1)],
        Workload::Reads | Workload::Scan => vec![of(1, 1), of(2, 1)],
        Workload::Updates => vec![of(4, 1), of(4, 10)],
        Workload::Space => vec![of(4, 100)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(is_quick: bool) -> Choice {
        Choice {
            engines: Engine::ALL.to_vec(),
            workloads: Workload::ALL.to_vec(),
            is_recovering: true,
            is_ordering: true,
            soak: None,
            rounds: 3,
            window: Duration::from_secs(5),
            update_window: Duration::from_secs(20),
            space_window: Duration::from_secs(60),
            is_quick,
        }
    }

    #[test]
    fn sizes_are_what_the_tables_say() {
        for is_quick in [true, false] {
            for plan in choice(is_quick).plans() {
                let (data, cache) = (plan.set.bytes(), plan.cache_bytes);
                match plan.workload {
                    Workload::Updates => assert_eq!((data + MIB / 2) / cache, 4),
                    Workload::Space => assert!(data <= cache),
                    _ => assert!(3 * data < 2 * cache, "{plan:?}"),
                }
            }
        }
    }

    #[test]
    fn both_forms_of_an_engine_run_only_commits() {
        let all = choice(true);
        assert_eq!(all.engines_of(Workload::Commits), Engine::ALL);
        let grouped = all.engines_of(Workload::Updates);
        assert!(grouped.contains(&Engine::RedbGroup) && !grouped.contains(&Engine::Redb));
        assert_eq!(grouped.len(), 5);
        for workload in [Workload::Reads, Workload::Scan, Workload::Space] {
            let plain = all.engines_of(workload);
            assert!(plain.iter().all(|engine| !engine.is_lent_grouping()) && plain.len() == 5);
        }
        let one = Choice { engines: vec![Engine::FjallGroup], ..all };
        assert_eq!(one.engines_of(Workload::Reads), [Engine::Fjall]);
    }

    #[test]
    fn recovery_is_planned_when_it_is_chosen() {
        let found = choice(true).recovery().unwrap();
        assert_eq!((found.redo_bytes, found.pages), ((1 << 30) / 10, 5_000));
        assert!(Choice { is_recovering: false, ..choice(true) }.recovery().is_none());
        assert_eq!("recovery".parse(), Ok(Part::Recovery));
        assert_eq!("scan".parse(), Ok(Part::Compared(Workload::Scan)));
        assert_eq!("orders".parse(), Ok(Part::Orders));
        assert_eq!("soak".parse(), Ok(Part::Soak));
        assert!("tpcc".parse::<Part>().unwrap_err().ends_with("space, recovery, orders, soak"));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for workload in Workload::ALL {
            assert_eq!(workload.name().parse(), Ok(workload));
        }
        assert!("tpcc".parse::<Workload>().is_err());
    }
}
