//! Whole tables in and out, past the transactions: these would keep a lock for each row.

use iostrata_database::target::{Rows, TargetError};
use iostrata_embedded::rows::{OpError, SharedTable, ValueError};
use rocksdb::{Error, WriteBatchWithTransaction, WriteOptions};

use super::{Database, NAME, told};

/// Rows of one batch.
const BATCH_ROWS: u64 = 10_000;

/// Why a row was not loaded, or an operation not run.
#[derive(Debug)]
pub(super) enum RowRefusal {
    /// What the database said.
    Database(Error),
    /// What does not fit.
    Op(OpError),
    /// The row is there already.
    Exists,
}

impl RowRefusal {
    /// As the target reports it.
    pub fn told(self, doing: &str) -> TargetError {
        match self {
            Self::Database(error) => told(&error, doing),
            Self::Op(error) => error.told(NAME, doing),
            Self::Exists => TargetError {
                trouble: iostrata_database::target::Trouble::Exists,
                code: "exists".to_owned(),
                target: NAME.to_owned(),
                text: format!("cannot {doing}: a row with this key is there"),
                fix: None,
            },
        }
    }
}

impl From<Error> for RowRefusal {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl From<OpError> for RowRefusal {
    fn from(error: OpError) -> Self {
        Self::Op(error)
    }
}

impl From<ValueError> for RowRefusal {
    fn from(error: ValueError) -> Self {
        Self::Op(error.into())
    }
}

/// Puts rows in place of those of a table; gives how many.
pub(super) fn load(
    database: &Database,
    shared: &SharedTable,
    table: u8,
    next: &mut dyn FnMut(&mut Rows),
) -> Result<u64, RowRefusal> {
    remove(database, table.into())?;
    shared.count_from(None);
    let mut rows = Rows::new(shared.layout.places.len());
    let mut batch = WriteBatchWithTransaction::<true>::default();
    let (mut key, mut row, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let mut loaded = 0;
    loop {
        next(&mut rows);
        if rows.is_empty() {
            break;
        }
        for at in 0..rows.len() {
            shared.new_key(|column| rows.get(at, column), &mut key)?;
            shared.layout.encode(|column| rows.get(at, column), &mut row)?;
            whole.clear();
            whole.extend_from_slice(&[table, 0]);
            whole.extend_from_slice(&key);
            batch.put(&whole, &row);
            for nth in 0..shared.indexes.len() {
                entry(shared, (table, nth), (&key, &row), &mut whole)?;
                batch.put(&whole, &key);
            }
            loaded += 1;
            if loaded % BATCH_ROWS == 0 {
                database.write(std::mem::take(&mut batch))?;
            }
        }
    }
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    database.write_opt(batch, &synced)?;
    Ok(loaded)
}

/// Replaces `whole` by the entry of an index that leads to a row.
pub(super) fn entry(
    shared: &SharedTable,
    (table, nth): (u8, usize),
    (key, row): (&[u8], &[u8]),
    whole: &mut Vec<u8>,
) -> Result<(), OpError> {
    whole.clear();
    whole.extend_from_slice(&[table, nth as u8 + 1]);
    if !shared.indexes[nth].extract(key, row, whole) {
        return Err(OpError::damaged(&shared.layout.table.name, key));
    }
    whole.extend_from_slice(key);
    Ok(())
}

/// Removes the rows of a table and what leads to them.
pub(super) fn remove(database: &Database, table: usize) -> Result<(), Error> {
    let mut batch = WriteBatchWithTransaction::<true>::default();
    let mut found = database.raw_iterator();
    found.seek([table as u8]);
    while let Some(key) = found.key().filter(|key| key[0] == table as u8) {
        batch.delete(key);
        if batch.len() as u64 >= BATCH_ROWS {
            database.write(std::mem::take(&mut batch))?;
        }
        found.next();
    }
    found.status()?;
    database.write(batch)
}
