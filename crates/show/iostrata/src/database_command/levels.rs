//! The levels of a run, a staircase of threads or the search for the highest rate; with the rows
//! and sizes of a table that grows, once a second while windows are open.
//!
//! Invariants: a level that was measured is kept, whatever comes after it. Rows are queried on a
//! thread and connections of their own, so that a target that answers late delays no window; what
//! the target does not report is absent. Rates are taken between two counts within one window, by
//! the moments at which rows were counted.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use iostrata_database::target::{Schema, TableFacts, Target};
use iostrata_load::{LiveFigures, TransactionLoad, TransactionSource};
use iostrata_plan::{TransactionPacing, TransactionSpec};
use iostrata_run::{
    Event, InsertFigures, InsertGrowth, LatencyTarget, RateBound, Replicate, TransactionDocument,
};
use iostrata_stats::RateSearch;
use iostrata_study::{
    Measurement, Pipeline, Sampling, Watcher, response_percentile_us, transaction_point,
    transactions_per_s,
};
use iostrata_workload::GrowingTable;

use crate::args::DriveArgs;
use crate::display::Display;
use crate::exit_error::{ExitError, exit_error};

/// Levels of a search at most: one without a schedule, then rates.
const SEARCH_LEVELS_MAX: usize = 1 + RateSearch::TRIES_MAX;
/// Levels of a search that have to fit into the time of the run.
const SEARCH_LEVELS_MIN: u32 = 4;
/// How much longer a level may take than its window, where its warm-up is found.
const WITH_WARM_UP: f64 = 1.25;
/// Share of a bound that levels get; the rest lies between them.
const AT_WORK: f64 = 0.95;
/// No bound makes a window shorter than this.
const WINDOW_MIN: Duration = Duration::from_millis(200);

/// What is measured at every level, and what came of it.
pub struct Levels<'r, 'p> {
    /// Measures and keeps.
    pub pipeline: &'r mut Pipeline<'p>,
    /// Of the first level.
    pub spec: &'r TransactionSpec,
    /// The user's options.
    pub drive: &'r DriveArgs,
    /// Bound on all levels together.
    pub max_time: Option<Duration>,
    /// What it runs on.
    pub target: &'r dyn Target,
    /// What is run.
    pub source: &'r dyn TransactionSource,
    /// Whether the target is on this machine.
    pub reaches_storage: bool,
    /// The threads of the window that is open; 0 between windows.
    pub measuring: &'r AtomicU32,
    /// Where lines of progress go.
    pub display: &'r Display,
    /// Every level so far.
    pub replicates: Vec<Replicate>,
    /// Why the last one ended early.
    pub failure: Option<ExitError>,
}

impl Levels<'_, '_> {
    /// Measures a level for every number of threads, until one fails or a signal comes.
    ///
    /// # Errors
    /// When nothing could be measured at a level.
    pub fn staircase(&mut self) -> Result<(), ExitError> {
        let levels = self.drive.threads.len();
        for (at, threads) in self.drive.threads.iter().enumerate() {
            let spec = TransactionSpec { threads: *threads, ..self.within(levels as u32) };
            let width = 1.0 / levels as f64;
            if !self.measure(&spec, at as f64 * width, width)? {
                break;
            }
        }
        Ok(())
    }

    /// Searches for the highest rate at which a percentile of response time holds an objective:
    /// first what the target gives without a schedule, then rates below that. `None` when it was
    /// ended before it could begin.
    ///
    /// # Errors
    /// When nothing could be measured at a level.
    pub fn search(&mut self, target: Duration) -> Result<Option<LatencyTarget>, ExitError> {
        let (began, percentile) = (Instant::now(), self.drive.latency_percentile);
        let target_us = target.as_secs_f64() * 1e6;
        let width = 1.0 / SEARCH_LEVELS_MAX as f64;
        let spec = self.within(SEARCH_LEVELS_MIN);
        if !self.measure(&spec, 0.0, width)? {
            return Ok(None);
        }
        let capacity_tps = self.replicates.last().map_or(0.0, transactions_per_s);
        let Some(mut search) = RateSearch::new(capacity_tps) else { return Ok(None) };
        let (mut response_us, mut bound) = (None, RateBound::Objective);
        while let Some(rate_per_s) = search.next_rate() {
            if self.max_time.is_some_and(|most| began.elapsed() + level_time(&spec) > most) {
                bound = RateBound::Time;
                break;
            }
            let spec = TransactionSpec { pacing: self.open(rate_per_s), ..spec.clone() };
            if !self.measure(&spec, self.replicates.len() as f64 * width, width)? {
                bound = RateBound::Ended;
                break;
            }
            let last = self.replicates.last();
            let found = last.and_then(|last| response_percentile_us(last, percentile));
            let is_held = found.is_some_and(|found_us| found_us <= target_us);
            if is_held {
                response_us = found;
            }
            search.note(rate_per_s, is_held);
        }
        if search.is_at_capacity() {
            bound = RateBound::Capacity;
        }
        Ok(Some(LatencyTarget {
            percentile,
            target_us,
            capacity_tps,
            rate_per_s: search.held(),
            rate_per_s_between: search.bracket(),
            response_us,
            bound,
        }))
    }

    fn open(&self, rate_per_s: f64) -> TransactionPacing {
        let DriveArgs { arrival, max_queue, on_overload, .. } = *self.drive;
        TransactionPacing::Open {
            rate_per_s,
            process: arrival,
            queue_max: max_queue,
            overload: on_overload,
        }
    }

    /// The spec of one of so many levels, within the bound on the whole.
    fn within(&self, levels: u32) -> TransactionSpec {
        match self.max_time {
            Some(bound) => within(self.spec, bound, levels),
            None => self.spec.clone(),
        }
    }

    /// Measures a level that takes this part of the whole; false when it was ended early.
    fn measure(
        &mut self,
        spec: &TransactionSpec,
        from: f64,
        width: f64,
    ) -> Result<bool, ExitError> {
        let level_s = level_time(spec).as_secs_f64();
        let share = |elapsed_s: f64| from + width * (elapsed_s / level_s).min(1.0);
        let (point, at) = (transaction_point(spec), self.replicates.len() as u32);
        let load = TransactionLoad::new(self.source, spec, self.reaches_storage);
        let mut lines =
            LiveLines::new(self.display, spec.threads, (self.interval_s(), self.drive.percentile));
        let mut sampling = Sampling::of(self.target, &mut |text| self.display.note(text));
        let title = point.title.clone();
        let mut told = OpenWindow { measuring: self.measuring, threads: spec.threads };
        let watchers: &mut [&mut dyn Watcher] = &mut [&mut lines, &mut sampling, &mut told];
        let measured = self.pipeline.measure(&point, at, &load, &share, &title, watchers);
        let Measurement { mut replicate, interrupted, error, .. } = measured.map_err(exit_error)?;
        sampling.explain(&mut replicate, spec.threads);
        let event = Event::Replicate(Box::new(replicate.clone()));
        self.pipeline.store(event).map_err(exit_error)?;
        self.replicates.push(replicate);
        let error = error.filter(|_| !interrupted);
        self.failure = error.map(|error| self.named(exit_error(error)));
        Ok(!interrupted && self.failure.is_none())
    }

    /// A failure with the target's name.
    fn named(&self, error: ExitError) -> ExitError {
        match error {
            ExitError::NotHere(text) if !text.contains(&self.target.name()) => {
                ExitError::NotHere(format!("{}: {text}", self.target.name()))
            }
            other => other,
        }
    }

    fn interval_s(&self) -> u32 {
        use std::io::IsTerminal;
        let by_default = u32::from(std::io::stderr().is_terminal());
        self.drive.report_interval.unwrap_or(by_default)
    }
}

/// Publishes whether a window is open; its warm-up is not part of it.
struct OpenWindow<'a> {
    measuring: &'a AtomicU32,
    threads: u32,
}

impl Watcher for OpenWindow<'_> {
    fn opened(&mut self) {}

    fn closed(&mut self) {
        self.measuring.store(0, Ordering::Release);
    }

    fn warmed_up(&mut self) {
        self.measuring.store(self.threads, Ordering::Release);
    }
}

/// The spec of one of so many levels that together keep a bound, their warm-up included.
fn within(spec: &TransactionSpec, bound: Duration, levels: u32) -> TransactionSpec {
    let level = bound.mul_f64(AT_WORK) / levels;
    let window = match spec.warm_up {
        Some(warm_up) => level.saturating_sub(warm_up),
        None => level.div_f64(WITH_WARM_UP),
    };
    let runtime = spec.runtime.map(|runtime| runtime.min(window.max(WINDOW_MIN)));
    TransactionSpec { runtime, ..spec.clone() }
}

/// How long a level takes at most, its warm-up included.
fn level_time(spec: &TransactionSpec) -> Duration {
    let window = spec.runtime.unwrap_or(spec.point_time);
    spec.warm_up.map_or(window.mul_f64(WITH_WARM_UP), |warm_up| warm_up + window)
}

/// Prints them on stderr.
pub struct LiveLines<'a> {
    display: &'a Display,
    threads: u32,
    /// Seconds between lines; 0 for none.
    interval_s: u32,
    percentile: f64,
    last_s: f64,
}

impl<'a> LiveLines<'a> {
    /// Lines of a level.
    pub fn new(display: &'a Display, threads: u32, (interval_s, percentile): (u32, f64)) -> Self {
        Self { display, threads, interval_s, percentile, last_s: 0.0 }
    }
}

impl Watcher for LiveLines<'_> {
    fn opened(&mut self) {}

    fn closed(&mut self) {}

    fn live(&mut self, figures: &LiveFigures) {
        // The moments of looks are a little late.
        let is_due = figures.at_s - self.last_s >= f64::from(self.interval_s) - 0.5;
        if self.interval_s == 0 || !is_due {
            return;
        }
        self.last_s = figures.at_s;
        let latency =
            figures.percentile_us.map_or("n/a".to_owned(), |us| format!("{:.2}", us / 1e3));
        let warm_up = if figures.is_warm_up { " (warm-up)" } else { "" };
        self.display.note(&format!(
            "[ {:.0}s ] thds: {} tps: {:.2} lat (ms,{}%): {latency} err/s: {:.2}{warm_up}",
            figures.at_s, self.threads, figures.tps, self.percentile, figures.errors_per_s
        ));
    }
}

/// From one look to the next, and how often it is looked whether a window is open.
const EVERY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);

/// What is to be seen of a table.
pub struct Growth<'a> {
    /// The tables of the workload.
    pub schema: &'a Schema,
    /// Which one, and what was inserted.
    pub of: &'a GrowingTable,
}

/// A look at the table.
struct RowCount {
    at_s: f64,
    rows: u64,
}

impl Growth<'_> {
    /// What a run came to.
    pub fn figures(
        &self,
        document: &TransactionDocument,
        storage_engine: Option<String>,
        growth: InsertGrowth,
    ) -> InsertFigures {
        let rows_per_commit = self.of.rows_per_commit;
        let rows = f64::from(rows_per_commit);
        let is_known = document.unknown.iter().all(|one| one.name != "tps");
        InsertFigures {
            rows_per_commit,
            rows_per_s: is_known.then_some(document.tps * rows),
            rows_per_s_ci95: document.tps_ci95.map(|ci95| ci95.map(|end| end * rows)),
            rows_per_s_n: document.tps_n,
            storage_engine,
            growth,
        }
    }

    /// Looks until it is stopped.
    fn watch(
        &self,
        target: &dyn Target,
        measuring: &AtomicU32,
        stopped: &Receiver<()>,
    ) -> InsertGrowth {
        let (began, mut seen) = (Instant::now(), GrowthSample::default());
        let mut last: Option<(u32, RowCount)> = None;
        while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let threads = measuring.load(Ordering::Acquire);
            let at_s = began.elapsed().as_secs_f64();
            let is_same = last.as_ref().is_some_and(|(before, _)| *before == threads);
            if !is_same {
                last = (threads > 0).then(|| (threads, self.look(at_s)));
                continue;
            }
            let Some((_, before)) = &last else { continue };
            if at_s - before.at_s < EVERY.as_secs_f64() {
                continue;
            }
            let look = self.look(at_s);
            let facts = target.table_facts(self.schema, self.of.table).unwrap_or_default();
            seen.add(threads, before, &look, facts);
            last = Some((threads, look));
        }
        seen.done()
    }

    fn look(&self, at_s: f64) -> RowCount {
        RowCount { at_s, rows: self.of.rows_before + self.of.committed.load(Ordering::Relaxed) }
    }
}

/// What was seen so far.
#[derive(Default)]
struct GrowthSample {
    growth: InsertGrowth,
    index_bytes: Vec<Option<u64>>,
    table_bytes: Vec<Option<u64>>,
}

impl GrowthSample {
    fn add(&mut self, threads: u32, before: &RowCount, now: &RowCount, facts: TableFacts) {
        let growth = &mut self.growth;
        growth.t_s.push(now.at_s);
        growth.threads.push(threads);
        growth.rows.push(now.rows);
        growth.rows_per_s.push((now.rows - before.rows) as f64 / (now.at_s - before.at_s));
        self.index_bytes.push(facts.index_bytes);
        self.table_bytes.push(facts.table_bytes);
    }

    fn done(self) -> InsertGrowth {
        let told = |all: Vec<Option<u64>>| all.iter().any(Option::is_some).then_some(all);
        let Self { growth, index_bytes, table_bytes } = self;
        InsertGrowth { index_bytes: told(index_bytes), table_bytes: told(table_bytes), ..growth }
    }
}

/// Runs `work`, and samples a growing table meanwhile, if any. `measuring` holds the threads of the
/// window that is open, 0 between windows.
pub fn beside<R>(
    growth: Option<&Growth<'_>>,
    target: &dyn Target,
    measuring: &AtomicU32,
    work: impl FnOnce() -> R,
) -> (R, Option<InsertGrowth>) {
    let Some(growth) = growth else { return (work(), None) };
    std::thread::scope(|scope| {
        let (stop, stopped) = channel();
        let watching = scope.spawn(move || growth.watch(target, measuring, &stopped));
        let done = work();
        drop(stop);
        // A look that failed has left nothing to show.
        (done, watching.join().ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_levels_as_promised_fit_into_a_bound() {
        let asked = TransactionSpec {
            runtime: Some(Duration::from_secs(60)),
            ..TransactionSpec::new("tpcc", "engine:db")
        };
        let bound = Duration::from_secs(20);
        for warm_up in [None, Some(Duration::ZERO), Some(Duration::from_secs(2))] {
            let spec = TransactionSpec { warm_up, ..asked.clone() };
            let level = level_time(&within(&spec, bound, SEARCH_LEVELS_MIN));
            assert!(level * SEARCH_LEVELS_MIN < bound, "{warm_up:?}: {level:?}");
            assert!(level * (SEARCH_LEVELS_MIN + 1) > bound, "no shorter than needed: {level:?}");
        }
        let short = TransactionSpec { runtime: Some(Duration::from_secs(1)), ..asked.clone() };
        assert_eq!(within(&short, bound, SEARCH_LEVELS_MIN), short);
        let long = TransactionSpec { warm_up: Some(Duration::from_secs(30)), ..asked };
        assert_eq!(within(&long, bound, SEARCH_LEVELS_MIN).runtime, Some(WINDOW_MIN));
    }

    #[test]
    fn what_the_target_never_tells_is_absent() {
        let mut seen = GrowthSample::default();
        let look = |at_s, rows| RowCount { at_s, rows };
        let facts = |table_bytes| TableFacts { table_bytes, ..TableFacts::default() };
        seen.add(4, &look(1.0, 100), &look(2.5, 400), facts(Some(7)));
        seen.add(4, &look(2.5, 400), &look(3.5, 400), facts(None));
        let growth = seen.done();
        assert_eq!((growth.t_s, growth.rows), (vec![2.5, 3.5], vec![400, 400]));
        assert_eq!(growth.rows_per_s, [200.0, 0.0]);
        assert_eq!((growth.index_bytes, growth.table_bytes), (None, Some(vec![Some(7), None])));
    }
}
