//! Rows within a page: cells, slots, their heads and the room between them.
//!
//! Purpose: what Insert, Delete, Replace, Revise, Truncate, Splice and Image do. Keys of one page
//! often begin alike (a warehouse, a district), so their first bytes distinguish nothing; heads
//! therefore begin behind what all keys share. Invariant: everything is checked before the first
//! byte changes, and what changes depends on the page and the arguments alone; compacting, too.
//! Cells of a compacted page lie in the order of their slots. The shared prefix is a beginning of
//! every key but an empty one, and every head is taken behind it. It is as long as possible after a
//! page was packed, and only gets shorter between.

use iostrata_innodb::PageNo;

use super::PageEdit;
use super::layout::{
    ApplyFault, CELL_AT_FLAGS, CELL_AT_VALUE_LEN, CELL_HEADER_BYTES, CHILD_BYTES, HEADER_BYTES,
    PageKind, PageSize, SLOT_AT_HEAD, SLOT_BYTES, cell_bytes, narrow, put, row_bytes,
};
use super::record::Hunks;
use super::view::{Cell, CellShape, Cells, PageView, SlotEntry, cell_parts, head_of};

#[inline]
pub(crate) fn check_entry(
    (page, size, kind): (PageNo, PageSize, PageKind),
    slot: usize,
    cell: CellShape,
) -> Result<(), ApplyFault> {
    size.check_row(cell.key_len, cell.value_len)
        .map_err(|limit| ApplyFault::Row { page, limit })?;
    let is_proper = if kind == PageKind::Inner {
        let is_child = cell.value_len == CHILD_BYTES && (slot == 0) == (cell.key_len == 0);
        is_child && cell.is_plain()
    } else {
        cell.has_proper_version()
    };
    if is_proper { Ok(()) } else { Err(ApplyFault::Entry { page, slot }) }
}

impl<'a> PageView<'a> {
    /// Whether the header leaves slots, gap and cells their places.
    #[inline]
    pub(crate) fn has_sane_bounds(&self) -> bool {
        let (top, len) = (self.heap_top(), self.bytes().len());
        self.slots_end() <= top && top <= len && self.garbage() <= len - top
    }

    #[inline]
    fn found(&self, page: PageNo, slot: usize) -> Result<(SlotEntry, Cell<'a>), ApplyFault> {
        let count = self.count();
        if slot >= count {
            return Err(ApplyFault::NoSlot { page, slot, count });
        }
        let place = self.place(slot).ok_or(ApplyFault::Damaged { page })?;
        let cell = cell_parts(self.bytes(), place).ok_or(ApplyFault::Damaged { page })?;
        Ok((place, cell))
    }

    /// Whether a cell that grows to `needed` bytes has room in the gap. If not, compacting makes
    /// it, since the old cell goes.
    fn gap_takes(&self, page: PageNo, needed: usize, old_bytes: usize) -> Result<bool, ApplyFault> {
        let free = self.free_bytes() + old_bytes;
        if needed > free {
            return Err(ApplyFault::Full { page, needed, free });
        }
        Ok(needed <= self.gap_bytes())
    }
}

impl PageEdit<'_> {
    #[inline]
    pub(crate) fn insert(
        &mut self,
        page: PageNo,
        slot: usize,
        cell: Cell<'_>,
    ) -> Result<(), ApplyFault> {
        let view = self.view();
        let count = view.count();
        if slot > count {
            return Err(ApplyFault::NoSlot { page, slot, count });
        }
        check_entry((page, view.size(), view.kind()), slot, cell.shape())?;
        let is_above = slot == 0 || view.key(slot - 1) < cell.key;
        let is_below = slot == count || cell.key < view.key(slot);
        if !(is_above && is_below) {
            return Err(ApplyFault::Order { page, slot });
        }
        let appends = if slot == count { view.appends() + 1 } else { 0 };
        self.make_room(page, row_bytes(cell.key.len(), cell.value.len()))?;
        self.admit_key(cell.key);
        let at = self.view().heap_top() - cell_bytes(cell.key.len(), cell.value.len());
        self.write_cell(at, &cell);
        self.set_heap_top(at);
        self.open_slots(slot, 1);
        let head = head_of(cell.key, self.view().prefix_len());
        self.write_slot(slot, SlotEntry { cell: at, key_len: cell.key.len(), head });
        self.set_appends(appends);
        Ok(())
    }

    pub(crate) fn delete(&mut self, page: PageNo, slot: usize) -> Result<(), ApplyFault> {
        let view = self.view();
        let (place, cell) = view.found(page, slot)?;
        let is_inner = view.kind() == PageKind::Inner;
        let count = view.count();
        if is_inner && slot == 0 && count > 1 {
            view.found(page, 1)?;
        }
        if count == 1 {
            self.clear();
            return Ok(());
        }
        let len = cell_bytes(cell.key.len(), cell.value.len());
        if place.cell == self.view().heap_top() {
            self.set_heap_top(place.cell + len);
        } else {
            self.add_garbage(len);
        }
        let slots = HEADER_BYTES + (slot + 1) * SLOT_BYTES..self.view().slots_end();
        let to = slots.start - SLOT_BYTES;
        self.bytes_mut().copy_within(slots, to);
        self.set_count(count - 1);
        if is_inner && slot == 0 {
            self.drop_first_key();
        }
        Ok(())
    }

    /// Slot 0 of an inner page has no key: what was a key's place is dead now.
    fn drop_first_key(&mut self) {
        let view = self.view();
        let Some(place) = view.place(0) else { return };
        let value_len = view.value(0).len();
        let value = place.cell + CELL_HEADER_BYTES + place.key_len;
        let to = place.cell + CELL_HEADER_BYTES;
        self.bytes_mut().copy_within(value..value + value_len, to);
        self.add_garbage(place.key_len);
        self.write_slot(0, SlotEntry { cell: place.cell, key_len: 0, head: 0 });
    }

    pub(crate) fn replace(
        &mut self,
        page: PageNo,
        slot: usize,
        value: &[u8],
    ) -> Result<(), ApplyFault> {
        let view = self.view();
        let (place, old) = view.found(page, slot)?;
        let shape = CellShape { value_len: value.len(), ..old.shape() };
        check_entry((page, view.size(), view.kind()), slot, shape)?;
        let old_bytes = cell_bytes(old.key.len(), old.value.len());
        let needed = cell_bytes(old.key.len(), value.len());
        if needed <= old_bytes {
            self.write_value(place, value);
            self.add_garbage(old_bytes - needed);
            return Ok(());
        }
        if !view.gap_takes(page, needed, old_bytes)? {
            return self.repack(page, Some((slot, old.flags, value)), 0);
        }
        let kept = CELL_HEADER_BYTES + place.key_len;
        let place = self.move_cell(slot, place, (old_bytes, needed), kept);
        self.write_value(place, value);
        Ok(())
    }

    #[inline]
    pub(crate) fn revise(
        &mut self,
        page: PageNo,
        slot: usize,
        (flags, len): (u8, usize),
        hunks: Hunks<'_>,
    ) -> Result<(), ApplyFault> {
        let view = self.view();
        let (place, old) = view.found(page, slot)?;
        let shape = CellShape { flags, value_len: len, ..old.shape() };
        check_entry((page, view.size(), view.kind()), slot, shape)?;
        hunks.check((page, slot), old.value.len(), len)?;
        let old_bytes = cell_bytes(old.key.len(), old.value.len());
        let needed = cell_bytes(old.key.len(), len);
        if needed <= old_bytes {
            self.write_hunks(place, (flags, len), hunks);
            self.add_garbage(old_bytes - needed);
            return Ok(());
        }
        if !view.gap_takes(page, needed, old_bytes)? {
            let mut value = old.value.to_vec();
            value.resize(len, 0);
            hunks.write_to(&mut value);
            return self.repack(page, Some((slot, flags, &value)), 0);
        }
        let place = self.move_cell(slot, place, (old_bytes, needed), old_bytes);
        self.write_hunks(place, (flags, len), hunks);
        Ok(())
    }

    /// Moves a cell that grows to the gap, with so many of its first bytes.
    fn move_cell(
        &mut self,
        slot: usize,
        place: SlotEntry,
        (old_bytes, needed): (usize, usize),
        kept: usize,
    ) -> SlotEntry {
        let at = self.view().heap_top() - needed;
        self.bytes_mut().copy_within(place.cell..place.cell + kept, at);
        let moved = SlotEntry { cell: at, ..place };
        self.write_slot(slot, moved);
        self.set_heap_top(at);
        self.add_garbage(old_bytes);
        moved
    }

    pub(crate) fn truncate(&mut self, page: PageNo, from: usize) -> Result<(), ApplyFault> {
        let view = self.view();
        let count = view.count();
        if from > count {
            return Err(ApplyFault::NoSlot { page, slot: from, count });
        }
        if from == 0 {
            self.clear();
            return Ok(());
        }
        let mut dead = 0;
        for slot in from..count {
            let (_, cell) = view.found(page, slot)?;
            dead += cell_bytes(cell.key.len(), cell.value.len());
        }
        if from < count {
            self.add_garbage(dead);
            self.set_count(from);
            self.set_appends(0);
            self.refresh_heads();
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.set_count(0);
        self.set_heap_top(self.bytes().len());
        self.set_garbage(0);
        self.set_prefix_len(0);
        self.set_appends(0);
    }

    /// Sees to it that the gap has `needed` bytes, compacting when it must.
    #[inline]
    pub(crate) fn make_room(&mut self, page: PageNo, needed: usize) -> Result<(), ApplyFault> {
        let view = self.view();
        if needed <= view.gap_bytes() {
            return Ok(());
        }
        let free = view.free_bytes();
        if needed > free {
            return Err(ApplyFault::Full { page, needed, free });
        }
        self.repack(page, None, needed)
    }

    /// Compacts: writes all cells side by side in the order of their slots, one of them with other
    /// flags and another value if requested. The cells are gathered in a buffer of their own size,
    /// since they may lie in any order; compacting is rare enough for its allocation.
    fn repack(
        &mut self,
        page: PageNo,
        other: Option<(usize, u8, &[u8])>,
        gap_bytes: usize,
    ) -> Result<(), ApplyFault> {
        let view = self.view();
        let count = view.count();
        let room = view.size().bytes() - view.slots_end();
        let mut heap = Vec::with_capacity(room);
        for slot in 0..count {
            let (_, Cell { flags, key, value }) = view.found(page, slot)?;
            let (flags, value) = match other {
                Some((at, flags, value)) if at == slot => (flags, value),
                _ => (flags, value),
            };
            if heap.len() + cell_bytes(key.len(), value.len()) + gap_bytes > room {
                return Err(ApplyFault::Damaged { page });
            }
            heap.push(flags);
            heap.extend_from_slice(&narrow(value.len()).to_le_bytes());
            heap.extend_from_slice(key);
            heap.extend_from_slice(value);
        }
        let top = self.bytes().len() - heap.len();
        put(self.bytes_mut(), top, &heap);
        let mut at = top;
        for slot in 0..count {
            let Some(place) = self.view().place(slot) else { continue };
            self.write_slot(slot, SlotEntry { cell: at, ..place });
            at += cell_bytes(place.key_len, self.view().value(slot).len());
        }
        self.set_heap_top(top);
        self.set_garbage(0);
        self.refresh_heads();
        Ok(())
    }

    #[inline]
    fn open_slots(&mut self, slot: usize, more: usize) {
        let (count, end) = (self.count(), self.view().slots_end());
        let at = HEADER_BYTES + slot * SLOT_BYTES;
        self.bytes_mut().copy_within(at..end, at + more * SLOT_BYTES);
        self.set_count(count + more);
    }

    #[inline]
    pub(crate) fn write_slot(&mut self, slot: usize, place: SlotEntry) {
        put(self.bytes_mut(), HEADER_BYTES + slot * SLOT_BYTES, &place.to_bytes());
    }

    #[inline]
    fn write_cell(&mut self, at: usize, cell: &Cell<'_>) {
        let bytes = self.bytes_mut();
        put(bytes, at + CELL_AT_FLAGS, &[cell.flags]);
        put(bytes, at + CELL_AT_VALUE_LEN, &narrow(cell.value.len()).to_le_bytes());
        put(bytes, at + CELL_HEADER_BYTES, cell.key);
        put(bytes, at + CELL_HEADER_BYTES + cell.key.len(), cell.value);
    }

    /// Writes a value and its length into the cell at a place.
    #[inline]
    fn write_value(&mut self, place: SlotEntry, value: &[u8]) {
        let bytes = self.bytes_mut();
        put(bytes, place.cell + CELL_AT_VALUE_LEN, &narrow(value.len()).to_le_bytes());
        put(bytes, place.cell + CELL_HEADER_BYTES + place.key_len, value);
    }

    /// Writes flags, length and what differs into the cell at a place.
    #[inline]
    fn write_hunks(&mut self, place: SlotEntry, (flags, len): (u8, usize), hunks: Hunks<'_>) {
        let bytes = self.bytes_mut();
        put(bytes, place.cell + CELL_AT_FLAGS, &[flags]);
        put(bytes, place.cell + CELL_AT_VALUE_LEN, &narrow(len).to_le_bytes());
        let value = place.cell + CELL_HEADER_BYTES + place.key_len;
        hunks.write_to(bytes.get_mut(value..value + len).unwrap_or_default());
    }

    #[inline]
    fn add_garbage(&mut self, bytes: usize) {
        self.set_garbage(self.view().garbage() + bytes);
    }
}

impl<'a> PageView<'a> {
    /// The last key that is not empty; keys ascend, so that only slot 0 can have an empty one.
    #[inline]
    fn last_key(&self) -> Option<&'a [u8]> {
        let last = self.count().checked_sub(1)?;
        Some(self.key(last)).filter(|key| !key.is_empty())
    }

    /// Bytes that all keys but an empty one share.
    fn shared_len(&self) -> usize {
        let Some(last) = self.last_key() else { return 0 };
        let first = if self.key(0).is_empty() { self.key(1) } else { self.key(0) };
        same_len(first, last)
    }
}

impl PageEdit<'_> {
    /// Shortens the shared prefix to what a new key has of it, before the key's slot is made.
    #[inline]
    fn admit_key(&mut self, key: &[u8]) {
        if key.is_empty() {
            return;
        }
        let view = self.view();
        let Some(last) = view.last_key() else {
            self.set_prefix_len(key.len());
            return;
        };
        let old = view.prefix_len();
        let new = same_len(last.get(..old).unwrap_or(last), key);
        if new < old {
            self.set_prefix_len(new);
            self.write_heads();
        }
    }

    /// Computes the longest prefix and every head again.
    fn refresh_heads(&mut self) {
        self.set_prefix_len(self.view().shared_len());
        self.write_heads();
    }

    fn write_heads(&mut self) {
        let skip = self.view().prefix_len();
        for slot in 0..self.count() {
            let head = head_of(self.key(slot), skip);
            let at = HEADER_BYTES + slot * SLOT_BYTES + SLOT_AT_HEAD;
            put(self.bytes_mut(), at, &head.to_le_bytes());
        }
    }
}

/// Bytes at the beginning that two keys share.
#[inline]
fn same_len(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Survey {
    pub count: usize,
    /// Bytes they take with their slots.
    pub bytes: usize,
}

/// Checks all cells before they go into slots from `at` on, between two keys.
pub(crate) fn survey(
    cells: Cells<'_>,
    page: (PageNo, PageSize, PageKind),
    at: usize,
    (below, above): (Option<&[u8]>, Option<&[u8]>),
) -> Result<Survey, ApplyFault> {
    let mut before = below;
    let mut found = Survey::default();
    for cell in cells {
        let cell = cell.map_err(|fault| ApplyFault::Cells { page: page.0, fault })?;
        let slot = at + found.count;
        check_entry(page, slot, cell.shape())?;
        if before.is_some_and(|before| before >= cell.key) {
            return Err(ApplyFault::Order { page: page.0, slot });
        }
        before = Some(cell.key);
        found.count += 1;
        found.bytes += row_bytes(cell.key.len(), cell.value.len());
    }
    match (before, above) {
        (Some(before), Some(above)) if found.count > 0 && before >= above => {
            Err(ApplyFault::Order { page: page.0, slot: at + found.count })
        }
        _ => Ok(found),
    }
}

impl PageEdit<'_> {
    pub(crate) fn splice(
        &mut self,
        page: PageNo,
        at: usize,
        cells: Cells<'_>,
    ) -> Result<(), ApplyFault> {
        let view = self.view();
        let count = view.count();
        if at > count {
            return Err(ApplyFault::NoSlot { page, slot: at, count });
        }
        let below = at.checked_sub(1).map(|slot| view.key(slot));
        let above = (at < count).then(|| view.key(at));
        let survey = survey(cells, (page, view.size(), view.kind()), at, (below, above))?;
        if survey.count == 0 {
            return Ok(());
        }
        self.make_room(page, survey.bytes)?;
        self.lay(at, cells, survey);
        Ok(())
    }

    /// Writes cells that were checked and have room in the gap, the first one lowest, so that
    /// reading them in order goes upwards.
    pub(crate) fn lay(&mut self, first: usize, cells: Cells<'_>, survey: Survey) {
        let slots = survey.count * crate::page::layout::SLOT_BYTES;
        let top = self.view().heap_top() + slots - survey.bytes;
        self.open_slots(first, survey.count);
        let mut at = top;
        for (slot, cell) in (first..).zip(cells.into_iter().flatten()) {
            self.write_cell(at, &cell);
            self.write_slot(slot, SlotEntry { cell: at, key_len: cell.key.len(), head: 0 });
            at += cell_bytes(cell.key.len(), cell.value.len());
        }
        self.set_heap_top(top);
        self.set_appends(0);
        self.refresh_heads();
    }
}

// Where a full page is cut in two.
//
// Invariant: both parts keep at least one row, and the row the cut is made for fits its part.
// Pages that fill in ascending order are cut at their end, so that they stay full.

/// So many inserts behind the last slot, in a row, are taken for ascending order.
const APPENDS_MIN: usize = 3;

/// A cut made for a row that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The first slot that moves to the right page: at least 1, less than the count.
    pub from: usize,
    /// Whether the new row belongs to the right page. When it goes exactly where the cut is, it
    /// becomes the right page's first row or the left page's last; in an inner page always the
    /// latter, so that the first key of the right page moves up.
    pub is_right: bool,
}

impl PageView<'_> {
    /// Whether the newest inserts came in ascending order, behind everything else.
    fn is_ascending(&self) -> bool {
        self.appends() >= APPENDS_MIN.min(self.count().saturating_sub(1)).max(1)
    }

    /// The first slot that moves to the right page when this one is cut in two halves by bytes, or
    /// near its end when it was filled in ascending order: at least 1 and less than the count.
    /// The count when there are less than two rows.
    pub fn split_point(&self) -> usize {
        let count = self.count();
        if count < 2 {
            return count;
        }
        if self.is_ascending() {
            return count - 1;
        }
        let total = self.used_bytes();
        let mut left = 0;
        let mut best = (usize::MAX, 1);
        for from in 1..count {
            left += self.row_bytes(from - 1);
            best = best.min((left.max(total.saturating_sub(left)), from));
        }
        best.1
    }

    /// Where to cut the page for a row that does not fit and that belongs into `slot`. After the
    /// cut it fits the part it belongs to; pages that are not full may be cut as well.
    ///
    /// The page has at least two rows and the new one is within the limits, or the answer is
    /// `None`.
    pub fn split_for(&self, slot: usize, key_len: usize, value_len: usize) -> Option<Split> {
        let count = self.count();
        if count < 2 || slot > count || self.size().check_row(key_len, value_len).is_err() {
            return None;
        }
        if slot == count && self.is_ascending() {
            return Some(Split { from: count - 1, is_right: true });
        }
        let new = row_bytes(key_len, value_len);
        let total = self.used_bytes() + new;
        let may_lead = self.kind() != PageKind::Inner;
        let mut old = 0;
        let mut best: Option<(usize, Split)> = None;
        for from in 1..count {
            old += self.row_bytes(from - 1);
            for is_right in [false, true] {
                let is_apt = if is_right { slot >= from } else { slot <= from };
                if !is_apt || (is_right && slot == from && !may_lead) {
                    continue;
                }
                let left = if is_right { old } else { old + new };
                let larger = left.max(total.saturating_sub(left));
                if best.is_none_or(|(least, _)| larger < least) {
                    best = Some((larger, Split { from, is_right }));
                }
            }
        }
        best.map(|(_, split)| split)
    }
}
