//! A batch of changes: applied at once or not at all.
//!
//! Invariant: all rows of a batch go into one frame of redo. Its leaves are found without latches,
//! latched in the order of their page numbers, compared with what was found, and only then changed;
//! if one was moved or lacks room everything is let go, room is made, and it starts again.
//! It gives no isolation to readers of several rows; that is for transactions.

use std::ops::Range;
use std::sync::Arc;

use iostrata_knobs::Counter;
use iostrata_page::{Lsn, PageNo, PageView, Record, row_bytes};

use crate::commit::{Attempt, Group, attempt, leaves_max};
use crate::core::Core;
use crate::error::EngineError;
use crate::table::Table;
use crate::ticket::Ticket;

/// Bytes that the frame may need for a record beyond key and value.
const RECORD_OVERHEAD_BYTES: usize = 32;

/// Most bytes of keys and values that a batch keeps: far more than any frame takes.
const KEPT_BYTES_MAX: usize = 1 << 30;

/// One change.
#[derive(Debug)]
pub(crate) struct Op {
    pub table: u16,
    pub key: Range<u32>,
    /// None deletes.
    pub value: Option<Range<u32>>,
}

/// Changes that become visible and durable together.
#[derive(Debug)]
pub struct Batch {
    core: Arc<Core>,
    tables: Vec<Table>,
    ops: Vec<Op>,
    bytes: Vec<u8>,
    /// A page that is free once the batch is applied.
    freed: Option<PageNo>,
}

impl Batch {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, tables: Vec::new(), ops: Vec::new(), bytes: Vec::new(), freed: None }
    }

    /// Puts a row, whether or not the key is there. The last change of a key in a batch counts.
    ///
    /// # Errors
    /// A key or row beyond the limits of the page size; [`EngineError::NoTable`] for a table of
    /// another engine.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        check_row(&self.core, key, value.len())?;
        self.check_kept()?;
        let table = self.table(table)?;
        let (key, value) = (self.keep(key), self.keep(value));
        self.ops.push(Op { table, key, value: Some(value) });
        Ok(())
    }

    /// Deletes a row if it is there.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<(), EngineError> {
        check_row(&self.core, key, 0)?;
        self.check_kept()?;
        let table = self.table(table)?;
        let key = self.keep(key);
        self.ops.push(Op { table, key, value: None });
        Ok(())
    }

    /// Frees a page with the batch.
    pub(crate) fn free(&mut self, page: PageNo) {
        self.freed = Some(page);
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Applies everything. What it gives is ordered but not yet durable: wait for the ticket
    /// before telling anybody.
    ///
    /// # Errors
    /// Nothing is applied then. [`EngineError::BatchTooLarge`], no space, a poisoned engine.
    pub fn commit(mut self) -> Result<Ticket, EngineError> {
        let core = Arc::clone(&self.core);
        let end = core.counts.sampled(Counter::CpuNsRows, || self.run())?;
        Ok(Ticket::new(Arc::clone(&self.core), end))
    }

    fn run(&mut self) -> Result<Lsn, EngineError> {
        let core = &self.core;
        let bytes = self.check_size(core)?;
        sort(&mut self.ops, &self.tables, &self.bytes);
        let freed = self.freed;
        let changes = Changes { tables: &self.tables, ops: &self.ops, bytes: &self.bytes, freed };
        let mut groups = Vec::new();
        loop {
            // In this order, as everywhere: who has room in the redo waits for no pins.
            let pins = core.admission.pins(self.ops.len().min(leaves_max(core)), core);
            let room = core.admit(bytes)?;
            match attempt(core, &changes, &mut groups)? {
                Attempt::Done(end) => {
                    drop((room, pins));
                    if let Some(page) = freed {
                        core.space.freed(page);
                    }
                    core.counts.committed();
                    changes.tidy(core, &groups);
                    return Ok(end);
                }
                Attempt::Moved => {}
                Attempt::Full { op, structure } => {
                    drop((room, pins));
                    groups.clear();
                    let tree = changes.table(op).tree();
                    let value_bytes = changes.value(op).map_or(0, <[u8]>::len);
                    tree.split_leaf(core, (changes.key(op), value_bytes), structure)?;
                }
            }
        }
    }

    fn check_size(&self, core: &Core) -> Result<usize, EngineError> {
        let bytes = self.bytes.len() + self.ops.len() * RECORD_OVERHEAD_BYTES;
        let limit = core.frame_bytes_max();
        if bytes > limit { Err(EngineError::BatchTooLarge { bytes, limit }) } else { Ok(bytes) }
    }

    /// Keeps offsets within 32 bits: what is refused here could never be committed.
    fn check_kept(&self) -> Result<(), EngineError> {
        let (bytes, limit) = (self.bytes.len(), self.core.frame_bytes_max());
        if bytes > KEPT_BYTES_MAX {
            return Err(EngineError::BatchTooLarge { bytes, limit });
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len() as u32
    }

    /// The number of a table in this batch.
    fn table(&mut self, table: &Table) -> Result<u16, EngineError> {
        let known = self.tables.iter().rposition(|known| known.is_same(table));
        let number = known.unwrap_or(self.tables.len());
        if known.is_none() {
            if !table.is_of(&self.core) {
                return Err(EngineError::NoTable { name: table.name().to_owned() });
            }
            self.tables.push(table.clone());
        }
        u16::try_from(number)
            .map_err(|_too_many| EngineError::BatchTooWide { limit: leaves_max(&self.core) })
    }
}

/// Checks a row against the limits.
pub(crate) fn check_row(core: &Core, key: &[u8], value_bytes: usize) -> Result<(), EngineError> {
    if key.is_empty() {
        return Err(EngineError::KeyEmpty);
    }
    core.page_size.check_row(key.len(), value_bytes).map_err(EngineError::RowTooLarge)
}

/// By table and key; of several changes of one key the last stays.
fn sort(ops: &mut Vec<Op>, tables: &[Table], bytes: &[u8]) {
    if ops.len() < 2 {
        return;
    }
    let id = |op: &Op| tables[op.table as usize].tree().id;
    let key = |op: &Op| &bytes[op.key.start as usize..op.key.end as usize];
    ops.sort_by(|a, b| (id(a), key(a)).cmp(&(id(b), key(b))));
    ops.reverse();
    ops.dedup_by(|a, b| id(a) == id(b) && key(a) == key(b));
    ops.reverse();
}

/// The sorted changes of a batch.
pub(crate) struct Changes<'b> {
    tables: &'b [Table],
    ops: &'b [Op],
    bytes: &'b [u8],
    pub freed: Option<PageNo>,
}

impl Changes<'_> {
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    pub fn table(&self, op: usize) -> &Table {
        &self.tables[self.ops[op].table as usize]
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
    pub fn same_table(&self, a: usize, b: usize) -> bool {
        self.ops[a].table == self.ops[b].table
    }

    /// Joins leaves that the batch left nearly empty. What fails here fails again where it matters.
    fn tidy(&self, core: &Core, groups: &[Group]) {
        for group in groups.iter().filter(|group| group.is_sparse) {
            let first = group.ops.start;
            let tree = self.table(first).tree();
            let _needed_by_nobody = tree.merge_leaf(core, self.key(first));
        }
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
