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

use std::sync::Arc;

use iostrata_page::{PageNo, PageView};

use crate::core::Core;
use crate::error::EngineError;
use crate::super_page::SuperPage;

/// Reads what is known by name, and frees what dropped tables left.
///
/// # Errors
/// Damage, data of another form, or what freeing said.
pub(crate) fn tables(core: &Arc<Core>, clock: &mut Clock<'_>) -> Result<(), EngineError> {
    clock.enter(Phase::Tables);
    let front = core.pool.pin(PageNo(0))?.shared();
    let front = SuperPage::read(&PageView::new(&front))?;
    let settings = core.settings();
    let is_ours = front.page_bytes == settings.page_size
        && front.data_files == settings.data_files
        && front.catalogue_root == core.catalogue.tree.root.0;
    if !is_ours {
        let problem = format!("it tells of another database than the settings: {front:?}");
        return Err(EngineError::corrupt(PageNo(0), problem));
    }
    core.space.set_maps(front.maps);
    core.catalogue.read(core, front.next_table)?;
    if !core.catalogue.dropped().is_empty() {
        clock.enter(Phase::Reclaim);
        crate::reclaim::reclaim_all(core)?;
    }
    clock.enter(Phase::Done);
    Ok(())
}
