//! Purge: passes what nobody needs any more, hands out the keys of deleted rows, drops segments.
//!
//! Invariant: the read position of a shard lies in its oldest segment and only moves on; a record
//! is passed once, when its replacing number is at or below every snapshot, and its key is then in
//! one batch, or among those that were put back.
//! What it does not do: it removes nothing from a leaf. A commit whose number is passed may still
//! be applying; it holds the latches of its leaves since before it took the number, so who comes
//! to purge its keys waits for it there.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use crossbeam_utils::CachePadded;

use super::log::SHARDS;
use super::log::{Body, VersionSegment, damaged};
use super::log::{FIRST_OF_COMMIT, Record, TO_PURGE};
use crate::sync::locked;
use crate::version::log::VersionLog;

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

/// Keys to be purged. Give it to [`crate::version::Versions::finish_purge`] or
/// [`crate::version::Versions::put_back`]: the keys of a batch that is dropped are never purged.
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

/// Looks at the oldest segment under the lock of its shard. Only the holder of the position drops
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
