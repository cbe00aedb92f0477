//! The top rungs of a probe: transactions on a database, beside the syncs of the storage below.
//!
//! Invariants: a round measures the disk and the database one after the other, so that what the
//! disk would allow and what is reached are of the same moment; rounds reverse their order. This
//! file knows no database: whoever does gives the transactions.

use std::time::Duration;

use iostrata_load::TransactionSource;
use iostrata_plan::{Point, TransactionSpec, rung};
use iostrata_run::ResourceUse;

use crate::transaction_point;

/// A rung of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TopRung {
    /// Small transactions of one connection, each durable.
    Commits,
    /// The same without syncs.
    Unsynced,
    /// The same on many connections.
    GroupCommits,
    /// TPC-C's transactions.
    Tpcc,
}

/// Connections that commit at the same time.
const COMMITTERS: u32 = 16;
/// Connections of TPC-C.
const TERMINALS: u32 = 4;

/// A database that a probe may measure, with tables of its own.
pub trait ProbedDatabase {
    /// Without secrets.
    fn name(&self) -> String;

    /// Whether it runs on this machine.
    fn is_here(&self) -> bool;

    /// Whether it can commit without syncs for the time of a point.
    fn can_leave_syncs_out(&self) -> bool;

    /// Makes ready what a rung needs, and removes what another one needed, where both cannot be
    /// there. Called before every window.
    ///
    /// # Errors
    /// What was refused, with the fix where there is one.
    fn prepare(&mut self, rung: TopRung, progress: &mut dyn FnMut(&str)) -> Result<(), String>;

    /// The transactions of the rung that was prepared last.
    ///
    /// # Errors
    /// What was refused, with the fix where there is one.
    fn source(&self, rung: TopRung) -> Result<Box<dyn TransactionSource + '_>, String>;

    /// What the database has used so far.
    fn used(&self) -> ResourceUse;

    /// Bytes that it has written so far, for all tables that were made for the probe; none where it
    /// does not answer.
    fn written_bytes(&self) -> Option<u64>;
}

/// Points that take turns, and how often.
#[derive(Clone, Debug)]
pub(super) struct TopRound {
    pub rungs: Vec<TopRung>,
    /// The disk's part of it.
    pub disk: Option<&'static str>,
    pub replicates: u32,
}

/// Every round, in order.
pub(super) fn rounds(database: &dyn ProbedDatabase) -> Vec<TopRound> {
    let mut alone = vec![TopRung::Commits];
    if database.can_leave_syncs_out() {
        alone.push(TopRung::Unsynced);
    }
    let together = vec![TopRung::GroupCommits];
    vec![
        TopRound { rungs: alone, disk: rung::in_turns_with(rung::COMMITS_1), replicates: 4 },
        TopRound { rungs: together, disk: rung::in_turns_with(rung::COMMITS_16), replicates: 4 },
        TopRound {
            rungs: vec![TopRung::Tpcc],
            disk: rung::in_turns_with(rung::TPCC_4),
            replicates: 3,
        },
    ]
}

impl TopRung {
    /// Its point; windows are `factor` times as long as they should be.
    pub(super) fn point(self, target: &str, factor: f64) -> Point {
        let (id, workload, threads, seconds, title) = match self {
            Self::Commits => {
                (rung::COMMITS_1, "commits", 1, 1.5, "one-row commits, one connection")
            }
            Self::GroupCommits => {
                (rung::COMMITS_16, "commits", COMMITTERS, 1.5, "one-row commits, 16 connections")
            }
            Self::Unsynced => (
                rung::COMMITS_1_UNSYNCED,
                "commits",
                1,
                1.0,
                "one-row commits without syncs, one connection",
            ),
            Self::Tpcc => {
                (rung::TPCC_4, "tpcc", TERMINALS, 4.0, "TPC-C-like transactions, 4 connections")
            }
        };
        let spec = TransactionSpec {
            threads,
            // What the database uses is counted over the same time as what it does.
            warm_up: Some(Duration::ZERO),
            runtime: Some(Duration::from_secs_f64((seconds * factor).max(0.2))),
            ..TransactionSpec::new(workload, target)
        };
        let mut point = transaction_point(&spec);
        (point.id, point.title, point.curve) = (id.to_owned(), title.to_owned(), None);
        if self != Self::Tpcc {
            point.metric.unit = "commits/s".to_owned();
        }
        point
    }
}
