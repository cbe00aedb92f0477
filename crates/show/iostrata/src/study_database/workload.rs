//! What a study's word for a workload means: its tables, how they are loaded, its transactions.
//!
//! Invariant: the same on every target; tables that two loads share have one name.

use std::sync::atomic::AtomicBool;

use iostrata_load::TransactionSource;
use iostrata_plan::study::setting::{INSERT, STRESS, TPCC, TPCC_COMPAT, UPDATES};
use iostrata_plan::{Access, TransactionSpec};
use iostrata_target::{Isolation, Schema, Target, TargetError};
use iostrata_workload::compat::{self, CompatSpec, CompatTerminals};
use iostrata_workload::insert::{self, InsertSpec, InsertTerminals};
use iostrata_workload::oltp::{self, Distribution, Member, OltpSpec, OltpTerminals};
use iostrata_workload::stress::{self, StressMix, StressSpec, StressTerminals};
use iostrata_workload::tpcc::{self, Dataset, Mix, TerminalOptions, Terminals, Waits};

/// History rows of each object of `stress`.
const STRESS_HISTORY: i64 = 20;
/// Tables are equal, whatever the seed of a replicate is.
const TABLE_SEED: u64 = 1;

/// A workload with its sizes.
#[derive(Clone, Debug)]
pub enum StudyWorkload {
    /// The OLTP family in sysbench's words, and `updates` on its table.
    Oltp(OltpSpec),
    /// TPC-C, with so many warehouses and the seed of what is drawn.
    Tpcc(i64, u64),
    /// The load of sysbench-tpcc.
    Kit(CompatSpec),
    /// Objects with a history of fixed length.
    Stress(StressSpec),
    /// Inserts into random places of three indexes.
    Insert(InsertSpec),
}

impl StudyWorkload {
    /// What the words of a load say.
    pub fn of(load: &TransactionSpec) -> Self {
        let number = |name: &str| load.settings.get(name).and_then(|text| text.parse::<u32>().ok());
        let warehouses = i64::from(number("warehouses").unwrap_or(1));
        match load.workload.as_str() {
            TPCC => Self::Tpcc(warehouses, load.seed),
            TPCC_COMPAT => Self::Kit(CompatSpec {
                scale: warehouses,
                foreign_keys: false,
                seed: load.seed,
                ..CompatSpec::default()
            }),
            STRESS => {
                let reads = number("read_pct").and_then(|pct| u8::try_from(pct).ok());
                Self::Stress(StressSpec {
                    objects: i64::from(number("objects").unwrap_or(1)),
                    history: STRESS_HISTORY,
                    mix: StressMix::reads_pct(reads.unwrap_or(50)),
                    seed: load.seed,
                    isolation: Isolation::RepeatableRead,
                    as_text: false,
                })
            }
            INSERT => Self::Insert(InsertSpec {
                rows: i64::from(number("rows").unwrap_or(0)),
                rows_per_commit: number("commit_rows").unwrap_or(1),
                seed: load.seed,
                isolation: Isolation::RepeatableRead,
                as_text: false,
            }),
            _ => Self::Oltp(oltp_of(load, number("rows"), number("row_updates"))),
        }
    }

    /// Its tables.
    pub fn schema(&self) -> Schema {
        match self {
            Self::Oltp(spec) => spec.schema(),
            Self::Tpcc(..) => tpcc::schema(),
            Self::Kit(spec) => compat::schema(spec.tables),
            Self::Stress(_) => stress::schema(),
            Self::Insert(_) => insert::schema(),
        }
    }

    /// The name of its tables, safe in paths: loads of equal names share them.
    pub fn tables(load: &TransactionSpec) -> String {
        let size = |name: &str| load.settings.get(name).map_or("", String::as_str);
        match load.workload.as_str() {
            TPCC => format!("tpcc-{}", size("warehouses")),
            TPCC_COMPAT => format!("kit-{}", size("warehouses")),
            STRESS => format!("{STRESS}-{}", size("objects")),
            INSERT => format!("{INSERT}-{}", size("rows")),
            UPDATES => format!("{UPDATES}-{}", size("rows")),
            _ => format!("oltp-{}", size("rows")),
        }
    }

    /// Fills its tables, in place of what an attempt before left half done.
    ///
    /// # Errors
    /// What the target said; `stop` was set.
    pub fn load(
        &self,
        target: &dyn Target,
        threads: usize,
        stop: &AtomicBool,
    ) -> Result<(), TargetError> {
        match self {
            Self::Oltp(spec) => {
                oltp::cleanup(target, spec)?;
                let tables = OltpSpec { seed: TABLE_SEED, ..spec.clone() };
                oltp::prepare(target, &tables, threads, stop, &|_| ()).map(drop)
            }
            Self::Tpcc(warehouses, _) => {
                let options = tpcc::PrepareOptions {
                    warehouses: *warehouses,
                    threads,
                    seed: TABLE_SEED,
                    now_s: tpcc::now_s(),
                    reset: true,
                };
                tpcc::prepare(target, &options, stop, &|_| ()).map(drop)
            }
            Self::Kit(spec) => {
                compat::cleanup(target, spec.tables)?;
                let spec = CompatSpec { seed: TABLE_SEED, ..*spec };
                let how = (threads, tpcc::now_s());
                compat::prepare(target, &spec, how, stop, &|_, _| ()).map(drop)
            }
            Self::Stress(spec) => {
                let spec = StressSpec { seed: TABLE_SEED, ..spec.clone() };
                stress::prepare(target, &spec, (threads, true), stop, &|_, _| ()).map(drop)
            }
            Self::Insert(spec) => {
                let spec = InsertSpec { seed: TABLE_SEED, ..spec.clone() };
                insert::prepare(target, &spec, true, stop, &|_| ()).map(drop)
            }
        }
    }

    /// Brings its tables into memory, where a scan of them is at hand; what TPC-C touches comes in
    /// during the warm-up.
    ///
    /// # Errors
    /// What the target said.
    pub fn read_all(&self, target: &dyn Target) -> Result<(), TargetError> {
        match self {
            Self::Oltp(spec) => oltp::read_all(target, spec),
            Self::Stress(_) => stress::read_all(target),
            Self::Insert(_) => insert::read_all(target),
            Self::Tpcc(..) | Self::Kit(_) => Ok(()),
        }
    }

    /// Its transactions; `blocks` says whether a session keeps its thread waiting.
    ///
    /// # Errors
    /// What the target said.
    pub fn source<'a>(
        &self,
        target: &'a dyn Target,
        blocks: bool,
    ) -> Result<Box<dyn TransactionSource + 'a>, TargetError> {
        Ok(match self {
            Self::Oltp(spec) => Box::new(OltpTerminals::new(target, spec.clone(), blocks)?),
            Self::Tpcc(_, seed) => {
                let mut dataset = Dataset::ready(target)?;
                dataset.mark_used(target)?;
                let options = TerminalOptions {
                    mix: Mix::default(),
                    waits: Waits::NONE,
                    isolation: Isolation::RepeatableRead,
                    seed: *seed,
                    as_text: false,
                    blocks,
                    sharing: None,
                };
                Box::new(Terminals::new(target, &dataset, options))
            }
            Self::Kit(spec) => {
                Box::new(CompatTerminals::new(target, *spec, Isolation::RepeatableRead)?)
            }
            Self::Stress(spec) => Box::new(StressTerminals::new(target, spec.clone(), blocks)?),
            Self::Insert(spec) => Box::new(InsertTerminals::new(target, spec, blocks)?),
        })
    }
}

fn oltp_of(load: &TransactionSpec, rows: Option<u32>, row_updates: Option<u32>) -> OltpSpec {
    let rows = i64::from(rows.unwrap_or(1));
    let member = Member::ALL.into_iter().find(|member| {
        load.workload.strip_prefix("oltp_").is_some_and(|name| name == member.name())
    });
    let mut spec = match member {
        Some(member) => OltpSpec { table_size: rows, ..OltpSpec::new(member) },
        None => OltpSpec::updates(rows, row_updates.unwrap_or(1)),
    };
    let chosen = load.settings.get("random_distribution").and_then(|text| text.parse().ok());
    if let Some(Access::Zipfian(theta)) = chosen {
        (spec.distribution, spec.rand.zipf_exponent) = (Distribution::Zipfian, theta.0);
    }
    spec.seed = load.seed;
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(workload: &str, settings: &[(&str, &str)]) -> TransactionSpec {
        let mut load = TransactionSpec::new(workload, "engine");
        let own = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        load.settings.extend(own);
        load
    }

    #[test]
    fn a_load_is_what_its_words_say() {
        let oltp = |workload: &str, settings: &[(&str, &str)]| match StudyWorkload::of(&load(
            workload, settings,
        )) {
            StudyWorkload::Oltp(spec) => spec,
            other => panic!("{other:?}"),
        };
        let words = [("rows", "500"), ("row_updates", "7"), ("random_distribution", "zipf:0.9")];
        let spec = oltp("updates", &words);
        assert_eq!((spec.table_size, spec.counts.non_index_updates), (500, 7));
        assert_eq!((spec.distribution, spec.rand.zipf_exponent), (Distribution::Zipfian, 0.9));
        let spec = oltp("oltp_write_only", &[("rows", "500")]);
        assert_eq!((spec.member, spec.table_size), (Member::WriteOnly, 500));
        let tpcc = load("tpcc", &[("warehouses", "3")]);
        assert!(matches!(StudyWorkload::of(&tpcc), StudyWorkload::Tpcc(3, _)));
        let names = [tpcc, load("tpcc_compat", &[("warehouses", "3")])];
        assert_eq!(names.map(|load| StudyWorkload::tables(&load)), ["tpcc-3", "kit-3"]);
    }
}
