//! fjall: log-structured merge tree with a journal.
//!
//! Commits write the journal's buffer; `persist(SyncData)`, which is fdatasync(2) as with the other
//! engines, makes all that was written before durable. As it comes, every thread calls it for each
//! of its commits; with this program's grouping one call serves many threads.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::locked_version;
use crate::error::PeerError;
use crate::group::Group;
use crate::keys::Row;
use crate::store::{Reader, Setup, Store, Visit, Writer};

const NAME: &str = "fjall";
/// fjall advises 8 to 64 MiB.
const MEMTABLE_BYTES_MAX: u64 = 64 << 20;
/// Smallest memory table used here.
const MEMTABLE_BYTES_MIN: u64 = 1 << 20;

/// An open store.
pub struct Fjall {
    database: Database,
    rows: Keyspace,
    group: Group,
    is_grouped: bool,
}

impl Fjall {
    /// Opens or makes `dir/fjall`. A quarter of the cache is for memory tables: one that fills and
    /// one that is written out.
    pub fn open(dir: &Path, setup: Setup, is_grouped: bool) -> Result<Self, PeerError> {
        let memtable_bytes = (setup.cache_bytes / 8).clamp(MEMTABLE_BYTES_MIN, MEMTABLE_BYTES_MAX);
        let database = Database::builder(dir.join(NAME))
            .cache_size(setup.cache_bytes.saturating_sub(2 * memtable_bytes))
            .manual_journal_persist(true)
            .open()
            .map_err(PeerError::of(NAME, "open"))?;
        let options = || {
            KeyspaceCreateOptions::default()
                .manual_journal_persist(true)
                .max_memtable_size(memtable_bytes)
        };
        let rows =
            database.keyspace("rows", options).map_err(PeerError::of(NAME, "open the table"))?;
        Ok(Self { database, rows, group: Group::default(), is_grouped })
    }

    fn put(&self, rows: &[Row]) -> Result<(), PeerError> {
        if let [row] = rows {
            return self
                .rows
                .insert(row.key, row.value.as_slice())
                .map_err(PeerError::of(NAME, "put a row"));
        }
        let mut batch = self.database.batch();
        for row in rows {
            batch.insert(&self.rows, row.key, row.value.as_slice());
        }
        batch.commit().map_err(PeerError::of(NAME, "commit"))
    }

    fn sync(&self) -> Result<(), PeerError> {
        self.database.persist(PersistMode::SyncData).map_err(PeerError::of(NAME, "persist"))
    }
}

impl Store for Fjall {
    fn version(&self) -> String {
        locked_version(NAME)
    }

    fn load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), PeerError> {
        let mut ingestion =
            self.rows.start_ingestion().map_err(PeerError::of(NAME, "begin to load"))?;
        for row in rows {
            ingestion
                .write(row.key, row.value.as_slice())
                .map_err(PeerError::of(NAME, "load a row"))?;
        }
        ingestion.finish().map_err(PeerError::of(NAME, "end loading"))?;
        self.sync()
    }

    fn writer(&self) -> Result<Box<dyn Writer + '_>, PeerError> {
        Ok(Box::new(FjallThread { store: self }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, PeerError> {
        Ok(Box::new(FjallThread { store: self }))
    }

    fn close(self: Box<Self>) -> Result<(), PeerError> {
        self.sync()
    }
}

struct FjallThread<'a> {
    store: &'a Fjall,
}

impl Writer for FjallThread<'_> {
    fn commit(&mut self, rows: &[Row]) -> Result<(), PeerError> {
        let store = self.store;
        if store.is_grouped {
            store.group.commit(|| store.put(rows), || store.sync())
        } else {
            store.put(rows)?;
            store.sync()
        }
    }
}

impl Reader for FjallThread<'_> {
    fn get(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool, PeerError> {
        let found = self.store.rows.get(key).map_err(PeerError::of(NAME, "read"))?;
        if let Some(value) = &found {
            seen(value);
        }
        Ok(found.is_some())
    }

    fn scan(&mut self, visit: &mut Visit<'_>) -> Result<(), PeerError> {
        for row in self.store.rows.iter() {
            let (key, value) = row.into_inner().map_err(PeerError::of(NAME, "scan"))?;
            if visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }
}
