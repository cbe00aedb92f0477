//! Rows and sizes of a table that grows, once a second while windows are open.
//!
//! Invariants: it asks on a thread and connections of its own, so that a target that answers late
//! holds nobody up; what the target does not tell is absent. Rates are taken between two looks
//! within one window, by the moments at which rows were counted.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use iostrata_database::target::{Schema, TableFacts, Target};
use iostrata_run::{InsertFigures, InsertGrowth, TransactionDocument};
use iostrata_workload::GrowingTable;

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
        let (began, mut seen) = (Instant::now(), GrowthSeen::default());
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
struct GrowthSeen {
    growth: InsertGrowth,
    index_bytes: Vec<Option<u64>>,
    table_bytes: Vec<Option<u64>>,
}

impl GrowthSeen {
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

/// Runs `work`, and looks at a growing table beside it if there is one. `measuring` holds the
/// threads of the window that is open, 0 between windows.
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
    fn what_the_target_never_tells_is_absent() {
        let mut seen = GrowthSeen::default();
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
