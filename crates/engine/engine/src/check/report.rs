//! What a check finds.

use std::collections::BTreeMap;
use std::fmt;

use iostrata_innodb::PageNo;

use crate::error::EngineError;
use crate::pages::Pages;
use crate::pool::Shared;

/// Problems that are told one by one; of more only the number is known.
const PROBLEMS_MAX: usize = 1000;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The page it was found on.
    pub page: u64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "page {}: {}", self.page, self.what)
    }
}

/// What was found of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableReport {
    /// Its name; "catalogue" for the table of tables.
    pub name: String,
    /// Its pages.
    pub pages: u64,
    /// Its rows.
    pub rows: u64,
    /// Deleted rows that are still in its leaves, until purge takes them away.
    pub tombstones: u64,
    /// Bytes of keys and values with their overhead.
    pub used_bytes: u64,
    /// Levels of its tree; 0 when its root cannot be read.
    pub levels: u32,
    /// Pages of it that cannot be read: they are not counted, nor what lies below them.
    pub lost_pages: u64,
}

/// What cannot be reached of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub name: String,
    /// The first of its pages that cannot be read.
    pub page: PageNo,
    /// Pages that only such ones lead to.
    pub below: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Pages that the data files have room for.
    pub pages_total: u64,
    /// Pages in use.
    pub pages_used: u64,
    /// Every table.
    pub tables: Vec<TableReport>,
    /// The first of the problems.
    pub problems: Vec<Problem>,
    /// All problems.
    pub problems_total: u64,
    /// Tables with pages that cannot be read, by number.
    pub(super) lost: BTreeMap<u32, Lost>,
}

impl CheckReport {
    /// Whether everything is as it should be.
    pub fn is_clean(&self) -> bool {
        self.problems_total == 0
    }

    /// The page, or nothing where it is damaged, which is a problem then.
    pub(super) fn page<'p>(
        &mut self,
        pages: &'p Pages,
        no: PageNo,
    ) -> Result<Option<Shared<'p>>, EngineError> {
        match pages.pin(no) {
            Ok(pin) => Ok(Some(pin.shared())),
            Err(EngineError::Corrupt { problem, .. }) => {
                self.problem(no, problem);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn problem(&mut self, page: PageNo, what: impl Into<String>) {
        self.problems_total += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { page: page.0, what: what.into() });
        }
    }
}

/// Pages that were reached, and by whom.
pub(super) type Reached = BTreeMap<u64, String>;
