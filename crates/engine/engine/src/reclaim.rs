//! Freeing the pages of a dropped table.
//!
//! Invariant: children are freed before what points to them, each with its pointer in one frame;
//! so a crash leaves a smaller tree to go on with, and no page is lost or freed twice. Nobody else
//! changes the tree (`Tree::begin_drop`); readers that are still in it find out by its mark.

use std::sync::Arc;

use iostrata_page::{PageNo, PageView, Record};
use iostrata_pool::Pin;

use crate::batch::Batch;
use crate::catalogue::last_child;
use crate::core::Core;
use crate::error::EngineError;
use crate::mtr::Mtr;
use crate::space::MapBit;
use crate::table::Table;
use crate::tree::Tree;

/// Redo that freeing one page needs, in bytes.
const FREE_BYTES: usize = 64;

/// Frees all pages of the tables that were dropped.
///
/// # Errors
/// What reading or writing said; the rest is freed at the next opening.
pub(crate) fn reclaim_all(core: &Arc<Core>) -> Result<(), EngineError> {
    for (name, tree) in core.catalogue.dropped() {
        while free_last(core, &tree)? {}
        let catalogue = Table::new(Arc::clone(core), Arc::clone(&core.catalogue.tree), "catalogue");
        let mut batch = Batch::new(Arc::clone(core));
        batch.delete(&catalogue, &name)?;
        batch.free(tree.root);
        batch.commit()?.wait()?;
        core.catalogue.forget(&tree);
    }
    Ok(())
}

/// Frees the last page of the lowest inner page. False when only the root is left.
fn free_last(core: &Core, tree: &Tree) -> Result<bool, EngineError> {
    let Some((parent, slot, child)) = lowest(core, core.pool.pin(tree.root)?)? else {
        return Ok(false);
    };
    let _room = core.admit(FREE_BYTES)?;
    let bit = MapBit::of(core, child)?;
    let mut mtr = Mtr::begin(core);
    let above = mtr.latch(parent);
    mtr.change(above, &Record::Truncate { from: slot })?;
    bit.change(&mut mtr, false)?;
    mtr.commit();
    core.space.freed(child);
    Ok(true)
}

/// The inner page whose last child has no children itself.
fn lowest<'c>(
    core: &'c Core,
    top: Pin<'c>,
) -> Result<Option<(Pin<'c>, usize, PageNo)>, EngineError> {
    let mut found = None;
    let mut pin = top;
    loop {
        let page = pin.clone().shared();
        let view = PageView::new(&page);
        let Some((slot, child)) = last_child(&view) else { return Ok(found) };
        let is_lowest = view.level() == 1;
        drop(page);
        found = Some((pin, slot, child));
        if is_lowest {
            return Ok(found);
        }
        pin = core.pool.pin(child)?;
    }
}
