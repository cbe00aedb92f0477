//! Transactions: snapshot reads, row locks, savepoints, and one frame of redo at commit.
//!
//! Invariant: a transaction keeps what it writes to itself until it commits; then all of it is
//! applied by one frame. So nothing uncommitted ever reaches a page, and rolling back is to forget.
//! A row that it wrote or read with a lock is not changed by another transaction before its frame
//! is appended. Its ticket waits for its own frame and for everything that it has read.
//! Its reads are in `reads`; what it writes is kept in its write set, the row locked.

mod reads;
#[cfg(test)]
pub(crate) mod tests;

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use iostrata_innodb::{Counter, FlushLogAt, Lsn};

use crate::commit::{Committer, TRIES, commit, lock_all, next_number};
use crate::error::{EngineError, RequestError, TransactionError};
use crate::lock::{LockId, LockOwner};
use crate::pages::Pages;
use crate::read::LeafHint;
use crate::safeguards::Safeguard;
use crate::table::{Table, check_row};
use crate::ticket::Ticket;
use crate::version::Snapshot;
use crate::write_set::WriteMark;
use reads::{Newest, OwnWrites};

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    /// Rolled back, because it was in a deadlock or a conflict.
    Victim,
}

/// What a transaction keeps in memory, used again by the next one of the thread.
#[derive(Debug, Default)]
struct Buffers {
    writes: OwnWrites,
    locks: Vec<LockId>,
    /// A row on its way.
    row: Vec<u8>,
}

thread_local! {
    static SPARE: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// A transaction. It ends by [`commit`](Self::commit); one that is dropped is rolled back.
///
/// After a deadlock or a conflict it has been rolled back already, and answers
/// [`TransactionError::Finished`]; every other error leaves it as it was before the call.
/// [`Engine::transact`](crate::Engine::transact) restarts it by itself.
///
/// ```
/// # use iostrata_engine::{Background, Disks, Engine, Isolation, Settings};
/// # let disks = Disks::one(iostrata_engine::disk::MemDisk::new());
/// # let engine = Engine::open_on(disks, Settings::default(), Background::Manual)?;
/// let accounts = engine.open_table("accounts")?;
/// let mut t = engine.begin(Isolation::RepeatableRead)?;
/// t.insert(&accounts, b"ann", b"10")?;
/// t.insert(&accounts, b"bob", b"20")?;
/// t.modify(&accounts, b"ann", |balance| balance[0] = b'3')?;
/// t.commit()?;
/// assert_eq!(accounts.get(b"ann")?.as_deref(), Some(&b"30"[..]));
/// # Ok::<(), iostrata_engine::EngineError>(())
/// ```
#[derive(Debug)]
pub struct Transaction {
    pages: Arc<Pages>,
    options: TransactionOptions,
    patience: Duration,
    owner: LockOwner,
    /// Taken by the first read.
    snapshot: OnceCell<Snapshot>,
    /// The end of the newest frame in the leaves that it has read.
    seen: Cell<u64>,
    state: State,
    own: Box<Buffers>,
    /// The row at which it fell victim.
    contested: Option<LockId>,
    /// How many changes were left each time that it went back to a savepoint.
    went_back: Vec<usize>,
}

/// A place in a transaction to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    transaction: u64,
    /// How often the transaction had gone back before.
    times: usize,
    mark: WriteMark,
}

impl Transaction {
    /// Begins one that locks these rows first, if it gets them.
    pub(crate) fn begin(
        pages: &Arc<Pages>,
        options: TransactionOptions,
        first: &[LockId],
    ) -> Result<Self, EngineError> {
        pages.admission.check_open()?;
        let storage = &pages.storage;
        storage.poison.check()?;
        let patience = options.lock_wait_timeout.unwrap_or_else(|| storage.lock_wait_timeout());
        let owner = LockOwner::new(next_number());
        let mut own = SPARE.try_with(Cell::take).ok().flatten().unwrap_or_default();
        if !first.is_empty() {
            lock_all(storage, &owner, first, patience, &mut own.locks);
        }
        let is_early = options.isolation == Isolation::Snapshot;
        let snapshot = OnceCell::new();
        if is_early {
            snapshot.get_or_init(|| storage.versions.registry.open(owner.number()));
        }
        Ok(Self {
            pages: Arc::clone(pages),
            options,
            patience,
            owner,
            snapshot,
            seen: Cell::new(0),
            state: State::Active,
            own,
            contested: None,
            went_back: Vec::new(),
        })
    }

    /// Its number, which no other transaction of the process has; it stands in errors and in the
    /// status.
    pub fn number(&self) -> u64 {
        self.owner.number()
    }

    /// Whether it has written something.
    pub fn has_written(&self) -> bool {
        !self.own.writes.set.is_empty()
    }

    /// A place to go back to.
    pub fn savepoint(&self) -> Savepoint {
        let (transaction, times) = (self.number(), self.went_back.len());
        Savepoint { transaction, times, mark: self.own.writes.set.mark() }
    }

    /// Takes back what was written since a savepoint. Locks taken since are kept, as in InnoDB;
    /// later savepoints are gone.
    ///
    /// # Errors
    /// [`TransactionError::NoSavepoint`] for one of another transaction, or one that is gone.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<(), EngineError> {
        self.check_active()?;
        let is_ours = savepoint.transaction == self.number();
        let ops = savepoint.mark.ops;
        // What was written since it went back before a savepoint has taken that one's place.
        if !is_ours || self.went_back[savepoint.times..].iter().any(|left| *left < ops) {
            let transaction = self.number();
            return Err(TransactionError::NoSavepoint { transaction }.into());
        }
        self.went_back.push(ops);
        self.own.writes.truncate(savepoint.mark);
        Ok(())
    }

    /// Commits. It survives a crash when this returns, or is as far as
    /// [`flush_log_at`](TransactionOptions::flush_log_at) or the setting `flush_log_at_trx_commit`
    /// requires. One that has written nothing waits until what it has read is as safe.
    ///
    /// # Errors
    /// As [`commit_async`](Self::commit_async): nothing is applied then. As [`Ticket::wait`]: it is
    /// applied, and only the next opening shows whether it was durable.
    pub fn commit(self) -> Result<(), EngineError> {
        self.commit_async()?.wait()
    }

    /// Commits, and leaves it to the ticket to wait until that is durable. Others see it and build
    /// on it already. One that has written nothing appends nothing; its ticket waits until what it
    /// has read is durable.
    ///
    /// # Errors
    /// Nothing is applied then, and the transaction is rolled back: no space, a poisoned engine, or
    /// rows in more pages than a quarter of the pool ([`TransactionError::TooLarge`]), which only
    /// here is known; more than a frame of redo takes is refused by [`put`](Self::put) already.
    pub fn commit_async(self) -> Result<Ticket, EngineError> {
        let transaction = self.number();
        self.commit_as_batch().map_err(|error| too_large(transaction, error))
    }

    /// As [`commit_async`](Self::commit_async), for a batch that runs as a transaction: what is too
    /// large is a batch.
    pub(crate) fn commit_as_batch(mut self) -> Result<Ticket, EngineError> {
        self.check_active()?;
        // From here on it reads nothing more, so no version need be kept for it.
        self.snapshot.take();
        let storage = Arc::clone(&self.pages.storage);
        let mut end = Lsn(self.seen.get());
        if !storage.safeguards.has(Safeguard::LocksUntilAppended) {
            self.release_locks();
        }
        if self.has_written() {
            let Buffers { writes, locks, .. } = &mut *self.own;
            let committer = Committer::Transaction { owner: &self.owner, locks };
            let run = || commit(&self.pages, &mut writes.set, committer);
            end = storage.counts.sampled(Counter::CpuNsRows, run)?.max(end);
            // They are released already.
            locks.clear();
        }
        self.release_locks();
        storage.counts.add(Counter::Commits, 1);
        let level = self.options.flush_log_at;
        let level = level.unwrap_or_else(|| storage.settings.load().flush_log_at_trx_commit);
        Ok(Ticket::new(storage, end, level))
    }

    /// Takes back everything.
    pub fn rollback(self) {
        drop(self);
    }

    /// Whether it was rolled back by the engine and may be restarted.
    fn was_victim(&self) -> bool {
        self.state == State::Victim
    }

    /// The row at which it was rolled back by the engine.
    fn contested(&self) -> Option<LockId> {
        self.contested
    }

    /// The error of a transaction that is over.
    pub(crate) fn finished(&self) -> EngineError {
        TransactionError::Finished { transaction: self.number() }.into()
    }

    fn check_active(&self) -> Result<(), EngineError> {
        match self.state {
            State::Active => Ok(()),
            State::Victim => Err(self.finished()),
        }
    }

    /// From here on its ticket waits for all that is visible now, as a batch's does, even of one
    /// that changes nothing.
    pub(crate) fn see_all(&self) {
        self.saw(self.pages.storage.redo.lsn());
    }

    /// Notes the end of the newest frame in what was read.
    fn saw(&self, lsn: Lsn) {
        if self.pages.storage.safeguards.has(Safeguard::TicketWaitsForReads) {
            self.seen.set(self.seen.get().max(lsn.0));
        }
    }

    /// Rolls back after a deadlock or conflict.
    fn fall_victim(&mut self, contested: LockId) {
        self.state = State::Victim;
        self.contested = Some(contested);
        self.snapshot.take();
        if self.has_written() {
            self.pages.storage.counts.add(Counter::TrxRollbacks, 1);
        }
        self.own.writes.clear();
        self.release_locks();
    }

    fn release_locks(&mut self) {
        self.pages.storage.locks.release(&self.owner, &self.own.locks);
        self.own.locks.clear();
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.state == State::Active && self.has_written() && !self.own.locks.is_empty() {
            self.pages.storage.counts.add(Counter::TrxRollbacks, 1);
        }
        self.release_locks();
        let mut own = std::mem::take(&mut self.own);
        own.writes.clear();
        // A thread that ends has no place for it any more.
        let _dropped_otherwise = SPARE.try_with(|spare| spare.set(Some(own)));
    }
}

/// A batch that is too large, as a transaction that is.
fn too_large(transaction: u64, error: EngineError) -> EngineError {
    let (limit, unit, setting) = match error {
        EngineError::Request(RequestError::BatchTooLarge { limit, .. }) => {
            (limit, "bytes of redo", "redo_log_capacity")
        }
        EngineError::Request(RequestError::BatchTooWide { limit }) => {
            (limit, "pages", "buffer_pool_size")
        }
        other => return other,
    };
    TransactionError::TooLarge { transaction, limit, unit, setting }.into()
}

/// What a transaction sees of others that run at the same time. Nothing uncommitted is ever seen;
/// writes and locking reads act on the newest committed rows and hold their locks to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Each read sees what is committed when it begins.
    ReadCommitted,
    /// All plain reads see what was committed at the first of them, as in InnoDB.
    #[default]
    RepeatableRead,
    /// All reads see what was committed when the transaction began; a row that was changed since
    /// cannot be written or locked ([`TransactionError::Conflict`](crate::TransactionError)).
    Snapshot,
}

/// What a transaction begins with.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TransactionOptions {
    /// What it sees of others.
    pub isolation: Isolation,
    /// It refuses to write.
    pub is_read_only: bool,
    /// What its ticket waits for, where it overrides the engine's setting.
    pub flush_log_at: Option<FlushLogAt>,
    /// How long it waits for a row lock, where it overrides the engine's setting.
    pub lock_wait_timeout: Option<Duration>,
}

impl From<Isolation> for TransactionOptions {
    fn from(isolation: Isolation) -> Self {
        Self { isolation, ..Self::default() }
    }
}

/// Runs `body` in a transaction and ends that by `commit`; after a deadlock or a conflict again,
/// with the rows locked from the beginning where the tries before ended.
pub(crate) fn run<R, E: From<EngineError>>(
    pages: &Arc<Pages>,
    options: TransactionOptions,
    mut body: impl FnMut(&mut Transaction) -> Result<R, E>,
    commit: impl FnOnce(Transaction) -> Result<Ticket, EngineError>,
) -> Result<(R, Ticket), E> {
    let mut tries = 1;
    // In one order, so that retries are in no deadlock with each other. Without it a thousand
    // threads on ten rows are refused again and again, and none gets on.
    let mut contested = BTreeSet::new();
    loop {
        let first: Vec<LockId> = contested.iter().copied().collect();
        let mut transaction = Transaction::begin(pages, options, &first)?;
        let outcome = body(&mut transaction);
        let was_victim = transaction.was_victim();
        let failure = match outcome {
            Ok(result) if !was_victim => return Ok((result, commit(transaction)?)),
            // The body went on although the transaction was over.
            Ok(_) => transaction.finished().into(),
            Err(error) => error,
        };
        if !was_victim || tries == TRIES {
            return Err(failure);
        }
        tries += 1;
        contested.extend(transaction.contested());
    }
}

impl Transaction {
    /// Puts a row, whether or not the key is there.
    ///
    /// # Errors
    /// Nothing is written then: a key or row beyond the limits of the page size, a read-only or
    /// finished transaction, a deadlock, a lock that was not released in time, a conflict, more
    /// than one frame of redo takes ([`TransactionError::TooLarge`]): what was written before can
    /// be committed then.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        check_row(&self.pages, key, value.len())?;
        let id = self.begin_write(table, key)?;
        let is_snapshot = self.options.isolation == Isolation::Snapshot;
        // The row before is of interest where it has entries, or may have changed since the
        // snapshot.
        let before = if is_snapshot || !table.indexes().is_empty() {
            self.before(table, key, id)?
        } else {
            Before::default()
        };
        self.write((table, id), key, Some(value), before)
    }

    /// Puts a row whose key must not be there.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`TransactionError::Exists`].
    pub fn insert(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        check_row(&self.pages, key, value.len())?;
        let id = self.begin_write(table, key)?;
        let before = self.before(table, key, id)?;
        if before.is_there {
            let (transaction, table) = (self.number(), table.name().to_owned());
            return Err(TransactionError::Exists { transaction, table, key: key.to_vec() }.into());
        }
        self.write((table, id), key, Some(value), before)
    }

    /// Changes a row that is there: `change` gets its newest value to edit. Whether it was there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn modify(
        &mut self,
        table: &Table,
        key: &[u8],
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Result<bool, EngineError> {
        check_row(&self.pages, key, 0)?;
        let id = self.begin_write(table, key)?;
        let mut row = std::mem::take(&mut self.own.row);
        let Newest { is_there, leaf, is_newer } = self.newest(table, key, id, Some(&mut row))?;
        if is_there {
            let value = if table.indexes().is_empty() { Vec::new() } else { row.clone() };
            change(&mut row);
            check_row(&self.pages, key, row.len())?;
            let before = Before { is_there, value, leaf, is_newer };
            self.write((table, id), key, Some(&row), before)?;
        }
        self.own.row = row;
        Ok(is_there)
    }

    /// Deletes a row. Whether it was there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<bool, EngineError> {
        check_row(&self.pages, key, 0)?;
        let id = self.begin_write(table, key)?;
        let before = self.before(table, key, id)?;
        let is_there = before.is_there;
        if is_there {
            self.write((table, id), key, None, before)?;
        }
        Ok(is_there)
    }

    /// Locks a row to be written.
    fn begin_write(&mut self, table: &Table, key: &[u8]) -> Result<LockId, EngineError> {
        self.check_active()?;
        let kept = self.own.writes.set.check_kept(&self.pages);
        kept.map_err(|error| too_large(self.number(), error))?;
        self.pages.storage.delay_for_purge();
        self.lock_row(table, key)
    }

    /// The newest version of a row that is locked; its value where the table has indexes.
    fn before(&mut self, table: &Table, key: &[u8], id: LockId) -> Result<Before, EngineError> {
        let mut value = Vec::new();
        let wanted = (!table.indexes().is_empty()).then_some(&mut value);
        let Newest { is_there, leaf, is_newer } = self.newest(table, key, id, wanted)?;
        Ok(Before { is_there, value, leaf, is_newer })
    }

    fn write(
        &mut self,
        (table, id): (&Table, LockId),
        key: &[u8],
        value: Option<&[u8]>,
        before: Before,
    ) -> Result<(), EngineError> {
        // Its entries of now are not those that the plain reads show: from here on they show the
        // entries of what is written.
        let is_newer = before.is_newer && !table.indexes().is_empty();
        let shown = if is_newer { self.shown(table, key)? } else { None };
        let storage = &self.pages.storage;
        let (safeguards, limit) = (&storage.safeguards, storage.page_size.key_bytes_max());
        let own = &mut self.own.writes;
        let tree = own.set.tree_of(table, &self.pages)?;
        // Each: the lock of a change's row, its tree, key and value. The row's lock covers its
        // entries as well.
        let mut entries = Vec::new();
        for index in table.indexes() {
            let old = before.is_there.then(|| index.entry(key, &before.value)).transpose()?;
            let new = value.map(|value| index.new_entry(limit, key, value)).transpose()?;
            let (old, new) = (old.flatten(), new.flatten());
            let shown = shown.as_ref().map(|shown| index.entry(key, shown)).transpose()?;
            let shown = shown.flatten().filter(|shown| old.as_ref() != Some(shown));
            if old != new || is_newer {
                let (number, id) = (own.set.number_of(&index.tree)?, index.tree.id);
                let is_left = old == new || !safeguards.has(Safeguard::EntriesFollowRows);
                let shown = shown.filter(|shown| new.as_ref() != Some(shown));
                let gone = [shown, old.filter(|_| !is_left)].map(|entry| (entry, None));
                let changes = gone.into_iter().chain([(new, Some(&[][..]))]);
                entries.extend(changes.filter_map(|(entry, value)| {
                    let entry = entry?;
                    Some((LockId::of(id.0, &entry), number, entry, value))
                }));
            }
        }
        let of_entries =
            entries.iter().map(|(id, tree, entry, value)| (*id, *tree, &entry[..], *value));
        let changes = std::iter::once((id, tree, key, value)).chain(of_entries);
        let limit = storage.frame_bytes_max();
        let bytes = own.redo_bytes_with(changes, limit);
        if bytes > limit {
            let error = RequestError::BatchTooLarge { bytes, limit };
            return Err(too_large(self.number(), error.into()));
        }
        // Nothing can fail from here on.
        own.push((id, tree), key, value, before.leaf);
        for (id, tree, entry, value) in entries {
            own.push((id, tree), &entry, value, None);
        }
        Ok(())
    }
}

/// A row before it is written.
#[derive(Default)]
struct Before {
    is_there: bool,
    /// Empty if it is not needed.
    value: Vec<u8>,
    leaf: Option<LeafHint>,
    /// Another transaction has changed it since the snapshot of the plain reads.
    is_newer: bool,
}
