//! redb: one file, copy-on-write B-tree, one writer at a time.
//!
//! As it comes, every thread commits with `Durability::Immediate`. With this program's grouping
//! several commit with `Durability::None` and are made durable together by an immediate commit of
//! one of them, as redb's documentation allows; a single thread has no other to share with.

use std::path::Path;

use redb::{
    Database, Durability, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    TableDefinition, WriteTransaction,
};

use super::locked_version;
use crate::error::PeerError;
use crate::group::Group;
use crate::keys::Row;
use crate::store::{Reader, Setup, Store, Visit, Writer};

const NAME: &str = "redb";
const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("rows");
/// Rows of one transaction while loading.
const LOAD_ROWS: usize = 200_000;

/// An open store.
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
        let is_grouped = is_grouped && setup.writers > 1;
        let store = Self { database, group: Group::default(), is_grouped };
        store.put(Durability::Immediate, &[])?;
        Ok(store)
    }

    fn begin(&self, durability: Durability) -> Result<WriteTransaction, PeerError> {
        let mut transaction =
            self.database.begin_write().map_err(PeerError::of(NAME, "begin a transaction"))?;
        transaction
            .set_durability(durability)
            .map_err(PeerError::of(NAME, "set the durability"))?;
        Ok(transaction)
    }

    fn put(&self, durability: Durability, rows: &[Row]) -> Result<(), PeerError> {
        let transaction = self.begin(durability)?;
        {
            let mut table =
                transaction.open_table(TABLE).map_err(PeerError::of(NAME, "open the table"))?;
            for row in rows {
                table
                    .insert(row.key.as_slice(), row.value.as_slice())
                    .map_err(PeerError::of(NAME, "put a row"))?;
            }
        }
        transaction.commit().map_err(PeerError::of(NAME, "commit"))
    }

    /// Makes every commit so far durable.
    fn sync(&self) -> Result<(), PeerError> {
        self.begin(Durability::Immediate)?.commit().map_err(PeerError::of(NAME, "commit"))
    }
}

impl Store for Redb {
    fn version(&self) -> String {
        locked_version(NAME)
    }

    fn load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), PeerError> {
        let mut part = Vec::with_capacity(LOAD_ROWS);
        loop {
            part.clear();
            part.extend(Iterator::take(&mut *rows, LOAD_ROWS));
            if part.is_empty() {
                return Ok(());
            }
            self.put(Durability::Immediate, &part)?;
        }
    }

    fn writer(&self) -> Result<Box<dyn Writer + '_>, PeerError> {
        Ok(Box::new(RedbWriter { store: self }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, PeerError> {
        let transaction =
            self.database.begin_read().map_err(PeerError::of(NAME, "begin a transaction"))?;
        let table = transaction.open_table(TABLE).map_err(PeerError::of(NAME, "open the table"))?;
        Ok(Box::new(RedbReader { table, _transaction: transaction }))
    }

    fn close(self: Box<Self>) -> Result<(), PeerError> {
        self.database.close().map_err(PeerError::of(NAME, "close"))
    }
}

struct RedbWriter<'a> {
    store: &'a Redb,
}

impl Writer for RedbWriter<'_> {
    fn commit(&mut self, rows: &[Row]) -> Result<(), PeerError> {
        let store = self.store;
        if store.is_grouped {
            store.group.commit(|| store.put(Durability::None, rows), || store.sync())
        } else {
            store.put(Durability::Immediate, rows)
        }
    }
}

/// A snapshot, held for as long as the reader lives.
struct RedbReader {
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    _transaction: ReadTransaction,
}

impl Reader for RedbReader {
    fn get(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool, PeerError> {
        let found = ReadableTable::get(&self.table, key).map_err(PeerError::of(NAME, "read"))?;
        if let Some(value) = &found {
            seen(value.value());
        }
        Ok(found.is_some())
    }

    fn scan(&mut self, visit: &mut Visit<'_>) -> Result<(), PeerError> {
        for row in self.table.iter().map_err(PeerError::of(NAME, "scan"))? {
            let (key, value) = row.map_err(PeerError::of(NAME, "scan"))?;
            if visit(key.value(), value.value()).is_break() {
                break;
            }
        }
        Ok(())
    }
}
