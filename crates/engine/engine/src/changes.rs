//! The changes of a batch: sorted, and as records against a page.
//!
//! Invariant: of several changes of one key the last stays.

use std::ops::Range;
use std::sync::Arc;

use iostrata_page::{PageNo, PageView, Record, row_bytes};

use crate::tree::Tree;
use crate::visible::visible;

/// What is to happen to a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing: it must have this value, or with none not be there, before the batch.
    Expect(Option<Range<u32>>),
    Put(Range<u32>),
    Delete,
}

/// One change, or a condition.
#[derive(Debug)]
pub(crate) struct Op {
    pub tree: u16,
    pub key: Range<u32>,
    pub change: Change,
}

impl Op {
    fn is_condition(&self) -> bool {
        matches!(self.change, Change::Expect(_))
    }
}

/// By table and key, conditions before changes; of several changes of one key the last stays.
pub(crate) fn sort(ops: &mut Vec<Op>, trees: &[Arc<Tree>], bytes: &[u8]) {
    if ops.len() < 2 {
        return;
    }
    let id = |op: &Op| trees[op.tree as usize].id;
    let key = |op: &Op| &bytes[op.key.start as usize..op.key.end as usize];
    let place = |op: &Op| (id(op), key(op), !op.is_condition());
    ops.sort_by(|a, b| place(a).cmp(&place(b)));
    ops.reverse();
    ops.dedup_by(|a, b| !a.is_condition() && place(a) == place(b));
    ops.reverse();
}

/// Bytes that the frame may need for a change beyond key and value: at most 19 of an insert and 13
/// of a delete before it, 10 of each for the page's number.
const CHANGE_OVERHEAD_BYTES: usize = 32;

/// The sorted changes of a batch.
pub(crate) struct Changes<'b> {
    pub trees: &'b [Arc<Tree>],
    pub ops: &'b [Op],
    pub bytes: &'b [u8],
    pub freed: Option<PageNo>,
}

impl Changes<'_> {
    /// Changes and conditions.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Bytes of redo that they need at most. Conditions are not logged.
    pub fn redo_bytes(&self) -> usize {
        let of = |op: &Op| match &op.change {
            Change::Expect(_) => 0,
            Change::Delete => op.key.len() + CHANGE_OVERHEAD_BYTES,
            Change::Put(value) => op.key.len() + value.len() + CHANGE_OVERHEAD_BYTES,
        };
        self.ops.iter().map(of).sum()
    }

    /// Whether an op speaks of another row than the one before it.
    pub fn begins_row(&self, op: usize) -> bool {
        op == 0 || !self.same_tree(op - 1, op) || self.key(op - 1) != self.key(op)
    }

    /// Rows that they speak of.
    pub fn rows(&self) -> usize {
        (0..self.len()).filter(|op| self.begins_row(*op)).count()
    }

    pub fn tree(&self, op: usize) -> &Tree {
        &self.trees[self.ops[op].tree as usize]
    }

    pub fn key(&self, op: usize) -> &[u8] {
        self.bytes(&self.ops[op].key)
    }

    fn bytes(&self, range: &Range<u32>) -> &[u8] {
        &self.bytes[range.start as usize..range.end as usize]
    }

    /// The value that a change puts.
    pub fn value(&self, op: usize) -> Option<&[u8]> {
        match &self.ops[op].change {
            Change::Put(range) => Some(self.bytes(range)),
            Change::Delete | Change::Expect(_) => None,
        }
    }

    /// Whether the row is what a condition says; changes have none.
    pub fn is_as_expected(&self, op: usize, page: &PageView<'_>) -> bool {
        let Change::Expect(expected) = &self.ops[op].change else { return true };
        let slot = page.find(self.key(op)).ok();
        let found = slot.and_then(|slot| visible(&page.cell(slot)));
        found == expected.as_ref().map(|range| self.bytes(range))
    }

    /// Whether two changes belong to one table.
    pub fn same_tree(&self, a: usize, b: usize) -> bool {
        self.ops[a].tree == self.ops[b].tree
    }

    /// The records of one change against a page, in their order; none where nothing changes.
    pub fn records<'r>(&'r self, op: usize, page: &PageView<'_>) -> [Option<Record<'r>>; 2] {
        if self.ops[op].is_condition() {
            return [None, None];
        }
        let key = self.key(op);
        match (page.find(key), self.value(op)) {
            (Ok(slot), Some(value)) if page.flags(slot) == 0 => {
                [Some(Record::Replace { slot, value }), None]
            }
            // A new value in place would keep the flags, which say that a version header comes
            // first or that the row is deleted.
            (Ok(slot), Some(value)) => {
                let insert = Record::Insert { slot, flags: 0, key, value };
                [Some(Record::Delete { slot }), Some(insert)]
            }
            (Err(slot), Some(value)) => [Some(Record::Insert { slot, flags: 0, key, value }), None],
            (Ok(slot), None) => [Some(Record::Delete { slot }), None],
            (Err(_), None) => [None, None],
        }
    }

    /// By how many bytes one change fills (or empties) a page, with all of its slot.
    pub fn growth(&self, op: usize, page: &PageView<'_>) -> isize {
        if self.ops[op].is_condition() {
            return 0;
        }
        let key = self.key(op);
        let cost = |value: &[u8]| row_bytes(key.len(), value.len()) as isize;
        let old = page.find(key).ok().map_or(0, |slot| cost(page.value(slot)));
        self.value(op).map_or(0, cost) - old
    }
}
