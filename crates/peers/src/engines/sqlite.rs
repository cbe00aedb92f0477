//! SQLite: B-tree with a write-ahead log, `synchronous=FULL`.
//!
//! One connection writes for all threads, in turn: that spares them the waits of SQLite's busy
//! handler and keeps one cache. Each reader has a connection with a cache of its own.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{CachedStatement, Connection, OpenFlags, params};

use crate::error::PeerError;
use crate::keys::Row;
use crate::store::{Reader, Setup, Store, Visit, Writer};

const NAME: &str = "sqlite";
/// Rows of one transaction while loading.
const LOAD_ROWS: usize = 200_000;
pub(crate) const CREATE: &str = "CREATE TABLE IF NOT EXISTS rows(k BLOB PRIMARY KEY, v BLOB NOT NULL) \
                      WITHOUT ROWID";
const PUT: &str = "REPLACE INTO rows(k, v) VALUES(?1, ?2)";

/// An open store.
pub struct Sqlite {
    path: PathBuf,
    cache_bytes: u64,
    writing: Mutex<Connection>,
}

impl Sqlite {
    /// Opens or makes `dir/sqlite`.
    pub fn open(dir: &Path, setup: Setup) -> Result<Self, PeerError> {
        let path = dir.join(NAME);
        let connection = connect(&path, setup.cache_bytes)?;
        connection.execute_batch(CREATE).map_err(PeerError::of(NAME, "make the table"))?;
        Ok(Self { path, cache_bytes: setup.cache_bytes, writing: Mutex::new(connection) })
    }

    fn writing(&self) -> MutexGuard<'_, Connection> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, rows: &[Row]) -> Result<(), PeerError> {
        let connection = self.writing();
        let committed = (|| {
            let mut put = connection.prepare_cached(PUT)?;
            if let [row] = rows {
                return put.execute(params![&row.key[..], &row.value]).map(drop);
            }
            connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            for row in rows {
                put.execute(params![&row.key[..], &row.value])?;
            }
            connection.prepare_cached("COMMIT")?.execute([]).map(drop)
        })();
        committed.map_err(PeerError::of(NAME, "commit"))
    }
}

pub(crate) fn connect(path: &Path, cache_bytes: u64) -> Result<Connection, PeerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path, flags).map_err(PeerError::of(NAME, "open"))?;
    let cache_kib = cache_bytes / 1024;
    let settings = format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-{cache_kib}; \
         PRAGMA temp_store=MEMORY;"
    );
    connection.execute_batch(&settings).map_err(PeerError::of(NAME, "set"))?;
    let found: (String, i64) = connection
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .and_then(|mode| {
            Ok((mode, connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?))
        })
        .map_err(PeerError::of(NAME, "read its settings"))?;
    if found != ("wal".to_owned(), 2) {
        let found = format!("journal_mode and synchronous are {found:?}, not wal and 2 (full)");
        return Err(PeerError::WrongData { engine: NAME, found });
    }
    Ok(connection)
}

impl Store for Sqlite {
    fn version(&self) -> String {
        rusqlite::version().to_owned()
    }

    fn load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), PeerError> {
        let mut part = Vec::with_capacity(LOAD_ROWS);
        loop {
            part.clear();
            part.extend(Iterator::take(&mut *rows, LOAD_ROWS));
            if part.is_empty() {
                break;
            }
            self.put(&part)?;
        }
        self.writing()
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(PeerError::of(NAME, "checkpoint"))
    }

    fn writer(&self) -> Result<Box<dyn Writer + '_>, PeerError> {
        Ok(Box::new(SqliteWriter { store: self }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, PeerError> {
        Ok(Box::new(SqliteReader { connection: connect(&self.path, self.cache_bytes)? }))
    }

    fn close(self: Box<Self>) -> Result<(), PeerError> {
        let connection = self.writing.into_inner().unwrap_or_else(PoisonError::into_inner);
        connection.close().map_err(|(_, error)| error).map_err(PeerError::of(NAME, "close"))
    }
}

struct SqliteWriter<'a> {
    store: &'a Sqlite,
}

impl Writer for SqliteWriter<'_> {
    fn commit(&mut self, rows: &[Row]) -> Result<(), PeerError> {
        self.store.put(rows)
    }
}

struct SqliteReader {
    connection: Connection,
}

impl SqliteReader {
    /// A statement in a read transaction that stays open, so that not every read takes the locks.
    fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        if self.connection.is_autocommit() {
            self.connection.execute_batch("BEGIN")?;
        }
        self.connection.prepare_cached(sql)
    }
}

impl Reader for SqliteReader {
    fn get(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool, PeerError> {
        let found = (|| {
            let mut select = self.prepare("SELECT v FROM rows WHERE k = ?1")?;
            let mut rows = select.query([key])?;
            let Some(row) = rows.next()? else { return Ok(false) };
            seen(row.get_ref(0)?.as_blob()?);
            Ok(true)
        })();
        found.map_err(PeerError::of::<rusqlite::Error>(NAME, "read"))
    }

    fn scan(&mut self, visit: &mut Visit<'_>) -> Result<(), PeerError> {
        let scanned = (|| {
            let mut select = self.prepare("SELECT k, v FROM rows ORDER BY k")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                if visit(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?).is_break() {
                    break;
                }
            }
            Ok(())
        })();
        scanned.map_err(PeerError::of::<rusqlite::Error>(NAME, "scan"))
    }
}
