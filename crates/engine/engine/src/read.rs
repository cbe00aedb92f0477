//! What a reader sees of a row: decided here and nowhere else.
//!
//! Invariant: every read of a table, of one key or of a range, goes through here. A snapshot sees
//! what commits up to its number wrote. A commit with a lower number may still hold its leaves
//! latched, so a reader that finds a row finds everything up to its snapshot in the leaf or behind
//! it. What is copied out of a leaf is copied while it is latched; an older version is fetched with
//! no latch held.

use iostrata_innodb::{Counter, Lsn, PageNo};

use crate::error::{EngineError, Failure};
use crate::page::layout::VERSION_BYTES;
use crate::page::{Cell, PageView};
use crate::pages::Pages;
use crate::pool::bring_near;
use crate::storage::Storage;
use crate::tree::Tree;
use crate::tree::descend::Seek;

/// Bytes of a row that are prefetched before it is read.
pub(crate) const ROW_BYTES_NEAR: usize = 128;

/// Where a row lies, or would: good as long as the leaf's page version is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafHint {
    pub page: PageNo,
    pub page_version: u32,
}

/// What reading a row returns besides its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadContext {
    /// The end of the newest frame that changed the leaf: to be waited for before the result is
    /// used outside.
    pub lsn: Lsn,
    pub leaf: LeafHint,
    /// The commit that wrote the newest version, or deleted the row; 0 when it is no longer known.
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
) -> Result<(Option<R>, ReadContext), EngineError> {
    let leaf = tree.leaf(pages, Seek::Key(key))?;
    let page = PageView::new(&leaf);
    pages.storage.counts.add(Counter::RowsRead, 1);
    let hint = LeafHint { page: leaf.page_no(), page_version: leaf.page_version() };
    let mut learnt = ReadContext { lsn: page.lsn(), leaf: hint, number: 0 };
    // The key is compared and the value copied: both are prefetched at once.
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

/// Sees the newest version of every row.
pub(crate) const NEWEST: u64 = u64::MAX;

/// What a snapshot sees of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visible<'p> {
    Row(&'p [u8]),
    Nothing,
    /// An older version, which lies here.
    Older(u64),
}

/// What a snapshot sees of a cell. One without a version is older than every snapshot.
#[inline]
pub(crate) fn visible<'p>(cell: &Cell<'p>, snapshot: u64) -> Visible<'p> {
    match cell.version() {
        Some(version) if version.number > snapshot => match version.older {
            0 => Visible::Nothing,
            pointer => Visible::Older(pointer),
        },
        _ if cell.is_tombstone() => Visible::Nothing,
        _ => Visible::Row(cell.payload()),
    }
}

/// Copies the value of the newest version that a snapshot sees, from a pointer on. False when the
/// row was not there. No latch is held: it may need the disk.
#[cold]
pub(crate) fn older_version(
    storage: &Storage,
    mut pointer: u64,
    snapshot: u64,
    value: &mut Vec<u8>,
) -> Result<bool, EngineError> {
    loop {
        let found = storage.versions.log.read(pointer, value);
        let found = found.map_err(|error| EngineError::Io(Failure::new(error)))?;
        let Some(flags) = found else {
            let what = format!("a version at {pointer} is gone that snapshot {snapshot} may see");
            return Err(storage.poison.broken(what));
        };
        let cell = Cell { flags, key: &[], value };
        let is_versioned = cell.is_versioned();
        match visible(&cell, snapshot) {
            Visible::Nothing => return Ok(false),
            Visible::Older(next) => pointer = next,
            Visible::Row(_) => {
                if is_versioned {
                    value.truncate(value.len() - VERSION_BYTES);
                }
                return Ok(true);
            }
        }
    }
}
