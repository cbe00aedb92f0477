//! Giving room back: a page that is nearly empty joins its neighbour.
//!
//! Invariant: both have the same parent; one mini-transaction moves the right one's cells into the
//! left one, takes the right one out of the parent and frees it. A root with a single child takes
//! the child's content over. Merging is never needed for anything to be right, so it waits for
//! nothing but latches and pages: where it would have to be slowed down it is left out.

use iostrata_innodb::{Counter, NO_PAGE, PageNo};

use crate::admission::Haste;
use crate::error::EngineError;
use crate::mtr::{Held, Mtr};
use crate::page::{PageView, Record, cells_of, row_bytes};
use crate::pages::Pages;
use crate::pool::Pin;
use crate::tree::Tree;
use crate::tree::descend::Seek;
use crate::tree::split::next_leaf;
use crate::tree::structure::{Blocked, Promise, Step, resident, resident_bit};

/// A merged page is at most so full, in percent, so that it is not split again at once.
const MERGED_PCT_MAX: usize = 85;

struct Siblings<'c> {
    left: Pin<'c>,
    right: Pin<'c>,
    /// The right one's slot in the parent.
    slot: usize,
}

impl Tree {
    /// Joins the leaf of `key` with its neighbours as long as it is nearly empty, and so on up the
    /// tree.
    pub fn merge_leaf(&self, pages: &Pages, key: &[u8]) -> Result<(), EngineError> {
        let used_bytes = PageView::new(&self.leaf(pages, Seek::Key(key))?).used_bytes();
        if used_bytes >= pages.storage.sparse_page_bytes() {
            return Ok(());
        }
        // Nobody may come back to an empty leaf: a table that is used as a queue would keep it.
        let haste = if used_bytes == 0 { Haste::ThroughDelays } else { Haste::Little };
        let mut level = 0;
        while self.merge_level(pages, haste, key, level)? {
            level += 1;
        }
        while only_child(&pages.pin(self.root)?).is_some()
            && self.merge_at_once(pages, haste, || self.shrink_root(pages))?
        {}
        Ok(())
    }

    /// Merges the page of `key` at one level as often as it can be. Whether it could.
    fn merge_level(
        &self,
        pages: &Pages,
        haste: Haste,
        key: &[u8],
        level: u8,
    ) -> Result<bool, EngineError> {
        let mut has_joined = false;
        // Again, for neighbours that were left out before.
        while self.merge_at_once(pages, haste, || self.merge_at(pages, key, level))? {
            has_joined = true;
        }
        Ok(has_joined)
    }

    /// Does one step if it needs no waiting. Whether something came of it.
    fn merge_at_once(
        &self,
        pages: &Pages,
        haste: Haste,
        mut step: impl FnMut() -> Result<bool, Blocked>,
    ) -> Result<bool, EngineError> {
        let Some(promise) = Promise::at_once(pages, haste)? else { return Ok(false) };
        self.restructure(pages, &promise, |_new| step())
    }

    /// Merges the page of `key` at one level. Whether its parent lost a cell.
    fn merge_at(&self, pages: &Pages, key: &[u8], level: u8) -> Result<bool, Blocked> {
        let Some(mut path) = self.path(pages, key, level)? else { return Ok(false) };
        let Some(parent) = path.steps.pop() else { return Ok(false) };
        let used = used_bytes(&path.end);
        if used >= pages.storage.sparse_page_bytes() {
            return Ok(false);
        }
        // An empty page has nothing to move into its left neighbour.
        let sides = if used == 0 { [false, true] } else { [true, false] };
        for is_right in sides {
            let page = path.end.clone();
            let Some(pair) = self.neighbours(pages, &parent, page, is_right)? else { continue };
            let used = [used_bytes(&pair.left), used_bytes(&pair.right)];
            if is_worth_joining(pages, level, used) && self.join(pages, &parent, pair)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The page and its neighbour on one side, if there is one under the same parent.
    fn neighbours<'c>(
        &self,
        pages: &'c Pages,
        parent: &Step<'c>,
        page: Pin<'c>,
        is_right: bool,
    ) -> Result<Option<Siblings<'c>>, Blocked> {
        let above = parent.pin.clone().shared();
        let view = PageView::new(&above);
        let slot = if is_right { parent.slot + 1 } else { parent.slot };
        if slot == 0 || slot >= view.count() {
            return Ok(None);
        }
        let other = view.child(if is_right { slot } else { slot - 1 });
        drop(above);
        let other = resident(pages, other)?;
        let (left, right) = if is_right { (page, other) } else { (other, page) };
        Ok(Some(Siblings { left, right, slot }))
    }

    /// Joins two neighbours, if that is still worth it once both are latched. Whether it was.
    fn join(&self, pages: &Pages, parent: &Step<'_>, pair: Siblings<'_>) -> Result<bool, Blocked> {
        let freed = pair.right.page_no();
        let next = next_leaf(pages, &pair.right)?;
        let bit = resident_bit(pages, freed)?;
        let slot = pair.slot;
        let mut mtr = Mtr::begin(&pages.storage);
        let above = mtr.latch(parent.pin.clone());
        let [left, right, next] = latch_three(&mut mtr, pair, next);
        let (Some(left), Some(right)) = (left, right) else { panic!("both were latched") };
        let used = [left, right].map(|held| mtr.page(held).used_bytes());
        let level = mtr.page(left).level();
        if !is_worth_joining(pages, level, used) || !fits(&mtr, left, right) {
            return Ok(false);
        }
        self.move_cells(&mut mtr, (above, slot), left, right)?;
        if mtr.page(left).level() == 0 {
            let right_of = mtr.page(right).right();
            mtr.change(left, &Record::SetRight(right_of))?;
        }
        if let Some(next) = next {
            let left_of = mtr.page(left).page_no();
            mtr.change(next, &Record::SetLeft(left_of))?;
            mtr.moved(next);
        }
        mtr.change(above, &Record::Delete { slot })?;
        bit.change(&mut mtr, false)?;
        mtr.moved(left);
        mtr.moved(right);
        mtr.commit();
        pages.space.freed(freed);
        pages.storage.counts.add(Counter::IndexPageMergeSuccessful, 1);
        Ok(true)
    }

    fn move_cells(
        &self,
        mtr: &mut Mtr<'_>,
        (above, slot): (Held, usize),
        left: Held,
        right: Held,
    ) -> Result<(), EngineError> {
        let at = mtr.page(left).count();
        let view = mtr.page(right);
        let count = view.count();
        let mut first = 0;
        if view.level() > 0 && count > 0 {
            // The first cell of an inner page gets the key that its parent has for it.
            let key = mtr.page(above).key(slot).to_vec();
            let child = mtr.page(right).value(0).to_vec();
            mtr.change(left, &Record::Insert { slot: at, flags: 0, key: &key, value: &child })?;
            first = 1;
        }
        if first < count {
            let mut buffer = Vec::new();
            let cells = cells_of(&mtr.page(right), first..count, &mut buffer);
            let at = mtr.page(left).count();
            mtr.change(left, &Record::Splice { at, cells })?;
        }
        Ok(())
    }

    /// A root with one child takes over what the child holds. Whether it did.
    fn shrink_root(&self, pages: &Pages) -> Result<bool, Blocked> {
        let root = resident(pages, self.root)?;
        let Some(only) = only_child(&root) else { return Ok(false) };
        let child = resident(pages, only)?;
        let bit = resident_bit(pages, only)?;
        let mut mtr = Mtr::begin(&pages.storage);
        let root = mtr.latch(root);
        let child = mtr.latch(child);
        let mut buffer = Vec::new();
        let image = Record::image_of(&mtr.page(child), &mut buffer);
        mtr.change(root, &image)?;
        bit.change(&mut mtr, false)?;
        mtr.moved(root);
        mtr.moved(child);
        mtr.commit();
        pages.space.freed(only);
        Ok(true)
    }
}

fn only_child(pin: &Pin<'_>) -> Option<PageNo> {
    let page = pin.clone().shared();
    let view = PageView::new(&page);
    (view.level() > 0 && view.count() == 1).then(|| view.child(0))
}

fn used_bytes(pin: &Pin<'_>) -> usize {
    PageView::new(&pin.clone().shared()).used_bytes()
}

/// Whether two pages of which so much is used may become one. An empty leaf joins even a full one:
/// otherwise a table from which rows go in the order of their keys, as from a queue, would keep
/// every leaf it ever had.
fn is_worth_joining(pages: &Pages, level: u8, [left, right]: [usize; 2]) -> bool {
    if level == 0 && left.min(right) == 0 {
        return true;
    }
    let separator_bytes =
        if level > 0 { row_bytes(pages.storage.page_size.key_bytes_max(), 0) } else { 0 };
    left.min(right) < pages.storage.sparse_page_bytes()
        && left + right + separator_bytes <= pages.storage.page_size.bytes() * MERGED_PCT_MAX / 100
}

/// Whether the right one's cells still fit, now that both are latched.
fn fits(mtr: &Mtr<'_>, left: Held, right: Held) -> bool {
    let (left, right) = (mtr.page(left), mtr.page(right));
    let separator = if left.level() > 0 { row_bytes(left.size().key_bytes_max(), 0) } else { 0 };
    right.used_bytes() + separator <= left.free_bytes()
}

/// Latches the pair and what follows it by page number; gives them back in the order of keys.
fn latch_three<'c>(
    mtr: &mut Mtr<'c>,
    pair: Siblings<'c>,
    next: Option<Pin<'c>>,
) -> [Option<Held>; 3] {
    let mut pins: Vec<(usize, PageNo, Pin<'c>)> = [Some(pair.left), Some(pair.right), next]
        .into_iter()
        .enumerate()
        .filter_map(|(place, pin)| pin.map(|pin| (place, pin.page_no(), pin)))
        .collect();
    pins.sort_by_key(|(_, page, _)| *page);
    let mut held = [None; 3];
    for (place, page, pin) in pins {
        assert!(page != NO_PAGE, "page 0 is no leaf");
        held[place] = Some(mtr.latch(pin));
    }
    held
}
