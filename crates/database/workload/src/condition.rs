//! What came of a condition that a check looks at.

/// Violations that are told of one condition.
const TOLD_MAX: usize = 3;

/// What came of one condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// What it says, where no specification has a text for it.
    pub says: String,
    /// Places where it does not hold.
    pub violations: u64,
    /// The first of them, in words.
    pub told: Vec<String>,
    /// What was checked in its place, where it does not hold as written after a run.
    pub instead: Option<String>,
}

impl Condition {
    /// One that is to be looked at.
    pub(crate) fn new(says: impl Into<String>) -> Self {
        Self { says: says.into(), ..Self::default() }
    }

    /// Notes that it does not hold somewhere.
    pub(crate) fn violated(&mut self, tell: impl FnOnce() -> String) {
        self.violations += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(tell());
        }
    }

    /// Notes whether it holds somewhere.
    pub(crate) fn wants(&mut self, holds: bool, tell: impl FnOnce() -> String) {
        if !holds {
            self.violated(tell);
        }
    }
}

/// How many rows a table has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableCount {
    /// Its name.
    pub table: String,
    /// Those that are there.
    pub rows: u64,
    /// Those that must be.
    pub expected: u64,
    /// Places with other numbers of rows.
    pub wrong: u64,
    /// The first of them, in words.
    pub told: Vec<String>,
}

impl TableCount {
    /// None yet.
    pub(crate) fn new(table: &str) -> Self {
        Self { table: table.to_owned(), ..Self::default() }
    }

    /// Adds the rows of a place.
    pub(crate) fn note(&mut self, place: impl FnOnce() -> String, rows: i64, expected: i64) {
        self.rows += rows.max(0) as u64;
        self.expected += expected.max(0) as u64;
        if rows != expected {
            self.wrong += 1;
            if self.told.len() < TOLD_MAX {
                self.told.push(format!("{rows} of {expected} rows in {}", place()));
            }
        }
    }

    /// Whether every place has as many rows as it must have.
    pub fn is_ok(&self) -> bool {
        self.wrong == 0
    }
}

/// What came of all conditions of a workload's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The rows of each table, where their numbers are known beforehand.
    pub counts: Vec<TableCount>,
    /// Each condition, counted from 1.
    pub conditions: Vec<Condition>,
    /// Rows that were read.
    pub rows: u64,
}

impl Checked {
    /// So many conditions, which their specification words.
    pub(crate) fn specified(conditions: usize) -> Self {
        Self { conditions: vec![Condition::default(); conditions], ..Self::default() }
    }

    /// Whether no row is missing and all conditions hold.
    pub fn is_ok(&self) -> bool {
        self.counts.iter().all(TableCount::is_ok)
            && self.conditions.iter().all(|condition| condition.violations == 0)
    }

    /// Notes that a condition, counted from 1, does not hold somewhere.
    pub(crate) fn violated(&mut self, condition: usize, tell: impl FnOnce() -> String) {
        self.conditions[condition - 1].violated(tell);
    }

    /// Notes whether two values are equal, as a condition, counted from 1, wants it.
    pub(crate) fn compare(
        &mut self,
        condition: usize,
        place: &dyn std::fmt::Display,
        (left, left_name): (i64, &str),
        (right, right_name): (i64, &str),
    ) {
        self.conditions[condition - 1].wants(left == right, || {
            format!("{place}: {left_name} is {left}, {right_name} is {right}")
        });
    }
}
