//! Recovery: from what a crash left to an open engine.
//!
//! Phases, in order: torn pages are repaired from the doublewrite files; the redo's end is found
//! and sealed off, durably; the redo is applied; tables are read; what dropped tables left is
//! freed. Invariant: nothing is written to a data file that the durable redo does not tell of, and
//! no checkpoint moves before everything is applied; so recovery may itself be cut off anywhere and
//! begins anew with the same result. It never sleeps.

mod apply;
mod progress;

pub(crate) use apply::apply;
pub(crate) use progress::Clock;
pub use progress::{Phase, Progress, RecoveryReport};

use iostrata_innodb::PageNo;

use crate::catalogue::Catalogue;
use crate::error::EngineError;
use crate::page::PageView;
use crate::pages::Pages;
use crate::super_page::SuperPage;

/// Reads what is known by name, and frees what dropped tables left. Gives what page 0 says.
pub(crate) fn tables(
    pages: &Pages,
    catalogue: &Catalogue,
    clock: &mut Clock<'_>,
) -> Result<SuperPage, EngineError> {
    clock.enter(Phase::Tables);
    let front = {
        let page = pages.pin(PageNo(0))?.shared();
        SuperPage::read(&PageView::new(&page))?
    };
    let settings = pages.storage.settings.load();
    let is_ours = front.page_bytes == settings.page_size
        && front.data_files == settings.data_files
        && front.catalogue_root == catalogue.tree.root.0;
    if !is_ours {
        let problem = format!("it tells of another database than the settings: {front:?}");
        return Err(EngineError::corrupt(PageNo(0), problem));
    }
    pages.space.set_maps(front.maps);
    catalogue.read(front.next_table)?;
    if catalogue.has_dropped() {
        clock.enter(Phase::Reclaim);
        catalogue.reclaim()?;
    }
    clock.enter(Phase::Done);
    Ok(front)
}
