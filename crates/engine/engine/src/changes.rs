//! The changes of a batch: sorted, and as records against a page.
//!
//! Invariant: of several changes of one key the last stays.

use std::ops::Range;
use std::sync::Arc;

use iostrata_page::{PageNo, PageView, Record, row_bytes};

use crate::tree::Tree;

/// One change.
#[derive(Debug)]
pub(crate) struct Op {
    pub tree: u16,
    pub key: Range<u32>,
    /// None deletes.
    pub value: Option<Range<u32>>,
}

/// By table and key; of several changes of one key the last stays.
pub(crate) fn sort(ops: &mut Vec<Op>, trees: &[Arc<Tree>], bytes: &[u8]) {
    if ops.len() < 2 {
        return;
    }
    let id = |op: &Op| trees[op.tree as usize].id;
    let key = |op: &Op| &bytes[op.key.start as usize..op.key.end as usize];
    ops.sort_by(|a, b| (id(a), key(a)).cmp(&(id(b), key(b))));
    ops.reverse();
    ops.dedup_by(|a, b| id(a) == id(b) && key(a) == key(b));
    ops.reverse();
}

/// The sorted changes of a batch.
pub(crate) struct Changes<'b> {
    pub trees: &'b [Arc<Tree>],
    pub ops: &'b [Op],
    pub bytes: &'b [u8],
    pub freed: Option<PageNo>,
}

impl Changes<'_> {
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    pub fn tree(&self, op: usize) -> &Tree {
        &self.trees[self.ops[op].tree as usize]
    }

    pub fn key(&self, op: usize) -> &[u8] {
        let range = &self.ops[op].key;
        &self.bytes[range.start as usize..range.end as usize]
    }

    pub fn value(&self, op: usize) -> Option<&[u8]> {
        let range = self.ops[op].value.as_ref()?;
        Some(&self.bytes[range.start as usize..range.end as usize])
    }

    /// Whether two changes belong to one table.
    pub fn same_tree(&self, a: usize, b: usize) -> bool {
        self.ops[a].tree == self.ops[b].tree
    }

    /// The record of one change against a page, and what it costs there; None changes nothing.
    pub fn record<'r>(&'r self, op: usize, page: &PageView<'_>) -> Option<Record<'r>> {
        let key = self.key(op);
        match (page.find(key), self.value(op)) {
            (Ok(slot), Some(value)) => Some(Record::Replace { slot, value }),
            (Err(slot), Some(value)) => Some(Record::Insert { slot, flags: 0, key, value }),
            (Ok(slot), None) => Some(Record::Delete { slot }),
            (Err(_), None) => None,
        }
    }

    /// By how many bytes one change fills (or empties) a page, with all of its slot.
    pub fn growth(&self, op: usize, page: &PageView<'_>) -> isize {
        let key = self.key(op);
        let cost = |value: &[u8]| row_bytes(key.len(), value.len()) as isize;
        let old = page.find(key).ok().map_or(0, |slot| cost(page.value(slot)));
        self.value(op).map_or(0, cost) - old
    }
}
