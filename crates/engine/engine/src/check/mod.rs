//! Verifying every structure.
//!
//! Invariant: it changes nothing, and goes on after what it finds. Every page is read through the
//! pool; every page in use must be reached exactly once, and every page reached must be in use.
//! Nothing else changes a page meanwhile: no table is made or dropped, and nobody is admitted,
//! purge included. Writers wait.

mod indexes;
mod report;
#[cfg(test)]
mod tests;
mod trees;

pub use report::{CheckReport, Problem, TableReport};

use iostrata_innodb::PageNo;

use crate::catalogue::{Catalogue, Trees};
use crate::check::report::Reached;
use crate::check::trees::Walk;
use crate::error::EngineError;
use crate::page::{PageKind, PageView};
use crate::pages::Pages;

/// Verifies everything.
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
            indexes::compare(pages, &table, &index, &mut report)?;
        }
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
