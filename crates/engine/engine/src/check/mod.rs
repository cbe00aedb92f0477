//! Verifying every structure.
//!
//! Invariant: it changes nothing, and goes on after what it finds. Every page is read through the
//! pool; every page in use must be reached exactly once, and every page reached must be in use.
//! Nothing else changes a page meanwhile: no table is made or dropped, and no commit is admitted,
//! not even one of purge. Writers wait.

mod report;
#[cfg(test)]
mod tests;
mod trees;
mod unopened;

pub use report::{CheckReport, Problem, TableReport};

use crate::page::{PageKind, PageView};
use crate::store::{CutFile, Store};
use iostrata_innodb::PageNo;

use crate::catalogue::{Catalogue, Trees};
pub(crate) use unopened::check_pages;

use crate::check::report::{Lost, Reached};
use crate::check::trees::Walk;
use crate::error::EngineError;
use crate::pages::Pages;
use crate::super_page::SuperPage;

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
