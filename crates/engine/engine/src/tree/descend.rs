//! From the root to a leaf, and how many rows there are, from a few of the leaves.
//!
//! Invariant: a leaf is found through parents that were not restructured in between; how that is
//! known is in `way`. Every page is checked to belong to this tree and to lie one level below its
//! parent.

use std::ops::{Deref, Range};

use iostrata_innodb::PageNo;

use crate::error::EngineError;
use crate::page::{PageKind, PageView};
use crate::pages::Pages;
use crate::pool::{Pin, ReadCopy, Shared};
use crate::tree::Tree;

/// Leaves requested at once: as many as the pages of InnoDB's extent.
const READ_AHEAD_PAGES: usize = 64;

/// The order in which rows come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Rising keys.
    Forward,
    /// Falling keys.
    Backward,
}

/// A leaf that was found, not latched: compare `page_version` after latching it.
pub(crate) struct Leaf<'c> {
    pub pin: Pin<'c>,
    pub page_version: u32,
}

/// The least key that lies right of a leaf, if there is one.
#[derive(Debug, Default)]
pub(crate) struct UpperFence {
    key: Vec<u8>,
    is_bound: bool,
}

impl UpperFence {
    /// Whether a key still belongs to the leaf (it is known not to lie left of it).
    pub fn admits(&self, key: &[u8]) -> bool {
        !self.is_bound || key < self.key.as_slice()
    }

    /// From now on no key is known to belong to the leaf.
    pub fn unknown(&mut self) {
        self.key.clear();
        self.is_bound = true;
    }

    fn clear(&mut self) {
        self.is_bound = false;
    }

    fn lower_to(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.is_bound = true;
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Seek<'k> {
    /// To the leaf where this key is or would be.
    Key(&'k [u8]),
    /// To the leaf that holds the greatest keys below this one.
    Below(&'k [u8]),
    First,
    Last,
}

impl Seek<'_> {
    fn slot(self, view: &PageView<'_>) -> usize {
        match self {
            Self::Key(key) => view.child_for(key).0,
            Self::Below(key) => match view.find(key) {
                Ok(slot) => slot.saturating_sub(1),
                Err(place) => place.saturating_sub(1),
            },
            Self::First => 0,
            Self::Last => view.count().saturating_sub(1),
        }
    }
}

impl Tree {
    pub fn leaf<'c>(&self, pages: &'c Pages, seek: Seek<'_>) -> Result<Shared<'c>, EngineError> {
        self.unless_dropped(|| self.descend(pages, seek))
    }

    /// What a reader found without keeping the table from being dropped. Its pages are freed after
    /// the mark was set: so without the mark, now that the reading is over, they were all this
    /// tree's.
    pub fn unless_dropped<T>(
        &self,
        read: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        self.check_not_dropped()?;
        let found = read();
        self.check_not_dropped()?;
        found
    }

    fn descend<'c>(&self, pages: &'c Pages, seek: Seek<'_>) -> Result<Shared<'c>, EngineError> {
        let mut way = Way::new(pages);
        'again: loop {
            let mut node = way.root(self.root)?;
            let mut parent = None;
            loop {
                let view = PageView::new(&node);
                let level = self.check(node.page_no(), &view, parent)?;
                if level == 0 {
                    return Ok(node.leaf());
                }
                let child = view.child(seek.slot(&view));
                let Some(next) = way.child(node, level, child)? else { continue 'again };
                (node, parent) = (next, Some(level));
            }
        }
    }

    /// The leaf of a key, found but not latched, and what bounds it. The caller was promised room
    /// in the redo, which a drop waits for: the tree stays as it is found.
    pub fn locate<'c>(
        &self,
        pages: &'c Pages,
        key: &[u8],
        upper: &mut UpperFence,
    ) -> Result<Leaf<'c>, EngineError> {
        let (mut absent, mut kept) = (Vec::new(), Vec::new());
        loop {
            if let Some(leaf) = self.locate_resident(pages, key, upper, &mut absent)? {
                return Ok(leaf);
            }
            for page in absent.drain(..) {
                kept.push(pages.pin(page)?);
            }
        }
    }

    /// As [`Tree::locate`], for a leaf that is in memory; of one that is not, the page number is
    /// added to `absent`.
    pub fn locate_resident<'c>(
        &self,
        pages: &'c Pages,
        key: &[u8],
        upper: &mut UpperFence,
        absent: &mut Vec<PageNo>,
    ) -> Result<Option<Leaf<'c>>, EngineError> {
        self.check_not_dropped()?;
        let mut way = Way::new(pages);
        'again: loop {
            upper.clear();
            let mut node = way.root(self.root)?;
            let mut parent = None;
            loop {
                let view = PageView::new(&node);
                let level = self.check(node.page_no(), &view, parent)?;
                if level == 0 {
                    let leaf = node.leaf();
                    let page_version = leaf.page_version();
                    return Ok(Some(Leaf { pin: leaf.unlatch(), page_version }));
                }
                let (slot, child) = view.child_for(key);
                if slot + 1 < view.count() {
                    upper.lower_to(view.key(slot + 1));
                }
                if level > 1 {
                    let Some(next) = way.child(node, level, child)? else { continue 'again };
                    (node, parent) = (next, Some(level));
                    continue;
                }
                pages.storage.pool.bring_near(child);
                // Its version is the version of this parent's child: the parent is checked after
                // it.
                let pin = way.pin(&node, child);
                let leaf = pin.map(|pin| Leaf { page_version: pin.page_version(), pin });
                if !way.is_unchanged(&node) {
                    continue 'again;
                }
                if leaf.is_none() {
                    absent.push(child);
                }
                return Ok(leaf);
            }
        }
    }

    /// The leaves that follow the one of `key` in a direction, as far as its parent has them.
    pub fn upcoming(
        &self,
        pages: &Pages,
        key: &[u8],
        direction: Direction,
        out: &mut Vec<PageNo>,
    ) -> Result<(), EngineError> {
        out.clear();
        let mut node = pages.pin(self.root)?.shared();
        let mut parent = None;
        loop {
            let view = PageView::new(&node);
            let level = self.check(node.page_no(), &view, parent)?;
            if level == 0 {
                return Ok(());
            }
            let (slot, child) = view.child_for(key);
            if level == 1 {
                let around = |slots: Range<usize>| slots.map(|slot| view.child(slot));
                match direction {
                    Direction::Forward => {
                        out.extend(around(slot + 1..view.count().min(slot + 1 + READ_AHEAD_PAGES)));
                    }
                    Direction::Backward => {
                        out.extend(around(slot.saturating_sub(READ_AHEAD_PAGES)..slot).rev());
                    }
                }
                return Ok(());
            }
            let Some(pin) = pages.storage.pool.try_pin(child) else { return Ok(()) };
            node = pin.shared();
            parent = Some(level);
        }
    }

    /// Checks that a page is this tree's, and one below `parent`. Gives its level.
    #[inline]
    pub fn check(
        &self,
        page: PageNo,
        view: &PageView<'_>,
        parent: Option<u8>,
    ) -> Result<u8, EngineError> {
        let level = view.level();
        let kind = if level == 0 { PageKind::Leaf } else { PageKind::Inner };
        let is_ours = view.kind() == kind && view.table() == self.id;
        let fits = parent.is_none_or(|parent| level + 1 == parent);
        let has_child = level == 0 || view.count() > 0;
        if is_ours && fits && has_child {
            return Ok(level);
        }
        Err(self.misplaced(page, view, parent))
    }

    #[cold]
    fn misplaced(&self, page: PageNo, view: &PageView<'_>, parent: Option<u8>) -> EngineError {
        let problem = format!(
            "kind {:?}, level {}, {} cells of table {}, found on the way through table {} below \
             level {parent:?}",
            view.kind(),
            view.level(),
            view.count(),
            view.table().0,
            self.id.0
        );
        EngineError::Corrupt { page: page.0, problem }
    }
}

const LEAVES: u32 = 16;

impl Tree {
    /// About how many rows there are. Each descent takes one child of every page on its way; what
    /// it finds in the leaf stands for as many leaves as there were ways to go. The ways of all
    /// descents are spread evenly over the tree. A way that others cut off meanwhile is left out.
    pub fn rows_estimate(&self, pages: &Pages) -> Result<u64, EngineError> {
        let (mut rows, mut ways, mut cut_off) = (0.0, 0, None);
        for way in 0..LEAVES {
            let place = (f64::from(way) + 0.5) / f64::from(LEAVES);
            match self.unless_dropped(|| self.rows_by_way(pages, place)) {
                Ok(found) => {
                    rows += found;
                    ways += 1;
                }
                Err(error @ EngineError::Corrupt { .. }) => cut_off = Some(error),
                Err(error) => return Err(error),
            }
        }
        match cut_off.filter(|_| ways == 0) {
            Some(error) => Err(error),
            None => Ok((rows / f64::from(ways)).round() as u64),
        }
    }

    /// The rows that the leaf at a place stands for; places go from 0 to below 1.
    fn rows_by_way(&self, pages: &Pages, mut place: f64) -> Result<f64, EngineError> {
        let (mut page, mut parent, mut leaves) = (self.root, None, 1.0);
        loop {
            let node = pages.pin(page)?.shared();
            let view = PageView::new(&node);
            let level = self.check(page, &view, parent)?;
            let count = view.count();
            if level == 0 {
                let is_row = |slot: &usize| !view.cell(*slot).is_tombstone();
                return Ok(leaves * (0..count).filter(is_row).count() as f64);
            }
            let slot = (place * count as f64) as usize;
            place = place * count as f64 - slot as f64;
            leaves *= count as f64;
            (page, parent) = (view.child(slot.min(count - 1)), Some(level));
        }
    }
}

pub(super) enum TreeNode<'c> {
    Latched(Shared<'c>),
    /// Of inner pages only.
    Copied(ReadCopy<'c>),
}

impl<'c> TreeNode<'c> {
    #[inline]
    pub fn page_no(&self) -> PageNo {
        match self {
            Self::Latched(page) => page.page_no(),
            Self::Copied(copy) => copy.page_no(),
        }
    }

    /// The leaf that it is.
    ///
    /// # Panics
    /// For a copy: leaves have none.
    #[inline]
    pub fn leaf(self) -> Shared<'c> {
        match self {
            Self::Latched(page) => page,
            Self::Copied(copy) => panic!("page {} is a leaf and has a copy", copy.page_no().0),
        }
    }
}

impl Deref for TreeNode<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Latched(page) => page,
            Self::Copied(copy) => copy,
        }
    }
}

pub(super) struct Way<'c> {
    pages: &'c Pages,
    kept: Vec<Pin<'c>>,
    /// A copy was found changed: from now on by latches, which always lead on.
    is_latching: bool,
}

impl<'c> Way<'c> {
    pub fn new(pages: &'c Pages) -> Self {
        Self { pages, kept: Vec::new(), is_latching: false }
    }

    #[inline]
    pub fn root(&self, root: PageNo) -> Result<TreeNode<'c>, EngineError> {
        match self.copy(root) {
            Some(copy) => Ok(TreeNode::Copied(copy)),
            None => Ok(TreeNode::Latched(self.pages.pin(root)?.shared())),
        }
    }

    /// From an inner node of this level to a child. None when the search begins again at the root.
    #[inline]
    pub fn child(
        &mut self,
        node: TreeNode<'c>,
        level: u8,
        child: PageNo,
    ) -> Result<Option<TreeNode<'c>>, EngineError> {
        // Inner pages are few and mostly near already.
        if level == 1 {
            self.pages.storage.pool.bring_near(child);
        }
        let next = match if level > 1 { self.copy(child) } else { None } {
            Some(copy) => TreeNode::Copied(copy),
            None => match self.pin(&node, child) {
                Some(pin) => TreeNode::Latched(pin.shared()),
                None => {
                    drop(node);
                    self.kept.push(self.pages.pin(child)?);
                    return Ok(None);
                }
            },
        };
        Ok(self.is_unchanged(&node).then_some(next))
    }

    #[inline]
    pub fn pin(&self, node: &TreeNode<'c>, child: PageNo) -> Option<Pin<'c>> {
        let pool = &self.pages.storage.pool;
        if let TreeNode::Latched(page) = node {
            pool.offer_read_copy(page);
        }
        pool.try_pin(child)
    }

    /// Whether an inner node still holds what was read in it.
    #[inline]
    pub fn is_unchanged(&mut self, node: &TreeNode<'c>) -> bool {
        match node {
            TreeNode::Latched(_) => true,
            TreeNode::Copied(copy) => {
                let is_current = copy.is_current();
                self.is_latching |= !is_current;
                is_current
            }
        }
    }

    #[inline]
    fn copy(&self, page: PageNo) -> Option<ReadCopy<'c>> {
        if self.is_latching { None } else { self.pages.storage.pool.read_copy(page) }
    }
}
