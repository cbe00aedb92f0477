//! What a transaction has written so far: its write set, and where each row is in it.
//!
//! Invariant: the index leads to the newest change of each row; going back to a mark leaves it as
//! it was there.

use std::ops::Bound;
use std::sync::Arc;

use crate::cursor::KeyBounds;
use crate::lock::{LockId, LockMap};
use crate::read::LeafHint;
use crate::tree::Tree;
use crate::write_set::{WriteMark, WriteSet};

/// Most changes and most bytes of keys and values for which memory is kept.
const KEPT_CHANGES_MAX: usize = 4_096;
const KEPT_BYTES_MAX: usize = 1 << 20;

/// No earlier change.
const NONE: u32 = u32::MAX;

/// The writes of one transaction.
#[derive(Debug, Default)]
pub(crate) struct OwnWrites {
    pub set: WriteSet,
    /// The newest change of the rows with this lock.
    newest: LockMap<u32>,
    /// For each change its lock, and the change with the same lock before it.
    before: Vec<(LockId, u32)>,
}

impl OwnWrites {
    /// The newest change of a row.
    pub fn find(&self, id: LockId, tree: &Arc<Tree>, key: &[u8]) -> Option<usize> {
        let mut at = *self.newest.get(&id)?;
        while at != NONE {
            let op = at as usize;
            if Arc::ptr_eq(self.set.tree(op), tree) && self.set.key(op) == key {
                return Some(op);
            }
            // Another row with the same lock.
            at = self.before[op].1;
        }
        None
    }

    /// Adds a change of a row.
    pub fn push(
        &mut self,
        (id, tree): (LockId, u16),
        key: &[u8],
        value: Option<&[u8]>,
        leaf: Option<LeafHint>,
    ) {
        let op = self.set.push(tree, key, value);
        if let Some(leaf) = leaf {
            self.set.hint(op, leaf);
        }
        let before = self.newest.insert(id, op as u32).unwrap_or(NONE);
        self.before.push((id, before));
        debug_assert_eq!(self.before.len(), self.set.len());
    }

    /// Forgets what was written since.
    pub fn truncate(&mut self, mark: WriteMark) {
        for (id, before) in self.before.drain(mark.ops..).rev() {
            if before == NONE {
                self.newest.remove(&id);
            } else {
                self.newest.insert(id, before);
            }
        }
        self.set.truncate(mark);
    }

    /// The newest changes of the rows in a range of a table, by rising key.
    pub fn in_range(&self, tree: &Arc<Tree>, (low, high): &KeyBounds) -> Vec<usize> {
        let is_in = |key: &[u8]| {
            let is_above = match low {
                Bound::Included(low) => key >= low.as_slice(),
                Bound::Excluded(low) => key > low.as_slice(),
                Bound::Unbounded => true,
            };
            let is_below = match high {
                Bound::Included(high) => key <= high.as_slice(),
                Bound::Excluded(high) => key < high.as_slice(),
                Bound::Unbounded => true,
            };
            is_above && is_below
        };
        let is_newest = |op: usize| {
            let (id, key) = (self.before[op].0, self.set.key(op));
            self.find(id, tree, key) == Some(op)
        };
        let mut found: Vec<usize> = (0..self.set.len())
            .filter(|op| Arc::ptr_eq(self.set.tree(*op), tree) && is_in(self.set.key(*op)))
            .filter(|op| is_newest(*op))
            .collect();
        found.sort_unstable_by(|a, b| self.set.key(*a).cmp(self.set.key(*b)));
        found
    }

    /// Forgets everything, and keeps the memory, unless it was a very large transaction.
    pub fn clear(&mut self) {
        if self.before.capacity() > KEPT_CHANGES_MAX || self.set.kept_bytes() > KEPT_BYTES_MAX {
            *self = Self::default();
            return;
        }
        self.set.clear();
        self.newest.clear();
        self.before.clear();
    }
}
