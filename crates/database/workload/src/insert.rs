//! Inserts into random places of three indexes: the load of an investigation of 2009.
//!
//! Purpose: rows with a counted key, three random keys and a string, so many in a commit, into a
//! table that only grows. While the indexes fit into memory the processor decides; afterwards the
//! disk does, and the order of its writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_database::target::{
    Access, Column, ColumnType, Fold, Index, Isolation, Op, OpId, Order, Rows, Schema, Session,
    SessionOptions, Table, Target, TargetError, Value,
};
use iostrata_load::Turn;
use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::loaded_mark::{LoadCounts, LoadedMark, mark_table, refuse_stopped};
use crate::slots::{Conclusion, PlainTerminals, Transactions};
use crate::tpcc::draw::letters;
use crate::workload::OptionForm::{Count, Flag};
use crate::workload::Verb::{Check, Cleanup, Prepare, Run};
use crate::workload::{
    CheckResult, Condition, GrowingTable, LoadOptions, RunnableWorkload, SourceOptions, VerbHelp,
    Workload, WorkloadError, WorkloadKind, WorkloadOption, WorkloadSettings,
};

// The table, and what a row holds.
//
// Invariant: the string of a row begins with the sum of its keys, so that a row that is not whole
// is found.

/// The number of the table with the rows.
pub const TABLE: usize = 0;
/// Columns of a row.
const COLUMNS: usize = 5;
/// Random keys of a row: the columns behind its key.
const KEYS: usize = 3;
/// Random keys are below it, as in 2009.
const KEY_MAX: i64 = 300_000_000;
/// Digits of the sum of the keys, and the characters of a string in all.
const SUM_DIGITS: usize = 10;
const STRING: usize = 40;

/// The table, and one that records what was loaded.
pub fn schema() -> Schema {
    let column = |name: &str, of| Column { name: name.to_owned(), of, is_nullable: false };
    let int = ColumnType::Int { bytes: 4 };
    let index =
        |at: usize| Index { name: format!("insert_b{at}"), columns: vec![at], is_late: true };
    let rows = Table {
        name: "insert_rows".to_owned(),
        columns: vec![
            column("id", int),
            column("b1", int),
            column("b2", int),
            column("b3", int),
            column("c", ColumnType::Varchar(100)),
        ],
        key: vec![0],
        indexes: (1..=KEYS).map(index).collect(),
        auto_increment: true,
    };
    Schema { tables: vec![rows, mark_table("iostrata_insert", &["rows"])] }
}

/// Appends a row; one without a number gets the next one from the target.
fn push(random: &mut Random, id: Option<i64>, text: &mut Vec<u8>, rows: &mut Rows) {
    let keys: [i64; KEYS] = std::array::from_fn(|_| random.below(KEY_MAX as u64) as i64);
    string(random, keys, text);
    rows.push(id.map_or(Value::Null, Value::Int));
    keys.into_iter().for_each(|key| rows.push(key.into()));
    rows.push(Value::Text(text));
}

fn string(random: &mut Random, keys: [i64; KEYS], text: &mut Vec<u8>) {
    text.clear();
    text.resize(SUM_DIGITS, b'0');
    let mut sum = keys.into_iter().sum::<i64>();
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (sum % 10) as u8;
        sum /= 10;
    }
    let rest = (STRING - SUM_DIGITS) as i64;
    letters(random, text, rest, rest);
}

/// Whether a row holds what was inserted.
fn is_whole(keys: [i64; KEYS], text: &[u8]) -> bool {
    let sum = text.get(..SUM_DIGITS).and_then(|digits| std::str::from_utf8(digits).ok());
    let sum = sum.and_then(|digits| digits.parse::<i64>().ok());
    text.len() == STRING && sum == Some(keys.into_iter().sum())
}

// Filling and removing the table.

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
/// The target's error; nothing was prepared, or not to the end.
pub fn rows_loaded(target: &dyn Target) -> Result<i64, TargetError> {
    let numbers = LoadedMark { schema: &Arc::new(schema()), command: COMMAND }.ready(target)?;
    Ok(numbers.first().copied().unwrap_or_default())
}

/// The greatest key, which is the number of rows as long as none was given up. Reads one row.
///
/// # Errors
/// The target's error.
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

/// Makes and fills the table; with `resets` it replaces an existing one. Its indexes are made when
/// it is filled. `progress` gets the rows so far.
///
/// # Errors
/// Another number of rows was loaded before; the target's error; `stop` was set.
pub fn prepare(
    target: &dyn Target,
    spec: &InsertSpec,
    resets: bool,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<LoadCounts, TargetError> {
    let schema = Arc::new(schema());
    let mark = LoadedMark { schema: &schema, command: COMMAND };
    if !mark.begin(target, &[spec.rows], resets)? {
        return Ok(LoadCounts { rows: 0, rows_before: spec.rows as u64 });
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
    Ok(LoadCounts { rows, rows_before: 0 })
}

/// Removes the table, if this program made it; whether it was there.
///
/// # Errors
/// The target's error; a table that iostrata did not make.
pub fn cleanup(target: &dyn Target) -> Result<bool, TargetError> {
    LoadedMark { schema: &Arc::new(schema()), command: COMMAND }.remove(target)
}

// Whether every row is whole and every index leads to the same rows, checked over every row.
//
// Invariant: the table is read in the order of its key, then every index by ranges of its own;
// what both sum up to is compared, in one transaction. It changes nothing.

/// Ranges of an index that are summed up, each alone.
const RANGES: i64 = 64;
/// Keys of a range.
const WIDTH: i64 = (KEY_MAX + RANGES - 1) / RANGES;

/// The conditions, by their places; behind them one for each index.
const WHOLE: usize = 0;
const LOADED: usize = 1;
const INDEXES: usize = 2;

/// Sums of keys, by index and range.
type Sums = [[i64; RANGES as usize]; KEYS];

/// Checks all conditions; `progress` gets the share that is done.
///
/// # Errors
/// The target's error; nothing was prepared. Conditions that do not hold are no error.
pub fn check(
    target: &dyn Target,
    progress: &mut dyn FnMut(f64),
) -> Result<CheckResult, TargetError> {
    let loaded = rows_loaded(target)?;
    let schema = Arc::new(schema());
    let options = SessionOptions { ops: ops().into(), ..SessionOptions::default() };
    let mut session = target.session(&schema, &options)?;
    session.begin()?;
    let mut checked = CheckResult { conditions: conditions(loaded), ..CheckResult::default() };
    let sums = read(&mut *session, loaded, &mut checked, progress)?;
    let mut rows = Rows::default();
    for (index, sums) in sums.iter().enumerate() {
        for (range, expected) in (0..RANGES).zip(sums) {
            let done = (index as i64 * RANGES + range) as f64 / (KEYS as i64 * RANGES) as f64;
            progress(0.5 + done / 2.0);
            let (least, most) = (range * WIDTH, (range + 1) * WIDTH - 1);
            session.run(OpId(1 + index), &[least.into(), most.into()], &mut rows)?;
            let found = rows.get(0, 0).int();
            checked.conditions[INDEXES + index].wants(found == *expected, || {
                format!("keys {least} to {most}: the index has {found} in sum, rows {expected}")
            });
        }
    }
    session.rollback()?;
    Ok(checked)
}

/// Reads every row and every index once, so that the target has in memory what has room there.
///
/// # Errors
/// The target's error.
pub fn read_all(target: &dyn Target) -> Result<(), TargetError> {
    check(target, &mut |_| {}).map(drop)
}

fn conditions(loaded: i64) -> Vec<Condition> {
    let mut conditions = vec![
        Condition::new("every row holds what was inserted"),
        Condition::new(format!("the {loaded} rows that were loaded are there")),
    ];
    let index = |at| Condition::new(format!("index b{at} leads to the rows of the table"));
    conditions.extend((1..=KEYS).map(index));
    conditions
}

/// Every row, and the sums of ranges of each index.
fn ops() -> Vec<Op> {
    let scan = |index, columns, fold| Access::Scan {
        index,
        prefix: 0,
        is_range: index.is_some(),
        order: if index.is_some() { Order::Any } else { Order::Ascending },
        limit: None,
        locks: false,
        columns,
        fold,
    };
    let op = |name, access| Op { name, table: TABLE, access };
    let rows = op("every row", scan(None, vec![0, 1, 2, 3, 4], Fold::Rows));
    let sums = (0..KEYS).map(|at| op("sum of an index", scan(Some(at), vec![1 + at], Fold::Sum)));
    std::iter::once(rows).chain(sums).collect()
}

fn read(
    session: &mut dyn Session,
    loaded: i64,
    checked: &mut CheckResult,
    progress: &mut dyn FnMut(f64),
) -> Result<Sums, TargetError> {
    let (mut sums, mut found_loaded): (Sums, i64) = ([[0; RANGES as usize]; KEYS], 0);
    session.stream(OpId(0), &[], &mut |row| {
        checked.rows += 1;
        if checked.rows.is_multiple_of(100_000) {
            progress((checked.rows as f64 / loaded.max(1) as f64).min(1.0) / 2.0);
        }
        let id = row[0].int();
        found_loaded += i64::from((1..=loaded).contains(&id));
        let keys: [i64; KEYS] = std::array::from_fn(|at| row[1 + at].int());
        checked.conditions[WHOLE]
            .wants(is_whole(keys, row[4].text()), || format!("row {id}: {row:?}"));
        for (sums, key) in sums.iter_mut().zip(keys) {
            let range = usize::try_from(key / WIDTH).unwrap_or_default();
            if let Some(sum) = sums.get_mut(range) {
                *sum += key;
            }
        }
    })?;
    checked.conditions[LOADED]
        .wants(found_loaded == loaded, || format!("{found_loaded} of {loaded} are there"));
    Ok(sums)
}

// The load for the driver: every turn inserts the rows of one commit.

/// How it differs from the load of 2009, which was a stored procedure.
pub const DEVIATIONS: [&str; 2] = [
    "rows come from sessions of clients, so that every commit costs a round trip",
    "strings are drawn and begin with the sum of the keys, in place of forty equal characters",
];

/// Rows of one statement at most.
const STATEMENT_ROWS: u32 = 1_000;
const INSERT: OpId = OpId(0);

/// All terminals of a run.
pub type InsertTerminals<'a> = PlainTerminals<'a, InsertTransactions>;

impl<'a> InsertTerminals<'a> {
    /// Terminals over a table that is there. `blocks`: whether a session keeps its thread waiting.
    ///
    /// # Errors
    /// When nothing was prepared, or the target's error.
    pub fn new(
        target: &'a dyn Target,
        spec: &InsertSpec,
        blocks: bool,
    ) -> Result<Self, TargetError> {
        rows_loaded(target)?;
        let rows_per_commit = spec.rows_per_commit;
        let session = SessionOptions {
            ops: [Op { name: "insert", table: TABLE, access: Access::Insert }].into(),
            isolation: spec.isolation,
            // One statement is a transaction of its own, and saves a round trip. Where commits may
            // be pending they are explicit.
            autocommit: blocks && rows_per_commit <= STATEMENT_ROWS,
            as_text: spec.as_text,
        };
        let transactions = InsertTransactions { rows_per_commit, committed: Arc::default() };
        let (schema, seed) = (Arc::new(schema()), spec.seed);
        Ok(Self { target, schema, session, seed, blocks, transactions })
    }

    /// Rows whose commits were acknowledged so far.
    pub fn committed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.transactions.committed)
    }
}

/// Transactions that insert the rows of one commit each.
pub struct InsertTransactions {
    rows_per_commit: u32,
    /// Rows.
    committed: Arc<AtomicU64>,
}

/// What a worker keeps.
pub struct InsertBuffers {
    rows: Rows,
    /// What an insert gives.
    none: Rows,
    text: Vec<u8>,
}

impl Transactions for InsertTransactions {
    type Buffers = InsertBuffers;

    fn buffers(&self) -> InsertBuffers {
        InsertBuffers { rows: Rows::new(COLUMNS), none: Rows::default(), text: Vec::new() }
    }

    fn run(
        &self,
        buffers: &mut InsertBuffers,
        session: &mut dyn Session,
        _kind: OpKind,
        _turn: Turn,
        random: &mut Random,
    ) -> Result<Conclusion, TargetError> {
        let InsertBuffers { rows, none, text } = buffers;
        let mut left = self.rows_per_commit;
        session.begin()?;
        while left > 0 {
            let count = left.min(STATEMENT_ROWS);
            rows.clear(COLUMNS);
            (0..count).for_each(|_| push(random, None, text, rows));
            let values: Vec<Value<'_>> =
                (0..count as usize).flat_map(|row| rows.row(row)).collect();
            session.run(INSERT, &values, none)?;
            left -= count;
        }
        Ok(Conclusion::Commit)
    }

    fn committed(&self) {
        self.committed.fetch_add(self.rows_per_commit.into(), Ordering::Relaxed);
    }
}

// The load as a workload: its options, and the resulting plan.

/// About how large a row is, its places in three indexes included.
const ROW_BYTES: u64 = 160;
/// Rows of a commit at most: one transaction has to hold them.
const ROWS_PER_COMMIT_MAX: u32 = 100_000;

/// Rows into random places of three indexes.
pub static WORKLOAD: WorkloadKind = WorkloadKind {
    name: "insert",
    about: "Insert rows with three random secondary keys, on the engine or on a server",
    detail: "Reports rows per second against the size of the indexes; on servers with MyISAM, \
             Aria, InnoDB or RocksDB. docs/loads.md describes the table and the figures.",
    members: &[],
    verbs: &[
        VerbHelp {
            verb: Prepare,
            about: "Create the table and load its first rows in bulk",
            detail: "",
        },
        VerbHelp { verb: Run, about: "Insert rows and measure the rate", detail: "" },
        VerbHelp {
            verb: Check,
            about: "Check that every row is whole and every index leads to the same rows",
            detail: "Exit code 1 if one fails.",
        },
        VerbHelp { verb: Cleanup, about: "Remove the table", detail: "" },
    ],
    keeps_loads: true,
    options: &[
        WorkloadOption::new(
            "rows",
            Count,
            "Rows to load, about 180 bytes each with their indexes; 0 for an empty table",
        )
        .on(&[Prepare])
        .default("1000000"),
        WorkloadOption::new("rows", Count, "Rows that --server is loaded with [default: 1000000]"),
        WorkloadOption::new("rows-per-commit", Count, "Rows that one commit inserts").default("1"),
        WorkloadOption::new(
            "check",
            Flag,
            "Check rows and indexes after the run; exit code 1 when something is wrong",
        )
        .late(),
    ],
    named: |_, _| "insert".to_owned(),
    has: |name| name == "insert",
    of: |_, settings| Ok(Box::new(of(settings)?)),
};

fn of(settings: &WorkloadSettings) -> Result<InsertSpec, WorkloadError> {
    let usual = InsertSpec::default();
    // In a study its name is another one.
    let rows_per_commit = match settings.number("rows-per-commit")? {
        Some(rows) => rows,
        None => settings.number("commit-rows")?.unwrap_or(usual.rows_per_commit),
    };
    if !(1..=ROWS_PER_COMMIT_MAX).contains(&rows_per_commit) {
        return WorkloadError::setting(format!(
            "--rows-per-commit {rows_per_commit}: use 1 to {ROWS_PER_COMMIT_MAX}"
        ));
    }
    let rows = settings.number::<u32>("rows")?;
    if let (Some(rows), false) = (rows, settings.loads) {
        return WorkloadError::setting(format!(
            "--rows {rows}: only the tables of --server are loaded by `run`; load others with \
             `insert prepare --rows {rows}`"
        ));
    }
    let rows = rows.map_or(usual.rows, i64::from);
    if rows > i32::MAX.into() {
        return WorkloadError::setting(format!("--rows {rows}: use 0 to {}", i32::MAX));
    }
    Ok(InsertSpec { rows, rows_per_commit, ..usual })
}

impl Workload for InsertSpec {
    fn name(&self) -> String {
        "insert".to_owned()
    }

    fn schema(&self) -> Schema {
        schema()
    }

    fn size(&self) -> (u64, &'static str) {
        (self.rows as u64, "rows")
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(self.rows as u64 * ROW_BYTES)
    }

    fn tables_name(&self) -> String {
        format!("insert-{}", self.rows)
    }

    fn contents(&self) -> String {
        format!("insert, {} rows", self.rows)
    }

    fn storage_table(&self) -> Option<usize> {
        Some(TABLE)
    }

    fn loading(&self) -> String {
        format!("loading {} rows, then making indexes", self.rows)
    }

    fn load(
        &self,
        target: &dyn Target,
        options: &LoadOptions<'_>,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<LoadCounts, TargetError> {
        let spec = Self { seed: options.seed, ..self.clone() };
        prepare(target, &spec, options.resets, options.stop, &|rows| {
            progress(rows as f64 / spec.rows.max(1) as f64);
        })
    }

    fn read_all(&self, target: &dyn Target) -> Result<(), TargetError> {
        read_all(target)
    }

    fn source<'a>(
        &self,
        target: &'a dyn Target,
        options: &SourceOptions,
    ) -> Result<RunnableWorkload<'a>, WorkloadError> {
        let spec = Self {
            rows: rows_loaded(target)?,
            rows_per_commit: self.rows_per_commit,
            seed: options.seed,
            isolation: options.isolation,
            as_text: options.as_text,
        };
        let rows_before = rows(target)?;
        let source = InsertTerminals::new(target, &spec, options.blocks)?;
        let growing = GrowingTable {
            table: TABLE,
            rows_before,
            rows_per_commit: spec.rows_per_commit,
            committed: source.committed(),
        };
        Ok(RunnableWorkload {
            settings: vec![
                ("rows_per_commit", spec.rows_per_commit.to_string()),
                ("rows_before", rows_before.to_string()),
            ],
            deviations: DEVIATIONS.map(str::to_owned).to_vec(),
            growing: Some(growing),
            ..RunnableWorkload::new(source)
        })
    }

    fn checking(&self) -> &'static str {
        "reading every row and every index"
    }

    fn check(
        &self,
        target: &dyn Target,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(CheckResult, u64), TargetError> {
        let checked = check(target, progress)?;
        let rows = checked.rows;
        Ok((checked, rows))
    }

    fn cleanup(&self, target: &dyn Target) -> Result<bool, TargetError> {
        cleanup(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_whether_it_is_whole() {
        let (mut random, mut text, mut rows) = (Random::new(3), Vec::new(), Rows::new(COLUMNS));
        for id in [Some(7), None] {
            push(&mut random, id, &mut text, &mut rows);
        }
        assert_eq!(rows.get(0, 0), Value::Int(7));
        assert!(rows.get(1, 0).is_null());
        for row in 0..2 {
            let keys: [i64; KEYS] = std::array::from_fn(|at| rows.get(row, 1 + at).int());
            let text = rows.get(row, 4).text();
            assert!(keys.iter().all(|key| (0..KEY_MAX).contains(key)));
            assert!(is_whole(keys, text), "{keys:?} {text:?}");
            assert!(!is_whole([keys[0] + 1, keys[1], keys[2]], text));
            assert!(!is_whole(keys, &text[..39]) && !is_whole(keys, b"x"));
        }
    }
}
