//! One change of one row in its leaf.
//!
//! Invariant: what a snapshot may still see is in the version log before the row is changed. The
//! number of a commit is taken with its first change, while all its leaves are latched; so it is
//! never above the end of its frame: the redo grows by more than a byte with each commit.

use iostrata_innodb::Counter;

use crate::error::EngineError;
use crate::mtr::{Held, Mtr};
use crate::page::layout::{FLAG_TOMBSTONE, FLAG_VERSIONED, VERSION_BYTES};
use crate::page::{Cell, Hunks, PageView, Record, Version, row_bytes};
use crate::read::{NEWEST, Visible, visible};
use crate::safeguards::Safeguard;
use crate::storage::Storage;
use crate::version::Keeper;
use crate::write_set::{Change, WriteSet};

/// No frame that changes a row is shorter, in bytes. After a restart the numbers go on from the end
/// of the redo, so each has to lie at or before the end of its own frame.
const FRAME_BYTES_MIN: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// A row came, changed or went: what counts that.
    Row(Counter),
    Nothing,
    /// Nothing was changed: old versions are needed, for which no room was looked for.
    LacksRoom,
}

/// Where a row is in its leaf, or where it would go.
pub(crate) type RowSlot = Result<usize, usize>;

/// The version that one commit gives its rows.
pub(crate) struct Stamp<'c> {
    storage: &'c Storage,
    /// Room is looked for as if old versions were needed.
    counts_versions: bool,
    number: u64,
    /// A snapshot below the number may see what the commit replaces.
    is_needed: bool,
    keeper: Option<Keeper<'c>>,
    /// The row or the difference to be logged.
    bytes: Vec<u8>,
}

impl<'c> Stamp<'c> {
    pub fn new(storage: &'c Storage) -> Self {
        let counts_versions = storage.versions.registry.is_any_below(NEWEST);
        let bytes = Vec::new();
        Self { storage, counts_versions, number: 0, is_needed: false, keeper: None, bytes }
    }

    /// Takes the number, once. False when there is a snapshot that was not there when room was
    /// looked for: only before the first change.
    fn begin(&mut self) -> bool {
        if self.number > 0 {
            return true;
        }
        let Storage { versions, redo, .. } = self.storage;
        if versions.registry.is_any_below(NEWEST) && !self.counts_versions {
            return false;
        }
        let number = versions.registry.tick();
        // Those that took lower numbers are about to append, and wait for nobody.
        while number > redo.lsn().0 + FRAME_BYTES_MIN {
            std::thread::yield_now();
        }
        self.number = number;
        let is_kept = self.storage.safeguards.has(Safeguard::VersionsAreKept);
        self.is_needed = is_kept && self.storage.versions.registry.is_any_below(number);
        !self.is_needed || self.counts_versions
    }

    fn keeper(&mut self) -> &mut Keeper<'c> {
        self.keeper.get_or_insert_with(|| self.storage.versions.log.keep())
    }
}

/// Whether the row is what a condition says; changes have none.
pub(crate) fn is_as_expected(writes: &WriteSet, op: usize, page: &PageView<'_>) -> bool {
    let Change::Expect(expected) = writes.change(op) else { return true };
    let cell = page.find(writes.key(op)).ok().map(|slot| page.cell(slot));
    let found = match cell.as_ref().map(|cell| visible(cell, NEWEST)) {
        Some(Visible::Row(value)) => Some(value),
        _ => None,
    };
    found == expected.as_ref().map(|range| writes.bytes(range))
}

/// By how many bytes one change fills (or empties) a page at most, with all of its slot.
pub(crate) fn growth(
    (writes, op): (&WriteSet, usize),
    slot: RowSlot,
    page: &PageView<'_>,
    stamp: &Stamp<'_>,
) -> isize {
    let key = writes.key(op);
    let cost = |value: usize| row_bytes(key.len(), value) as isize;
    let version = if stamp.counts_versions { VERSION_BYTES } else { 0 };
    let cell = slot.ok().map(|slot| page.cell(slot));
    let old = cell.as_ref().map_or(0, |cell| cost(cell.value.len()));
    match writes.change(op) {
        Change::Put(value) => cost(value.len() + version) - old,
        // What is deleted already stays as it is.
        Change::Delete if cell.is_none_or(|cell| cell.is_tombstone()) => 0,
        Change::Delete if version > 0 => cost(VERSION_BYTES) - old,
        Change::Delete => -old,
        Change::Expect(_) | Change::Purge { .. } => 0,
    }
}

/// Changes a row, if there is something to change. It is in this slot now, or would go there.
pub(crate) fn change_row(
    mtr: &mut Mtr<'_>,
    leaf: Held,
    (writes, op): (&WriteSet, usize),
    slot: RowSlot,
    stamp: &mut Stamp<'_>,
) -> Result<Changed, EngineError> {
    let (tree, key) = (writes.tree(op), writes.key(op));
    let page = mtr.page(leaf);
    debug_assert_eq!(slot, page.find(key), "a row moved under the latch");
    let is_absent = slot.is_err_and(|_| writes.value(op).is_none());
    if is_absent || matches!(writes.change(op), Change::Expect(_)) {
        return Ok(Changed::Nothing);
    }
    let (place, old) = match slot {
        Ok(slot) => (slot, Some(page.cell(slot))),
        Err(slot) => (slot, None),
    };
    let was_deleted = old.as_ref().is_some_and(Cell::is_tombstone);
    if let Change::Purge { number } = writes.change(op) {
        let is_due = old.is_some_and(|cell| is_tombstone_of(&cell, *number));
        return if is_due { purge(mtr, leaf, place) } else { Ok(Changed::Nothing) };
    }
    let value = writes.value(op);
    if value.is_none() && was_deleted {
        return Ok(Changed::Nothing);
    }
    if tree.keeps_versions() && !stamp.begin() {
        return Ok(Changed::LacksRoom);
    }
    let is_needed = tree.keeps_versions() && stamp.is_needed;
    let number = stamp.number;
    let older = match old {
        Some(cell) if is_needed && value.is_none() => {
            stamp.keeper().deleted(number, tree.id.0, key, cell.flags, cell.value)
        }
        Some(cell) if is_needed => stamp.keeper().replaced(number, cell.flags, cell.value),
        _ => 0,
    };
    let version = Version { number, older }.to_bytes();
    let version = if is_needed { &version[..] } else { &[] };
    let flags = match (is_needed, value) {
        (false, _) => 0,
        (true, Some(_)) => FLAG_VERSIONED,
        (true, None) => FLAG_VERSIONED | FLAG_TOMBSTONE,
    };
    let new = [value.unwrap_or_default(), version];
    stamp.bytes.clear();
    let record = match old {
        Some(_) if value.is_none() && !is_needed => Record::Delete { slot: place },
        Some(cell) => {
            let len = new[0].len() + new[1].len();
            let hunks = Hunks::between(cell.value, new, &mut stamp.bytes);
            Record::Revise { slot: place, flags, len, hunks }
        }
        None => {
            new.iter().for_each(|part| stamp.bytes.extend_from_slice(part));
            Record::Insert { slot: place, flags, key, value: &stamp.bytes }
        }
    };
    let kind = match (value, old) {
        (None, _) => Counter::RowsDeleted,
        (Some(_), Some(_)) if !was_deleted => Counter::RowsUpdated,
        (Some(_), _) => Counter::RowsInserted,
    };
    mtr.change(leaf, &record)?;
    Ok(Changed::Row(kind))
}

fn is_tombstone_of(cell: &Cell<'_>, number: u64) -> bool {
    cell.is_tombstone() && cell.version().is_some_and(|version| version.number == number)
}

fn purge(mtr: &mut Mtr<'_>, leaf: Held, slot: usize) -> Result<Changed, EngineError> {
    mtr.change(leaf, &Record::Delete { slot })?;
    Ok(Changed::Row(Counter::RowsPurged))
}
