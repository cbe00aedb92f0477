//! Filling tables, and what a workload has loaded, recorded in a table of its own with one row of
//! numbers.
//!
//! Invariants: the table is the last one of its schema; it is made before the others and removed
//! after them, so that tables without it are foreign and are never touched. Its row is written when
//! everything is loaded: without it loading has not ended.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use iostrata_database::target::{
    Access, Column, ColumnType, Fold, Op, OpId, Order, Rows, Schema, SessionOptions, Table, Target,
    TargetError, Value,
};

/// The version of the tables that this program makes and reads.
pub(crate) const VERSION: i64 = 1;

/// The table of a mark with these numbers.
pub(crate) fn mark_table(name: &str, numbers: &[&str]) -> Table {
    let all = ["version"].iter().chain(numbers);
    let column = |name: &&str| Column {
        name: (*name).to_owned(),
        of: ColumnType::Int { bytes: 8 },
        is_nullable: false,
    };
    Table {
        name: name.to_owned(),
        columns: all.map(column).collect(),
        key: vec![0],
        indexes: Vec::new(),
        auto_increment: false,
    }
}

/// Whether the tables of a schema exist whose contents this one records.
///
/// # Errors
/// Tables without it exist: foreign ones. The target's error.
pub(crate) fn are_ours(
    target: &dyn Target,
    schema: &Schema,
    says: usize,
) -> Result<bool, TargetError> {
    let present = target.present(schema)?;
    match present.first() {
        Some(table) if !present.contains(&says) => {
            let table = &schema.tables[*table].name;
            let what = format!("a table {table} exists, and nothing shows that iostrata made it");
            let fix = "use an empty database, or drop the table yourself";
            Err(TargetError::not_ready(&target.name(), "foreign_tables", what, fix))
        }
        found => Ok(found.is_some()),
    }
}

/// Refuses to remove foreign tables: with other columns than in any of these schemas, whose tables
/// have the same names. `present` are numbers of theirs.
///
/// # Errors
/// One exists; the target's error.
pub(crate) fn refuse_foreign(
    target: &dyn Target,
    schemas: &[Schema],
    present: &[usize],
) -> Result<(), TargetError> {
    for at in present {
        let Some(table) = schemas.first().and_then(|schema| schema.tables.get(*at)) else {
            continue;
        };
        let Some(found) = target.columns(&table.name)? else { return Ok(()) };
        let mut found: Vec<String> = found.iter().map(|name| name.to_ascii_lowercase()).collect();
        found.sort_unstable();
        let is_it = |schema: &Schema| {
            let columns = schema.tables[*at].columns.iter();
            let mut declared: Vec<String> =
                columns.map(|column| column.name.to_ascii_lowercase()).collect();
            declared.sort_unstable();
            declared == found
        };
        if !schemas.iter().any(is_it) {
            let what = format!(
                "table {} is there with other columns ({}), so that iostrata did not make it; it stays",
                table.name,
                found.join(", ")
            );
            let fix = "use another database, or drop the table yourself";
            return Err(TargetError::not_ready(&target.name(), "foreign_tables", what, fix));
        }
    }
    Ok(())
}

/// Refuses tables of another version of this program.
///
/// # Errors
/// They are.
pub(crate) fn refuse_version(
    target: &dyn Target,
    command: &str,
    found: i64,
) -> Result<(), TargetError> {
    if found == VERSION {
        return Ok(());
    }
    let what = format!("the tables are of version {found}, this program's {VERSION}");
    let fix = format!("load them again by `{command} prepare --reset`");
    Err(TargetError::not_ready(&target.name(), "version", what, &fix))
}

/// What a target holds of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoadState {
    Nothing,
    /// Loading is not complete.
    Unfinished,
    /// With the numbers of the mark.
    Loaded(Vec<i64>),
}

/// The mark of one workload's tables.
pub(crate) struct LoadedMark<'a> {
    pub schema: &'a Arc<Schema>,
    /// The command that works on them, for fixes.
    pub command: &'static str,
}

impl LoadedMark<'_> {
    fn number(&self) -> usize {
        self.schema.tables.len() - 1
    }

    fn refused(&self, target: &dyn Target, code: &str, what: String, fix: &str) -> TargetError {
        TargetError::not_ready(&target.name(), code, what, fix)
    }

    /// What is there.
    ///
    /// # Errors
    /// The target's error; foreign tables, or of another version.
    pub fn read(&self, target: &dyn Target) -> Result<LoadState, TargetError> {
        if !are_ours(target, self.schema, self.number())? {
            return Ok(LoadState::Nothing);
        }
        let columns: Vec<usize> = (0..self.schema.tables[self.number()].columns.len()).collect();
        let all = Access::Scan {
            index: None,
            prefix: 0,
            is_range: false,
            order: Order::Ascending,
            limit: None,
            locks: false,
            columns,
            fold: Fold::Rows,
        };
        let mut rows = Rows::default();
        self.run(target, "read the mark", all, &[], &mut rows)?;
        if rows.is_empty() {
            return Ok(LoadState::Unfinished);
        }
        let numbers: Vec<i64> = rows.row(0).map(Value::int).collect();
        let (version, numbers) = numbers.split_first().unwrap_or((&0, &[]));
        refuse_version(target, self.command, *version)?;
        Ok(LoadState::Loaded(numbers.to_vec()))
    }

    /// The numbers of tables that can be used.
    ///
    /// # Errors
    /// As [`LoadedMark::read`]; nothing was prepared, or not to the end.
    pub fn ready(&self, target: &dyn Target) -> Result<Vec<i64>, TargetError> {
        let what = match self.read(target)? {
            LoadState::Loaded(numbers) => return Ok(numbers),
            LoadState::Nothing => format!("no tables of {} are there", self.command),
            LoadState::Unfinished => {
                format!("the tables of {} are not loaded to the end", self.command)
            }
        };
        let fix = format!("load them with `{} prepare`", self.command);
        Err(self.refused(target, "not_prepared", what, &fix))
    }

    /// Makes room for tables with these numbers: removes what an attempt left half done, or with
    /// `resets` whatever is there, and makes all tables, empty. False where they are loaded
    /// already.
    ///
    /// # Errors
    /// The target's error; foreign tables, or with other numbers.
    pub fn begin(
        &self,
        target: &dyn Target,
        numbers: &[i64],
        resets: bool,
    ) -> Result<bool, TargetError> {
        match self.read(target) {
            Ok(LoadState::Loaded(found)) if !resets => {
                if found == numbers {
                    return Ok(false);
                }
                let names = self.schema.tables[self.number()].columns[1..].iter().zip(found);
                let found: Vec<String> =
                    names.map(|(column, number)| format!("{number} {}", column.name)).collect();
                let what =
                    format!("tables of {} are there, with {}", self.command, found.join(", "));
                let fix = "name these numbers, or load others in their place with --reset";
                return Err(self.refused(target, "other_dataset", what, fix));
            }
            Err(error) if !(resets && error.code == "version") => return Err(error),
            _ => self.remove_all(target).map(drop)?,
        }
        target.create(self.schema, self.number())?;
        (0..self.number()).try_for_each(|table| target.create(self.schema, table))?;
        Ok(true)
    }

    /// Notes that everything is loaded, with these numbers.
    ///
    /// # Errors
    /// The target's error.
    pub fn set(&self, target: &dyn Target, numbers: &[i64]) -> Result<(), TargetError> {
        let row: Vec<Value<'_>> =
            [VERSION].iter().chain(numbers).map(|number| Value::Int(*number)).collect();
        self.run(target, "write the mark", Access::Insert, &row, &mut Rows::default())
    }

    /// Removes all tables; whether there were any.
    ///
    /// # Errors
    /// The target's error; foreign tables.
    pub fn remove(&self, target: &dyn Target) -> Result<bool, TargetError> {
        match self.read(target) {
            Ok(LoadState::Nothing) => Ok(false),
            Err(error) if error.code != "version" => Err(error),
            _ => self.remove_all(target),
        }
    }

    fn remove_all(&self, target: &dyn Target) -> Result<bool, TargetError> {
        let present = target.present(self.schema)?;
        refuse_foreign(target, std::slice::from_ref(&**self.schema), &present)?;
        present.iter().try_for_each(|table| target.remove(self.schema, *table))?;
        Ok(!present.is_empty())
    }

    fn run(
        &self,
        target: &dyn Target,
        name: &'static str,
        access: Access,
        args: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<(), TargetError> {
        let ops = [Op { name, table: self.number(), access }].into();
        let options = SessionOptions { ops, ..SessionOptions::default() };
        let mut session = target.session(self.schema, &options)?;
        session.begin()?;
        session.run(OpId(0), args, rows)?;
        let ticket = session.commit()?;
        session.settle(ticket, true).map(drop)
    }
}

// Filling tables, several parts at a time.
//
// Invariant: the first failure ends all threads' work, and is returned.

/// What filling came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    /// Rows that were loaded now.
    pub rows: u64,
    /// Rows that an earlier attempt had loaded.
    pub rows_before: u64,
}

/// Lets so many threads fill one part after the other. `fill` gets a part and checks whether
/// everything is over: because `stop` was set, or another thread has failed.
///
/// # Errors
/// The first failure.
pub(crate) fn fill_all<C: Sync>(
    parts: &[C],
    threads: usize,
    stop: &AtomicBool,
    fill: impl Fn(&C, &dyn Fn() -> bool) -> Result<(), TargetError> + Sync,
) -> Result<(), TargetError> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let lock = || failed.lock().unwrap_or_else(PoisonError::into_inner);
    let is_over = || stop.load(Ordering::Relaxed) || lock().is_some();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, parts.len().max(1)) {
            scope.spawn(|| {
                while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if is_over() {
                        return;
                    }
                    if let Err(error) = fill(part, &is_over) {
                        lock().get_or_insert(error);
                    }
                }
            });
        }
    });
    lock().take().map_or(Ok(()), Err)
}

/// Refuses to go on once `stop` is set.
///
/// # Errors
/// It is set.
pub(crate) fn refuse_stopped(
    target: &dyn Target,
    stop: &AtomicBool,
    fix: &str,
) -> Result<(), TargetError> {
    match stop.load(Ordering::Relaxed) {
        true => {
            let what = "filling was stopped".to_owned();
            Err(TargetError::not_ready(&target.name(), "stopped", what, fix))
        }
        false => Ok(()),
    }
}
