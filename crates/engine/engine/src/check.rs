//! Verifying every structure.
//!
//! Invariant: it changes nothing, and goes on after what it finds. Every page is read through the
//! pool; every page in use must be reached exactly once, and every page reached must be in use.
//! Nothing else changes a page meanwhile: no table is made or dropped, and no commit is admitted,
//! not even one of purge. Writers wait.

#[cfg(test)]
mod tests;
mod trees;
mod unopened;

use std::collections::BTreeMap;
use std::fmt;

use iostrata_innodb::PageNo;

use self::trees::Walk;
use crate::catalogue::{Catalogue, Trees};
use crate::error::EngineError;
use crate::page::{PageKind, PageView};
use crate::pages::{Pages, SuperPage};
use crate::pool::Shared;
use crate::store::{CutFile, Store};

pub(crate) use unopened::check_pages;

pub(crate) fn check(pages: &Pages, catalogue: &Catalogue) -> Result<CheckReport, EngineError> {
    // Between two frames of it a table may have pages that nothing leads to.
    let _alone = catalogue.one_at_a_time()?;
    pages.admission.paused(|| verify(pages, catalogue))
}

fn verify(pages: &Pages, catalogue: &Catalogue) -> Result<CheckReport, EngineError> {
    let mut report =
        CheckReport { pages_total: pages.storage.store.pages(), ..CheckReport::default() };
    let mut reached = Reached::new();
    reached.insert(0, "the super page".to_owned());
    for map in 0..pages.space.maps() {
        reached.insert(pages.space.map_page(map).0, format!("map {map}"));
    }
    let Trees { live, dropped } = catalogue.trees();
    for tree in live {
        let table = Walk::new(pages, &tree, &tree.name, &mut report, &mut reached).whole()?;
        report.tables.push(table);
    }
    for tree in dropped {
        Walk::new(pages, &tree, "a dropped table", &mut report, &mut reached).remains()?;
    }
    // A damaged tree cannot be read in order.
    if report.is_clean() {
        for (table, index) in catalogue.indexes() {
            trees::compare_index(pages, &table, &index, &mut report)?;
        }
    }
    compare_maps(pages, &mut report, &reached)?;
    for lost in std::mem::take(&mut report.lost).into_values().filter(|lost| lost.below > 0) {
        let Lost { name, page, below } = lost;
        let what = format!("{below} pages of {name} below what cannot be read cannot be reached");
        report.problem(page, what);
    }
    let data_pages = {
        let front = pages.pin(PageNo(0))?.shared();
        SuperPage::read(&PageView::new(&front))?.data_pages
    };
    compare_lengths(&pages.storage.store, data_pages, &mut report)?;
    Ok(report)
}

/// Sets the data files beside what they were when the engine was last closed: they never shrink.
fn compare_lengths(
    store: &Store,
    data_pages: u64,
    report: &mut CheckReport,
) -> Result<(), EngineError> {
    let page_bytes = store.page_size().bytes() as u64;
    for CutFile { name, bytes, wanted_bytes, first_lost } in store.cut_files(data_pages)? {
        let odd = match bytes.is_multiple_of(page_bytes) {
            true => String::new(),
            false => format!(", not a multiple of the page of {page_bytes}"),
        };
        let what = format!(
            "{name} is {bytes} bytes{odd} and shorter than the {wanted_bytes} that it had when the \
             engine was last closed: what cut it took pages from here on; restore {name} from a \
             backup of all files"
        );
        report.problem(first_lost, what);
    }
    Ok(())
}

/// Whether a page that nothing leads to is of a table with pages that cannot be read, or is one
/// itself; it is counted there then.
fn is_below_lost(pages: &Pages, report: &mut CheckReport, page: PageNo) -> bool {
    if report.lost.is_empty() {
        return false;
    }
    let leaf = match report.page(pages, page) {
        Ok(Some(leaf)) => leaf,
        Ok(None) => return true,
        Err(_) => return false,
    };
    match report.lost.get_mut(&PageView::new(&leaf).table().0) {
        Some(lost) => {
            lost.below += 1;
            true
        }
        None => false,
    }
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
        let Some(page) = report.page(pages, no)? else { continue };
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
                (true, None) if is_below_lost(pages, report, page) => {}
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
struct Lost {
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
    lost: BTreeMap<u32, Lost>,
}

impl CheckReport {
    /// Whether everything is as it should be.
    pub fn is_clean(&self) -> bool {
        self.problems_total == 0
    }

    /// The page, or nothing where it is damaged, which is a problem then.
    fn page<'p>(
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

    fn problem(&mut self, page: PageNo, what: impl Into<String>) {
        self.problems_total += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { page: page.0, what: what.into() });
        }
    }
}

/// Pages that were reached, and by whom.
type Reached = BTreeMap<u64, String>;
