//! The one function that changes pages.
//!
//! Invariant: pure, total and deterministic. The running engine and recovery both come here, so
//! that recovery cannot do anything else than what was done. A fault leaves the page as it was.

use std::ops::Range;

use iostrata_innodb::PageNo;

use super::edit::write_bits;
use super::layout::ApplyFault;
use super::layout::put;
use super::view::{Cell, Cells};
use crate::page::edit::PageEdit;
use crate::page::heap::{Survey, survey};
use crate::page::layout::{HEADER_BYTES, PageKind};
use crate::page::record::Record;

impl Record<'_> {
    /// Changes page `no` as the record says. The LSN and the checksum stay for the caller to
    /// write, but a record that starts the page sets them to 0.
    #[inline]
    pub fn apply(&self, page: &mut PageEdit<'_>, no: PageNo) -> Result<(), ApplyFault> {
        if self.starts_page() {
            return self.start(page, no);
        }
        if page.page_no() != no {
            return Err(ApplyFault::OtherPage { page: no, found: page.page_no() });
        }
        match *self {
            Self::SetBits { from, count, set } => return set_bits(page, no, from, count, set),
            Self::SetSuper { at, bytes } => return set_super(page, no, at, bytes),
            _ => {}
        }
        let kind = page.kind();
        if !kind.is_slotted() {
            return Err(ApplyFault::WrongKind { page: no, kind });
        }
        if !page.view().has_sane_bounds() {
            return Err(ApplyFault::Damaged { page: no });
        }
        match *self {
            Self::Insert { slot, flags, key, value } => {
                page.insert(no, slot, Cell { flags, key, value })
            }
            Self::Delete { slot } => page.delete(no, slot),
            Self::Replace { slot, value } => page.replace(no, slot, value),
            Self::Revise { slot, flags, len, hunks } => page.revise(no, slot, (flags, len), hunks),
            Self::Truncate { from } => page.truncate(no, from),
            Self::Splice { at, cells } => page.splice(no, at, cells),
            Self::SetLeft(left) => {
                page.set_left(left);
                Ok(())
            }
            Self::SetRight(right) => {
                page.set_right(right);
                Ok(())
            }
            Self::Init { .. }
            | Self::Image { .. }
            | Self::SetBits { .. }
            | Self::SetSuper { .. } => Ok(()), // done above
        }
    }

    /// Init and Image: whatever was there, the page begins anew.
    fn start(&self, page: &mut PageEdit<'_>, no: PageNo) -> Result<(), ApplyFault> {
        let (kind, level, table, left, right, body) = match *self {
            Self::Init { kind, level, table, left, right } => {
                (kind, level, table, left, right, &[][..])
            }
            Self::Image { kind, level, table, left, right, body } => {
                (kind, level, table, left, right, body)
            }
            _ => return Ok(()),
        };
        if !kind.allows_level(level) {
            return Err(ApplyFault::WrongLevel { page: no, kind, level });
        }
        let found = check_body(page, no, kind, body)?;
        page.format(kind, level, table, no, left, right);
        if kind.is_slotted() {
            if found.count > 0 {
                page.lay(0, Cells::new(body), found);
            }
        } else {
            put(page.bytes_mut(), HEADER_BYTES, body);
        }
        Ok(())
    }
}

/// Whether the content of an image fits a page of its kind.
fn check_body(
    page: &PageEdit<'_>,
    no: PageNo,
    kind: PageKind,
    body: &[u8],
) -> Result<Survey, ApplyFault> {
    let size = page.size();
    if kind.is_slotted() {
        let found = survey(Cells::new(body), (no, size, kind), 0, (None, None))?;
        let (needed, free) = (found.bytes, size.body_bytes());
        if needed > free {
            return Err(ApplyFault::Full { page: no, needed, free });
        }
        return Ok(found);
    }
    let len = if kind == PageKind::Free { 0 } else { size.body_bytes() };
    if body.len() > len {
        return Err(ApplyFault::OutOfRange { page: no, from: 0, count: body.len(), len });
    }
    Ok(Survey::default())
}

fn set_bits(
    page: &mut PageEdit<'_>,
    no: PageNo,
    from: u32,
    count: u32,
    set: bool,
) -> Result<(), ApplyFault> {
    expect_kind(page, no, PageKind::Space)?;
    let len = page.size().space_bits();
    let bits: Range<u32> = match from.checked_add(count) {
        Some(end) if end <= len => from..end,
        _ => {
            let (from, count, len) = (from as usize, count as usize, len as usize);
            return Err(ApplyFault::OutOfRange { page: no, from, count, len });
        }
    };
    if page.bits_set_in(bits.clone()) != if set { 0 } else { count } {
        let bit = bits.clone().find(|bit| page.bit(*bit) == set).unwrap_or(from);
        return Err(ApplyFault::AlreadySo { page: no, bit });
    }
    if let Some(body) = page.bytes_mut().get_mut(HEADER_BYTES..) {
        write_bits(body, bits, set);
    }
    Ok(())
}

fn set_super(
    page: &mut PageEdit<'_>,
    no: PageNo,
    at: usize,
    bytes: &[u8],
) -> Result<(), ApplyFault> {
    expect_kind(page, no, PageKind::Super)?;
    let len = page.size().body_bytes();
    if at > len || bytes.len() > len - at {
        return Err(ApplyFault::OutOfRange { page: no, from: at, count: bytes.len(), len });
    }
    put(page.bytes_mut(), HEADER_BYTES + at, bytes);
    Ok(())
}

fn expect_kind(page: &PageEdit<'_>, no: PageNo, kind: PageKind) -> Result<(), ApplyFault> {
    if page.kind() == kind {
        return Ok(());
    }
    Err(ApplyFault::WrongKind { page: no, kind: page.kind() })
}
