//! The way to a page, while its tree's structure is locked.
//!
//! Invariant: valid as long as the lock is held, because inner pages change under it only; each
//! page on it is pinned, so that latching needs no loading.

use std::sync::{MutexGuard, PoisonError};

use iostrata_page::PageView;
use iostrata_pool::Pin;

use crate::admission::Pins;
use crate::error::EngineError;
use crate::pages::Pages;
use crate::tree::Tree;

/// Pages that a change of a tree's structure pins at once: a way through five levels, a new page, a
/// map, a neighbour.
const PINS: usize = 8;

/// A tree whose structure nobody else changes, and the share of the pool that this takes.
pub(crate) struct Locked<'c> {
    _alone: MutexGuard<'c, ()>,
    _pins: Option<Pins<'c>>,
}

/// An inner page on the way, and the slot that was taken there.
pub(super) struct Turn<'c> {
    pub pin: Pin<'c>,
    pub slot: usize,
}

/// The way from the root to a page of one level.
pub(super) struct Way<'c> {
    pub turns: Vec<Turn<'c>>,
    /// The page at the end.
    pub end: Pin<'c>,
}

impl Tree {
    /// Keeps other changes of inner pages out, also of a dropped tree. The caller holds no latch.
    pub(crate) fn hold_structure<'c>(&'c self, pages: &'c Pages) -> Locked<'c> {
        // Many trees may be changed at once: with what batches hold they must not take all frames.
        let pins = pages.admission.pins(PINS);
        let alone = self.structure.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { _alone: alone, _pins: pins }
    }

    /// As [`Tree::hold_structure`], to change the tree. A drop marks the tree and then takes this
    /// lock before it frees a page: so a change that was let in has the tree to itself until it
    /// lets go of the lock, whatever it waits for meanwhile.
    ///
    /// # Errors
    /// [`EngineError::TableDropped`].
    pub(super) fn lock_structure<'c>(
        &'c self,
        pages: &'c Pages,
    ) -> Result<Locked<'c>, EngineError> {
        let locked = self.hold_structure(pages);
        self.check_not_dropped()?;
        Ok(locked)
    }

    /// Goes to the page of `level` that is responsible for `key`. None when the tree is lower than
    /// that. The caller holds the structure lock and no latch.
    pub(super) fn way<'c>(
        &self,
        pages: &'c Pages,
        key: &[u8],
        to_level: u8,
    ) -> Result<Option<Way<'c>>, EngineError> {
        let mut turns = Vec::new();
        let mut pin = pages.pin(self.root)?;
        let mut parent = None;
        loop {
            let node = pin.clone().shared();
            let level = self.check(&node, parent)?;
            if level < to_level {
                return Ok(None);
            }
            if level == to_level {
                return Ok(Some(Way { turns, end: pin }));
            }
            let (slot, child) = PageView::new(&node).child_for(key);
            drop(node);
            turns.push(Turn { pin, slot });
            pin = pages.pin(child)?;
            parent = Some(level);
        }
    }
}
