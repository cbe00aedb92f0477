//! SQLite as a target: WAL with `synchronous=FULL`, one connection for each session, transactions
//! that write by `BEGIN IMMEDIATE`.
//!
//! Invariant: a session whose operations write or lock holds the turn of writers from `begin` to
//! the end of the transaction, so that SQLite's own lock is never polled for within this process.
//! Commits share no sync: SQLite has no group commit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iostrata_database::target::{
    OpId, Part, Rows, Schema, Session, SessionCost, SessionOptions, Table, Target, TargetError,
    TargetFacts, Ticket, Trouble, Value,
};
use iostrata_run::{ResourceUse, TransactionDurability};
use rusqlite::{Connection, ErrorCode};

use super::execute::{execute, load_rows};
use super::sql::{self, Statements};
use super::turns::{Turn, Turns};
use crate::engines::sqlite::connect;
use crate::tpcc::run::CACHE_BYTES;

const NAME: &str = "sqlite";
/// Statements that a connection keeps compiled.
const STATEMENTS: usize = 128;

/// A database file.
#[derive(Debug)]
pub(super) struct SqliteTarget {
    path: PathBuf,
    turns: Arc<Turns>,
}

impl SqliteTarget {
    /// Opens or makes the file in a directory.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(dir: &Path) -> Result<Self, TargetError> {
        let target = Self { path: dir.join(NAME), turns: Arc::default() };
        target.connection().map(|_opens| target)
    }

    fn connection(&self) -> Result<Connection, TargetError> {
        let opened = connect(&self.path, CACHE_BYTES);
        let connection = opened.map_err(|error| {
            let fix = "use a directory that can be written, and a whole file of SQLite in it";
            TargetError::not_ready(NAME, "open", error.to_string(), fix)
        })?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(connection)
    }

    fn execute(&self, text: &str) -> Result<(), TargetError> {
        let _turn = self.turns.take();
        self.connection()?.execute_batch(text).map_err(|error| told(&error, text))
    }

    fn make_indexes(&self, table: &Table, is_late: bool) -> Result<(), TargetError> {
        let indexes = table.indexes.iter().filter(|index| index.is_late == is_late);
        indexes
            .map(|index| sql::create_index(table, index))
            .try_for_each(|text| self.execute(&text))
    }
}

impl Target for SqliteTarget {
    fn name(&self) -> String {
        format!("{NAME}:{}", self.path.display())
    }

    fn facts(&self) -> Result<TargetFacts, TargetError> {
        Ok(TargetFacts {
            name: self.name(),
            flavour: NAME.to_owned(),
            version: rusqlite::version().to_owned(),
            durability: TransactionDurability {
                flush_log_at_commit: Some(1),
                binlog: Some(false),
                ..TransactionDurability::default()
            },
            settings: vec![
                ("journal_mode".to_owned(), "wal".to_owned()),
                ("synchronous".to_owned(), "full".to_owned()),
            ],
        })
    }

    fn used(&self) -> Result<ResourceUse, TargetError> {
        Ok(ResourceUse::default())
    }

    fn present(&self, schema: &Schema) -> Result<Vec<usize>, TargetError> {
        let listed = |connection: &Connection| {
            let mut found =
                connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
            found.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
        };
        let names = listed(&self.connection()?).map_err(|error| told(&error, "list its tables"))?;
        let is_there = |table: &usize| names.contains(&schema.tables[*table].name);
        Ok((0..schema.tables.len()).filter(is_there).collect())
    }

    fn create(&self, schema: &Schema, table: usize) -> Result<(), TargetError> {
        let table = &schema.tables[table];
        self.execute(&sql::create(table))?;
        self.make_indexes(table, false)
    }

    fn finish(&self, schema: &Schema) -> Result<(), TargetError> {
        let present = self.present(schema)?;
        present.into_iter().try_for_each(|at| self.make_indexes(&schema.tables[at], true))?;
        self.execute("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    fn remove(&self, schema: &Schema, table: usize) -> Result<(), TargetError> {
        self.execute(&format!("DROP TABLE IF EXISTS {}", sql::quoted(&schema.tables[table].name)))
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
        if part.is_some() {
            return Err(TargetError::whole_tables_only(NAME));
        }
        let (_turn, connection) = (self.turns.take(), self.connection()?);
        load_rows(&connection, schema, table, next)
            .map_err(|error| told(&error, &format!("load table {}", schema.tables[table].name)))
    }

    fn session(
        &self,
        schema: &Arc<Schema>,
        options: &SessionOptions,
    ) -> Result<Box<dyn Session>, TargetError> {
        let compiled = options.ops.iter().map(|op| {
            Statements::of(schema, op).map_err(|why| {
                let text = format!("cannot run {}: {why}", op.name);
                TargetError::not_ready(NAME, "unsupported", text, "leave it out")
            })
        });
        let ops = compiled.collect::<Result<Box<[Statements]>, TargetError>>()?;
        Ok(Box::new(SqliteSession {
            connection: self.connection()?,
            turn: None,
            turns: ops.iter().any(|op| op.locks).then(|| Arc::clone(&self.turns)),
            ops,
            autocommit: options.autocommit,
            statements: 0,
        }))
    }

    fn data_bytes(&self) -> Result<Option<u64>, TargetError> {
        Ok(std::fs::metadata(&self.path).ok().map(|file| file.len()))
    }
}

struct SqliteSession {
    /// Before the turn, so that it rolls back before another one writes.
    connection: Connection,
    /// While a transaction is open.
    turn: Option<Turn>,
    /// Absent where the session only reads.
    turns: Option<Arc<Turns>>,
    ops: Box<[Statements]>,
    autocommit: bool,
    statements: u64,
}

impl SqliteSession {
    fn end(&mut self, how: &str) -> Result<(), TargetError> {
        let ended = self.connection.prepare_cached(how).and_then(|mut end| end.execute([]));
        if ended.is_err() && !self.connection.is_autocommit() {
            // A transaction that did not end by itself ends here, whatever it was.
            let _also_failed = self.connection.execute_batch("ROLLBACK");
        }
        self.turn = None;
        ended.map(drop).map_err(|error| told(&error, how))
    }

    fn begin_one(&mut self) -> Result<(), TargetError> {
        self.turn = self.turns.as_ref().map(Turns::take);
        let how = if self.turns.is_some() { "BEGIN IMMEDIATE" } else { "BEGIN" };
        let begun = self.connection.prepare_cached(how).and_then(|mut begin| begin.execute([]));
        if begun.is_err() {
            self.turn = None;
        }
        begun.map(drop).map_err(|error| told(&error, how))
    }

    /// Runs an operation, with a transaction of its own where the caller has none.
    fn attempt(
        &mut self,
        op: OpId,
        args: &[Value<'_>],
        each: &mut dyn FnMut(&[Value<'_>]),
    ) -> Result<u64, TargetError> {
        if op.0 >= self.ops.len() || self.connection.is_autocommit() != self.autocommit {
            let text = format!("operation {}: it is none, or no transaction was begun", op.0);
            return Err(TargetError::not_ready(NAME, "misused", text, "begin a transaction first"));
        }
        if self.autocommit {
            self.begin_one()?;
        }
        self.statements += 1;
        let op = &self.ops[op.0];
        let result = execute(&self.connection, op, args, each);
        let failed = result.map_err(|error| told(&error, &format!("run {}", op.name)));
        match &failed {
            Err(error) if self.autocommit || error.trouble == Trouble::Retry => {
                // The error that is returned is the first one.
                let _also_failed = self.end("ROLLBACK");
            }
            Ok(_) if self.autocommit => self.end("COMMIT")?,
            _ => {}
        }
        failed
    }
}

impl Session for SqliteSession {
    fn begin(&mut self) -> Result<(), TargetError> {
        if self.autocommit {
            return Ok(());
        }
        if self.turn.is_some() || !self.connection.is_autocommit() {
            let text = "a transaction is open".to_owned();
            return Err(TargetError::not_ready(NAME, "misused", text, "commit it or roll it back"));
        }
        self.begin_one()
    }

    fn run(&mut self, op: OpId, args: &[Value<'_>], out: &mut Rows) -> Result<u64, TargetError> {
        out.clear(self.ops.get(op.0).map_or(0, |op| op.width));
        self.attempt(op, args, &mut |row| row.iter().for_each(|value| out.push(*value)))
    }

    fn stream(
        &mut self,
        op: OpId,
        args: &[Value<'_>],
        each: &mut dyn FnMut(&[Value<'_>]),
    ) -> Result<(), TargetError> {
        self.attempt(op, args, each).map(drop)
    }

    fn commit(&mut self) -> Result<Ticket, TargetError> {
        if !self.autocommit {
            self.end("COMMIT")?;
        }
        Ok(Ticket(0))
    }

    fn settle(&mut self, _ticket: Ticket, _waits: bool) -> Result<bool, TargetError> {
        // A commit that returned is durable.
        Ok(true)
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        match self.connection.is_autocommit() {
            true => Ok(()),
            false => self.end("ROLLBACK"),
        }
    }

    fn cost(&self) -> SessionCost {
        SessionCost { round_trips: 0, statements: self.statements }
    }
}

fn told(error: &rusqlite::Error, doing: &str) -> TargetError {
    let code = error.sqlite_error_code();
    let trouble = match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Trouble::Retry,
        Some(ErrorCode::ConstraintViolation) => Trouble::Exists,
        Some(ErrorCode::DiskFull) => Trouble::NoSpace,
        _ => Trouble::Failed,
    };
    TargetError {
        trouble,
        code: code.map_or_else(|| "error".to_owned(), |code| format!("{code:?}")),
        target: NAME.to_owned(),
        text: format!("cannot {doing}: {error}"),
        fix: None,
    }
}
