//! Filling an empty tree with sorted rows.
//!
//! Invariant: keys rise strictly; each full leaf is put behind the last one by a mini-transaction
//! of its own, so that after a crash a prefix of the rows is there and the tree is whole.

use iostrata_innodb::{NO_PAGE, PageNo};

use crate::error::EngineError;
use crate::mtr::Mtr;
use crate::page::{PageEdit, PageKind, PageView, Record, cells_of, row_bytes, shortest_separator};
use crate::pages::{NewPage, Pages};
use crate::pool::Pin;
use crate::tree::Tree;
use crate::tree::split::{RowToFit, has_room_for_separator};
use crate::tree::structure::{Blocked, Promise, Step, needed};

/// A leaf that is being filled, outside the pool.
pub(crate) struct Filling {
    bytes: Vec<u8>,
    /// Free bytes that stay free in each leaf.
    reserve_bytes: usize,
}

impl Filling {
    /// An empty leaf of a tree; `fill_pct` of a page is used.
    pub fn new(pages: &Pages, tree: &Tree, fill_pct: usize) -> Self {
        let mut bytes = vec![0; pages.storage.page_size.bytes()];
        let reserve_bytes = pages.storage.page_size.bytes() * (100 - fill_pct.min(100)) / 100;
        empty(&mut bytes, tree);
        Self { bytes, reserve_bytes }
    }

    pub fn is_empty(&self) -> bool {
        PageView::new(&self.bytes).count() == 0
    }

    /// Adds a row at the end; false when it is full.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> bool {
        let view = PageView::new(&self.bytes);
        let count = view.count();
        let reserve = if count == 0 { 0 } else { self.reserve_bytes };
        if view.free_bytes() < row_bytes(key.len(), value.len()) + reserve {
            return false;
        }
        let row = Record::Insert { slot: count, flags: 0, key, value };
        let applied = row.apply(&mut PageEdit::new(&mut self.bytes), PageNo(0));
        assert!(applied.is_ok(), "a row for which there is room fits");
        true
    }
}

fn empty(bytes: &mut [u8], tree: &Tree) {
    let mut page = PageEdit::new(bytes);
    page.format(PageKind::Leaf, 0, tree.id, PageNo(0), NO_PAGE, NO_PAGE);
}

impl Tree {
    /// Whether the root is a leaf without rows or tombstones: only then nothing says which keys
    /// belong where.
    pub fn is_bare(&self, pages: &Pages) -> Result<bool, EngineError> {
        self.unless_dropped(|| {
            let root = pages.pin(self.root)?.shared();
            let view = PageView::new(&root);
            Ok(self.check(root.page_no(), &view, None)? == 0 && view.is_empty())
        })
    }

    /// Puts the filled leaf behind the last one and empties it. False, and nothing is done, when
    /// somebody has put other rows there.
    pub fn append_leaf(&self, pages: &Pages, filling: &mut Filling) -> Result<bool, EngineError> {
        let filled = PageView::new(&filling.bytes);
        let outcome = loop {
            let promise = Promise::wait(pages)?;
            let appended =
                self.restructure(pages, &promise, |new| self.append_step(pages, &filled, new))?;
            if let Some(is_appended) = appended {
                break is_appended;
            }
        };
        if outcome {
            empty(&mut filling.bytes, self);
        }
        Ok(outcome)
    }

    /// One step towards it: None when only the way for it was made.
    fn append_step(
        &self,
        pages: &Pages,
        filled: &PageView<'_>,
        new: Option<&NewPage<'_>>,
    ) -> Result<Option<bool>, Blocked> {
        let first = filled.key(0);
        let Some(mut path) = self.path(pages, first, 0)? else { panic!("every tree has leaves") };
        if PageView::new(&path.end.clone().shared()).count() == 0 {
            return Ok(self.fill_last(pages, path.end, filled)?);
        }
        let new = needed(new)?;
        match path.steps.pop() {
            Some(parent) if has_room_for_separator(pages, &parent) => {
                Ok(Some(self.append_behind(pages, (parent, path.end), filled, new)?))
            }
            Some(parent) => {
                path.end = parent.pin;
                self.split_step(pages, &RowToFit::anyway(first), path, new)?;
                Ok(None)
            }
            None => {
                self.grow_root(pages, &RowToFit::anyway(first), path.end, new)?;
                Ok(None)
            }
        }
    }

    /// Puts the rows into the last leaf, which was empty; None when it is not any more.
    fn fill_last(
        &self,
        pages: &Pages,
        last: Pin<'_>,
        filled: &PageView<'_>,
    ) -> Result<Option<bool>, EngineError> {
        let mut mtr = Mtr::begin(&pages.storage);
        let leaf = mtr.latch(last);
        if !is_edge(&mtr.page(leaf), filled.key(0)) {
            return Ok(Some(false));
        }
        if mtr.page(leaf).count() > 0 {
            return Ok(None);
        }
        let mut buffer = Vec::new();
        let cells = cells_of(filled, 0..filled.count(), &mut buffer);
        mtr.change(leaf, &Record::Splice { at: 0, cells })?;
        mtr.commit();
        Ok(Some(true))
    }

    fn append_behind(
        &self,
        pages: &Pages,
        (parent, last): (Step<'_>, Pin<'_>),
        filled: &PageView<'_>,
        new: &NewPage<'_>,
    ) -> Result<bool, EngineError> {
        let first = filled.key(0);
        let mut mtr = Mtr::begin(&pages.storage);
        let above = mtr.latch(parent.pin);
        let last = mtr.latch(last);
        let created = mtr.latch(new.pin.clone());
        let view = mtr.page(last);
        if !is_edge(&view, first) {
            return Ok(false);
        }
        let greatest = view.count().checked_sub(1).map(|slot| view.key(slot));
        let separator = greatest.map_or(first, |key| shortest_separator(key, first));
        let (left, mut buffer) = (mtr.page(last).page_no(), Vec::new());
        let image = Record::image_of_part(filled, 0..filled.count(), left, NO_PAGE, &mut buffer);
        mtr.change(created, &image)?;
        mtr.change(last, &Record::SetRight(new.reserved.page))?;
        let (slot, child) = (parent.slot + 1, new.reserved.page.0.to_le_bytes());
        mtr.change(above, &Record::Insert { slot, flags: 0, key: separator, value: &child })?;
        new.bit.clone().change(&mut mtr, true)?;
        mtr.moved(last);
        mtr.moved(created);
        mtr.commit();
        Ok(true)
    }
}

/// Whether a leaf is the last one and all of its keys lie below this one.
fn is_edge(leaf: &PageView<'_>, first: &[u8]) -> bool {
    let is_below = leaf.count() == 0 || leaf.key(leaf.count() - 1) < first;
    leaf.right() == NO_PAGE && is_below
}
