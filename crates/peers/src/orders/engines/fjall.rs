//! fjall: optimistic transactions, which are begun anew where they meet. As it comes, each is made
//! durable by its own commit; with this program's grouping several share a sync.

use std::path::Path;

use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx,
    PersistMode, Readable,
};

use crate::error::PeerError;
use crate::group::Group;
use crate::orders::rows::{Relation, RowKey, Scale};
use crate::orders::store::{Body, OrderStore, OrderThread, RowError, Rows, read_and_put};
use crate::store::Setup;

const NAME: &str = "fjall";
/// fjall advises 8 to 64 MiB.
const MEMTABLE_BYTES: u64 = 64 << 20;

/// An open store: one keyspace for all relations.
pub struct Fjall {
    database: OptimisticTxDatabase,
    rows: OptimisticTxKeyspace,
    group: Group,
    is_grouped: bool,
}

impl Fjall {
    /// Opens or makes `dir/fjall`.
    pub fn open(dir: &Path, setup: Setup, is_grouped: bool) -> Result<Self, PeerError> {
        let database = OptimisticTxDatabase::builder(dir.join(NAME))
            .cache_size(setup.cache_bytes.saturating_sub(2 * MEMTABLE_BYTES))
            .manual_journal_persist(true)
            .open()
            .map_err(PeerError::of(NAME, "open"))?;
        let options = || {
            KeyspaceCreateOptions::default()
                .manual_journal_persist(true)
                .max_memtable_size(MEMTABLE_BYTES)
        };
        let rows = database.keyspace("rows", options);
        let rows = rows.map_err(PeerError::of(NAME, "open the table"))?;
        Ok(Self { database, rows, group: Group::default(), is_grouped })
    }

    fn transact(&self, mode: Option<PersistMode>, body: &mut Body<'_>) -> Result<(), RowError> {
        let transaction = self.database.write_tx();
        let transaction = transaction.map_err(PeerError::of(NAME, "begin a transaction"))?;
        let transaction = transaction.durability(mode);
        let mut rows = OpenRows { transaction, rows: &self.rows, value: Vec::new() };
        body(&mut rows)?;
        let committed = rows.transaction.commit().map_err(PeerError::of(NAME, "commit"))?;
        committed.map_err(|_conflict| RowError::Conflict)
    }

    fn sync(&self) -> Result<(), PeerError> {
        self.database.persist(PersistMode::SyncData).map_err(PeerError::of(NAME, "persist"))
    }
}

impl OrderStore for Fjall {
    fn load(&self, scale: Scale) -> Result<(), PeerError> {
        let ingestion = self.rows.inner().start_ingestion();
        let mut ingestion = ingestion.map_err(PeerError::of(NAME, "begin to load"))?;
        for relation in Relation::ALL {
            for (key, value) in scale.rows(relation) {
                let written = ingestion.write(key.whole(), value.as_slice());
                written.map_err(PeerError::of(NAME, "load a row"))?;
            }
        }
        ingestion.finish().map_err(PeerError::of(NAME, "end loading"))?;
        self.sync()
    }

    fn thread(&self) -> Result<Box<dyn OrderThread + '_>, PeerError> {
        Ok(Box::new(Thread { store: self, settled: 0 }))
    }

    fn close(self: Box<Self>) -> Result<(), PeerError> {
        self.sync()
    }
}

struct Thread<'s> {
    store: &'s Fjall,
    settled: u64,
}

impl OrderThread for Thread<'_> {
    fn transact(&mut self, body: &mut Body<'_>) -> Result<(), RowError> {
        let store = self.store;
        if store.is_grouped {
            let sync = || store.sync().map_err(RowError::Failed);
            store.group.commit(|| store.transact(None, body), sync)?;
        } else {
            store.transact(Some(PersistMode::SyncData), body)?;
        }
        self.settled += 1;
        Ok(())
    }

    fn settle(&mut self, _unsettled: usize) -> Result<u64, PeerError> {
        Ok(std::mem::take(&mut self.settled))
    }
}

struct OpenRows<'s> {
    transaction: OptimisticWriteTx,
    rows: &'s OptimisticTxKeyspace,
    value: Vec<u8>,
}

impl Rows for OpenRows<'_> {
    fn get(&mut self, key: &RowKey, seen: &mut dyn FnMut(&[u8])) -> Result<bool, RowError> {
        let found = self.transaction.get(self.rows, key.whole());
        let found = found.map_err(PeerError::of(NAME, "read"))?;
        Ok(found.map(|value| seen(&value)).is_some())
    }

    fn insert(&mut self, key: &RowKey, value: &[u8]) -> Result<(), RowError> {
        self.transaction.insert(self.rows, key.whole(), value);
        Ok(())
    }

    fn modify(
        &mut self,
        key: &RowKey,
        change: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<bool, RowError> {
        let mut value = std::mem::take(&mut self.value);
        let found = read_and_put(self, &mut value, key, change);
        self.value = value;
        found
    }

    fn delete(&mut self, key: &RowKey) -> Result<bool, RowError> {
        let found = self.get(key, &mut |_| {})?;
        self.transaction.remove(self.rows, key.whole());
        Ok(found)
    }
}
