//! Filling and removing the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_database::target::{
    Access, Fold, Isolation, Op, OpId, Order, Rows, SessionOptions, Target, TargetError,
};
use iostrata_stats::Random;

use crate::filling::{Loaded, refuse_stopped};
use crate::insert::row::{COLUMNS, TABLE, push, schema};
use crate::loaded_mark::LoadedMark;

/// Rows that are made at once.
const BATCH: i64 = 256;
const COMMAND: &str = "insert";

/// The workload.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertSpec {
    /// Rows that are loaded in bulk, before any is inserted.
    pub rows: i64,
    /// Rows that one commit inserts.
    pub rows_per_commit: u32,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Of transactions.
    pub isolation: Isolation,
    /// Statements are sent as text instead of being prepared.
    pub as_text: bool,
}

impl Default for InsertSpec {
    fn default() -> Self {
        Self {
            rows: 1_000_000,
            rows_per_commit: 1,
            seed: 1,
            isolation: Isolation::default(),
            as_text: false,
        }
    }
}

/// How many rows were loaded in bulk.
///
/// # Errors
/// What the target said; nothing was prepared, or not to the end.
pub fn rows_loaded(target: &dyn Target) -> Result<i64, TargetError> {
    let numbers = LoadedMark { schema: &Arc::new(schema()), command: COMMAND }.ready(target)?;
    Ok(numbers.first().copied().unwrap_or_default())
}

/// The greatest key, which is the number of rows as long as none was given up. Reads one row.
///
/// # Errors
/// What the target said.
pub fn rows(target: &dyn Target) -> Result<u64, TargetError> {
    let access = Access::Scan {
        index: None,
        prefix: 0,
        is_range: false,
        order: Order::Descending,
        limit: Some(1),
        locks: false,
        columns: vec![0],
        fold: Fold::Rows,
    };
    let ops = [Op { name: "last row", table: TABLE, access }].into();
    let options = SessionOptions { ops, ..SessionOptions::default() };
    let mut session = target.session(&Arc::new(schema()), &options)?;
    let mut rows = Rows::default();
    session.begin()?;
    session.run(OpId(0), &[], &mut rows)?;
    session.rollback()?;
    Ok(if rows.is_empty() { 0 } else { rows.get(0, 0).int().max(0) as u64 })
}

/// Makes and fills the table; with `resets` in place of the one that is there. Its indexes are made
/// when it is filled. `progress` hears of the rows so far.
///
/// # Errors
/// Another number of rows was loaded before; what the target said; `stop` was set.
pub fn prepare(
    target: &dyn Target,
    spec: &InsertSpec,
    resets: bool,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Loaded, TargetError> {
    let schema = Arc::new(schema());
    let mark = LoadedMark { schema: &schema, command: COMMAND };
    if !mark.begin(target, &[spec.rows], resets)? {
        return Ok(Loaded { rows: 0, rows_before: spec.rows as u64 });
    }
    let mut random = Random::of_stream(spec.seed, 1 << 63);
    let (mut next, mut text) = (1, Vec::new());
    let mut more = |buffer: &mut Rows| {
        buffer.clear(COLUMNS);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let end = (next + BATCH - 1).min(spec.rows);
        (next..=end).for_each(|id| push(&mut random, Some(id), &mut text, buffer));
        next = end + 1;
        progress(end as u64);
    };
    let rows = if spec.rows > 0 { target.load(&schema, TABLE, None, &mut more)? } else { 0 };
    refuse_stopped(target, stop, "the same command begins again")?;
    target.finish(&schema)?;
    mark.set(target, &[spec.rows])?;
    Ok(Loaded { rows, rows_before: 0 })
}

/// Removes the table, if this program made it; whether it was there.
///
/// # Errors
/// What the target said; a table that somebody else made.
pub fn cleanup(target: &dyn Target) -> Result<bool, TargetError> {
    LoadedMark { schema: &Arc::new(schema()), command: COMMAND }.remove(target)
}
