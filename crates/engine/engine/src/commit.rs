//! One attempt to apply a batch.
//!
//! Invariant: as stated in `batch`; here nothing waits but for latches, and only in the order of
//! page numbers.

use std::ops::Range;

use iostrata_page::Lsn;

use crate::batch::Changes;
use crate::core::Core;
use crate::error::EngineError;
use crate::mtr::{Held, Mtr};
use crate::space::MapBit;
use crate::tree::descend::{Leaf, Upper};

/// One batch holds at most one in so many frames, so that eight can be at work.
const LEAVES_SHARE: usize = 8;

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
    /// The leaf of this change has no room for it.
    Full { op: usize, structure: u32 },
}

/// Finds, latches, checks and changes. `groups` tells afterwards which leaves there were.
pub(crate) fn attempt(
    core: &Core,
    changes: &Changes<'_>,
    groups: &mut Vec<Group>,
) -> Result<Attempt, EngineError> {
    groups.clear();
    let mut leaves = locate(core, changes, groups)?;
    let mut order: Vec<usize> = (0..leaves.len()).collect();
    order.sort_by_key(|group| leaves[*group].pin.page_no());
    let twice =
        order.windows(2).any(|pair| leaves[pair[0]].pin.page_no() == leaves[pair[1]].pin.page_no());
    if twice {
        return Ok(Attempt::Moved);
    }
    let structures: Vec<u32> = leaves.iter().map(|leaf| leaf.structure).collect();
    let mut held: Vec<Option<Held>> = vec![None; leaves.len()];
    let mut pins: Vec<_> = leaves.drain(..).map(|leaf| Some(leaf.pin)).collect();
    let freed = changes.freed.map(|page| MapBit::of(core, page)).transpose()?;
    let mut mtr = Mtr::begin(core);
    for group in order {
        let Some(pin) = pins[group].take() else { panic!("each leaf is latched once") };
        let latched = mtr.latch(pin);
        if mtr.structure(latched) != structures[group] {
            return Ok(Attempt::Moved);
        }
        held[group] = Some(latched);
    }
    let held: Vec<Held> = held.into_iter().flatten().collect();
    for (group, leaf) in groups.iter().zip(&held) {
        if let Some(op) = first_without_room(&mtr, *leaf, changes, group) {
            let structure = mtr.structure(*leaf);
            return Ok(Attempt::Full { op, structure });
        }
    }
    for (group, leaf) in groups.iter_mut().zip(&held) {
        apply(core, &mut mtr, *leaf, changes, group)?;
    }
    if let Some(bit) = freed {
        bit.change(&mut mtr, false)?;
    }
    Ok(Attempt::Done(mtr.commit()))
}

fn locate<'c>(
    core: &'c Core,
    changes: &Changes<'_>,
    groups: &mut Vec<Group>,
) -> Result<Vec<Leaf<'c>>, EngineError> {
    let mut leaves = Vec::new();
    let mut upper = Upper::default();
    let mut op = 0;
    let limit = (core.pool.frames() / LEAVES_SHARE).max(1);
    while op < changes.len() {
        if leaves.len() == limit {
            return Err(EngineError::BatchTooWide { limit });
        }
        let tree = changes.table(op).tree();
        leaves.push(tree.locate(core, changes.key(op), &mut upper)?);
        let first = op;
        op += 1;
        while op < changes.len() && changes.same_table(first, op) && upper.admits(changes.key(op)) {
            op += 1;
        }
        groups.push(Group { ops: first..op, is_sparse: false });
    }
    Ok(leaves)
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
    core: &Core,
    mtr: &mut Mtr<'_>,
    leaf: Held,
    changes: &Changes<'_>,
    group: &mut Group,
) -> Result<(), EngineError> {
    let before = mtr.page(leaf).used_bytes();
    for op in group.ops.clone() {
        let Some(record) = changes.record(op, &mtr.page(leaf)) else { continue };
        core.counts.row_changed(&record);
        mtr.change(leaf, &record)?;
    }
    let after = mtr.page(leaf).used_bytes();
    let threshold = core.page_size.bytes() * core.merge_threshold_pct() / 100;
    group.is_sparse = after < before && after < threshold;
    Ok(())
}
