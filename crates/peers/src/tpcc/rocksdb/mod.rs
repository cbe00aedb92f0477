//! RocksDB as a target: `TransactionDB`, row locks with detection of deadlocks, a synced log that
//! concurrent commits share by its own group commit.
//!
//! Rows are encoded as the embedded engine's are. A table's number stands before each key, then 0
//! for rows or the number of an index from 1; an entry of an index leads to its row by the key that
//! is its value. Invariant: a commit is synced when it returns. Plain reads of a transaction see
//! one snapshot, locking reads and writes the newest rows.

mod access;
mod load;
mod op;
mod session;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iostrata_database::target::{
    Isolation, Part, Rows, Schema, Session, SessionOptions, Target, TargetError, TargetFacts,
    Trouble,
};
use iostrata_embedded::rows::SharedTable;
use iostrata_run::{ResourceUse, TransactionDurability};
use iostrata_workload::tpcc;
use rocksdb::{Error, ErrorKind, SingleThreaded, TransactionDB, TransactionDBOptions};

use crate::engines::rocksdb::options;
use crate::scratch::allocated_bytes;
use crate::store::Setup;
use crate::tpcc::run::CACHE_BYTES;

const NAME: &str = "rocksdb";
/// Before the numbers of tables that are there.
const PRESENT: u8 = 0xff;

type Database = TransactionDB<SingleThreaded>;

/// An open database. It stays open until the process ends, since sessions borrow it.
pub(super) struct RocksdbTarget {
    database: &'static Database,
    schema: Schema,
    tables: Vec<Arc<SharedTable>>,
    path: PathBuf,
}

impl RocksdbTarget {
    /// Opens or makes the database in a directory.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(dir: &Path) -> Result<Self, TargetError> {
        let path = dir.join(NAME);
        let setup = Setup { cache_bytes: CACHE_BYTES, writers: 1, is_direct: false };
        let opened = options(setup)
            .and_then(|options| Database::open(&options, &TransactionDBOptions::default(), &path));
        let database = Box::leak(Box::new(opened.map_err(|error| told(&error, "open"))?));
        let schema = tpcc::schema();
        let tables = schema.tables.iter().map(|table| Arc::new(SharedTable::new(table))).collect();
        let target = Self { database, schema, tables, path };
        (0..target.tables.len()).try_for_each(|table| target.go_on_counting(table))?;
        Ok(target)
    }

    fn go_on_counting(&self, table: usize) -> Result<(), TargetError> {
        let mut last = self.database.raw_iterator();
        last.seek_for_prev([table as u8, 1]);
        let key = last.key().filter(|key| key.starts_with(&[table as u8, 0]));
        self.tables[table].count_from(key.map(|key| &key[2..]));
        last.status().map_err(|error| told(&error, "look for the last row"))
    }

    fn table(&self, schema: &Schema, table: usize) -> Result<&Arc<SharedTable>, TargetError> {
        match schema.tables.get(table) == self.schema.tables.get(table) {
            true => Ok(&self.tables[table]),
            false => Err(TargetError::not_ready(
                NAME,
                "unsupported",
                format!("table {table} is none of TPC-C"),
                "run TPC-C on it",
            )),
        }
    }
}

impl Target for RocksdbTarget {
    fn name(&self) -> String {
        format!("{NAME}:{}", self.path.display())
    }

    fn facts(&self) -> Result<TargetFacts, TargetError> {
        let durability = TransactionDurability {
            flush_log_at_commit: Some(1),
            binlog: Some(false),
            ..TransactionDurability::default()
        };
        Ok(TargetFacts {
            name: self.name(),
            flavour: NAME.to_owned(),
            version: crate::engines::rocksdb::version(&self.path),
            durability,
            settings: vec![("sync".to_owned(), "true".to_owned())],
        })
    }

    fn used(&self) -> Result<ResourceUse, TargetError> {
        Ok(ResourceUse::default())
    }

    fn present(&self, schema: &Schema) -> Result<Vec<usize>, TargetError> {
        let mut present = Vec::new();
        for table in 0..schema.tables.len() {
            let found = self.database.get([PRESENT, table as u8]);
            if found.map_err(|error| told(&error, "list its tables"))?.is_some() {
                present.push(table);
            }
        }
        Ok(present)
    }

    fn create(&self, schema: &Schema, table: usize) -> Result<(), TargetError> {
        self.table(schema, table)?;
        let put = self.database.put([PRESENT, table as u8], b"");
        put.map_err(|error| told(&error, "make a table"))
    }

    fn finish(&self, _schema: &Schema) -> Result<(), TargetError> {
        // Entries of indexes are written with their rows.
        Ok(())
    }

    fn remove(&self, schema: &Schema, table: usize) -> Result<(), TargetError> {
        self.table(schema, table)?;
        load::remove(self.database, table)
            .and_then(|()| self.database.delete([PRESENT, table as u8]))
            .map_err(|error| told(&error, "remove a table"))
    }

    fn loads_parts(&self) -> bool {
        false
    }

    fn load(
        &self,
        schema: &Schema,
        table: usize,
        part: Part,
        next: &mut dyn FnMut(&mut Rows),
    ) -> Result<u64, TargetError> {
        let shared = self.table(schema, table)?;
        if part.is_some() {
            return Err(TargetError::whole_tables_only(NAME));
        }
        let loaded = load::load(self.database, shared, table as u8, next);
        loaded.map_err(|error| error.told(&format!("load table {table}")))
    }

    fn session(
        &self,
        schema: &Arc<Schema>,
        options: &SessionOptions,
    ) -> Result<Box<dyn Session>, TargetError> {
        if options.isolation == Isolation::Serializable || options.autocommit {
            let text = "it has no level serializable here, and no autocommit".to_owned();
            return Err(TargetError::not_ready(
                NAME,
                "unsupported",
                text,
                "use repeatable read, and begin",
            ));
        }
        for op in &*options.ops {
            self.table(schema, op.table)?;
        }
        let ops = options.ops.iter().map(|op| {
            op::CompiledOp::of(&self.tables, op).map_err(|why| {
                let text = format!("cannot run {}: {why}", op.name);
                TargetError::not_ready(NAME, "unsupported", text, "leave it out")
            })
        });
        let ops = ops.collect::<Result<_, TargetError>>()?;
        Ok(Box::new(session::RocksdbSession::new(
            self.database,
            ops,
            options.isolation == Isolation::RepeatableRead,
        )))
    }

    fn data_bytes(&self) -> Result<Option<u64>, TargetError> {
        Ok(Some(allocated_bytes(&self.path)))
    }
}

fn told(error: &Error, doing: &str) -> TargetError {
    let kind = error.kind();
    let trouble = match kind {
        ErrorKind::Busy | ErrorKind::TimedOut | ErrorKind::TryAgain | ErrorKind::Aborted => {
            Trouble::Retry
        }
        _ => Trouble::Failed,
    };
    TargetError {
        trouble,
        code: format!("{kind:?}"),
        target: NAME.to_owned(),
        text: format!("cannot {doing}: {error}"),
        fix: None,
    }
}
