//! RocksDB: `TransactionDB`, row locks with detection of deadlocks, a synced log; commits of
//! several threads share a sync by its own group commit.

use std::path::Path;

use rocksdb::{
    Error, ErrorKind, SingleThreaded, Transaction, TransactionDB, TransactionDBOptions,
    TransactionOptions, WriteOptions,
};

use crate::engines::rocksdb::options;
use crate::error::PeerError;
use crate::orders::rows::{RowKey, Scale};
use crate::orders::store::{Body, OrderStore, OrderThread, RowError, Rows};
use crate::store::Setup;

const NAME: &str = "rocksdb";

type Database = TransactionDB<SingleThreaded>;

/// An open store: one column family for all relations.
pub struct Rocksdb {
    database: Database,
}

impl Rocksdb {
    /// Opens or makes `dir/rocksdb`.
    pub fn open(dir: &Path, setup: Setup) -> Result<Self, PeerError> {
        let options = options(setup).map_err(PeerError::of(NAME, "make a cache"))?;
        let database = Database::open(&options, &TransactionDBOptions::default(), dir.join(NAME));
        Ok(Self { database: database.map_err(PeerError::of(NAME, "open"))? })
    }

    fn transact(&self, is_synced: bool, body: &mut Body<'_>) -> Result<(), RowError> {
        let (mut writing, mut locking) = (WriteOptions::default(), TransactionOptions::new());
        writing.set_sync(is_synced);
        locking.set_deadlock_detect(true);
        let transaction = self.database.transaction_opt(&writing, &locking);
        let mut rows = OpenRows { transaction, value: Vec::new() };
        body(&mut rows)?;
        rows.transaction.commit().map_err(failed)
    }
}

impl OrderStore for Rocksdb {
    fn load(&self, scale: Scale) -> Result<(), PeerError> {
        super::load_by_parts(scale, |part| {
            // Not by the transactions: the lock of each row would be kept.
            let mut batch = rocksdb::WriteBatchWithTransaction::<true>::default();
            part.iter().for_each(|(key, value)| batch.put(key.whole(), value));
            self.database.write(batch).map_err(PeerError::of(NAME, "load"))
        })?;
        super::loaded(
            NAME,
            self.transact(true, &mut |rows| rows.insert(&RowKey::history(0), b"loaded").map(drop)),
        )
    }

    fn thread(&self) -> Result<Box<dyn OrderThread + '_>, PeerError> {
        Ok(Box::new(Thread { store: self, settled: 0 }))
    }

    fn close(self: Box<Self>) -> Result<(), PeerError> {
        Ok(())
    }
}

struct Thread<'s> {
    store: &'s Rocksdb,
    settled: u64,
}

impl OrderThread for Thread<'_> {
    fn transact(&mut self, body: &mut Body<'_>) -> Result<(), RowError> {
        self.store.transact(true, body)?;
        self.settled += 1;
        Ok(())
    }

    fn settle(&mut self, _unsettled: usize) -> Result<u64, PeerError> {
        Ok(std::mem::take(&mut self.settled))
    }
}

struct OpenRows<'d> {
    transaction: Transaction<'d, Database>,
    value: Vec<u8>,
}

impl Rows for OpenRows<'_> {
    fn get(&mut self, key: &RowKey, seen: &mut dyn FnMut(&[u8])) -> Result<bool, RowError> {
        let found = self.transaction.get_pinned(key.whole()).map_err(failed)?;
        Ok(found.map(|value| seen(&value)).is_some())
    }

    fn insert(&mut self, key: &RowKey, value: &[u8]) -> Result<(), RowError> {
        self.transaction.put(key.whole(), value).map_err(failed)
    }

    fn modify(
        &mut self,
        key: &RowKey,
        change: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<bool, RowError> {
        self.value.clear();
        let found = self.transaction.get_pinned_for_update(key.whole(), true).map_err(failed)?;
        let Some(found) = found else { return Ok(false) };
        self.value.extend_from_slice(&found);
        drop(found);
        change(&mut self.value);
        self.transaction.put(key.whole(), &self.value).map_err(failed)?;
        Ok(true)
    }

    fn delete(&mut self, key: &RowKey) -> Result<bool, RowError> {
        let found = self.transaction.get_pinned_for_update(key.whole(), true).map_err(failed)?;
        let is_there = found.is_some();
        drop(found);
        self.transaction.delete(key.whole()).map_err(failed)?;
        Ok(is_there)
    }
}

fn failed(error: Error) -> RowError {
    match error.kind() {
        ErrorKind::Busy | ErrorKind::TimedOut | ErrorKind::TryAgain | ErrorKind::Aborted => {
            RowError::Conflict
        }
        _ => RowError::Failed(PeerError::of(NAME, "run a transaction")(error)),
    }
}
