//! TPC-C on the peers, by the same terminals, tables and checks as on every other target.
//!
//! Purpose: `iostrata tpcc` runs on the engine and on servers; what is here makes peers targets of
//! the same workload, and runs it on them. Invariant: every commit of a peer is synced before it
//! returns, and figures are given only if the twelve conditions hold afterwards.
//! It compares nothing: `cargo xtask bench tpcc` does.

mod execute;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod run;
mod sql;
mod sqlite;
mod turns;

use std::path::Path;

use iostrata_database::target::{Target, TargetError};

use crate::engines::Engine;
pub use run::{RunPlan, TpccError, run};

/// Opens or makes a peer in a directory.
///
/// # Errors
/// When it cannot be opened, or is not a target.
pub fn open(engine: Engine, dir: &Path) -> Result<Box<dyn Target>, TargetError> {
    match engine {
        Engine::Sqlite => Ok(Box::new(sqlite::SqliteTarget::open(dir)?)),
        #[cfg(feature = "rocksdb")]
        Engine::Rocksdb => Ok(Box::new(rocksdb::RocksdbTarget::open(dir)?)),
        other => Err(TargetError::not_ready(
            &other.to_string(),
            "unsupported",
            "it is no target of workloads in this build".to_owned(),
            "use sqlite, or rocksdb where it is built in",
        )),
    }
}
