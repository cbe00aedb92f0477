//! Verifying every structure.
//!
//! Invariant: it changes nothing, and goes on after what it finds. Every page is read through the
//! pool; every page in use must be reached exactly once, and every page reached must be in use.

mod trees;

use std::collections::BTreeMap;
use std::fmt;

use iostrata_page::{PageKind, PageNo, PageView};

use crate::catalogue::{Catalogue, Trees};
use crate::check::trees::Walk;
use crate::error::EngineError;
use crate::pages::Pages;

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
    /// Bytes of keys and values with their overhead.
    pub used_bytes: u64,
    /// Levels of its tree.
    pub levels: u32,
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
}

impl CheckReport {
    /// Whether everything is as it should be.
    pub fn is_clean(&self) -> bool {
        self.problems_total == 0
    }

    fn problem(&mut self, page: PageNo, what: impl Into<String>) {
        self.problems_total += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { page: page.0, what: what.into() });
        }
    }
}

/// Pages that were reached, and by whom.
type Reached = BTreeMap<u64, String>;

/// Verifies everything.
pub(crate) fn check(pages: &Pages, catalogue: &Catalogue) -> Result<CheckReport, EngineError> {
    let mut report =
        CheckReport { pages_total: pages.storage.store.pages(), ..CheckReport::default() };
    let mut reached = Reached::new();
    reached.insert(0, "the super page".to_owned());
    for map in 0..pages.space.maps() {
        reached.insert(pages.space.map_page(map).0, format!("map {map}"));
    }
    let Trees { live, dropped } = catalogue.trees();
    for (name, tree) in live {
        let table = Walk::new(pages, &tree, &name, &mut report, &mut reached).whole()?;
        report.tables.push(table);
    }
    for tree in dropped {
        Walk::new(pages, &tree, "a dropped table", &mut report, &mut reached).remains()?;
    }
    compare_maps(pages, &mut report, &reached)?;
    Ok(report)
}

/// Sets what was reached beside what the maps say is in use.
fn compare_maps(
    pages: &Pages,
    report: &mut CheckReport,
    reached: &Reached,
) -> Result<(), EngineError> {
    let bits = pages.space.bits();
    for map in 0..pages.space.maps() {
        let no = pages.space.map_page(map);
        let page = pages.pin(no)?.shared();
        let view = PageView::new(&page);
        if view.kind() != PageKind::Space {
            report.problem(no, format!("it is no map but {:?}", view.kind()));
            continue;
        }
        for bit in 0..bits {
            let is_used = view.bit(bit as u32);
            let page = PageNo(map * bits + bit);
            report.pages_used += u64::from(is_used);
            match (is_used, reached.get(&page.0)) {
                (true, None) => report.problem(page, "it is in use, but nothing leads to it"),
                (false, Some(by)) => {
                    report.problem(page, format!("{by} uses it, but the map says it is free"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
