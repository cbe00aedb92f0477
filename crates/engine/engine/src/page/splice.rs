//! Many rows at once.
//!
//! Purpose: what Splice and Image do. Invariant: as with single rows, all cells are looked at
//! before the first byte changes.

use iostrata_innodb::PageNo;

use crate::page::cells::Cells;
use crate::page::edit::PageEdit;
use crate::page::fault::ApplyFault;
use crate::page::heap::check_entry;
use crate::page::kind::PageKind;
use crate::page::layout::{cell_bytes, row_bytes};
use crate::page::row::SlotEntry;
use crate::page::size::PageSize;

/// What cells need.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Survey {
    /// How many there are.
    pub count: usize,
    /// Bytes they take with their slots.
    pub bytes: usize,
}

/// Looks at all cells before they go into slots from `at` on, between two keys.
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

    /// Writes cells that were looked at and have room in the gap, the first one lowest, so that
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
