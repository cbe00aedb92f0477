//! Reading one row, as a snapshot sees it.
//!
//! Invariant: what is copied out of a leaf is copied while it is latched; an older version is
//! fetched with no latch held.

use iostrata_innodb::{Counter, Lsn, PageNo};

use crate::error::EngineError;
use crate::page::PageView;
use crate::pages::Pages;
use crate::pool::bring_near;
use crate::tree::Tree;
use crate::tree::descend::Seek;
use crate::visible::{Visible, older_version, visible};

/// So many bytes of a row are asked for before it is looked at.
pub(crate) const ROW_BYTES_NEAR: usize = 128;

/// Where a row lies, or would: good as long as the leaf's page version is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafHint {
    pub page: PageNo,
    pub page_version: u32,
}

/// What reading a row tells besides its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Learnt {
    /// The end of the newest frame that changed the leaf: who tells of what it read waits for it.
    pub lsn: Lsn,
    pub leaf: LeafHint,
    /// The commit that wrote the newest version, or deleted the row; 0 when nobody can tell any
    /// more.
    pub number: u64,
}

#[inline]
pub(crate) fn replace(value: &mut Vec<u8>, by: &[u8]) {
    value.clear();
    value.extend_from_slice(by);
}

/// Copies what a snapshot sees of a row.
#[inline]
pub(crate) fn read_row<R>(
    pages: &Pages,
    tree: &Tree,
    key: &[u8],
    snapshot: u64,
    copy: impl FnOnce(&[u8]) -> R,
) -> Result<(Option<R>, Learnt), EngineError> {
    let leaf = tree.leaf(pages, Seek::Key(key))?;
    let page = PageView::new(&leaf);
    pages.storage.counts.add(Counter::RowsRead, 1);
    let hint = LeafHint { page: leaf.page_no(), page_version: leaf.page_version() };
    let mut learnt = Learnt { lsn: page.lsn(), leaf: hint, number: 0 };
    // The value is copied as well as the key compared: both are asked for at once.
    let near = page.near(key);
    bring_near(page.near_cell(near, ROW_BYTES_NEAR));
    let Ok(slot) = page.find_near(near, key) else { return Ok((None, learnt)) };
    let cell = page.cell(slot);
    learnt.number = cell.version().map_or(0, |version| version.number);
    let pointer = match visible(&cell, snapshot) {
        Visible::Row(value) => return Ok((Some(copy(value)), learnt)),
        Visible::Nothing => return Ok((None, learnt)),
        Visible::Older(pointer) => pointer,
    };
    drop(leaf);
    let mut row = Vec::new();
    let is_there = older_version(&pages.storage, pointer, snapshot, &mut row)?;
    Ok((is_there.then(|| copy(&row)), learnt))
}
