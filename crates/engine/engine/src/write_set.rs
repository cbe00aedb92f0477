//! The write set: changes that are to be applied together, and conditions on them.
//!
//! Invariant: changes are kept in the order in which they were made until they are sorted to be
//! applied; then, of several changes of one row, the last is left. It is independent of pages.

use std::cell::Cell;
use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use iostrata_innodb::PageNo;

use crate::error::{EngineError, RequestError, TableError};
use crate::lock::LockId;
use crate::pages::Pages;
use crate::read::LeafHint;
use crate::table::Table;
use crate::tree::Tree;

/// Most bytes of keys and values that are kept: far more than any frame takes.
const KEPT_BYTES_MAX: usize = 1 << 30;
/// Bytes that the frame may need for a change beyond key and value: 16 of the version, 10 of the
/// page's number, at most 19 besides of an insert or a difference.
const CHANGE_OVERHEAD_BYTES: usize = 48;

/// Bytes of redo that a change of a row needs at most.
pub(crate) fn change_bytes(key_bytes: usize, value_bytes: usize) -> usize {
    key_bytes + value_bytes + CHANGE_OVERHEAD_BYTES
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing: it must have this value, or with none not be there, before the others.
    Expect(Option<Range<u32>>),
    Put(Range<u32>),
    Delete,
    /// The tombstone that this commit left goes, if it is still the row.
    Purge {
        number: u64,
    },
}

/// One change, or a condition.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub tree: u16,
    pub key: Range<u32>,
    pub change: Change,
    /// Where the row was when it was last read.
    pub leaf: Option<LeafHint>,
}

impl Op {
    fn is_condition(&self) -> bool {
        matches!(self.change, Change::Expect(_))
    }
}

/// Sets of more bytes of memory are given back when they are dropped.
const SPARE_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// The memory of the set that this thread dropped last.
    static SPARE: Cell<Spare> = const { Cell::new(Spare::NONE) };
}

#[derive(Default)]
struct Spare {
    trees: Vec<Arc<Tree>>,
    indexes: Vec<Option<usize>>,
    ops: Vec<Op>,
    bytes: Vec<u8>,
}

impl Spare {
    const NONE: Self =
        Self { trees: Vec::new(), indexes: Vec::new(), ops: Vec::new(), bytes: Vec::new() };
}

/// Changes and conditions, with the bytes that they speak of.
#[derive(Debug)]
pub(crate) struct WriteSet {
    trees: Vec<Arc<Tree>>,
    /// For each tree that is a table's: the number of indexes that its writer expects.
    indexes: Vec<Option<usize>>,
    ops: Vec<Op>,
    bytes: Vec<u8>,
    /// A page that is free once the changes are applied.
    pub freed: Option<PageNo>,
}

/// A place in a write set to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteMark {
    pub ops: usize,
    bytes: usize,
}

impl Default for WriteSet {
    fn default() -> Self {
        let Spare { trees, indexes, ops, bytes } = SPARE.take();
        Self { trees, indexes, ops, bytes, freed: None }
    }
}

impl Drop for WriteSet {
    fn drop(&mut self) {
        let bytes = self.kept_bytes() + self.ops.capacity() * size_of::<Op>();
        if bytes == 0 || bytes > SPARE_BYTES_MAX {
            return;
        }
        self.clear();
        let Self { trees, indexes, ops, bytes, .. } = self;
        let (trees, indexes) = (take(trees), take(indexes));
        let spare = Spare { trees, indexes, ops: take(ops), bytes: take(bytes) };
        // A thread that ends keeps nothing.
        let _ended = SPARE.try_with(|kept| kept.set(spare));
    }
}

impl WriteSet {
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Adds a change of a row; gives its number.
    pub fn push(&mut self, tree: u16, key: &[u8], value: Option<&[u8]>) -> usize {
        let key = self.keep(key);
        let change = value.map_or(Change::Delete, |value| Change::Put(self.keep(value)));
        self.add(tree, key, change)
    }

    pub fn require(&mut self, tree: u16, key: &[u8], value: Option<&[u8]>) {
        let key = self.keep(key);
        let value = value.map(|value| self.keep(value));
        self.add(tree, key, Change::Expect(value));
    }

    pub fn purge(&mut self, tree: u16, key: &[u8], number: u64) {
        let key = self.keep(key);
        self.add(tree, key, Change::Purge { number });
    }

    fn add(&mut self, tree: u16, key: Range<u32>, change: Change) -> usize {
        self.ops.push(Op { tree, key, change, leaf: None });
        self.ops.len() - 1
    }

    /// Notes where the row of a change lies.
    pub fn hint(&mut self, op: usize, leaf: LeafHint) {
        self.ops[op].leaf = Some(leaf);
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len() as u32
    }

    /// Keeps offsets within 32 bits: what is refused here could never be applied.
    pub fn check_kept(&self, pages: &Pages) -> Result<(), EngineError> {
        let (bytes, limit) = (self.bytes.len(), pages.storage.frame_bytes_max());
        if bytes > KEPT_BYTES_MAX {
            return Err(EngineError::Request(RequestError::BatchTooLarge { bytes, limit }));
        }
        Ok(())
    }

    /// The number of a table's tree in this set.
    pub fn tree_of(&mut self, table: &Table, pages: &Arc<Pages>) -> Result<u16, EngineError> {
        table.check_of(pages)?;
        let number = self.number_of(table.tree())?;
        let known = table.indexes().len();
        if *self.indexes[usize::from(number)].get_or_insert(known) != known {
            // Through handles of before and after an index was made.
            let name = table.name().to_owned();
            return Err(EngineError::Table(TableError::IndexMade { name }));
        }
        Ok(number)
    }

    /// Whether the entries of all indexes are in the set, judged by the number of indexes.
    pub fn check_indexes(&self) -> Result<(), EngineError> {
        let known = self.trees.iter().zip(&self.indexes);
        known
            .filter_map(|(tree, known)| Some((tree, (*known)?)))
            .try_for_each(|(tree, known)| tree.check_indexes(known))
    }

    pub fn number_of(&mut self, tree: &Arc<Tree>) -> Result<u16, EngineError> {
        let known = self.trees.iter().rposition(|known| Arc::ptr_eq(known, tree));
        let number = known.unwrap_or(self.trees.len());
        if known.is_none() {
            self.trees.push(Arc::clone(tree));
            self.indexes.push(None);
        }
        u16::try_from(number).map_err(|_too_many| {
            EngineError::Request(RequestError::BatchTooWide { limit: usize::from(u16::MAX) })
        })
    }

    pub fn numbered(&self, tree: u16) -> &Arc<Tree> {
        &self.trees[usize::from(tree)]
    }

    pub fn tree(&self, op: usize) -> &Arc<Tree> {
        &self.trees[self.ops[op].tree as usize]
    }

    pub fn key(&self, op: usize) -> &[u8] {
        self.bytes(&self.ops[op].key)
    }

    pub fn change(&self, op: usize) -> &Change {
        &self.ops[op].change
    }

    pub fn leaf(&self, op: usize) -> Option<LeafHint> {
        self.ops[op].leaf
    }

    pub fn bytes(&self, range: &Range<u32>) -> &[u8] {
        &self.bytes[range.start as usize..range.end as usize]
    }

    pub fn value(&self, op: usize) -> Option<&[u8]> {
        match &self.ops[op].change {
            Change::Put(range) => Some(self.bytes(range)),
            Change::Delete | Change::Expect(_) | Change::Purge { .. } => None,
        }
    }

    pub fn lock_id(&self, op: usize) -> LockId {
        LockId::of(self.tree(op).id.0, self.key(op))
    }

    pub fn same_tree(&self, a: usize, b: usize) -> bool {
        self.ops[a].tree == self.ops[b].tree
    }

    /// Whether an op speaks of another row than the one before it.
    pub fn begins_row(&self, op: usize) -> bool {
        op == 0 || !self.same_tree(op - 1, op) || self.key(op - 1) != self.key(op)
    }

    /// Rows that the sorted changes speak of.
    pub fn rows(&self) -> usize {
        (0..self.len()).filter(|op| self.begins_row(*op)).count()
    }

    /// Bytes of redo that the changes need at most. Conditions are not logged.
    pub fn redo_bytes(&self) -> usize {
        (0..self.len()).map(|op| self.redo_bytes_of(op)).sum()
    }

    /// As [`WriteSet::redo_bytes`], of one change.
    pub fn redo_bytes_of(&self, op: usize) -> usize {
        let Op { key, change, .. } = &self.ops[op];
        match change {
            Change::Expect(_) => 0,
            Change::Delete | Change::Purge { .. } => change_bytes(key.len(), 0),
            Change::Put(value) => change_bytes(key.len(), value.len()),
        }
    }

    /// The change of a row in a set that was just sorted.
    pub fn find_sorted(&self, tree: &Tree, key: &[u8]) -> Option<usize> {
        let place = |op: &Op| (self.trees[op.tree as usize].id, self.bytes(&op.key));
        let end = self.ops.partition_point(|op| place(op) <= (tree.id, key));
        let last = end.checked_sub(1).filter(|last| place(&self.ops[*last]) == (tree.id, key));
        last.filter(|last| !self.ops[*last].is_condition())
    }

    /// By table and key, conditions before changes; of several changes of one row the last stays.
    pub fn sort(&mut self) {
        let Self { trees, ops, bytes, .. } = self;
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

    pub fn mark(&self) -> WriteMark {
        WriteMark { ops: self.ops.len(), bytes: self.bytes.len() }
    }

    pub fn truncate(&mut self, mark: WriteMark) {
        assert!(mark.ops <= self.ops.len() && mark.bytes <= self.bytes.len(), "a mark of this set");
        self.ops.truncate(mark.ops);
        self.bytes.truncate(mark.bytes);
    }

    pub fn kept_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.trees.clear();
        self.indexes.clear();
        self.ops.clear();
        self.bytes.clear();
        self.freed = None;
    }
}

/// What is too large is refused when it is added.
#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iostrata_innodb::PageNo;

    use crate::transaction::tests::{begin, engine};
    use crate::write_set::WriteSet;
    use crate::{EngineError, Isolation, RequestError, Table, Transaction, TransactionError};

    /// The number of the first of many writes that is too large for a transaction.
    fn first_refused(t: &mut Transaction, table: &Table, numbers: std::ops::Range<u32>) -> u32 {
        for number in numbers {
            let key = [&b"n"[..], &number.to_be_bytes()].concat();
            match t.put(table, &key, &[7; 1500]) {
                Ok(()) => {}
                Err(EngineError::Transaction(TransactionError::TooLarge { .. })) => return number,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("none is refused");
    }

    #[test]
    fn a_write_that_makes_a_transaction_too_large_is_refused_and_the_rest_can_commit() {
        let (engine, table) = engine();
        let mut t = begin(&engine, Isolation::default());
        // What a later write replaces does not count, nor what was gone back behind.
        let before = t.savepoint();
        for round in 0..200_u8 {
            t.put(&table, b"a", &[round; 1500]).unwrap();
            t.put(&table, b"b", b"short").unwrap();
        }
        t.rollback_to(before).unwrap();
        let before = t.savepoint();
        let fits = first_refused(&mut t, &table, 0..100);
        let frame = engine.parts().storage.frame_bytes_max();
        assert_eq!(fits as usize, frame / (5 + 1500 + 48));
        t.rollback_to(before).unwrap();
        assert_eq!(first_refused(&mut t, &table, 0..100), fits, "there is as much room as before");
        for _ in 0..100 {
            t.put(&table, b"n\0\0\0\0", &[8; 1500]).unwrap();
        }
        t.commit().unwrap();
        assert_eq!(table.prefix(b"n").count(), fits as usize);
        assert_eq!(engine.counters()[crate::Counter::RowLocks], 0);
        let mut t = begin(&engine, Isolation::default());
        first_refused(&mut t, &table, 100..200);
        drop(t);
        assert_eq!(table.prefix(b"n").count(), fits as usize);
    }

    #[test]
    fn a_change_that_makes_a_batch_too_large_is_refused_and_the_rest_can_commit() {
        let (engine, table) = engine();
        let frame = engine.parts().storage.frame_bytes_max();
        let mut batch = engine.batch();
        let mut rounds = 0;
        // Of several changes of a row the last one counts.
        while rounds * 1500 < 10 * frame {
            batch.put(&table, b"a", &[rounds as u8; 1500]).unwrap();
            rounds += 1;
        }
        let mut fits = 0_u32;
        let refused = loop {
            let key = [&b"n"[..], &fits.to_be_bytes()].concat();
            match batch.put(&table, &key, &[7; 1500]) {
                Ok(()) => fits += 1,
                Err(error) => break error,
            }
            assert!(fits < 1_000, "none is refused");
        };
        let is_typed = matches!(
            refused,
            EngineError::Request(RequestError::BatchTooLarge { bytes, limit })
                if limit == frame && bytes > limit
        );
        assert!(is_typed, "{refused}");
        assert_eq!(fits as usize + 1, frame / (5 + 1500 + 48), "and the row a");
        batch.delete(&table, b"a").unwrap();
        batch.commit().unwrap();
        assert_eq!(table.prefix(b"n").count(), fits as usize);
        assert_eq!(table.get(b"a").unwrap(), None);
    }

    #[test]
    fn the_memory_of_a_dropped_set_is_used_again_and_holds_nothing_of_it() {
        let (_engine, table) = engine();
        let tree = Arc::clone(table.tree());
        let before = Arc::strong_count(&tree);
        let mut writes = WriteSet::default();
        let number = writes.tree_of(&table, table.pages()).unwrap();
        writes.push(number, b"key", Some(&[7; 500]));
        writes.freed = Some(PageNo(9));
        drop(writes);
        assert_eq!(Arc::strong_count(&tree), before, "no table is kept alive");
        let again = WriteSet::default();
        assert!(again.is_empty() && again.freed.is_none() && again.kept_bytes() >= 500);
        assert_eq!(WriteSet::default().kept_bytes(), 0, "one is lent once");
    }
}
