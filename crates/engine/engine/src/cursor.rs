//! A range of keys, as a program writes it and as it is kept, and a cursor: the rows of one, one by
//! one, in either direction.
//!
//! Invariant: one leaf is latched at a time, for as long as copying out of it takes; rows are
//! handed out of the copy, with no latch held. The next leaf is believed only if the last one was
//! not moved meanwhile; otherwise its place is searched again by the last key handed out. So every
//! row that is there during the whole scan is seen once, in order.

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use iostrata_innodb::{Counter, Lsn, NO_PAGE, PageNo};

use crate::counts::Counts;
use crate::error::EngineError;
use crate::page::{Cell, Cells, PageView};
use crate::pages::Pages;
use crate::pool::{Pin, Shared};
use crate::read::{Visible, older_version, visible};
use crate::reentry::check_not_looking;
use crate::tree::Tree;
use crate::tree::descend::{Direction, Seek};

/// A range of keys: `..`, `"a".."c"`, `b"a".as_slice()..`, `low..=high` of vectors, slices or
/// arrays, or a pair of [`Bound`]s.
///
/// ```
/// # use iostrata_engine::{Background, Direction, Disks, Engine, Settings};
/// # let disks = Disks::one(iostrata_engine::disk::MemDisk::new());
/// # let engine = Engine::open_on(disks, Settings::default(), Background::Manual)?;
/// let table = engine.create_table("t")?;
/// table.bulk_load([("a", "1"), ("b", "2"), ("c", "3")])?;
/// let (low, high) = (vec![b'b'], vec![b'c']);
/// assert_eq!(table.range(..).count(), 3);
/// assert_eq!(table.range("a".."c").count(), 2);
/// assert_eq!(table.range(&b"b"[..]..).count(), 2);
/// assert_eq!(table.range(1_u8.to_be_bytes()..).count(), 3);
/// assert_eq!(table.range(low..=high).count(), 2);
/// # Ok::<(), iostrata_engine::EngineError>(())
/// ```
pub trait KeyRange {
    /// Where the range begins and ends.
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl KeyRange for RangeFull {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<R: KeyRange + ?Sized> KeyRange for &R {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (**self).key_bounds()
    }
}

/// Of the ranges that have ends of one type.
macro_rules! key_range {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> KeyRange for $range {
            fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
                let low = RangeBounds::<K>::start_bound(self).map(AsRef::as_ref);
                (low, RangeBounds::<K>::end_bound(self).map(AsRef::as_ref))
            }
        }
    )*};
}

key_range!(
    Range<K>,
    RangeFrom<K>,
    RangeInclusive<K>,
    RangeTo<K>,
    RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);

/// The ends of a range of keys, kept.
pub(crate) type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Copies the ends of a range.
pub(crate) fn bounds(range: &impl KeyRange) -> KeyBounds {
    let (low, high) = range.key_bounds();
    (low.map(<[u8]>::to_vec), high.map(<[u8]>::to_vec))
}

/// The keys that begin with a prefix.
pub(crate) fn of_prefix(prefix: &[u8]) -> KeyBounds {
    let mut end = prefix.to_vec();
    // The least key behind all of them: the last byte that can grow, grows.
    while let Some(byte) = end.pop() {
        if byte < u8::MAX {
            end.push(byte + 1);
            return (Bound::Included(prefix.to_vec()), Bound::Excluded(end));
        }
    }
    (Bound::Included(prefix.to_vec()), Bound::Unbounded)
}

/// A row: its key and its value.
pub type Row<'r> = (&'r [u8], &'r [u8]);

/// A leaf of which less than one in so many rows is wanted is not copied as a whole.
const FEW_SHARE: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was read yet, or the place was lost.
    Seeking,
    /// In a leaf, with more leaves to follow.
    Within,
    /// In the last leaf of the range.
    Ending,
    Ended,
}

/// What was copied out of a leaf, and what of it is still to be handed out.
#[derive(Clone, Copy, Debug)]
enum LeafCopy {
    /// The whole page; these slots.
    Page { from: usize, to: usize },
    /// The wanted cells, in the order of the direction, from this byte on.
    Cells { at: usize },
}

#[derive(Clone, Copy)]
enum CopyPosition {
    Slot(usize),
    Byte(usize),
}

/// A cursor over the committed rows of a range of a tree, for [`crate::scan`].
pub(crate) struct TreeCursor<'t> {
    pages: &'t Pages,
    tree: &'t Tree,
    direction: Direction,
    /// It shows what commits up to this one wrote.
    snapshot: u64,
    /// The end of the newest frame in the leaves that it has read.
    newest: Lsn,
    /// What is left of the range: the bound in front moves along.
    front: Bound<Vec<u8>>,
    back: Bound<Vec<u8>>,
    copy: Vec<u8>,
    copied: LeafCopy,
    /// A version that is no longer in the tree.
    older: Vec<u8>,
    leaf: Option<(Pin<'t>, u32)>,
    /// The leaf that follows in the direction.
    following: PageNo,
    stage: Stage,
    /// Leaves passed in order, for read-ahead.
    passed: u32,
    ahead: Vec<PageNo>,
}

impl std::fmt::Debug for TreeCursor<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "TreeCursor({:?} from {:?} to {:?})", self.direction, self.front, self.back)
    }
}

impl<'t> TreeCursor<'t> {
    pub(crate) fn new(
        pages: &'t Pages,
        tree: &'t Tree,
        (low, high): KeyBounds,
        (direction, snapshot): (Direction, u64),
    ) -> Self {
        let (front, back) = match direction {
            Direction::Forward => (low, high),
            Direction::Backward => (high, low),
        };
        Self {
            pages,
            tree,
            direction,
            snapshot,
            newest: Lsn(0),
            front,
            back,
            copy: Vec::new(),
            copied: LeafCopy::Cells { at: 0 },
            older: Vec::new(),
            leaf: None,
            following: NO_PAGE,
            stage: Stage::Seeking,
            passed: 0,
            ahead: Vec::new(),
        }
    }

    /// As [`Cursor::next_row`](crate::Cursor::next_row).
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, EngineError> {
        let (place, is_older) = loop {
            let before = self.copied;
            let Some(place) = self.advance() else {
                if self.turn()? {
                    continue;
                }
                return Ok(None);
            };
            let pointer = match visible(&self.cell(place), self.snapshot) {
                Visible::Row(_) => break (place, false),
                Visible::Nothing => continue,
                Visible::Older(pointer) => pointer,
            };
            let storage = &self.pages.storage;
            match older_version(storage, pointer, self.snapshot, &mut self.older) {
                Ok(true) => break (place, true),
                Ok(false) => {}
                Err(error) => {
                    // The next call tries this row again.
                    self.copied = before;
                    return Err(error);
                }
            }
        };
        let cell = self.cell(place);
        let value = if is_older { &self.older } else { cell.payload() };
        Ok(Some((cell.key, value)))
    }

    /// The next cell that is in the tree, whatever a snapshot sees of it. For cursors at snapshot
    /// 0, which copies all of them.
    pub(crate) fn next_cell(&mut self) -> Result<Option<Cell<'_>>, EngineError> {
        loop {
            if let Some(place) = self.advance() {
                return Ok(Some(self.cell(place)));
            }
            if !self.turn()? {
                return Ok(None);
            }
        }
    }

    pub fn counts(&self) -> &'t Counts {
        &self.pages.storage.counts
    }

    /// The end of the newest frame in what it has read.
    pub(crate) fn newest(&self) -> Lsn {
        self.newest
    }

    #[inline]
    fn cell(&self, place: CopyPosition) -> Cell<'_> {
        match place {
            CopyPosition::Slot(slot) => PageView::new(&self.copy).cell(slot),
            CopyPosition::Byte(at) => read_cell(&self.copy[at..]).0,
        }
    }

    #[inline]
    fn advance(&mut self) -> Option<CopyPosition> {
        match (&mut self.copied, self.direction) {
            (LeafCopy::Page { from, to }, _) if from == to => None,
            (LeafCopy::Page { from, .. }, Direction::Forward) => {
                *from += 1;
                Some(CopyPosition::Slot(*from - 1))
            }
            (LeafCopy::Page { to, .. }, Direction::Backward) => {
                *to -= 1;
                Some(CopyPosition::Slot(*to))
            }
            (LeafCopy::Cells { at }, _) if *at == self.copy.len() => None,
            (LeafCopy::Cells { at }, _) => {
                let place = *at;
                *at = self.copy.len() - read_cell(&self.copy[place..]).1;
                Some(CopyPosition::Byte(place))
            }
        }
    }

    /// Goes to the next leaf; false when there is none.
    #[cold]
    fn turn(&mut self) -> Result<bool, EngineError> {
        if self.stage == Stage::Ended {
            return Ok(false);
        }
        check_not_looking(&self.pages.storage)?;
        self.tree.check_not_dropped()?;
        match self.stage {
            Stage::Seeking => self.seek()?,
            Stage::Within if self.following != NO_PAGE => self.step(self.following)?,
            Stage::Within | Stage::Ending | Stage::Ended => {
                self.stage = Stage::Ended;
                self.leaf = None;
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn seek(&mut self) -> Result<(), EngineError> {
        let seek = match (&self.front, self.direction) {
            (Bound::Unbounded, Direction::Forward) => Seek::First,
            (Bound::Unbounded, Direction::Backward) => Seek::Last,
            (Bound::Excluded(key), Direction::Backward) => Seek::Below(key),
            (Bound::Included(key) | Bound::Excluded(key), _) => Seek::Key(key),
        };
        let leaf = self.tree.leaf(self.pages, seek)?;
        self.take(leaf);
        Ok(())
    }

    fn step(&mut self, page: PageNo) -> Result<(), EngineError> {
        self.read_ahead();
        let next = self.tree.unless_dropped(|| {
            let next = self.pages.pin(page)?.shared();
            let is_same = self.leaf.as_ref().is_some_and(|(pin, seen)| pin.page_version() == *seen);
            if is_same {
                self.tree.check(page, &PageView::new(&next), Some(1))?;
            }
            Ok(is_same.then_some(next))
        })?;
        let Some(next) = next else {
            self.passed = 0;
            return self.seek();
        };
        self.take(next);
        Ok(())
    }

    /// Copies what belongs to the range out of a leaf, and moves the front bound behind it.
    fn take(&mut self, leaf: Shared<'t>) {
        let view = PageView::new(&leaf);
        let count = view.count();
        let (from, to) = self.slots(&view);
        let wanted = to - from;
        if wanted == 0 || wanted * FEW_SHARE < count {
            let (copy, snapshot) = (&mut self.copy, self.snapshot);
            copy.clear();
            let push = |slot| {
                let cell = view.cell(slot);
                if visible(&cell, snapshot) != Visible::Nothing {
                    cell.push_to(copy);
                }
            };
            match self.direction {
                Direction::Forward => (from..to).for_each(push),
                Direction::Backward => (from..to).rev().for_each(push),
            }
            self.copied = LeafCopy::Cells { at: 0 };
        } else {
            self.copy.clear();
            self.copy.extend_from_slice(view.bytes());
            self.copied = LeafCopy::Page { from, to };
        }
        let (is_last, last) = match self.direction {
            Direction::Forward => (to < count, count.checked_sub(1)),
            Direction::Backward => (from > 0, (count > 0).then_some(0)),
        };
        self.following = match self.direction {
            Direction::Forward => view.right(),
            Direction::Backward => view.left(),
        };
        self.stage = if is_last { Stage::Ending } else { Stage::Within };
        if let Some(last) = last.filter(|_| !is_last) {
            remember(&mut self.front, self.direction, view.key(last));
        }
        self.newest = self.newest.max(view.lsn());
        let page_version = leaf.page_version();
        self.leaf = Some((leaf.unlatch(), page_version));
        self.passed += 1;
        self.pages.storage.counts.add(Counter::RowsRead, wanted as u64);
    }

    /// Which slots of a leaf belong to what is left of the range.
    fn slots(&self, view: &PageView<'_>) -> (usize, usize) {
        let below = |key: &[u8]| view.find(key).unwrap_or_else(|place| place);
        let above = |key: &[u8]| view.find(key).map_or_else(|place| place, |slot| slot + 1);
        let low = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Unbounded => 0,
            Bound::Included(key) => below(key),
            Bound::Excluded(key) => above(key),
        };
        let high = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Unbounded => view.count(),
            Bound::Included(key) => above(key),
            Bound::Excluded(key) => below(key),
        };
        let (from, to) = match self.direction {
            Direction::Forward => (low(&self.front), high(&self.back)),
            Direction::Backward => (low(&self.back), high(&self.front)),
        };
        (from, to.max(from))
    }

    /// Prefetches the leaves to come, once enough were passed in order.
    fn read_ahead(&mut self) {
        let threshold = self.pages.storage.settings.load().read_ahead_threshold;
        if threshold == 0 || self.passed < threshold {
            return;
        }
        self.passed = 0;
        if let Bound::Excluded(key) = &self.front {
            let found = self.tree.upcoming(self.pages, key, self.direction, &mut self.ahead);
            if found.is_ok() {
                self.pages.storage.pool.prefetch(&self.ahead);
            }
        }
    }
}

/// The first cell of a copy, and the bytes behind it.
fn read_cell(copy: &[u8]) -> (Cell<'_>, usize) {
    let mut cells = Cells::new(copy).into_iter();
    match cells.next() {
        Some(Ok(cell)) => (cell, cells.left_bytes()),
        _ => panic!("a cell that was copied is there"),
    }
}

/// Moves the front bound behind a key, in case the place is lost. A leaf without a row of the range
/// may lie wholly before it.
fn remember(front: &mut Bound<Vec<u8>>, direction: Direction, key: &[u8]) {
    let is_behind = match (&*front, direction) {
        (Bound::Unbounded, _) => true,
        (Bound::Included(at) | Bound::Excluded(at), Direction::Forward) => key >= at.as_slice(),
        (Bound::Included(at) | Bound::Excluded(at), Direction::Backward) => key <= at.as_slice(),
    };
    match front {
        _ if !is_behind => {}
        Bound::Excluded(front) => {
            front.clear();
            front.extend_from_slice(key);
        }
        front => *front = Bound::Excluded(key.to_vec()),
    }
}
