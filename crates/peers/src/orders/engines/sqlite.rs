//! SQLite: WAL with `synchronous=FULL`, `BEGIN IMMEDIATE`; one connection writes for all threads,
//! in turn, so there are no conflicts, and nothing can be lent to it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::{CachedStatement, Connection, params};

use crate::engines::sqlite::{CREATE, connect};
use crate::error::PeerError;
use crate::orders::rows::{RowKey, Scale};
use crate::orders::store::{Body, OrderStore, OrderThread, RowError, Rows, read_and_put};
use crate::store::Setup;

const NAME: &str = "sqlite";
const GET: &str = "SELECT v FROM rows WHERE k = ?1";
const PUT: &str = "REPLACE INTO rows(k, v) VALUES(?1, ?2)";
const DELETE: &str = "DELETE FROM rows WHERE k = ?1";

/// An open store: one table for all relations.
pub struct Sqlite {
    connection: Mutex<Connection>,
}

impl Sqlite {
    /// Opens or makes `dir/sqlite`.
    pub fn open(dir: &Path, setup: Setup) -> Result<Self, PeerError> {
        let connection = connect(&dir.join(NAME), setup.cache_bytes)?;
        connection.execute_batch(CREATE).map_err(PeerError::of(NAME, "make the table"))?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    fn transact(&self, body: &mut Body<'_>) -> Result<(), RowError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let execute = |sql| {
            let run = connection.prepare_cached(sql).and_then(|mut found| found.execute([]));
            run.map(drop).map_err(PeerError::of(NAME, "begin or end a transaction"))
        };
        let prepare = |sql| {
            connection.prepare_cached(sql).map_err(PeerError::of(NAME, "prepare a statement"))
        };
        execute("BEGIN IMMEDIATE")?;
        let (get, put, delete) = (prepare(GET)?, prepare(PUT)?, prepare(DELETE)?);
        let done = body(&mut OpenRows { get, put, delete, value: Vec::new() });
        execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        done
    }
}

impl OrderStore for Sqlite {
    fn load(&self, scale: Scale) -> Result<(), PeerError> {
        super::load_by_parts(scale, |part| {
            let put = |rows: &mut dyn Rows| {
                part.iter().try_for_each(|(key, value)| rows.insert(key, value))
            };
            super::loaded(NAME, self.transact(&mut { put }))
        })?;
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(PeerError::of(NAME, "checkpoint"))
    }

    fn thread(&self) -> Result<Box<dyn OrderThread + '_>, PeerError> {
        Ok(Box::new(Thread { store: self, settled: 0 }))
    }

    fn close(self: Box<Self>) -> Result<(), PeerError> {
        let connection = self.connection.into_inner().unwrap_or_else(PoisonError::into_inner);
        connection.close().map_err(|(_, error)| error).map_err(PeerError::of(NAME, "close"))
    }
}

struct Thread<'s> {
    store: &'s Sqlite,
    settled: u64,
}

impl OrderThread for Thread<'_> {
    fn transact(&mut self, body: &mut Body<'_>) -> Result<(), RowError> {
        self.store.transact(body)?;
        self.settled += 1;
        Ok(())
    }

    fn settle(&mut self, _unsettled: usize) -> Result<u64, PeerError> {
        Ok(std::mem::take(&mut self.settled))
    }
}

struct OpenRows<'c> {
    get: CachedStatement<'c>,
    put: CachedStatement<'c>,
    delete: CachedStatement<'c>,
    value: Vec<u8>,
}

impl Rows for OpenRows<'_> {
    fn get(&mut self, key: &RowKey, seen: &mut dyn FnMut(&[u8])) -> Result<bool, RowError> {
        let found = (|| {
            let mut rows = self.get.query([key.whole()])?;
            let Some(row) = rows.next()? else { return Ok(false) };
            seen(row.get_ref(0)?.as_blob()?);
            Ok(true)
        })();
        Ok(found.map_err(PeerError::of::<rusqlite::Error>(NAME, "read"))?)
    }

    fn insert(&mut self, key: &RowKey, value: &[u8]) -> Result<(), RowError> {
        let put = self.put.execute(params![key.whole(), value]);
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
        let gone = self.delete.execute([key.whole()]);
        Ok(gone.map_err(PeerError::of(NAME, "delete a row"))? > 0)
    }
}
