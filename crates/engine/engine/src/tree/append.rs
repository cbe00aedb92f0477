//! Filling an empty tree with sorted rows.
//!
//! Invariant: keys rise strictly; each full leaf is hung onto the right edge by a mini-transaction
//! of its own, so that after a crash a prefix of the rows is there and the tree is whole.

use iostrata_page::{
    NO_PAGE, PageEdit, PageKind, PageNo, PageView, Record, cells_of, row_bytes, shortest_separator,
};

use crate::error::EngineError;
use crate::mtr::Mtr;
use crate::pages::{NewPage, Pages};
use crate::tree::Tree;
use crate::tree::split::has_room_for_separator;
use crate::tree::structure::Turn;

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

    /// Whether nothing is in it.
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
    /// Whether the root is a leaf: only then nothing says which keys belong where.
    ///
    /// # Errors
    /// What loading the root said.
    pub fn is_one_leaf(&self, pages: &Pages) -> Result<bool, EngineError> {
        self.unless_dropped(|| {
            let root = pages.pin(self.root)?.shared();
            Ok(self.check(&root, None)? == 0)
        })
    }

    /// Hangs the filled leaf onto the right edge and empties it. False, and nothing is done, when
    /// somebody has put other rows there.
    ///
    /// # Errors
    /// No space on the disk, or what loading a page said.
    pub fn hang(&self, pages: &Pages, filling: &mut Filling) -> Result<bool, EngineError> {
        let first = PageView::new(&filling.bytes).key(0).to_vec();
        let _locked = self.lock_structure(pages)?;
        loop {
            let Some(mut way) = self.way(pages, &first, 0)? else {
                panic!("every tree has leaves")
            };
            let is_empty = PageView::new(&way.end.clone().shared()).count() == 0;
            if is_empty {
                let _room = pages.admit_structure()?;
                let mut mtr = Mtr::begin(&pages.storage);
                let leaf = mtr.latch(way.end);
                if !is_edge(&mtr.page(leaf), &first) {
                    return Ok(false);
                }
                let view = PageView::new(&filling.bytes);
                if mtr.page(leaf).count() > 0 {
                    continue;
                }
                let mut buffer = Vec::new();
                let cells = cells_of(&view, 0..view.count(), &mut buffer);
                mtr.change(leaf, &Record::Splice { at: 0, cells })?;
                mtr.commit();
                break;
            }
            match way.turns.pop() {
                Some(parent) if has_room_for_separator(pages, &parent) => {
                    if !self.hang_on(pages, &first, (parent, way.end), filling)? {
                        return Ok(false);
                    }
                    break;
                }
                Some(parent) => {
                    way.end = parent.pin;
                    self.split_step(pages, (&first, 0), way)?;
                }
                None => self.deepen(pages, way.end)?,
            }
        }
        empty(&mut filling.bytes, self);
        Ok(true)
    }

    fn hang_on<'c>(
        &self,
        pages: &'c Pages,
        first: &[u8],
        (parent, last): (Turn<'c>, iostrata_pool::Pin<'c>),
        filling: &mut Filling,
    ) -> Result<bool, EngineError> {
        let _room = pages.admit_structure()?;
        let NewPage { reserved, pin: created, bit } = pages.new_page()?;
        let mut mtr = Mtr::begin(&pages.storage);
        let above = mtr.latch(parent.pin);
        let last = mtr.latch(last);
        let new = mtr.latch(created);
        let view = mtr.page(last);
        if !is_edge(&view, first) {
            return Ok(false);
        }
        let greatest = view.count().checked_sub(1).map(|slot| view.key(slot));
        let separator = greatest.map_or(first, |key| shortest_separator(key, first));
        let filled = PageView::new(&filling.bytes);
        let (left, mut buffer) = (mtr.page(last).page_no(), Vec::new());
        let image = Record::image_of_part(&filled, 0..filled.count(), left, NO_PAGE, &mut buffer);
        mtr.change(new, &image)?;
        mtr.change(last, &Record::SetRight(reserved.page))?;
        let (slot, child) = (parent.slot + 1, reserved.page.0.to_le_bytes());
        mtr.change(above, &Record::Insert { slot, flags: 0, key: separator, value: &child })?;
        bit.change(&mut mtr, true)?;
        mtr.moved(last);
        mtr.moved(new);
        mtr.commit();
        Ok(true)
    }
}

/// Whether a leaf is the last one and all of its keys lie below this one.
fn is_edge(leaf: &PageView<'_>, first: &[u8]) -> bool {
    let is_below = leaf.count() == 0 || leaf.key(leaf.count() - 1) < first;
    leaf.right() == NO_PAGE && is_below
}
