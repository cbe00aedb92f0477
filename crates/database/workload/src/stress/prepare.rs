//! Filling and removing the tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_database::target::{Isolation, OpId, Rows, SessionOptions, Target, TargetError};

use crate::filling::{Loaded, fill_all, refuse_stopped};
use crate::loaded_mark::LoadedMark;
use crate::stress::mix::StressMix;
use crate::stress::ops::scan_all;
use crate::stress::population::RowSource;
use crate::stress::schema::{TableId, schema};
use crate::tpcc::now_s;

/// The workload.
#[derive(Clone, Debug, PartialEq)]
pub struct StressSpec {
    /// Objects.
    pub objects: i64,
    /// History rows of each, always.
    pub history: i64,
    /// Which transactions.
    pub mix: StressMix,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Of transactions.
    pub isolation: Isolation,
    /// Statements are sent as text instead of being prepared.
    pub as_text: bool,
}

impl Default for StressSpec {
    fn default() -> Self {
        Self {
            objects: 100_000,
            history: 20,
            mix: StressMix::default(),
            seed: 1,
            isolation: Isolation::default(),
            as_text: false,
        }
    }
}

const COMMAND: &str = "stress";

/// How many objects there are, and how many history rows each has.
///
/// # Errors
/// What the target said; nothing was prepared, or not to the end.
pub fn dataset(target: &dyn Target) -> Result<(i64, i64), TargetError> {
    let schema = Arc::new(schema());
    let numbers = LoadedMark { schema: &schema, command: COMMAND }.ready(target)?;
    let number = |at: usize| numbers.get(at).copied().unwrap_or_default();
    Ok((number(0), number(1)))
}

/// Makes and fills the tables; with `resets` in place of what is there of them. `progress` hears of
/// the rows so far and of all.
///
/// # Errors
/// Other tables or other numbers of rows are there; what the target said; `stop` was set.
pub fn prepare(
    target: &dyn Target,
    spec: &StressSpec,
    (threads, resets): (usize, bool),
    stop: &AtomicBool,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Loaded, TargetError> {
    let schema = Arc::new(schema());
    let mark = LoadedMark { schema: &schema, command: COMMAND };
    let (numbers, in_all) = ([spec.objects, spec.history], rows_in_all(spec));
    if !mark.begin(target, &numbers, resets)? {
        return Ok(Loaded { rows: 0, rows_before: in_all });
    }
    let (rows, now_s) = (AtomicU64::new(0), now_s());
    // The largest first.
    let mut tables = TableId::ALL;
    tables.reverse();
    fill_all(&tables, threads, stop, |table, is_over| {
        let mut source = RowSource::new(*table, (spec.objects, spec.history), spec.seed, now_s);
        let mut more = |buffer: &mut Rows| {
            if is_over() {
                return buffer.clear(1);
            }
            source.fill(buffer);
            let count = buffer.len() as u64;
            progress(rows.fetch_add(count, Ordering::Relaxed) + count, in_all);
        };
        target.load(&schema, table.number(), None, &mut more).map(drop)
    })?;
    refuse_stopped(target, stop, "the same command begins again")?;
    target.finish(&schema)?;
    mark.set(target, &numbers)?;
    Ok(Loaded { rows: rows.into_inner(), rows_before: 0 })
}

fn rows_in_all(spec: &StressSpec) -> u64 {
    use crate::stress::schema::{SECTIONS, STATUSES, ZONES};
    (ZONES + SECTIONS + STATUSES + spec.objects * (1 + spec.history)) as u64
}

/// Reads every row once, so that the target has in memory what has room there.
///
/// # Errors
/// What the target said.
pub fn read_all(target: &dyn Target) -> Result<(), TargetError> {
    let schema = Arc::new(schema());
    let ops = [
        scan_all(&schema, TableId::Objects, &["o_id", "o_note"]),
        scan_all(&schema, TableId::History, &["h_object", "h_note"]),
    ];
    let options = SessionOptions { ops: ops.into(), ..SessionOptions::default() };
    let mut session = target.session(&schema, &options)?;
    session.begin()?;
    session.stream(OpId(0), &[], &mut |_| {})?;
    session.stream(OpId(1), &[], &mut |_| {})?;
    session.rollback()
}

/// Removes the tables, if this program made them; whether there were any.
///
/// # Errors
/// What the target said; tables that somebody else made.
pub fn cleanup(target: &dyn Target) -> Result<bool, TargetError> {
    LoadedMark { schema: &Arc::new(schema()), command: COMMAND }.remove(target)
}
