//! Scans in both directions.
//!
//! Invariant: one leaf is latched at a time, for as long as copying it takes; rows are handed out
//! of the copy. The next leaf is believed only if the last one was not moved meanwhile; otherwise
//! its place is searched again by the last key handed out. So every row that is there during the
//! whole scan is seen once, in order.

use std::ops::Bound;

use iostrata_page::{NO_PAGE, PageNo, PageView};
use iostrata_pool::{Pin, Shared};

use crate::error::EngineError;
use crate::pages::Pages;
use crate::tree::Tree;
use crate::tree::descend::{Direction, Seek};

/// A row: its key and its value.
pub type Row<'r> = (&'r [u8], &'r [u8]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was read yet, or the place was lost.
    Seeking,
    /// In a copied leaf, with more to follow.
    Within,
    /// In the last leaf of the range.
    Ending,
    Ended,
}

/// A scan. Ask it for [`next`](Range::next) until there is none.
pub struct Range<'t> {
    pages: &'t Pages,
    tree: &'t Tree,
    direction: Direction,
    /// What is left of the range: the bound in front moves along.
    front: Bound<Vec<u8>>,
    back: Bound<Vec<u8>>,
    copy: Vec<u8>,
    /// Slots of the copy still to be handed out.
    from: usize,
    to: usize,
    leaf: Option<(Pin<'t>, u32)>,
    stage: Stage,
    /// Leaves passed in order, for read-ahead.
    passed: u32,
    ahead: Vec<PageNo>,
}

impl std::fmt::Debug for Range<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Range({:?} from {:?} to {:?})", self.direction, self.front, self.back)
    }
}

impl<'t> Range<'t> {
    pub(crate) fn new(
        pages: &'t Pages,
        tree: &'t Tree,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Self {
        let (low, high) = (low.map(<[u8]>::to_vec), high.map(<[u8]>::to_vec));
        let (front, back) = match direction {
            Direction::Forward => (low, high),
            Direction::Backward => (high, low),
        };
        let copy = vec![0; pages.storage.page_size.bytes()];
        let stage = Stage::Seeking;
        let ahead = Vec::new();
        let (from, to, passed) = (0, 0, 0);
        Self {
            pages,
            tree,
            direction,
            front,
            back,
            copy,
            from,
            to,
            leaf: None,
            stage,
            passed,
            ahead,
        }
    }

    /// All rows of a tree, rising.
    pub(crate) fn whole(pages: &'t Pages, tree: &'t Tree) -> Self {
        Self::new(pages, tree, (Bound::Unbounded, Bound::Unbounded), Direction::Forward)
    }

    /// The next row, until there is none. Of a table that is dropped meanwhile the rows of the leaf
    /// at hand still come.
    ///
    /// # Errors
    /// What reading a page said; asking again tries again. [`EngineError::TableDropped`].
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Row<'_>>, EngineError> {
        while self.from == self.to {
            if !self.turn()? {
                return Ok(None);
            }
        }
        let slot = match self.direction {
            Direction::Forward => {
                self.from += 1;
                self.from - 1
            }
            Direction::Backward => {
                self.to -= 1;
                self.to
            }
        };
        Ok(Some(PageView::new(&self.copy).row(slot)))
    }

    /// Goes to the next leaf; false when there is none.
    #[cold]
    fn turn(&mut self) -> Result<bool, EngineError> {
        if self.stage == Stage::Ended {
            return Ok(false);
        }
        self.tree.check_not_dropped()?;
        match self.stage {
            Stage::Ended | Stage::Ending => {
                self.end();
                return Ok(false);
            }
            Stage::Seeking => self.seek()?,
            Stage::Within => match self.neighbour() {
                None => {
                    self.end();
                    return Ok(false);
                }
                Some(page) => self.step(page)?,
            },
        }
        Ok(true)
    }

    fn end(&mut self) {
        self.stage = Stage::Ended;
        self.leaf = None;
    }

    fn neighbour(&self) -> Option<PageNo> {
        let view = PageView::new(&self.copy);
        let page = match self.direction {
            Direction::Forward => view.right(),
            Direction::Backward => view.left(),
        };
        (page != NO_PAGE).then_some(page)
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
        self.remember();
        self.read_ahead();
        let next = self.tree.unless_dropped(|| {
            let next = self.pages.pin(page)?.shared();
            let is_same = self.leaf.as_ref().is_some_and(|(pin, seen)| pin.structure() == *seen);
            if is_same {
                self.tree.check(&next, Some(1))?;
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

    /// Moves the front bound behind the last row of the copy, in case the place is lost.
    pub(crate) fn remember(&mut self) {
        let view = PageView::new(&self.copy);
        let count = view.count();
        if count == 0 {
            return;
        }
        let key = match self.direction {
            Direction::Forward => view.key(count - 1),
            Direction::Backward => view.key(0),
        };
        // A leaf without a row of the range may lie wholly before it.
        let is_behind = match (&self.front, self.direction) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(at) | Bound::Excluded(at), Direction::Forward) => key >= at.as_slice(),
            (Bound::Included(at) | Bound::Excluded(at), Direction::Backward) => {
                key <= at.as_slice()
            }
        };
        if !is_behind {
            return;
        }
        match &mut self.front {
            Bound::Excluded(front) => {
                front.clear();
                front.extend_from_slice(key);
            }
            front => *front = Bound::Excluded(key.to_vec()),
        }
    }

    /// Copies a leaf and finds which of its rows belong to the range.
    fn take(&mut self, leaf: Shared<'t>) {
        self.copy.copy_from_slice(&leaf);
        let structure = leaf.structure();
        self.leaf = Some((leaf.unlatch(), structure));
        self.passed += 1;
        let view = PageView::new(&self.copy);
        let count = view.count();
        let below = |key: &[u8]| view.find(key).unwrap_or_else(|place| place);
        let above = |key: &[u8]| view.find(key).map_or_else(|place| place, |slot| slot + 1);
        let low = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Unbounded => 0,
            Bound::Included(key) => below(key),
            Bound::Excluded(key) => above(key),
        };
        let high = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Unbounded => count,
            Bound::Included(key) => above(key),
            Bound::Excluded(key) => below(key),
        };
        let (from, to) = match self.direction {
            Direction::Forward => (low(&self.front), high(&self.back)),
            Direction::Backward => (low(&self.back), high(&self.front)),
        };
        let is_last = match self.direction {
            Direction::Forward => to < count,
            Direction::Backward => from > 0,
        };
        (self.from, self.to) = (from, to.max(from));
        self.pages.storage.counts.rows_read((self.to - self.from) as u64);
        self.stage = if is_last { Stage::Ending } else { Stage::Within };
    }

    /// Asks for the leaves to come, once enough were passed in order.
    fn read_ahead(&mut self) {
        let threshold = self.pages.storage.hot.read_ahead_threshold();
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
