//! A small engine whose transactions never wait, for interleavings on one thread.

use std::sync::Arc;
use std::time::Duration;

use iostrata_engine::{
    Direction, Engine, EngineError, Isolation, Table, Transaction, TransactionError,
    TransactionOptions,
};
use iostrata_io::disk::MemDisk;

use crate::common::engine::How;

/// An engine with the rows x and y, which are both 50.
pub struct Accounts {
    pub engine: Engine,
    pub table: Table,
}

impl Accounts {
    pub fn new() -> Self {
        let engine = How::with(&[]).open(Arc::new(MemDisk::new())).unwrap();
        let table = engine.create_table("accounts").unwrap();
        let accounts = Self { engine, table };
        accounts.set("x", 50);
        accounts.set("y", 50);
        accounts
    }

    pub fn begin(&self, isolation: Isolation) -> Account<'_> {
        let lock_wait_timeout = Some(Duration::ZERO);
        let mut options = TransactionOptions::from(isolation);
        options.lock_wait_timeout = lock_wait_timeout;
        Account { t: self.engine.begin(options).unwrap(), table: &self.table }
    }

    /// Commits one row, by a transaction of its own.
    pub fn set(&self, key: &str, value: u8) {
        let mut t = self.begin(Isolation::ReadCommitted);
        t.put(key, value).unwrap();
        t.commit();
    }

    pub fn delete(&self, key: &str) {
        let mut t = self.begin(Isolation::ReadCommitted);
        assert!(t.t.delete(&self.table, key.as_bytes()).unwrap());
        t.commit();
    }

    pub fn now(&self, key: &str) -> Option<u8> {
        self.table.get(key.as_bytes()).unwrap().map(|value| value[0])
    }
}

/// A transaction on them.
pub struct Account<'a> {
    pub t: Transaction,
    pub table: &'a Table,
}

impl Account<'_> {
    pub fn get(&mut self, key: &str) -> Option<u8> {
        self.t.get(self.table, key.as_bytes()).unwrap().map(|value| value[0])
    }

    pub fn lock(&mut self, key: &str) -> Result<Option<u8>, EngineError> {
        let row = self.t.get_for_update(self.table, key.as_bytes())?;
        Ok(row.map(|value| value[0]))
    }

    pub fn put(&mut self, key: &str, value: u8) -> Result<(), EngineError> {
        self.t.put(self.table, key.as_bytes(), &[value])
    }

    pub fn add(&mut self, key: &str, value: u8) -> Result<bool, EngineError> {
        self.t.modify(self.table, key.as_bytes(), |row| row[0] += value)
    }

    /// All rows, read forward; read backward they are the same.
    pub fn rows(&mut self) -> Vec<(String, u8)> {
        let of = |direction| {
            let mut cursor = self.t.cursor(self.table, .., direction).unwrap();
            let mut rows = Vec::new();
            while let Some((key, value)) = cursor.next_row().unwrap() {
                rows.push((String::from_utf8(key.to_vec()).unwrap(), value[0]));
            }
            rows
        };
        let (forward, mut backward) = (of(Direction::Forward), of(Direction::Backward));
        backward.reverse();
        assert_eq!(forward, backward);
        forward
    }

    pub fn commit(self) {
        self.t.commit().unwrap();
    }
}

pub fn rows(of: &[(&str, u8)]) -> Vec<(String, u8)> {
    of.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
}

pub fn is_locked<T>(result: &Result<T, EngineError>) -> bool {
    use EngineError::Transaction;
    matches!(result, Err(Transaction(TransactionError::LockTimeout { .. })))
}

pub fn is_conflict<T>(result: &Result<T, EngineError>) -> bool {
    use EngineError::Transaction;
    matches!(result, Err(Transaction(TransactionError::Conflict { .. })))
}
