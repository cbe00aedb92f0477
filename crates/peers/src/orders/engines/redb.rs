//! redb: one writer at a time, no conflicts. As it comes, each transaction is an immediate commit;
//! with this program's grouping several share one.

use std::path::Path;

use redb::{Database, Durability, ReadableTable, Table, TableDefinition};

use crate::error::PeerError;
use crate::group::Group;
use crate::orders::rows::{RowKey, Scale};
use crate::orders::store::{Body, OrderStore, OrderThread, RowError, Rows, read_and_put};
use crate::store::Setup;

const NAME: &str = "redb";
const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("rows");

/// An open store: one table for all relations.
pub struct Redb {
    database: Database,
    group: Group,
    is_grouped: bool,
}

impl Redb {
    /// Opens or makes `dir/redb`.
    pub fn open(dir: &Path, setup: Setup, is_grouped: bool) -> Result<Self, PeerError> {
        let cache_bytes = usize::try_from(setup.cache_bytes).unwrap_or(usize::MAX);
        let database = Database::builder()
            .set_cache_size(cache_bytes)
            .create(dir.join(NAME))
            .map_err(PeerError::of(NAME, "open"))?;
        Ok(Self { database, group: Group::default(), is_grouped })
    }

    fn transact(&self, durability: Durability, body: &mut Body<'_>) -> Result<(), RowError> {
        let mut transaction =
            self.database.begin_write().map_err(PeerError::of(NAME, "begin a transaction"))?;
        transaction
            .set_durability(durability)
            .map_err(PeerError::of(NAME, "set the durability"))?;
        {
            let table = transaction.open_table(TABLE);
            let table = table.map_err(PeerError::of(NAME, "open the table"))?;
            body(&mut OpenRows { table, value: Vec::new() })?;
        }
        Ok(transaction.commit().map_err(PeerError::of(NAME, "commit"))?)
    }
}

impl OrderStore for Redb {
    fn load(&self, scale: Scale) -> Result<(), PeerError> {
        super::load_by_parts(scale, |part| {
            let put = |rows: &mut dyn Rows| {
                part.iter().try_for_each(|(key, value)| rows.insert(key, value))
            };
            super::loaded(NAME, self.transact(Durability::Immediate, &mut { put }))
        })
    }

    fn thread(&self) -> Result<Box<dyn OrderThread + '_>, PeerError> {
        Ok(Box::new(Thread { store: self, settled: 0 }))
    }

    fn close(self: Box<Self>) -> Result<(), PeerError> {
        self.database.close().map_err(PeerError::of(NAME, "close"))
    }
}

struct Thread<'s> {
    store: &'s Redb,
    settled: u64,
}

impl OrderThread for Thread<'_> {
    fn transact(&mut self, body: &mut Body<'_>) -> Result<(), RowError> {
        let store = self.store;
        if store.is_grouped {
            let sync = || store.transact(Durability::Immediate, &mut |_| Ok(()));
            store.group.commit(|| store.transact(Durability::None, body), sync)?;
        } else {
            store.transact(Durability::Immediate, body)?;
        }
        self.settled += 1;
        Ok(())
    }

    fn settle(&mut self, _unsettled: usize) -> Result<u64, PeerError> {
        Ok(std::mem::take(&mut self.settled))
    }
}

struct OpenRows<'t> {
    table: Table<'t, &'static [u8], &'static [u8]>,
    value: Vec<u8>,
}

impl Rows for OpenRows<'_> {
    fn get(&mut self, key: &RowKey, seen: &mut dyn FnMut(&[u8])) -> Result<bool, RowError> {
        let found = self.table.get(key.whole()).map_err(PeerError::of(NAME, "read"))?;
        Ok(found.map(|value| seen(value.value())).is_some())
    }

    fn insert(&mut self, key: &RowKey, value: &[u8]) -> Result<(), RowError> {
        let put = self.table.insert(key.whole(), value);
        put.map_err(PeerError::of(NAME, "put a row"))?;
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
        let gone = self.table.remove(key.whole()).map_err(PeerError::of(NAME, "delete a row"))?;
        Ok(gone.is_some())
    }
}
