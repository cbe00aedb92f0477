//! Changes of a tree's structure: the lock under which inner pages change, the path to a page under
//! it, making room and giving it back.
//!
//! Invariants: the lock is held for moments: room in the redo is waited for before. What only turns
//! out under the lock, that a page is absent or that a new one is needed, is seen to after the lock
//! was let go, and the change begins again. A path is valid as long as the lock is held; each page
//! on it is pinned.
//! A full page becomes two: one mini-transaction touches one page, its new right neighbour, the one
//! parent that has room for the new separator, and the back link of the next leaf; so its size is
//! bounded and the tree is whole after each. A parent without room is split first; the root grows a
//! level first, and keeps its page number. Rows come and go while room in the redo is waited for:
//! so a leaf is split only if the row, now that it is latched, still lacks room there.
//! A page that is nearly empty joins its neighbour: both have the same parent; one mini-transaction
//! moves the right one's cells into the left one, takes the right one out of the parent and frees
//! it. A root with a single child takes the child's content over. Merging is never needed for
//! anything to be right, so it waits for nothing but latches and pages: where it would have to be
//! slowed down it is left out.

use iostrata_innodb::{Counter, NO_PAGE, PageNo};

use crate::admission::{Haste, Pins, Room};
use crate::error::EngineError;
use crate::mtr::{Mtr, PageHandle};
use crate::page::{PageKind, PageView, Record, cells_of, row_bytes, shortest_separator};
use crate::pages::{MapBit, NewPage, Pages};
use crate::pool::Pin;
use crate::sync::locked;
use crate::tree::Tree;
use crate::tree::descend::Seek;

/// Pages that a change of a tree's structure pins at once: a path through five levels, a new page,
/// a map, a neighbour.
const PINS: usize = 8;

pub(crate) enum Obstacle {
    Absent(PageNo),
    NeedsPage,
    Failed(EngineError),
}

impl From<EngineError> for Obstacle {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

pub(super) fn needed<'n, 'c>(new: Option<&'n NewPage<'c>>) -> Result<&'n NewPage<'c>, Obstacle> {
    new.ok_or(Obstacle::NeedsPage)
}

/// What a change of a tree's structure has to wait for.
pub(super) struct Promise<'c> {
    _pins: Option<Pins<'c>>,
    _room: Room<'c>,
}

impl<'c> Promise<'c> {
    /// Waits for the share of the frames and then for the room in the redo, as everywhere. Many
    /// trees may be changed at once: with what batches hold they must not take all frames.
    pub fn wait(pages: &'c Pages) -> Result<Self, EngineError> {
        let pins = pages.admission.pins(PINS);
        Ok(Self { _pins: pins, _room: pages.admit_structure()? })
    }

    /// As [`Promise::wait`] for a change that can be left out: none where it would have to wait.
    pub fn at_once(pages: &'c Pages, haste: Haste) -> Result<Option<Self>, EngineError> {
        let Some(pins) = pages.admission.try_pins(PINS) else { return Ok(None) };
        let bytes = pages.storage.structure_bytes();
        let room = pages.admission.try_admit(bytes, haste)?;
        Ok(room.map(|room| Self { _pins: Some(pins), _room: room }))
    }
}

/// An inner page on the path, and the slot that was taken there.
pub(super) struct Step<'c> {
    pub pin: Pin<'c>,
    pub slot: usize,
}

/// The path from the root to a page of one level.
pub(super) struct Path<'c> {
    pub steps: Vec<Step<'c>>,
    pub end: Pin<'c>,
}

pub(super) fn resident(pages: &Pages, page: PageNo) -> Result<Pin<'_>, Obstacle> {
    pages.storage.pool.try_pin(page).ok_or(Obstacle::Absent(page))
}

fn resident_bit(pages: &Pages, page: PageNo) -> Result<MapBit<'_>, Obstacle> {
    let (map, bit) = pages.space.place(page);
    Ok(MapBit { pin: resident(pages, map)?, bit })
}

impl Tree {
    /// Runs a change while no other thread changes inner pages, and again when it needed a page
    /// that was absent, or a new one. The caller holds no latch. It was promised room in the redo,
    /// which a drop waits for: so a change that finds the table there has the tree until it is
    /// over.
    pub(super) fn restructure<T>(
        &self,
        pages: &Pages,
        _promise: &Promise<'_>,
        mut change: impl FnMut(Option<&NewPage<'_>>) -> Result<T, Obstacle>,
    ) -> Result<T, EngineError> {
        // Kept pinned until the change is over, or the pages of one path could evict each other.
        let mut loaded = Vec::new();
        let mut new = None;
        loop {
            let locked = locked(&self.structure);
            self.check_not_dropped()?;
            match change(new.as_ref()) {
                Ok(done) => return Ok(done),
                Err(Obstacle::Failed(error)) => return Err(error),
                Err(Obstacle::Absent(page)) => {
                    drop(locked);
                    if loaded.len() == PINS {
                        loaded.clear();
                    }
                    loaded.push(pages.pin(page)?);
                }
                Err(Obstacle::NeedsPage) => {
                    drop(locked);
                    new = Some(pages.new_page()?);
                }
            }
        }
    }

    /// Goes to the page of `level` that is responsible for `key`. None when the tree is lower than
    /// that. Under the lock.
    pub(super) fn path<'c>(
        &self,
        pages: &'c Pages,
        key: &[u8],
        to_level: u8,
    ) -> Result<Option<Path<'c>>, Obstacle> {
        let mut steps = Vec::new();
        let mut pin = resident(pages, self.root)?;
        let mut parent = None;
        loop {
            let node = pin.clone().shared();
            let view = PageView::new(&node);
            let level = self.check(node.page_no(), &view, parent)?;
            if level < to_level {
                return Ok(None);
            }
            if level == to_level {
                return Ok(Some(Path { steps, end: pin }));
            }
            let (slot, child) = view.child_for(key);
            drop(node);
            steps.push(Step { pin, slot });
            pin = resident(pages, child)?;
            parent = Some(level);
        }
    }
}

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
    ) -> Result<bool, Obstacle> {
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
    ) -> Result<(), Obstacle> {
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

/// The least key that may come below `parent`'s slot: the parent's key there, or the key of the
/// next page up where the way did not go to the first child. Empty on the left edge of the tree.
fn low_fence(above: &[Step<'_>], parent: &Step<'_>) -> Vec<u8> {
    let fence = |step: &Step<'_>| PageView::new(&step.pin.clone().shared()).key(step.slot).to_vec();
    let step = std::iter::once(parent).chain(above.iter().rev()).find(|step| step.slot > 0);
    step.map(fence).unwrap_or_default()
}

/// The leaf right of a leaf, which has to learn of its new left neighbour.
fn next_leaf<'c>(pages: &'c Pages, page: &Pin<'c>) -> Result<Option<Pin<'c>>, Obstacle> {
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
) -> (PageHandle, Option<PageHandle>) {
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
        // An empty leaf may never be visited again: a table that is used as a queue would keep it.
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
        mut step: impl FnMut() -> Result<bool, Obstacle>,
    ) -> Result<bool, EngineError> {
        let Some(promise) = Promise::at_once(pages, haste)? else { return Ok(false) };
        self.restructure(pages, &promise, |_new| step())
    }

    /// Merges the page of `key` at one level. Whether its parent lost a cell.
    fn merge_at(&self, pages: &Pages, key: &[u8], level: u8) -> Result<bool, Obstacle> {
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
    ) -> Result<Option<Siblings<'c>>, Obstacle> {
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
    fn join(&self, pages: &Pages, parent: &Step<'_>, pair: Siblings<'_>) -> Result<bool, Obstacle> {
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
        (above, slot): (PageHandle, usize),
        left: PageHandle,
        right: PageHandle,
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
    fn shrink_root(&self, pages: &Pages) -> Result<bool, Obstacle> {
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
fn fits(mtr: &Mtr<'_>, left: PageHandle, right: PageHandle) -> bool {
    let (left, right) = (mtr.page(left), mtr.page(right));
    let separator = if left.level() > 0 { row_bytes(left.size().key_bytes_max(), 0) } else { 0 };
    right.used_bytes() + separator <= left.free_bytes()
}

/// Latches the pair and what follows it by page number; gives them back in the order of keys.
fn latch_three<'c>(
    mtr: &mut Mtr<'c>,
    pair: Siblings<'c>,
    next: Option<Pin<'c>>,
) -> [Option<PageHandle>; 3] {
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
