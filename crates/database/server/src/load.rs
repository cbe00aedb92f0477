//! Loading: many rows in few statements.
//!
//! Purpose: rows are streamed from memory by LOAD DATA LOCAL where the server allows it, and
//! inserted many at a time otherwise. Invariants: a statement is a transaction of bounded size, so
//! that one that failed by a deadlock is sent again as it was; every row that was sent is in the
//! table, unchanged, or loading fails.

use std::io::Write as _;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use iostrata_database::target::{Part, Rows, Table, TargetError, Trouble};
use mysql::LocalInfileHandler;

use crate::connect::texts;
use crate::flavour::Dialect;
use crate::kind::{self, ValueKind};
use crate::link::Link;
use crate::sql;

/// Bytes of rows in one statement.
const STATEMENT_BYTES: usize = 1 << 20;
/// Servers that take no files of their clients: by their settings, or at all.
const NO_LOCAL: [&str; 4] = ["1148", "3948", "4166", "1235"];
/// Rows that one DELETE removes.
const DELETE_ROWS: u32 = 20_000;
/// How often a statement is sent again after a deadlock, and how long it waits before.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(5);

/// How rows travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Insert,
    LoadData,
}

/// Loads rows into one table.
#[derive(Debug)]
pub(crate) struct Loader {
    link: Link,
    table: Table,
    kinds: Vec<ValueKind>,
    way: Way,
    statement_bytes: usize,
    /// The rows of the next statement; LOAD DATA takes them from here.
    rows: Arc<Mutex<Vec<u8>>>,
}

impl Loader {
    /// Sets a connection up for loading.
    pub(crate) fn open(
        mut link: Link,
        table: &Table,
        dialect: Dialect,
    ) -> Result<Self, TargetError> {
        link.order(
            "SET autocommit = 1, unique_checks = 0, foreign_key_checks = 0, \
             sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
        )?;
        let sql = "SELECT @@max_allowed_packet";
        let answer = texts(link.conn(), sql).map_err(|error| link.told(sql, &error))?;
        let most = answer.first().and_then(|row| row.first()?.as_ref()?.parse::<usize>().ok());
        // Half a packet leaves room for one more row and the statement's words.
        let statement_bytes = most.map_or(STATEMENT_BYTES, |most| most / 2);
        let rows: Arc<Mutex<Vec<u8>>> = Arc::default();
        let source = Arc::clone(&rows);
        link.conn().set_local_infile_handler(Some(LocalInfileHandler::new(move |_, writer| {
            writer.write_all(&source.lock().unwrap_or_else(PoisonError::into_inner))
        })));
        let mut loader = Self {
            link,
            kinds: table.columns.iter().map(|column| column.of.into()).collect(),
            table: table.clone(),
            way: if dialect.loads_local { Way::LoadData } else { Way::Insert },
            statement_bytes: statement_bytes.min(STATEMENT_BYTES),
            rows,
        };
        if loader.way == Way::LoadData {
            // Whether the server lets clients send files is tried with none of the rows.
            match loader.send(&mut Vec::new(), 0) {
                Err(error) if NO_LOCAL.contains(&error.code.as_str()) => loader.way = Way::Insert,
                result => result?,
            }
        }
        Ok(loader)
    }

    pub(crate) fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// Removes what the table holds of a part.
    pub(crate) fn clear(&mut self, part: Part) -> Result<(), TargetError> {
        let table = sql::name(&self.table.name);
        let Some((column, value)) = part else {
            return self.patiently(&format!("TRUNCATE TABLE {table}")).map(drop);
        };
        let value = kind::constant(value, self.kinds[column]);
        let column = sql::name(&self.table.columns[column].name);
        let delete = format!("DELETE FROM {table} WHERE {column} = {value} LIMIT {DELETE_ROWS}");
        while self.patiently(&delete)? > 0 {}
        Ok(())
    }

    /// Loads until nothing is left; gives the number of rows.
    pub(crate) fn load(&mut self, next: &mut dyn FnMut(&mut Rows)) -> Result<u64, TargetError> {
        let mut source = Rows::new(self.table.columns.len());
        let mut buffer = Vec::with_capacity(self.statement_bytes + self.statement_bytes / 8);
        let (mut total, mut pending) = (0, 0);
        loop {
            next(&mut source);
            if source.is_empty() {
                break;
            }
            for row in 0..source.len() {
                self.write_row(&source, row, &mut buffer);
                pending += 1;
                if buffer.len() >= self.statement_bytes {
                    self.send(&mut buffer, pending)?;
                    total += mem::take(&mut pending);
                }
            }
        }
        if pending > 0 {
            self.send(&mut buffer, pending)?;
        }
        Ok(total + pending)
    }

    fn write_row(&self, source: &Rows, row: usize, out: &mut Vec<u8>) {
        let values = source.row(row).zip(&self.kinds).enumerate();
        match self.way {
            Way::LoadData => {
                for (at, (value, kind)) in values {
                    if at > 0 {
                        out.push(b'\t');
                    }
                    kind::field(value, *kind, out);
                }
                out.push(b'\n');
            }
            Way::Insert => {
                let has_backslash = true;
                if out.is_empty() {
                    let (table, columns) = (sql::name(&self.table.name), self.columns());
                    // Writing to memory does not fail.
                    let _ = write!(out, "INSERT INTO {table} ({columns}) VALUES ");
                } else {
                    out.push(b',');
                }
                for (at, (value, kind)) in values {
                    out.push(if at == 0 { b'(' } else { b',' });
                    kind::literal(value, *kind, has_backslash, out);
                }
                out.push(b')');
            }
        }
    }

    fn columns(&self) -> String {
        let names = self.table.columns.iter().map(|column| sql::name(&column.name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// Sends the rows of the buffer as one transaction, and empties it.
    fn send(&mut self, buffer: &mut Vec<u8>, rows: u64) -> Result<(), TargetError> {
        let stored = match self.way {
            Way::Insert => self.patiently(&String::from_utf8_lossy(buffer))?,
            Way::LoadData => {
                mem::swap(&mut *self.rows.lock().unwrap_or_else(PoisonError::into_inner), buffer);
                let table = sql::name(&self.table.name);
                let sql = format!(
                    "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET utf8mb4 ({})",
                    self.columns()
                );
                let stored = self.patiently(&sql)?;
                mem::swap(&mut *self.rows.lock().unwrap_or_else(PoisonError::into_inner), buffer);
                stored
            }
        };
        buffer.clear();
        // LOAD DATA LOCAL leaves out and cuts what does not fit, and only warns.
        let warnings = self.link.conn().warnings();
        if stored == rows && (self.way == Way::Insert || warnings == 0) {
            return Ok(());
        }
        let name = &self.table.name;
        let text = format!("{name}: {stored} of {rows} rows were stored, {warnings} warnings");
        Err(self.link.refused("rows", text))
    }

    /// Runs a statement again as long as it meets others.
    fn patiently(&mut self, sql: &str) -> Result<u64, TargetError> {
        let mut attempt = 1;
        loop {
            match self.link.order(sql) {
                Err(error) if error.trouble == Trouble::Retry && attempt < ATTEMPTS => {
                    thread::sleep(PAUSE * attempt);
                    attempt += 1;
                }
                result => return result,
            }
        }
    }
}
