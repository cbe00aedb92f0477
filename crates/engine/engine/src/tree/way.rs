//! One search's way down a tree: by latches, and by copies of inner pages where readers met.
//!
//! Invariant: a node is taken only when its parent was seen unchanged after the node was latched,
//! or its copy found current: so both were as they were read at one moment, as with latches taken
//! hand over hand. A child that is not in memory is loaded with no latch held and kept pinned until
//! the search ends, or the pages of one way could evict each other for ever.

use std::ops::Deref;

use iostrata_innodb::PageNo;

use crate::error::EngineError;
use crate::pages::Pages;
use crate::pool::{Pin, ReadCopy, Shared};

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
