//! Runs the plans: every engine in every round, on files of its own.
//!
//! Invariants: only one store is open at a time, so that processor time and bytes are its own; what
//! a window acknowledged is read back from the reopened files before its figure counts.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::counters::Counters;
use crate::drive::{Course, Drive, SLICE, Work};
use crate::engines::Engine;
use crate::error::PeerError;
use crate::figures::{CaseTable, Sample, Table};
use crate::keys::{self, Key};
use crate::plan::{Case, Plan, Workload};
use crate::rounds;
use crate::scratch::{Scratch, allocated_bytes};
use crate::space::Space;
use crate::store::Store;
use crate::work::{Batches, Committing, Reading, Scanning};

/// Slices between two looks at the files' sizes.
const SLICES_PER_LOOK: u32 = 5;
/// Last commits of each thread that are read back.
const CHECKED_COMMITS: u64 = 2_000;

/// One run.
pub struct Bench<'a> {
    /// Where the files are.
    pub scratch: &'a Scratch,
    /// Engines, ours first when it is there.
    pub engines: &'a [Engine],
    /// Set when a signal came.
    pub stop: &'a AtomicBool,
    /// Hears of progress.
    pub note: &'a mut dyn FnMut(&str),
}

/// One measured window of one engine.
#[derive(Clone, Copy)]
struct Turn<'a> {
    plan: &'a Plan,
    case: Case,
    /// Tells this window from every other one of the plan.
    number: u64,
    engine: Engine,
    dir: &'a Path,
    checksum: u64,
}

impl Bench<'_> {
    /// Loads every engine, runs all rounds of all cases, removes the files.
    ///
    /// # Errors
    /// When an engine fails, its data is wrong, or a signal came.
    pub fn run(&mut self, plan: &Plan) -> Result<Table, PeerError> {
        let mut dirs = Vec::new();
        let mut versions = Vec::new();
        for &engine in self.engines {
            let dir = self.scratch.sub(&format!("{}-{engine}", plan.workload))?;
            versions.push((engine, self.load(plan, engine, &dir)?));
            dirs.push((engine, dir));
        }
        let checksum = plan.set.checksum();
        let mut tables = Vec::new();
        for (at, &case) in plan.cases.iter().enumerate() {
            let mut samples: Vec<(Engine, Vec<Sample>)> =
                self.engines.iter().map(|&engine| (engine, Vec::new())).collect();
            for round in 0..plan.rounds {
                for index in rounds::order(&(0..dirs.len()).collect::<Vec<_>>(), round) {
                    let (engine, dir) = &dirs[index];
                    let number = (at * plan.rounds + round) as u64;
                    let turn = Turn { plan, case, number, engine: *engine, dir, checksum };
                    samples[index].1.push(self.take(turn)?);
                }
            }
            tables.push(CaseTable::new(case, &samples));
        }
        for (_, dir) in dirs {
            std::fs::remove_dir_all(&dir).map_err(PeerError::files("remove", &dir))?;
        }
        Ok(Table::new(plan, versions, tables))
    }

    fn load(&mut self, plan: &Plan, engine: Engine, dir: &Path) -> Result<String, PeerError> {
        self.interrupted()?;
        let start = Instant::now();
        let store = engine.open(dir, plan.setup(plan.cases[0]))?;
        store.load(&mut plan.set.rows())?;
        let version = store.version();
        store.close()?;
        let (count, mib) = (plan.set.count, allocated_bytes(dir) as f64 / f64::from(1 << 20));
        let seconds = start.elapsed().as_secs_f64();
        let workload = plan.workload;
        (self.note)(&format!(
            "{workload:<8} {engine:<11} {count} rows loaded in {seconds:.1} s, {mib:.1} MiB"
        ));
        Ok(version)
    }

    fn take(&mut self, turn: Turn<'_>) -> Result<Sample, PeerError> {
        self.interrupted()?;
        let Turn { plan, case, engine, .. } = turn;
        let store = engine.open(turn.dir, plan.setup(case))?;
        let mut sizes = Vec::new();
        let course = self.measure(turn, &*store, &mut sizes)?;
        let end_bytes = allocated_bytes(turn.dir);
        store.close()?;
        if plan.workload.is_writing() {
            check(turn, &course)?;
        }
        let mut sample = Sample::of(&course, plan.workload, end_bytes);
        if plan.workload == Workload::Space {
            sizes.push(end_bytes);
            let row_bytes = plan.set.bytes() / plan.set.count.max(1);
            let updated_bytes = course.operations() * row_bytes;
            sample.space = Space::of(&sizes, plan.set.bytes(), updated_bytes);
        }
        (self.note)(&sample.line(plan.workload, case, engine));
        Ok(sample)
    }

    fn measure(
        &self,
        turn: Turn<'_>,
        store: &dyn Store,
        sizes: &mut Vec<u64>,
    ) -> Result<Course, PeerError> {
        let Turn { plan, case, engine, .. } = turn;
        let counters = Counters::of(turn.dir);
        let drive = Drive {
            threads: case.threads,
            window: plan.window,
            counters: &counters,
            stop: self.stop,
        };
        let begin = |thread: usize| -> Result<Box<dyn Work + '_>, PeerError> {
            Ok(match plan.workload {
                Workload::Commits | Workload::Updates | Workload::Space => {
                    Box::new(Committing { writer: store.writer()?, batches: turn.batches(thread) })
                }
                Workload::Reads => {
                    Box::new(Reading::new(engine, store, plan.set, turn.seed(thread))?)
                }
                Workload::Scan => Box::new(Scanning::new(engine, store, plan.set, turn.checksum)?),
            })
        };
        let is_watched = plan.workload == Workload::Space;
        drive.run(&begin, &mut |since| {
            let slice = (since.as_nanos() / SLICE.as_nanos()) as u32;
            if is_watched && slice.is_multiple_of(SLICES_PER_LOOK) {
                sizes.push(allocated_bytes(turn.dir));
            }
        })
    }

    fn interrupted(&self) -> Result<(), PeerError> {
        if self.stop.load(Ordering::SeqCst) { Err(PeerError::Interrupted) } else { Ok(()) }
    }
}

impl Turn<'_> {
    fn seed(&self, thread: usize) -> u64 {
        1 + self.number * 1_024 + thread as u64
    }

    fn batches(&self, thread: usize) -> Batches {
        let keys = self.plan.workload.keys();
        Batches::new(keys, self.plan.set, self.case.batch, self.seed(thread))
    }
}

/// Reopens the store and looks for the last commits of every thread: each row must be there in the
/// version that its thread wrote last, or in one that another thread of the same window wrote.
fn check(turn: Turn<'_>, course: &Course) -> Result<(), PeerError> {
    let store = turn.engine.open(turn.dir, turn.plan.setup(turn.case))?;
    let mut reader = store.reader()?;
    let seeds = turn.seed(0)..=turn.seed(course.threads - 1);
    for (thread, &commits) in course.ticks.iter().enumerate() {
        for (key, version) in last_commits(turn.batches(thread), commits) {
            let mut found = None;
            let is_there = reader.get(&key, &mut |value| {
                let is_whole = keys::is_value_of(u64::from_be_bytes(key), value);
                found = keys::version(value).filter(|_| is_whole);
            })?;
            let is_right = found.is_some_and(|found| {
                let seed = found >> 32;
                seeds.contains(&seed) && (seed != turn.seed(thread) || found == version)
            });
            if !is_there || !is_right {
                let key = u64::from_be_bytes(key);
                let found = format!(
                    "row {key:016x}, acknowledged in version {version:x}, is there in {found:x?}"
                );
                return Err(PeerError::WrongData { engine: turn.engine.name(), found });
            }
        }
    }
    drop(reader);
    store.close()
}

/// The last version of every key in the last of so many commits.
fn last_commits(mut batches: Batches, commits: u64) -> HashMap<Key, u64> {
    let mut last = HashMap::new();
    for commit in 0..commits {
        let rows = batches.draw();
        if commit + CHECKED_COMMITS >= commits {
            let version = |value| keys::version(value).unwrap_or_default();
            last.extend(rows.iter().map(|row| (row.key, version(&row.value))));
        }
    }
    last
}
