//! The engine of this repository: pages and redo, group commit by its own leaders.
//!
//! A commit gives a ticket; only when the ticket has been waited for is the commit acknowledged.

use std::path::Path;

use iostrata_engine::{Direction, Engine, Settings, Table};

use super::locked_version;
use crate::error::PeerError;
use crate::keys::Row;
use crate::store::{Reader, Setup, Store, Visit, Writer};

const NAME: &str = "iostrata";
const TABLE: &str = "rows";
/// Redo at most, four times the pool where that is less; fjall keeps as much journal at most.
const REDO_BYTES_MAX: u64 = 512 << 20;

/// An open store.
pub struct Iostrata {
    engine: Engine,
    rows: Table,
}

impl Iostrata {
    /// Opens or makes `dir/iostrata`.
    pub fn open(dir: &Path, setup: Setup) -> Result<Self, PeerError> {
        let engine = engine(dir, setup)?;
        let found = engine.table(TABLE).map_err(PeerError::of(NAME, "open the table"))?;
        let rows = match found {
            Some(rows) => rows,
            None => engine.create_table(TABLE).map_err(PeerError::of(NAME, "make the table"))?,
        };
        Ok(Self { engine, rows })
    }
}

/// Opens or makes an engine in `dir/iostrata`.
pub(crate) fn engine(dir: &Path, setup: Setup) -> Result<Engine, PeerError> {
    let redo_bytes = setup.cache_bytes.saturating_mul(4).min(REDO_BYTES_MAX);
    let mut settings = Settings::default();
    for (name, bytes) in
        [("buffer_pool_size", setup.cache_bytes), ("redo_log_capacity", redo_bytes)]
    {
        settings.set(name, &bytes.to_string()).map_err(PeerError::of(NAME, "set a size"))?;
    }
    let dir = dir.join(NAME);
    std::fs::create_dir_all(&dir).map_err(PeerError::files("make", &dir))?;
    Engine::open(&dir, settings).map_err(PeerError::of(NAME, "open"))
}

impl Store for Iostrata {
    fn version(&self) -> String {
        locked_version("iostrata-engine")
    }

    fn load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), PeerError> {
        let pairs = rows.map(|row| (row.key, row.value));
        self.rows.bulk_load(pairs).map_err(PeerError::of(NAME, "load"))?;
        self.engine.checkpoint().map_err(PeerError::of(NAME, "checkpoint"))
    }

    fn writer(&self) -> Result<Box<dyn Writer + '_>, PeerError> {
        Ok(Box::new(IostrataThread { store: self, value: Vec::new() }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, PeerError> {
        Ok(Box::new(IostrataThread { store: self, value: Vec::new() }))
    }

    fn close(self: Box<Self>) -> Result<(), PeerError> {
        let Self { engine, rows } = *self;
        drop(rows);
        engine.close().map_err(PeerError::of(NAME, "close"))
    }
}

struct IostrataThread<'a> {
    store: &'a Iostrata,
    /// What was read last.
    value: Vec<u8>,
}

impl Writer for IostrataThread<'_> {
    fn commit(&mut self, rows: &[Row]) -> Result<(), PeerError> {
        let mut batch = self.store.engine.batch();
        for row in rows {
            batch
                .put(&self.store.rows, &row.key, &row.value)
                .map_err(PeerError::of(NAME, "put a row"))?;
        }
        batch.commit().map_err(PeerError::of(NAME, "commit"))
    }
}

impl Reader for IostrataThread<'_> {
    fn get(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool, PeerError> {
        let found = self.store.rows.get_into(key, &mut self.value);
        let found = found.map_err(PeerError::of(NAME, "read"))?;
        if found {
            seen(&self.value);
        }
        Ok(found)
    }

    fn scan(&mut self, visit: &mut Visit<'_>) -> Result<(), PeerError> {
        let mut rows = self.store.rows.cursor(.., Direction::Forward);
        while let Some((key, value)) = rows.next_row().map_err(PeerError::of(NAME, "scan"))? {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}
