//! Making room: a full page becomes two.
//!
//! Invariant: one mini-transaction touches one page, its new right neighbour, the one parent that
//! has room for the new separator, and the back link of the next leaf; so its size is bounded and
//! the tree is whole after each. A parent without room is split first; the root grows a level
//! first, and keeps its page number. Rows come and go while room in the redo is waited for: so a
//! leaf is split only if the row, now that it is latched, still lacks room there.

use iostrata_innodb::{Counter, NO_PAGE};

use crate::error::EngineError;
use crate::mtr::{Held, Mtr};
use crate::page::{PageKind, PageView, Record, row_bytes, shortest_separator};
use crate::pages::{NewPage, Pages};
use crate::pool::Pin;
use crate::tree::Tree;
use crate::tree::structure::{Blocked, Path, Promise, Step, needed, resident};

const CHILD_BYTES: usize = 8;

/// A row that its leaf has no room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowToFit<'k> {
    pub key: &'k [u8],
    pub value_bytes: usize,
    /// What the leaf must have free, for the changes before it in the same commit, too.
    pub needed_bytes: usize,
}

impl<'k> RowToFit<'k> {
    /// A key for which way is made whatever room there is.
    pub fn anyway(key: &'k [u8]) -> Self {
        Self { key, value_bytes: 0, needed_bytes: usize::MAX }
    }

    /// Whether a page still has to be split for it. Inner pages change only under the structure
    /// lock: what was seen in them under it holds.
    fn lacks_room(&self, page: &PageView<'_>) -> bool {
        page.level() > 0 || page.free_bytes() < self.needed_bytes
    }
}

struct Cut {
    /// First cell that goes right; may be the number of cells.
    from: usize,
    separator: Vec<u8>,
}

impl Tree {
    /// Splits the leaf of a row, unless it was moved since `page_version` was seen, or has room by
    /// now.
    pub fn split_leaf(
        &self,
        pages: &Pages,
        row: &RowToFit<'_>,
        page_version: u32,
    ) -> Result<(), EngineError> {
        loop {
            let promise = Promise::wait(pages)?;
            let is_split = self.restructure(pages, &promise, |new| {
                let Some(path) = self.path(pages, row.key, 0)? else { return Ok(true) };
                let is_moved = path.end.page_version() != page_version;
                if is_moved || !row.lacks_room(&PageView::new(&path.end.clone().shared())) {
                    return Ok(true);
                }
                self.split_step(pages, row, path, needed(new)?)
            })?;
            if is_split {
                return Ok(());
            }
        }
    }

    /// One step towards splitting the page at the end of the path: true when that page was split,
    /// or is not to be split any more.
    pub(super) fn split_step(
        &self,
        pages: &Pages,
        row: &RowToFit<'_>,
        mut path: Path<'_>,
        new: &NewPage<'_>,
    ) -> Result<bool, Blocked> {
        loop {
            let Some(parent) = path.steps.pop() else {
                self.grow_root(pages, row, path.end, new)?;
                return Ok(false);
            };
            let is_leaf = PageView::new(&path.end.clone().shared()).level() == 0;
            if has_room_for_separator(pages, &parent) {
                let low = low_fence(&path.steps, &parent);
                self.split(pages, row, (&low, &parent, path.end), new)?;
                return Ok(is_leaf);
            }
            path.end = parent.pin;
        }
    }

    /// Moves the root's content into a new page below it, if it still has to be split.
    pub(crate) fn grow_root(
        &self,
        pages: &Pages,
        row: &RowToFit<'_>,
        root: Pin<'_>,
        new: &NewPage<'_>,
    ) -> Result<(), EngineError> {
        let mut mtr = Mtr::begin(&pages.storage);
        let root = mtr.latch(root);
        if !row.lacks_room(&mtr.page(root)) {
            return Ok(());
        }
        let below = mtr.latch(new.pin.clone());
        let level = mtr.page(root).level();
        let mut buffer = Vec::new();
        let image = Record::image_of(&mtr.page(root), &mut buffer);
        mtr.change(below, &image)?;
        let kind = PageKind::Inner;
        let (left, right) = (NO_PAGE, NO_PAGE);
        mtr.change(root, &Record::Init { kind, level: level + 1, table: self.id, left, right })?;
        let child = new.reserved.page.0.to_le_bytes();
        mtr.change(root, &Record::Insert { slot: 0, flags: 0, key: &[], value: &child })?;
        new.bit.clone().change(&mut mtr, true)?;
        mtr.moved(root);
        mtr.moved(below);
        mtr.commit();
        Ok(())
    }

    /// Splits a page whose parent has room, if it still has to be split.
    fn split(
        &self,
        pages: &Pages,
        row: &RowToFit<'_>,
        (low, parent, page): (&[u8], &Step<'_>, Pin<'_>),
        new: &NewPage<'_>,
    ) -> Result<(), Blocked> {
        let next = next_leaf(pages, &page)?;
        let mut mtr = Mtr::begin(&pages.storage);
        let above = mtr.latch(parent.pin.clone());
        let (page, next) = latch_leaves(&mut mtr, page, next);
        let created = mtr.latch(new.pin.clone());
        let view = mtr.page(page);
        let (cut, count, mut buffer) = (cut(&view, row), view.count(), Vec::new());
        let is_leaf = view.level() == 0;
        // The only row, or none is left, and the row is the least that the leaf may have: nothing
        // can be cut off left of it.
        let is_at_fence = is_leaf && cut.separator.as_slice() <= low;
        if is_at_fence || !row.lacks_room(&view) {
            return Ok(());
        }
        let (left, right) =
            if is_leaf { (view.page_no(), view.right()) } else { (NO_PAGE, NO_PAGE) };
        let image = Record::image_of_part(&view, cut.from..count, left, right, &mut buffer);
        mtr.change(created, &image)?;
        if cut.from < count {
            mtr.change(page, &Record::Truncate { from: cut.from })?;
        }
        let number = new.reserved.page;
        if is_leaf {
            mtr.change(page, &Record::SetRight(number))?;
        }
        if let Some(next) = next {
            mtr.change(next, &Record::SetLeft(number))?;
            mtr.moved(next);
        }
        let (slot, child) = (parent.slot + 1, number.0.to_le_bytes());
        let (flags, key) = (0, cut.separator.as_slice());
        mtr.change(above, &Record::Insert { slot, flags, key, value: &child })?;
        new.bit.clone().change(&mut mtr, true)?;
        mtr.moved(page);
        mtr.moved(created);
        mtr.commit();
        pages.storage.counts.add(Counter::IndexPageSplits, 1);
        Ok(())
    }
}

pub(super) fn has_room_for_separator(pages: &Pages, parent: &Step<'_>) -> bool {
    let page = parent.pin.clone().shared();
    let cost = row_bytes(pages.storage.page_size.key_bytes_max(), CHILD_BYTES);
    PageView::new(&page).free_bytes() >= cost
}

/// The least key that may come below `parent`'s slot: the parent's key there, or that of the next
/// page up where the way did not go to the first child. Empty on the left edge of the tree.
fn low_fence(above: &[Step<'_>], parent: &Step<'_>) -> Vec<u8> {
    let fence = |step: &Step<'_>| PageView::new(&step.pin.clone().shared()).key(step.slot).to_vec();
    let step = std::iter::once(parent).chain(above.iter().rev()).find(|step| step.slot > 0);
    step.map(fence).unwrap_or_default()
}

/// The leaf right of a leaf, which has to learn of its new left neighbour.
pub(super) fn next_leaf<'c>(pages: &'c Pages, page: &Pin<'c>) -> Result<Option<Pin<'c>>, Blocked> {
    let shared = page.clone().shared();
    let view = PageView::new(&shared);
    let right = view.right();
    let has_next = view.level() == 0 && right != NO_PAGE;
    drop(shared);
    has_next.then(|| resident(pages, right)).transpose()
}

fn latch_leaves<'c>(
    mtr: &mut Mtr<'c>,
    page: Pin<'c>,
    next: Option<Pin<'c>>,
) -> (Held, Option<Held>) {
    match next {
        Some(next) if next.page_no() < page.page_no() => {
            let next = mtr.latch(next);
            (mtr.latch(page), Some(next))
        }
        next => {
            let page = mtr.latch(page);
            (page, next.map(|next| mtr.latch(next)))
        }
    }
}

fn cut(page: &PageView<'_>, row: &RowToFit<'_>) -> Cut {
    let RowToFit { key, value_bytes, .. } = *row;
    let count = page.count();
    let is_leaf = page.level() == 0;
    let place = page.find(key).unwrap_or_else(|place| place);
    let from = if is_leaf && place == count && (page.right() == NO_PAGE || count < 2) {
        // Keys arrive in rising order: the left page stays full.
        count
    } else if is_leaf && count < 2 {
        0
    } else if let Some(split) =
        is_leaf.then(|| page.split_for(place, key.len(), value_bytes)).flatten()
    {
        split.from
    } else {
        page.split_point().clamp(1, count - 1)
    };
    let separator = match (is_leaf, from) {
        // What does not fit an empty leaf is a later row of a batch: the earlier ones stay left.
        (true, _) if count == 0 => key,
        (true, from) if from == count => shortest_separator(page.key(count - 1), key),
        (true, 0) => page.key(0),
        (true, from) => shortest_separator(page.key(from - 1), page.key(from)),
        (false, from) => page.key(from),
    };
    Cut { from, separator: separator.to_vec() }
}
