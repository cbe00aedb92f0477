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
use crate::write_set::{WriteMark, WriteSet, change_bytes};

/// Most changes and most bytes of keys and values for which memory is kept.
const KEPT_CHANGES_MAX: usize = 4_096;
const KEPT_BYTES_MAX: usize = 1 << 20;

const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct OwnWrites {
    pub set: WriteSet,
    /// The newest change of the rows with this lock.
    newest: LockMap<u32>,
    before: Vec<Before>,
    /// Bytes of redo that the newest changes of all rows need at most.
    redo_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    id: LockId,
    /// The change with the same lock before it.
    change: u32,
    redo_bytes: usize,
}

/// A change that is to come: the lock of its row, its tree's number, key and value.
pub(crate) type NewChange<'w> = (LockId, u16, &'w [u8], Option<&'w [u8]>);

impl OwnWrites {
    pub fn find(&self, id: LockId, tree: &Arc<Tree>, key: &[u8]) -> Option<usize> {
        self.find_from(*self.newest.get(&id)?, tree, key)
    }

    /// The newest change of a row from this change with its lock on.
    fn find_from(&self, mut at: u32, tree: &Arc<Tree>, key: &[u8]) -> Option<usize> {
        while at != NONE {
            let op = at as usize;
            if Arc::ptr_eq(self.set.tree(op), tree) && self.set.key(op) == key {
                return Some(op);
            }
            // Another row with the same lock.
            at = self.before[op].change;
        }
        None
    }

    /// Bytes of redo that all changes need at most with these besides. More than `limit` only if
    /// that is so when none is counted that a later one replaces.
    pub fn redo_bytes_with<'w>(
        &self,
        changes: impl Iterator<Item = NewChange<'w>> + Clone,
        limit: usize,
    ) -> usize {
        let of = |value: Option<&[u8]>| value.map_or(0, <[u8]>::len);
        let new = changes.clone().map(|(_, _, key, value)| change_bytes(key.len(), of(value)));
        let bytes = self.redo_bytes + new.sum::<usize>();
        if bytes <= limit {
            return bytes;
        }
        let replaced = changes.filter_map(|(id, tree, key, _)| {
            let op = self.find(id, self.set.numbered(tree), key)?;
            Some(self.set.redo_bytes_of(op))
        });
        bytes - replaced.sum::<usize>()
    }

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
        let change = self.newest.insert(id, op as u32).unwrap_or(NONE);
        self.before.push(Before { id, change, redo_bytes: self.redo_bytes });
        let replaced = self.find_from(change, self.set.tree(op), key);
        let replaced = replaced.map_or(0, |replaced| self.set.redo_bytes_of(replaced));
        self.redo_bytes = self.redo_bytes - replaced + self.set.redo_bytes_of(op);
        debug_assert_eq!(self.before.len(), self.set.len());
    }

    pub fn truncate(&mut self, mark: WriteMark) {
        for Before { id, change, redo_bytes } in self.before.drain(mark.ops..).rev() {
            self.redo_bytes = redo_bytes;
            if change == NONE {
                self.newest.remove(&id);
            } else {
                self.newest.insert(id, change);
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
            let (id, key) = (self.before[op].id, self.set.key(op));
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
        self.redo_bytes = 0;
    }
}
