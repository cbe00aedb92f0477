//! The engines that take orders, each behind [`OrderStore`].

mod fjall;
#[cfg(feature = "iostrata")]
mod iostrata;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;

use std::path::Path;

use crate::engines::Engine;
use crate::error::PeerError;
use crate::orders::rows::{Relation, RowKey, Scale};
use crate::orders::store::{OrderStore, RowError};
use crate::store::Setup;

/// Rows of one transaction while loading.
const LOAD_ROWS: usize = 50_000;

/// Opens the store in this directory, making it when there is none.
///
/// # Errors
/// When the engine refuses or is not in this build.
pub fn open(engine: Engine, dir: &Path, setup: Setup) -> Result<Box<dyn OrderStore>, PeerError> {
    let is_grouped = engine.is_lent_grouping();
    match engine {
        #[cfg(feature = "iostrata")]
        Engine::Iostrata => Ok(Box::new(iostrata::Iostrata::open(dir, setup)?)),
        Engine::Redb | Engine::RedbGroup => Ok(Box::new(redb::Redb::open(dir, setup, is_grouped)?)),
        Engine::Fjall | Engine::FjallGroup => {
            Ok(Box::new(fjall::Fjall::open(dir, setup, is_grouped)?))
        }
        Engine::Sqlite => Ok(Box::new(sqlite::Sqlite::open(dir, setup)?)),
        #[cfg(feature = "rocksdb")]
        Engine::Rocksdb => Ok(Box::new(rocksdb::Rocksdb::open(dir, setup)?)),
        #[allow(unreachable_patterns, reason = "which engines are built is a matter of features")]
        _ => Err(PeerError::NotBuilt { engine: engine.name() }),
    }
}

/// Gives all rows in ascending order to `put`, part by part.
fn load_by_parts(
    scale: Scale,
    mut put: impl FnMut(&[(RowKey, Vec<u8>)]) -> Result<(), PeerError>,
) -> Result<(), PeerError> {
    let mut rows = Relation::ALL.into_iter().flat_map(|relation| scale.rows(relation));
    let mut part = Vec::with_capacity(LOAD_ROWS);
    loop {
        part.clear();
        part.extend(rows.by_ref().take(LOAD_ROWS));
        if part.is_empty() {
            return Ok(());
        }
        put(&part)?;
    }
}

/// What came of loading rows by a transaction that meets no other.
fn loaded(engine: &'static str, result: Result<(), RowError>) -> Result<(), PeerError> {
    result.map_err(|error| match error {
        RowError::Failed(error) => error,
        other => PeerError::WrongData { engine, found: format!("while loading: {other:?}") },
    })
}
