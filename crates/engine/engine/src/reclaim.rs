//! Freeing the pages of a dropped table.
//!
//! Invariant: children are freed before what points to them, each with its pointer in one frame;
//! so a crash leaves a smaller tree to go on with, and no page is lost or freed twice. Nobody else
//! changes the tree (`Tree::begin_drop`); readers that are still in it find out by its mark.

use iostrata_innodb::PageNo;

use crate::error::EngineError;
use crate::mtr::Mtr;
use crate::page::{PageView, Record};
use crate::pages::Pages;
use crate::pool::Pin;
use crate::tree::Tree;

/// Redo that freeing one page needs, in bytes.
const FREE_BYTES: usize = 64;

/// Frees all pages of a tree but its root.
pub(crate) fn free_below_root(pages: &Pages, tree: &Tree) -> Result<(), EngineError> {
    while free_last(pages, tree)? {}
    Ok(())
}

/// Frees the last page of the lowest inner page. False when only the root is left.
fn free_last(pages: &Pages, tree: &Tree) -> Result<bool, EngineError> {
    let Some((parent, slot, child)) = lowest(pages, pages.pin(tree.root)?)? else {
        return Ok(false);
    };
    let _room = pages.admission.admit(FREE_BYTES)?;
    let bit = pages.map_bit(child)?;
    let mut mtr = Mtr::begin(&pages.storage);
    let above = mtr.latch(parent);
    mtr.change(above, &Record::Truncate { from: slot })?;
    bit.change(&mut mtr, false)?;
    mtr.commit();
    pages.space.freed(child);
    Ok(true)
}

/// The inner page whose last child has no children itself.
fn lowest<'c>(
    pages: &'c Pages,
    top: Pin<'c>,
) -> Result<Option<(Pin<'c>, usize, PageNo)>, EngineError> {
    let mut found = None;
    let mut pin = top;
    loop {
        let page = pin.clone().shared();
        let view = PageView::new(&page);
        let Some(slot) = view.count().checked_sub(1).filter(|_| view.level() > 0) else {
            return Ok(found);
        };
        let child = view.child(slot);
        let is_lowest = view.level() == 1;
        drop(page);
        found = Some((pin, slot, child));
        if is_lowest {
            return Ok(found);
        }
        pin = pages.pin(child)?;
    }
}
