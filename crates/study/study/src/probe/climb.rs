//! Climbs the ladder: the parts of the storage in their order, then the transactions of a database,
//! the top rungs.
//!
//! Invariant: parts and rounds for which no time is left are named; what fails of a database is
//! named, and the others go on.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_linux::host::{KernelLog, Root};
use iostrata_load::{TransactionLoad, TransactionSource};
use iostrata_plan::{Point, TransactionSpec, rung};
use iostrata_run::{Event, ProbeHost, ResourceUse, Unavailable};

use super::blocks::Part;
use super::budget::{Announcement, ProbeOptions, Shape, TOP_TIME, Transactions};
use super::runner::Probe;
use crate::sampling::UseWatch;
use crate::{
    FileSetCache, Listener, Meter, Pipeline, RunOutcome, StudyError, Watcher, transaction_point,
};

/// Runs the probe.
///
/// # Errors
/// When nothing could be measured at all, or the run directory cannot be written.
pub fn run(
    options: &ProbeOptions,
    announcement: &Announcement,
    host: &ProbeHost,
    interrupted: &AtomicBool,
    listener: &mut dyn Listener,
    database: Option<&mut dyn ProbedDatabase>,
) -> Result<RunOutcome, StudyError> {
    let meter = Meter::new(&Root::system(), Some(&host.path), interrupted, None);
    let pipeline = Pipeline::new(listener, meter, FileSetCache::default(), interrupted);
    let mut probe = Probe {
        options,
        announcement,
        host,
        pipeline,
        limits: host.path.limits.clone(),
        part: Part::SelfCost,
        over_at_s: announcement.time_max.as_secs_f64(),
        share_done: 0.0,
        fill_bytes_per_s: 0.0,
        precondition_s: 0.0,
        kernel_log: KernelLog::from_now(&Root::system()),
        is_broken: false,
    };
    let watch = probe.pipeline.meter.watch_pauses(&Root::system());
    let shape = probe.climb()?;
    let (watched_s, pauses) = watch.finish();
    if watched_s > 0.0 {
        probe.pipeline.store(Event::Paused { watched_s, pauses })?;
    }
    match (database, &options.transactions) {
        (Some(database), _) => probe.climb_on(database, shape)?,
        (None, Transactions::Missing(why)) => {
            probe.pipeline.store(Event::Unavailable(why.clone()))?;
        }
        (None, _) => {}
    }
    let interrupted = probe.pipeline.is_interrupted();
    probe.pipeline.finish(&[], interrupted)
}

impl Probe<'_> {
    /// The rungs of the storage. Gives what all of its points have in common, where it was found.
    fn climb(&mut self) -> Result<Option<Shape>, StudyError> {
        if let Some(why) = &self.options.below_is_unknown {
            self.pipeline.store_clock()?;
            self.pipeline.store(Event::Unavailable(why.clone()))?;
            return Ok(None);
        }
        let Some(mut shape) = self.prepare()? else { return Ok(None) };
        self.precondition(&shape)?;
        let parts: Vec<Part> = Part::ALL
            .into_iter()
            .filter(|part| !self.options.read_only || !part.writes())
            .collect();
        for (done, part) in parts.iter().enumerate() {
            if self.is_over() {
                self.leave_out(&parts[done..])?;
                return Ok(Some(shape));
            }
            if *part == Part::Sustained {
                self.confirm()?;
                if self.options.verify {
                    self.verify()?;
                }
            }
            self.part = *part;
            shape.time_factor = self.time_factor(&parts[done..], self.fill_left_s(&shape));
            let share = self.share_of(*part, &parts[done..]);
            self.run_part(*part, &shape, share)?;
        }
        // Once more at the end: rates that fell during the last part leave nothing that lasts.
        if !self.is_over() {
            self.confirm()?;
        }
        Ok(Some(shape))
    }

    /// The rungs of transactions. What fails of them is named, and the others go on.
    fn climb_on(
        &mut self,
        database: &mut dyn ProbedDatabase,
        shape: Option<Shape>,
    ) -> Result<(), StudyError> {
        self.part = Part::Transactions;
        self.over_at_s = self.pipeline.elapsed_s() + self.announcement.top_time_max.as_secs_f64();
        let factor = self.announcement.top_time_max.as_secs_f64() / TOP_TIME.as_secs_f64();
        let shape = shape.map(|shape| Shape { time_factor: factor, ..shape });
        for round in rounds(database) {
            self.run_round(database, &round, shape.as_ref(), factor)?;
        }
        self.pipeline.files.drop_used_up();
        Ok(())
    }

    fn run_round(
        &mut self,
        database: &mut dyn ProbedDatabase,
        round: &TopRound,
        shape: Option<&Shape>,
        factor: f64,
    ) -> Result<(), StudyError> {
        let blocks = shape.map(|shape| Part::Commits.blocks(shape, &self.pipeline.events, 0));
        let disk = blocks.iter().flatten().flat_map(|block| &block.points);
        let disk = disk.filter(|point| Some(point.id.as_str()) == round.disk).cloned();
        let name = database.name();
        let of = |rung: &TopRung| (Some(*rung), rung.point(&name, factor));
        let mut points: Vec<(Option<TopRung>, Point)> =
            disk.map(|point| (None, point)).chain(round.rungs.iter().map(of)).collect();
        let all: Vec<Point> = points.iter().map(|(_, point)| point.clone()).collect();
        let first = self.next_replicate(&all);
        for replicate in first..first + round.replicates {
            let mut failed = Vec::new();
            for (rung, point) in &points {
                if self.is_over() {
                    return self.leave_out_top(&points, replicate > first);
                }
                let measured = match rung {
                    None => self.run_point(point, replicate)?.map_err(|error| error.to_string()),
                    Some(rung) => self.run_top_point(database, *rung, (point, replicate))?,
                };
                if let Err(why) = measured {
                    failed.push(point.id.clone());
                    self.pipeline
                        .store(Event::Unavailable(Unavailable::failed(&*point.title, why)))?;
                }
            }
            points.retain(|(_, point)| !failed.contains(&point.id));
            points.reverse();
        }
        Ok(())
    }

    /// Names rungs of transactions for which no time was left.
    fn leave_out_top(
        &mut self,
        points: &[(Option<TopRung>, Point)],
        is_begun: bool,
    ) -> Result<(), StudyError> {
        if is_begun || self.pipeline.is_interrupted() || self.is_broken {
            return Ok(());
        }
        let all = iostrata_stats::units::seconds(self.announcement.top_time_max.as_secs_f64());
        let why = format!("the {all} for transactions were over");
        for (_, point) in points.iter().filter(|(rung, _)| rung.is_some()) {
            let left_out = Unavailable::left_out(&*point.title, &*why, "--max-time");
            self.pipeline.store(Event::Unavailable(left_out))?;
        }
        Ok(())
    }

    /// Measures transactions once. The inner result is the rung's own failure.
    fn run_top_point(
        &mut self,
        database: &mut dyn ProbedDatabase,
        rung: TopRung,
        (point, replicate): (&Point, u32),
    ) -> Result<Result<(), String>, StudyError> {
        let Some(spec) = &point.transactions else { return Ok(Ok(())) };
        let bytes_before = database.written_bytes();
        let text = format!("{}: {}", self.part.title(), point.title);
        let listener = &mut *self.pipeline.listener;
        let prepared = database.prepare(rung, &mut |what| listener.progress(1.0, what));
        let database = &*database;
        let source = match prepared.and_then(|()| database.source(rung)) {
            // A signal that came meanwhile is no failure.
            Err(_) if self.pipeline.is_interrupted() => return Ok(Ok(())),
            Err(why) => return Ok(Err(why)),
            Ok(source) => source,
        };
        let load = TransactionLoad::new(&*source, spec, database.is_here());
        let used = || database.used();
        let mut watch = UseWatch::new(&used);
        let watchers: &mut [&mut dyn Watcher] = &mut [&mut watch];
        let measured = self.pipeline.measure(point, replicate, &load, &|_| 1.0, &text, watchers);
        let used = watch.used();
        drop(source);
        let bytes = bytes_before.zip(database.written_bytes());
        self.pipeline.filled_bytes += bytes.map_or(0, |(from, to)| to.saturating_sub(from));
        let mut measurement = match measured {
            Ok(measurement) => measurement,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if measurement.interrupted {
            return Ok(Ok(()));
        }
        if let Some(error) = measurement.error.take() {
            return Ok(Err(error.to_string()));
        }
        let streams = measurement.replicate.streams.iter_mut();
        streams.filter_map(|stream| stream.transactions.as_mut()).for_each(|counted| {
            counted.used = Some(used);
        });
        self.pipeline.store(Event::Replicate(Box::new(measurement.replicate)))?;
        Ok(Ok(()))
    }

    /// Names the parts for which no time was left; after a signal there is nothing to explain.
    fn leave_out(&mut self, parts: &[Part]) -> Result<(), StudyError> {
        if self.pipeline.is_interrupted() || self.is_broken {
            return Ok(());
        }
        let all = iostrata_stats::units::seconds(self.announcement.time_max.as_secs_f64());
        let why = format!("the {all} that the probe may take were over");
        for part in parts {
            let left_out = Unavailable::left_out(part.title(), why.as_str(), "--max-time");
            self.pipeline.store(Event::Unavailable(left_out))?;
        }
        Ok(())
    }
}

// The top rungs of a probe: transactions on a database, with the syncs of the storage below.
//
// Invariants: a round measures the disk and the database one after the other, so that what the disk
// would allow and what is reached are of the same moment; rounds reverse their order. This file
// names no database: the caller gives the transactions.

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
struct TopRound {
    pub rungs: Vec<TopRung>,
    /// The disk's part of it.
    pub disk: Option<&'static str>,
    pub replicates: u32,
}

/// Every round, in order.
fn rounds(database: &dyn ProbedDatabase) -> Vec<TopRound> {
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
