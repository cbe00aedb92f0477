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

/// What came of all conditions of a workload's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Each condition, counted from 1.
    pub conditions: Vec<Condition>,
    /// Rows that were read.
    pub rows: u64,
}

impl Checked {
    /// Whether all hold.
    pub fn is_ok(&self) -> bool {
        self.conditions.iter().all(|condition| condition.violations == 0)
    }
}
