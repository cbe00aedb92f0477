//! The row locks of one transaction or batch.
//!
//! Invariant: what was locked is released when this goes, and not before it is told to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{EngineError, TransactionError};
use crate::lock::{Grant, LockFailure, LockId, LockOwner};
use crate::storage::Storage;
use crate::tree::Tree;
use crate::write_set::WriteSet;

/// The numbers of transactions, of all engines of the process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// So often locks are taken anew after a deadlock.
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

    /// The first row of a sorted write set that somebody else has locked.
    pub fn first_locked(&self, writes: &WriteSet) -> Option<usize> {
        let locks = &self.storage.locks;
        let owner = self.owner.as_ref();
        (0..writes.len())
            .filter(|op| writes.begins_row(*op))
            .find(|op| locks.is_held_by_another(owner, writes.lock_id(*op)))
    }

    /// Locks a row, for one who holds nothing that was decided by what is locked: in a deadlock it
    /// lets go of everything and begins anew.
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

/// Locks rows in the order given for one who holds nothing and has read nothing, so that in a
/// deadlock it can let go of them and begin anew. It holds none when that lasts too long.
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
