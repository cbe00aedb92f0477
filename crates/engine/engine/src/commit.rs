//! One attempt to apply a batch.
//!
//! Invariant: as stated in `batch`; here nothing waits but for latches, and only in the order of
//! page numbers.

use std::ops::Range;

use iostrata_page::Lsn;
use iostrata_pool::Exclusive;

use crate::changes::Changes;
use crate::error::{EngineError, RequestError};
use crate::mtr::{Held, Mtr};
use crate::pages::Pages;
use crate::tree::descend::{Leaf, UpperFence};

/// One batch holds at most one in so many frames: half of what all batches may hold together.
const LEAVES_SHARE: usize = 4;
/// Room for leaves that is made at first.
const LEAVES_AT_FIRST: usize = 64;

/// A sparse leaf is offered for joining each time that another such part of a page became free.
const SPARSE_STEPS: usize = 16;

/// Leaves that one batch may hold.
pub(crate) fn leaves_max(pages: &Pages) -> usize {
    (pages.storage.pool.frames() / LEAVES_SHARE).max(1)
}

/// Changes that fall into one leaf.
#[derive(Debug)]
pub(crate) struct Group {
    pub ops: Range<usize>,
    /// The batch took from the leaf and left it nearly empty.
    pub is_sparse: bool,
}

/// What came of it.
pub(crate) enum Attempt {
    /// Applied; the end of the frame.
    Done(Lsn),
    /// A leaf was moved meanwhile.
    Moved,
    /// The row of this condition is not as it should be.
    Refused { op: usize },
    /// The leaf of this change has no room for it.
    Full { op: usize, page_version: u32 },
}

/// Finds, latches, checks and changes. `groups` tells afterwards which leaves there were.
pub(crate) fn attempt(
    pages: &Pages,
    changes: &Changes<'_>,
    groups: &mut Vec<Group>,
) -> Result<Attempt, EngineError> {
    groups.clear();
    let leaves = locate(pages, changes, groups)?;
    let freed = changes.freed.map(|page| pages.map_bit(page)).transpose()?;
    let mut mtr = Mtr::begin(&pages.storage);
    let Some(held) = latch(&mut mtr, leaves) else { return Ok(Attempt::Moved) };
    for (group, leaf) in groups.iter().zip(&held) {
        let page = mtr.page(*leaf);
        if let Some(op) = group.ops.clone().find(|op| !changes.is_as_expected(*op, &page)) {
            return Ok(Attempt::Refused { op });
        }
    }
    for (group, leaf) in groups.iter().zip(&held) {
        if let Some(op) = first_without_room(&mtr, *leaf, changes, group) {
            let page_version = mtr.page_version(*leaf);
            return Ok(Attempt::Full { op, page_version });
        }
    }
    for (group, leaf) in groups.iter_mut().zip(&held) {
        apply(pages, &mut mtr, *leaf, changes, group)?;
    }
    if let Some(bit) = freed {
        bit.change(&mut mtr, false)?;
    }
    Ok(Attempt::Done(mtr.commit()))
}

/// Latches leaves in the order of their page numbers; gives them in the order of the groups. None
/// when one was moved since it was found, or found twice.
fn latch<'c>(mtr: &mut Mtr<'c>, leaves: Vec<Leaf<'c>>) -> Option<Vec<Held>> {
    let count = leaves.len();
    let mut ordered: Vec<(usize, Leaf<'c>)> = leaves.into_iter().enumerate().collect();
    ordered.sort_unstable_by_key(|(_, leaf)| leaf.pin.page_no());
    let page = |at: &(usize, Leaf<'c>)| at.1.pin.page_no();
    if ordered.windows(2).any(|pair| page(&pair[0]) == page(&pair[1])) {
        return None;
    }
    let mut held = vec![None; count];
    for (at, (group, leaf)) in ordered.into_iter().enumerate() {
        let seen = leaf.page_version;
        let latched = if at == 0 { leaf.pin.exclusive() } else { wait_for(leaf)? };
        // The first one, too, may have been moved before it was latched.
        if latched.page_version() != seen {
            return None;
        }
        held[group] = Some(mtr.hold(latched));
    }
    Some(held.into_iter().flatten().collect())
}

/// Latches a leaf while others are held. One that was freed since may have become an inner page,
/// whose holder waits for a leaf: so it is waited for only as long as it is what was found.
fn wait_for<'c>(leaf: Leaf<'c>) -> Option<Exclusive<'c>> {
    let Leaf { mut pin, page_version } = leaf;
    loop {
        match pin.try_exclusive() {
            Ok(latched) => return Some(latched),
            Err(back) => pin = back,
        }
        if pin.page_version() != page_version {
            return None;
        }
        std::thread::yield_now();
    }
}

/// The leaves of all changes. Those that are absent are read together first.
fn locate<'c>(
    pages: &'c Pages,
    changes: &Changes<'_>,
    groups: &mut Vec<Group>,
) -> Result<Vec<Leaf<'c>>, EngineError> {
    if changes.rows() > 1 {
        fetch_absent(pages, changes)?;
    }
    let mut leaves = Vec::with_capacity(changes.len().min(LEAVES_AT_FIRST));
    let mut upper = UpperFence::default();
    let mut op = 0;
    let limit = leaves_max(pages);
    while op < changes.len() {
        if leaves.len() == limit {
            return Err(EngineError::Request(RequestError::BatchTooWide { limit }));
        }
        let tree = changes.tree(op);
        leaves.push(tree.locate(pages, changes.key(op), &mut upper)?);
        let first = op;
        op += 1;
        while op < changes.len() && changes.same_tree(first, op) && upper.admits(changes.key(op)) {
            op += 1;
        }
        groups.push(Group { ops: first..op, is_sparse: false });
    }
    Ok(leaves)
}

/// Reads the leaves that are not in memory, many in flight, so that a batch waits once for the disk
/// and not once for each of its rows.
fn fetch_absent(pages: &Pages, changes: &Changes<'_>) -> Result<(), EngineError> {
    let mut absent = Vec::new();
    for op in (0..changes.len()).filter(|op| changes.begins_row(*op)) {
        let tree = changes.tree(op);
        if let Some(page) = tree.absent_leaf(pages, changes.key(op))?
            && absent.last() != Some(&page)
        {
            absent.push(page);
        }
    }
    if absent.len() > 1 {
        pages.storage.pool.fetch(&absent);
    }
    Ok(())
}

/// The first change that does not fit after those before it.
fn first_without_room(
    mtr: &Mtr<'_>,
    leaf: Held,
    changes: &Changes<'_>,
    group: &Group,
) -> Option<usize> {
    let page = mtr.page(leaf);
    let mut free = page.free_bytes() as isize;
    group.ops.clone().find(|op| {
        free -= changes.growth(*op, &page);
        free < 0
    })
}

fn apply(
    pages: &Pages,
    mtr: &mut Mtr<'_>,
    leaf: Held,
    changes: &Changes<'_>,
    group: &mut Group,
) -> Result<(), EngineError> {
    let before = mtr.page(leaf).used_bytes();
    for op in group.ops.clone() {
        let records = changes.records(op, &mtr.page(leaf));
        for record in records.iter().flatten() {
            mtr.change(leaf, record)?;
        }
        pages.storage.counts.row_changed(&records);
    }
    let after = mtr.page(leaf).used_bytes();
    // Not at every change of a sparse leaf: looking at its neighbours may mean to read them.
    let step = pages.storage.page_size.bytes() / SPARSE_STEPS;
    let has_stepped = after == 0 || before / step != after / step;
    group.is_sparse = after < before && after < pages.storage.sparse_page_bytes() && has_stepped;
    Ok(())
}

/// Joins leaves that the batch left nearly empty. What fails here fails again where it matters.
pub(crate) fn tidy(pages: &Pages, changes: &Changes<'_>, groups: &[Group]) {
    for group in groups.iter().filter(|group| group.is_sparse) {
        let first = group.ops.start;
        let _needed_by_nobody = changes.tree(first).merge_leaf(pages, changes.key(first));
    }
}
