//! Applying a write set: one frame of redo, seen by all readers at once; the row locks of one
//! transaction or batch; and one change of one row in its leaf.
//!
//! Invariants: leaves are found without latches, latched in the order of their page numbers,
//! compared with what was found, and only then changed; if one was moved, lacks room, or has a row
//! that another transaction has locked, everything is let go, the obstacle is removed, and it
//! starts again. While latches are held nothing waits but for latches. Locks are released when
//! their holder ends, and not before.
//! What a snapshot may still see is in the version log before the row is changed. The number of a
//! commit is taken with its first change, while all its leaves are latched; so it is never above
//! the end of its frame: the redo grows by more than a byte with each commit.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use iostrata_innodb::{Counter, Lsn, PageNo};

use crate::error::{EngineError, RequestError, TransactionError};
use crate::lock::{Grant, LockFailure, LockId, LockOwner};
use crate::mtr::{Mtr, PageHandle};
use crate::page::layout::{FLAG_TOMBSTONE, FLAG_VERSIONED, VERSION_BYTES};
use crate::page::{Cell, Hunks, PageView, Record, Version, row_bytes};
use crate::pages::Pages;
use crate::pool::{Exclusive, bring_near};
use crate::read::{NEWEST, ROW_BYTES_NEAR, Visible, visible};
use crate::safeguards::Safeguard;
use crate::storage::Storage;
use crate::tree::Tree;
use crate::tree::descend::{Leaf, UpperFence};
use crate::tree::structure::RowToFit;
use crate::version::Keeper;
use crate::write_set::{Change, WriteSet};

/// One write set holds at most one in so many frames: half of what all may hold together.
const LEAVES_SHARE: usize = 4;
const LEAVES_AT_FIRST: usize = 64;
/// Attempts to latch a leaf while others are held, before those are released.
const LATCH_TRIES: u32 = 200;
/// Memory for so many changes is kept by a thread.
const PLACES_KEPT: usize = 1 << 10;
/// A sparse leaf is offered for joining each time that another such part of a page became free.
const SPARSE_STEPS: usize = 16;

/// Leaves that one write set may hold.
pub(crate) fn leaves_max(pages: &Pages) -> usize {
    (pages.storage.pool.frames.len() / LEAVES_SHARE).max(1)
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Committer<'t> {
    /// A batch: rows that transactions have locked are waited for.
    Batch,
    /// A transaction that holds the lock of each row. They are released when the frame is appended.
    Transaction { owner: &'t LockOwner, locks: &'t [LockId] },
    /// Purge, which changes nothing visible.
    Purge,
}

thread_local! {
    /// What a commit finds is kept in the same memory again and again.
    static SPARE: std::cell::Cell<Places> = const { std::cell::Cell::new(Places::NONE) };
}

/// Where the changes belong.
#[derive(Debug, Default)]
struct Places {
    groups: Vec<Group>,
    /// For each group its number and its leaf.
    held: Vec<(usize, PageHandle)>,
    /// For each change the slot of its row; at first where that is looked for.
    slots: Vec<RowSlot>,
}

impl Places {
    const NONE: Self = Self { groups: Vec::new(), held: Vec::new(), slots: Vec::new() };

    /// Leaves this memory to the thread's next commit, unless it is unusually much.
    fn leave(self) {
        if self.slots.capacity() <= PLACES_KEPT {
            SPARE.set(self);
        }
    }
}

#[derive(Debug)]
struct Group {
    ops: Range<usize>,
    /// Rows went from the leaf and left it nearly empty.
    is_sparse: bool,
}

enum Attempt {
    /// Applied; the end of the frame.
    Done(Lsn),
    /// A leaf was moved meanwhile.
    Moved,
    /// Others had this leaf all the time, while the leaves before it were held.
    Contended { page: PageNo },
    /// The row of this condition is not as it should be.
    Refused { op: usize },
    /// Another transaction holds the lock of this row.
    Locked { op: usize },
    /// The leaf of this change has no room for it and those before it, which need so much.
    Full { op: usize, needed_bytes: usize, page_version: u32 },
}

/// Applies all changes, or none. Gives the end of their frame.
pub(crate) fn commit(
    pages: &Pages,
    writes: &mut WriteSet,
    committer: Committer<'_>,
) -> Result<Lsn, EngineError> {
    writes.sort();
    let writes = &*writes;
    let (bytes, rows) = (check_size(pages, writes)?, writes.rows());
    let mut locks = RowLocks::new(&pages.storage);
    let mut places = SPARE.take();
    loop {
        // In this order, as everywhere: a thread with room in the redo waits for no pins.
        let pins = pages.admission.pins(rows.min(leaves_max(pages)));
        let room = pages.admission.admit(bytes)?;
        match attempt(pages, writes, &mut places, (committer, &locks))? {
            Attempt::Done(end) => {
                drop((room, pins, locks));
                if let Committer::Transaction { owner, locks } = committer {
                    pages.storage.locks.release(owner, locks);
                }
                if let Some(page) = writes.freed {
                    pages.space.freed(page);
                }
                join_sparse(pages, writes, &places.groups);
                places.leave();
                return Ok(end);
            }
            Attempt::Moved => {}
            Attempt::Contended { page } => {
                drop((room, pins));
                wait_latch(pages, page);
            }
            Attempt::Refused { op } => {
                let table = writes.tree(op).name.clone();
                let key = writes.key(op).to_vec();
                return Err(EngineError::Request(RequestError::NotAsExpected { table, key }));
            }
            Attempt::Locked { op } => {
                drop((room, pins));
                locks.lock_or_begin_anew(writes.tree(op), writes.key(op))?;
            }
            Attempt::Full { op, needed_bytes, page_version } => {
                drop((room, pins));
                let (key, value_bytes) = (writes.key(op), writes.value(op).map_or(0, <[u8]>::len));
                let row = RowToFit { key, value_bytes, needed_bytes };
                writes.tree(op).split_leaf(pages, &row, page_version)?;
            }
        }
    }
}

/// Bytes of redo that the changes need at most, if one frame may have so many.
fn check_size(pages: &Pages, writes: &WriteSet) -> Result<usize, EngineError> {
    let (bytes, limit) = (writes.redo_bytes(), pages.storage.frame_bytes_max());
    if bytes > limit {
        Err(EngineError::Request(RequestError::BatchTooLarge { bytes, limit }))
    } else {
        Ok(bytes)
    }
}

/// Finds, latches, checks and changes. Afterwards the places contain the leaves.
fn attempt(
    pages: &Pages,
    writes: &WriteSet,
    Places { groups, held, slots }: &mut Places,
    (committer, locks): (Committer<'_>, &RowLocks<'_>),
) -> Result<Attempt, EngineError> {
    // An index that comes later waits for what is promised room now.
    writes.check_indexes()?;
    let leaves = locate(pages, writes, groups)?;
    let freed = writes.freed.map(|page| pages.map_bit(page)).transpose()?;
    let mut mtr = Mtr::begin(&pages.storage);
    if let Err(without) = latch(&mut mtr, leaves, held) {
        return Ok(without);
    }
    slots.clear();
    for (group, (_, leaf)) in groups.iter().zip(&*held) {
        look_near(&mtr.page(*leaf), (writes, group), slots);
    }
    for (group, (_, leaf)) in groups.iter().zip(&*held) {
        let page = mtr.page(*leaf);
        for op in group.ops.clone() {
            if !is_as_expected(writes, op, &page) {
                return Ok(Attempt::Refused { op });
            }
            let near = slots[op].unwrap_or_else(|near| near);
            slots[op] = page.find_near(near, writes.key(op));
        }
    }
    // Under the latches: a later holder of a row's lock finds it as it is after this commit.
    if matches!(committer, Committer::Batch)
        && let Some(op) = locks.first_locked(writes)
    {
        return Ok(Attempt::Locked { op });
    }
    let mut stamp = Stamp::new(&pages.storage);
    for (group, (_, leaf)) in groups.iter().zip(&*held) {
        if let Some(full) = first_without_room(&mtr, *leaf, (writes, group, slots), &stamp) {
            return Ok(full);
        }
    }
    for (group, (_, leaf)) in groups.iter_mut().zip(&*held) {
        let applied = apply(pages, &mut mtr, *leaf, (writes, group, slots), &mut stamp)?;
        if !applied {
            // A snapshot was taken since the room was checked; nothing has been changed yet.
            return Ok(Attempt::Moved);
        }
    }
    if let Some(bit) = freed {
        bit.change(&mut mtr, false)?;
    }
    Ok(Attempt::Done(mtr.commit()))
}

/// Adds for each change of a leaf where its row is looked for, and prefetches all these rows at
/// once: one alone takes as long as all together.
fn look_near(page: &PageView<'_>, (writes, group): (&WriteSet, &Group), slots: &mut Vec<RowSlot>) {
    for op in group.ops.clone() {
        let near = page.near(writes.key(op));
        if writes.len() > 1 {
            bring_near(page.near_cell(near, ROW_BYTES_NEAR));
        }
        slots.push(Err(near));
    }
}

/// Latches leaves in the order of their page numbers; gives them in the order of the groups.
/// Nothing comes of it when one was moved since it was found, or found twice, or when others do not
/// let go.
fn latch<'c>(
    mtr: &mut Mtr<'c>,
    mut leaves: Vec<(usize, Leaf<'c>)>,
    held: &mut Vec<(usize, PageHandle)>,
) -> Result<(), Attempt> {
    held.clear();
    leaves.sort_unstable_by_key(|(_, leaf)| leaf.pin.page_no());
    let page = |at: &(usize, Leaf<'c>)| at.1.pin.page_no();
    if leaves.windows(2).any(|pair| page(&pair[0]) == page(&pair[1])) {
        return Err(Attempt::Moved);
    }
    for (group, leaf) in leaves {
        let seen = leaf.page_version;
        let latched = if held.is_empty() { leaf.pin.exclusive() } else { wait_for(leaf)? };
        // The first one, too, may have been moved before it was latched.
        if latched.page_version() != seen {
            return Err(Attempt::Moved);
        }
        held.push((group, mtr.hold(latched)));
    }
    held.sort_unstable_by_key(|(group, _)| *group);
    Ok(())
}

/// Latches a leaf while others are held. One that was freed since may have become an inner page,
/// whose holder waits for a leaf: so it is waited for only as long as it is what was found.
/// Overlapping readers do not know of it: so not for long, and no thread waits for the held leaves
/// for ever.
fn wait_for<'c>(leaf: Leaf<'c>) -> Result<Exclusive<'c>, Attempt> {
    let Leaf { mut pin, page_version } = leaf;
    for _ in 0..LATCH_TRIES {
        match pin.try_exclusive() {
            Ok(latched) => return Ok(latched),
            Err(back) => pin = back,
        }
        if pin.page_version() != page_version {
            return Err(Attempt::Moved);
        }
        std::thread::yield_now();
    }
    Err(Attempt::Contended { page: pin.page_no() })
}

/// Waits for a latch with none held, where readers let writers go first.
#[cold]
fn wait_latch(pages: &Pages, page: PageNo) {
    if let Some(pin) = pages.storage.pool.try_pin(page) {
        drop(pin.exclusive());
    }
}

/// The leaves of all changes. Those that are not in memory are read together first, so that a wide
/// write set waits once for the disk and not once for each of its rows.
fn locate<'c>(
    pages: &'c Pages,
    writes: &WriteSet,
    groups: &mut Vec<Group>,
) -> Result<Vec<(usize, Leaf<'c>)>, EngineError> {
    let mut absent = Vec::new();
    let leaves = locate_all(pages, writes, groups, |op, upper| {
        writes.tree(op).locate_resident(pages, writes.key(op), upper, &mut absent)
    })?;
    if absent.is_empty() {
        return Ok(leaves);
    }
    drop(leaves);
    if absent.len() > 1 {
        pages.storage.pool.fetch(&absent);
    }
    locate_all(pages, writes, groups, |op, upper| {
        writes.tree(op).locate(pages, writes.key(op), upper).map(Some)
    })
}

/// The leaves that `find` gives, by the first change that falls into each, with their groups'
/// numbers.
fn locate_all<'c>(
    pages: &'c Pages,
    writes: &WriteSet,
    groups: &mut Vec<Group>,
    mut find: impl FnMut(usize, &mut UpperFence) -> Result<Option<Leaf<'c>>, EngineError>,
) -> Result<Vec<(usize, Leaf<'c>)>, EngineError> {
    groups.clear();
    let mut leaves: Vec<(usize, Leaf<'c>)> = Vec::with_capacity(writes.len().min(LEAVES_AT_FIRST));
    let mut upper = UpperFence::default();
    let limit = leaves_max(pages);
    let mut op = 0;
    while op < writes.len() {
        let first = op;
        let leaf = match hinted(pages, writes, op)? {
            Some(leaf) => {
                upper.unknown();
                Some(leaf)
            }
            None => find(op, &mut upper)?,
        };
        op += 1;
        while op < writes.len()
            && writes.same_tree(first, op)
            && (upper.admits(writes.key(op)) || is_there(writes, op, leaf.as_ref()))
        {
            op += 1;
        }
        let Some(leaf) = leaf else { continue };
        match (leaves.last(), groups.last_mut()) {
            // Found in two ways.
            (Some((_, last)), Some(group)) if last.pin.page_no() == leaf.pin.page_no() => {
                group.ops.end = op;
            }
            _ if leaves.len() == limit => {
                return Err(EngineError::Request(RequestError::BatchTooWide { limit }));
            }
            _ => {
                leaves.push((groups.len(), leaf));
                groups.push(Group { ops: first..op, is_sparse: false });
            }
        }
    }
    Ok(leaves)
}

/// The leaf where a row was last seen, if it is still the row's.
fn hinted<'c>(
    pages: &'c Pages,
    writes: &WriteSet,
    op: usize,
) -> Result<Option<Leaf<'c>>, EngineError> {
    let Some(hint) = writes.leaf(op) else { return Ok(None) };
    writes.tree(op).check_not_dropped()?;
    let Some(pin) = pages.storage.pool.try_pin(hint.page) else { return Ok(None) };
    let page_version = pin.page_version();
    Ok((page_version == hint.page_version).then_some(Leaf { pin, page_version }))
}

/// Whether a row was last seen in this leaf.
fn is_there(writes: &WriteSet, op: usize, leaf: Option<&Leaf<'_>>) -> bool {
    match (writes.leaf(op), leaf) {
        (Some(hint), Some(leaf)) => {
            hint.page == leaf.pin.page_no() && hint.page_version == leaf.page_version
        }
        _ => false,
    }
}

/// The first change that does not fit after those before it.
fn first_without_room(
    mtr: &Mtr<'_>,
    leaf: PageHandle,
    (writes, group, slots): (&WriteSet, &Group, &[RowSlot]),
    stamp: &Stamp<'_>,
) -> Option<Attempt> {
    let page = mtr.page(leaf);
    let (free, mut needed) = (page.free_bytes() as isize, 0);
    let full = group.ops.clone().find(|op| {
        needed += growth((writes, *op), slots[*op], &page, stamp);
        needed > free
    });
    let page_version = mtr.page_version(leaf);
    full.map(|op| Attempt::Full { op, needed_bytes: needed.unsigned_abs(), page_version })
}

/// Changes the rows of one leaf. False, and nothing was changed, when more room is needed than was
/// looked for.
fn apply(
    pages: &Pages,
    mtr: &mut Mtr<'_>,
    leaf: PageHandle,
    (writes, group, slots): (&WriteSet, &mut Group, &[RowSlot]),
    stamp: &mut Stamp<'_>,
) -> Result<bool, EngineError> {
    let (before, count) = (mtr.page(leaf).used_bytes(), mtr.page(leaf).count());
    for op in group.ops.clone() {
        // The rows before it came or went: their keys are less.
        let moved = |slot: usize| slot + mtr.page(leaf).count() - count;
        let slot = slots[op].map(moved).map_err(moved);
        match change_row(mtr, leaf, (writes, op), slot, stamp)? {
            ChangeOutcome::Row(kind) => pages.storage.counts.add(kind, 1),
            ChangeOutcome::Nothing => {}
            ChangeOutcome::LacksRoom => return Ok(false),
        }
    }
    let after = mtr.page(leaf).used_bytes();
    // Not at every change of a sparse leaf: looking at its neighbours may mean to read them.
    let step = pages.storage.page_size.bytes() / SPARSE_STEPS;
    let has_stepped = after == 0 || before / step != after / step;
    group.is_sparse = after < before && after < pages.storage.sparse_page_bytes() && has_stepped;
    Ok(true)
}

/// Joins leaves that were left nearly empty. What fails here fails again where it matters.
fn join_sparse(pages: &Pages, writes: &WriteSet, groups: &[Group]) {
    for group in groups.iter().filter(|group| group.is_sparse) {
        let first = group.ops.start;
        let _not_needed = writes.tree(first).merge_leaf(pages, writes.key(first));
    }
}

/// The numbers of transactions, of all engines of the process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Attempts to take locks again after a deadlock.
pub(crate) const TRIES: u32 = 100;

pub(crate) fn next_number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[derive(Debug)]
pub(crate) struct RowLocks<'c> {
    storage: &'c Storage,
    /// Made with the first lock.
    owner: Option<LockOwner>,
    held: Vec<LockId>,
}

impl<'c> RowLocks<'c> {
    pub fn new(storage: &'c Storage) -> Self {
        Self { storage, owner: None, held: Vec::new() }
    }

    /// The first row of a sorted write set that another transaction has locked.
    pub fn first_locked(&self, writes: &WriteSet) -> Option<usize> {
        let locks = &self.storage.locks;
        let owner = self.owner.as_ref();
        (0..writes.len())
            .filter(|op| writes.begins_row(*op))
            .find(|op| locks.is_held_by_another(owner, writes.lock_id(*op)))
    }

    /// Locks a row, for a caller that holds nothing that was decided by what is locked: in a
    /// deadlock it releases everything and starts over.
    pub fn lock_or_begin_anew(&mut self, tree: &Tree, key: &[u8]) -> Result<(), EngineError> {
        let owner = self.owner.get_or_insert_with(|| LockOwner::new(next_number()));
        let patience = self.storage.lock_wait_timeout();
        match lock(self.storage, owner, (tree, key), patience) {
            Ok(Some(id)) => self.held.push(id),
            Ok(None) => {}
            Err(EngineError::Transaction(TransactionError::Deadlock { .. })) => self.release(),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn release(&mut self) {
        if let Some(owner) = &self.owner {
            self.storage.locks.release(owner, &self.held);
        }
        self.held.clear();
    }
}

impl Drop for RowLocks<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

/// Locks rows in the order given for a caller that holds nothing and has read nothing, so that in a
/// deadlock it can release them and start over. It holds none when that lasts too long.
#[cold]
pub(crate) fn lock_all(
    storage: &Storage,
    owner: &LockOwner,
    ids: &[LockId],
    patience: Duration,
    held: &mut Vec<LockId>,
) {
    'anew: for _ in 0..TRIES {
        for id in ids {
            match storage.locks.acquire(owner, *id, patience) {
                Ok(Grant::Now) => held.push(*id),
                Ok(Grant::Already) => {}
                Err(failure) => {
                    storage.locks.release(owner, held);
                    held.clear();
                    match failure {
                        LockFailure::Deadlock { .. } => continue 'anew,
                        LockFailure::Timeout { .. } => return,
                    }
                }
            }
        }
        return;
    }
}

/// Locks a row; gives the lock if the owner did not hold it before.
pub(crate) fn lock(
    storage: &Storage,
    owner: &LockOwner,
    (tree, key): (&Tree, &[u8]),
    patience: Duration,
) -> Result<Option<LockId>, EngineError> {
    let id = LockId::of(tree.id.0, key);
    let failure = match storage.locks.acquire(owner, id, patience) {
        Ok(Grant::Now) => return Ok(Some(id)),
        Ok(Grant::Already) => return Ok(None),
        Err(failure) => failure,
    };
    let (table, key, transaction) = (tree.name.clone(), key.to_vec(), owner.number());
    Err(EngineError::Transaction(match failure {
        LockFailure::Deadlock { holder } => {
            TransactionError::Deadlock { transaction, holder, table, key }
        }
        LockFailure::Timeout { holder, waited } => {
            TransactionError::LockTimeout { transaction, holder, waited, table, key }
        }
    }))
}

/// No frame that changes a row is shorter, in bytes. After a restart the numbers go on from the end
/// of the redo, so each has to lie at or before the end of its own frame.
const FRAME_BYTES_MIN: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeOutcome {
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
        // Those that took lower numbers are about to append, and wait for no other thread.
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

/// Whether the row meets the condition of an operation; changes have none.
fn is_as_expected(writes: &WriteSet, op: usize, page: &PageView<'_>) -> bool {
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
fn change_row(
    mtr: &mut Mtr<'_>,
    leaf: PageHandle,
    (writes, op): (&WriteSet, usize),
    slot: RowSlot,
    stamp: &mut Stamp<'_>,
) -> Result<ChangeOutcome, EngineError> {
    let (tree, key) = (writes.tree(op), writes.key(op));
    let page = mtr.page(leaf);
    debug_assert_eq!(slot, page.find(key), "a row moved under the latch");
    let is_absent = slot.is_err_and(|_| writes.value(op).is_none());
    if is_absent || matches!(writes.change(op), Change::Expect(_)) {
        return Ok(ChangeOutcome::Nothing);
    }
    let (place, old) = match slot {
        Ok(slot) => (slot, Some(page.cell(slot))),
        Err(slot) => (slot, None),
    };
    let was_deleted = old.as_ref().is_some_and(Cell::is_tombstone);
    if let Change::Purge { number } = writes.change(op) {
        let is_due = old.is_some_and(|cell| is_tombstone_of(&cell, *number));
        return if is_due { purge(mtr, leaf, place) } else { Ok(ChangeOutcome::Nothing) };
    }
    let value = writes.value(op);
    if value.is_none() && was_deleted {
        return Ok(ChangeOutcome::Nothing);
    }
    if tree.keeps_versions() && !stamp.begin() {
        return Ok(ChangeOutcome::LacksRoom);
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
    Ok(ChangeOutcome::Row(kind))
}

fn is_tombstone_of(cell: &Cell<'_>, number: u64) -> bool {
    cell.is_tombstone() && cell.version().is_some_and(|version| version.number == number)
}

fn purge(mtr: &mut Mtr<'_>, leaf: PageHandle, slot: usize) -> Result<ChangeOutcome, EngineError> {
    mtr.change(leaf, &Record::Delete { slot })?;
    Ok(ChangeOutcome::Row(Counter::RowsPurged))
}
