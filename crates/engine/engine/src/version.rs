//! Versions of rows: the clock that numbers commits, the snapshots that read, and the log of what
//! commits replaced.
//!
//! Purpose: a commit takes its number with [`Registry::tick`] while it holds the latches of all its
//! leaves, calls [`Registry::is_any_below`], and keeps what it replaces through a [`Keeper`]. A
//! [`Snapshot`] sees numbers at or below its own and follows pointers to what was there before.
//! Purge takes the keys of deleted rows once no snapshot can need them.
//! Invariants: a version that a registered snapshot may read is never dropped; a key to purge is
//! handed out only when every snapshot that is or will be registered is at or above its number; no
//! file is touched while a lock is held that a commit takes. What it deliberately does not do: it
//! is independent of pages and latches, has no thread, and nothing of it survives a restart.
//!
//! # Why no snapshot is missed
//! Opening a snapshot is (1) a read of the clock, (2) storing it in a slot as a lower bound, (3) a
//! second read of the clock: the snapshot's number. A commit is (a) the tick that gives V, (b) a
//! look at all slots. All of these are sequentially consistent, so they have one order. A snapshot
//! below V read the clock in (3) before (a); it stored its slot in (2) before that; so (b) sees the
//! slot, with a value at or below the snapshot's number, or the snapshot is closed already. One
//! whose (2) comes after (b) reads the clock in (3) after (a), and is at or above V.
//!
//! [`Registry::oldest`] reads the clock first and then the slots, and returns the least of all. A
//! snapshot whose (3) came before that read of the clock is seen by the same argument; any other is
//! at or above what was read.
//!
//! The number of slots in use only grows. It is raised before the new slot is stored to, and read
//! after the tick, so the argument holds for it, too.
//!
//! # Why a reader finds what it needs
//! A snapshot S follows a pointer only from a cell with a number V above S. The record behind it
//! carries V as the number that replaced it. Purge passes, and drops, only records whose number is
//! at or below `oldest`, which is at or below S. So as long as S is registered the record stays,
//! and so does its place in the spill file: a slot is reused only after its segment was dropped,
//! when no thread can be reading from it.
//!
//! # What purge passes
//! It passes what no snapshot needs any more, hands out the keys of deleted rows, drops segments.
//! The read position of a shard lies in its oldest segment and only moves on; a record is passed
//! once, when its replacing number is at or below every snapshot, and its key is then in one batch,
//! or among those that were put back. It removes nothing from a leaf. A commit whose number is
//! passed may still be applying; it holds the latches of its leaves since before it took the
//! number, so a purge of its keys waits for it there.

mod log;
#[cfg(all(test, feature = "model"))]
mod model_tests;
mod registry;

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use crossbeam_utils::CachePadded;

pub use log::{Keeper, SpillFile};
pub use registry::{OldestSnapshot, Registry, Snapshot};

use crate::sync::locked;
use log::{
    Body, FIRST_OF_COMMIT, Record, SEGMENT_BYTES_MAX, SHARDS, TO_PURGE, VersionLog, VersionSegment,
    damaged,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionSettings {
    /// Bytes of a segment, and of a slot of the spill file; above 1 MiB it counts as 1 MiB. A
    /// version that is longer has a segment of its own, which stays in memory.
    pub segment_bytes: usize,
    /// Bytes of segments above which the oldest of them are spilled. The 16 segments that grow stay
    /// in memory in any case.
    pub memory_bytes_max: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionStats {
    /// Commits that kept something and are not purged yet.
    pub history: u64,
    pub memory_bytes: u64,
    pub spilled_bytes: u64,
    pub kept: u64,
    pub purged: u64,
    pub snapshots: u64,
    pub oldest: Option<OldestSnapshot>,
}

pub struct Versions {
    pub registry: Registry,
    pub log: VersionLog,
    purge: Purge,
}

impl Versions {
    /// A log without versions, and a clock that stands at `clock`: at or above every number in the
    /// data. Without a spill file everything stays in memory.
    pub fn new(clock: u64, settings: VersionSettings, spill: Option<Box<dyn SpillFile>>) -> Self {
        let segment_bytes = settings.segment_bytes.min(SEGMENT_BYTES_MAX);
        let log = VersionLog::new(segment_bytes, settings.memory_bytes_max, spill);
        Self { registry: Registry::new(clock), log, purge: Purge::default() }
    }

    /// The next keys to purge, at most `most`: those of commits at or below every snapshot. Drops
    /// the versions that it passes. An empty batch means that there is nothing to do now. Several
    /// threads may call it; each gets other keys.
    ///
    /// # Errors
    /// When the spill file cannot be read and no other shard had anything to hand out. Nothing is
    /// lost: another call tries again.
    pub fn take_purge(&self, most: usize) -> io::Result<PurgeBatch> {
        self.purge.take(&self.log, self.registry.oldest(), most)
    }

    /// As [`take_purge`](Self::take_purge), but what snapshots need goes, too.
    #[cfg(feature = "testing")]
    pub fn take_purge_of_all(&self, most: usize) -> io::Result<PurgeBatch> {
        self.purge.take(&self.log, self.registry.now(), most)
    }

    /// The keys of the batch are purged: counts its commits.
    pub fn finish_purge(&self, batch: PurgeBatch) {
        self.purge.finish(&batch);
    }

    /// The keys of the batch could not be purged: they are handed out again, after newer ones. The
    /// caller takes out those that it purged first.
    pub fn put_back(&self, batch: PurgeBatch) {
        self.purge.put_back(batch);
    }

    /// Its present state. Reads every segment of the log, one shard after the other.
    pub fn stats(&self) -> VersionStats {
        let (snapshots, mut oldest) = self.registry.open_now();
        let purged = self.purge.purged();
        let mut stats = VersionStats { snapshots, purged, ..VersionStats::default() };
        let mut commits = 0;
        for shard in 0..SHARDS {
            let shard = self.log.lock(shard);
            stats.kept += shard.kept;
            commits += shard.commits;
            for segment in shard.segments() {
                if let Body::Spilled { len, .. } = segment.body {
                    stats.spilled_bytes += len as u64;
                }
                if let Some(oldest) = oldest.as_mut().filter(|oldest| segment.greatest > oldest.at)
                {
                    oldest.versions += u64::from(segment.records);
                }
            }
        }
        stats.memory_bytes = self.log.memory();
        stats.history = commits.saturating_sub(purged);
        VersionStats { oldest, ..stats }
    }
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Versions>();
    is_shared::<Arc<Versions>>();
    is_shared::<Snapshot>();
};

/// Records passed at most while a shard is locked.
const LOCKED_RECORDS: usize = 64;
/// Records passed at most in one call, so that it ends soon when few of them are to be purged.
const CALL_RECORDS: usize = 1 << 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeItem {
    pub number: u64,
    pub table: u32,
    pub key: Vec<u8>,
}

/// Keys to be purged. Give it to [`Versions::finish_purge`] or
/// [`Versions::put_back`]: the keys of a batch that is dropped are never purged.
#[derive(Debug, Default)]
#[must_use = "what is in a batch is not handed out again by itself"]
pub struct PurgeBatch {
    /// The keys. Those of one commit are in the order in which they were deleted, and so are the
    /// commits of a thread.
    pub items: Vec<PurgeItem>,
    /// Commits that are done with when these keys are purged; there may be some without keys.
    pub commits: u64,
}

impl PurgeBatch {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.commits == 0
    }

    fn pass(&mut self, record: &Record<'_>) {
        if record.marks & TO_PURGE != 0 {
            let (number, table) = (record.number, record.table);
            self.items.push(PurgeItem { number, table, key: record.key.to_vec() });
        }
    }
}

/// Where purge reads in the oldest segment of a shard.
#[derive(Debug, Default)]
struct Position {
    at: usize,
    /// Number of the record there, as far as it is known: nothing is passed before it is.
    waits_for: u64,
    /// The segment, when it was sealed or spilled: kept while purge moves on in it.
    bytes: Option<Arc<Vec<u8>>>,
    /// Whether the commit of the last record has more of them, as far as it is known: it is counted
    /// when it has none, so that nothing is left of as many commits as were counted. The records of
    /// a commit lie side by side.
    is_within_commit: bool,
}

impl Position {
    /// To the beginning of the next segment.
    fn leave_segment(&mut self) {
        *self = Self { is_within_commit: self.is_within_commit, ..Self::default() };
    }

    /// Counts the commit of the last record, which has no more of them.
    fn end_commit(&mut self, call: &mut Call) {
        call.batch.commits += u64::from(std::mem::take(&mut self.is_within_commit));
    }
}

#[derive(Debug)]
struct Call {
    oldest: u64,
    most: usize,
    records: usize,
    batch: PurgeBatch,
}

impl Call {
    fn is_full(&self) -> bool {
        self.batch.items.len() >= self.most || self.records >= CALL_RECORDS
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Walk {
    /// At the end of the bytes.
    Ended,
    /// At a record that is needed.
    Blocked,
    /// Enough was passed.
    Enough,
}

/// The read positions, and what was put back.
#[derive(Debug, Default)]
pub(crate) struct Purge {
    positions: [CachePadded<Mutex<Position>>; SHARDS],
    /// The shard that the next call begins with.
    turn: AtomicUsize,
    put_back: Mutex<PurgeBatch>,
    purged: AtomicU64,
}

impl Purge {
    /// Passes records up to `oldest`, with at most `most` keys.
    pub(crate) fn take(
        &self,
        log: &VersionLog,
        oldest: u64,
        most: usize,
    ) -> io::Result<PurgeBatch> {
        let mut call = Call { oldest, most, records: 0, batch: PurgeBatch::default() };
        let mut result = Ok(());
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        for shard in (0..SHARDS).map(|step| turn.wrapping_add(step) % SHARDS) {
            if call.is_full() {
                break;
            }
            let mut position = match self.positions[shard].try_lock() {
                Ok(position) => position,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            result = result.and(advance(log, shard, &mut position, &mut call));
        }
        let mut batch = call.batch;
        self.add_put_back(&mut batch, most);
        if batch.is_empty() { result.map(|()| batch) } else { Ok(batch) }
    }

    /// Fills up with what was put back. It comes last, so that keys which cannot be purged hold up
    /// no others.
    fn add_put_back(&self, batch: &mut PurgeBatch, most: usize) {
        let mut kept = locked(&self.put_back);
        let count = kept.items.len().min(most.saturating_sub(batch.items.len()));
        batch.items.extend(kept.items.drain(..count));
        if kept.items.is_empty() {
            batch.commits += std::mem::take(&mut kept.commits);
        }
    }

    pub(crate) fn finish(&self, batch: &PurgeBatch) {
        self.purged.fetch_add(batch.commits, Ordering::Relaxed);
    }

    pub(crate) fn put_back(&self, mut batch: PurgeBatch) {
        let mut kept = locked(&self.put_back);
        kept.items.append(&mut batch.items);
        kept.commits += batch.commits;
    }

    pub(crate) fn purged(&self) -> u64 {
        self.purged.load(Ordering::Relaxed)
    }
}

enum Front {
    Next,
    Stop,
    /// Its bytes are to be walked.
    Walk(Arc<Vec<u8>>),
    /// It is to be read from this slot, with so many bytes.
    Load(u64, usize),
}

/// Moves on in a shard as far as the call may.
fn advance(
    log: &VersionLog,
    shard: usize,
    position: &mut Position,
    call: &mut Call,
) -> io::Result<()> {
    while position.waits_for <= call.oldest && !call.is_full() {
        let bytes = match look(log, shard, position, call)? {
            Front::Next => continue,
            Front::Stop => return Ok(()),
            Front::Walk(bytes) => bytes,
            Front::Load(slot, len) => Arc::new(log.load(slot, len)?),
        };
        match walk(&bytes, position, call, usize::MAX)? {
            Walk::Ended => leave(log, shard, position),
            Walk::Enough => position.bytes = Some(bytes),
            Walk::Blocked => position.bytes = None,
        }
    }
    Ok(())
}

fn leave(log: &VersionLog, shard: usize, position: &mut Position) {
    position.leave_segment();
    log.drop_front(&mut log.lock(shard));
}

/// Examines the oldest segment under the lock of its shard. Only the holder of the position drops
/// it, so it is there until then.
fn look(
    log: &VersionLog,
    shard: usize,
    position: &mut Position,
    call: &mut Call,
) -> io::Result<Front> {
    if let Some(bytes) = position.bytes.take() {
        return Ok(Front::Walk(bytes));
    }
    let mut locked = log.lock(shard);
    // No commit keeps records in a shard while it is locked.
    let Some(front) = locked.front() else {
        position.end_commit(call);
        return Ok(Front::Stop);
    };
    match &front.body {
        Body::Open(bytes) if bytes.is_empty() => {
            position.end_commit(call);
            Ok(Front::Stop)
        }
        Body::Open(bytes) => Ok(match walk(bytes, position, call, LOCKED_RECORDS)? {
            Walk::Enough => Front::Next,
            Walk::Blocked => Front::Stop,
            Walk::Ended => {
                position.end_commit(call);
                position.leave_segment();
                log.drop_front(&mut locked);
                Front::Stop
            }
        }),
        _ if position.at == 0 && is_passed_unread(front, position, call) => {
            log.drop_front(&mut locked);
            Ok(Front::Next)
        }
        Body::Sealed(bytes) => Ok(Front::Walk(Arc::clone(bytes))),
        &Body::Spilled { slot, len } => Ok(Front::Load(slot, len)),
    }
}

/// Whether a whole segment can be passed without a look at its records.
fn is_passed_unread(segment: &VersionSegment, position: &mut Position, call: &mut Call) -> bool {
    let is_passed = segment.purges == 0 && segment.greatest <= call.oldest;
    if is_passed && segment.commits > 0 {
        position.end_commit(call);
        call.batch.commits += u64::from(segment.commits) - 1;
        position.is_within_commit = true;
    }
    is_passed
}

/// Passes records from the position on, at most `records`.
fn walk(
    bytes: &[u8],
    position: &mut Position,
    call: &mut Call,
    records: usize,
) -> io::Result<Walk> {
    let until = call.records.saturating_add(records);
    while position.at < bytes.len() {
        let (record, next) = Record::read(bytes, position.at).ok_or_else(damaged)?;
        if record.marks & FIRST_OF_COMMIT != 0 {
            position.end_commit(call);
        }
        if call.is_full() || call.records >= until {
            return Ok(Walk::Enough);
        }
        position.waits_for = record.number;
        if record.number > call.oldest {
            return Ok(Walk::Blocked);
        }
        position.is_within_commit = true;
        call.batch.pass(&record);
        call.records += 1;
        position.at = next;
    }
    Ok(Walk::Ended)
}
