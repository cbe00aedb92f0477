//! Sessions: declared operations as statements over one connection.
//!
//! Purpose: every operation is prepared once for each number of rows of arguments: when it is first
//! run, or before the next transaction where one is open. Invariants: nothing is prepared within a
//! transaction; transactions begin by themselves (`autocommit = 0`) where the server allows it, so
//! that `begin` costs no round trip; after a failure that may be retried nothing is left of the
//! transaction. A commit is durable when the server confirms it: tickets are settled.

mod modify;
mod statements;

use std::sync::Arc;

use iostrata_database::target::{
    Access, Fold, Isolation, Op, OpId, Rows, Schema, Session, SessionCost, SessionOptions,
    TargetError, Ticket, Trouble, Value,
};

use crate::flavour::Dialect;
use crate::kind::ValueKind;
use crate::link::{AnswerRow, Link};
use statements::{Stage, Statements};

/// Most keys in one statement.
const KEYS_MAX: usize = 128;
/// Most rows, arguments and bytes of characters in one INSERT.
const INSERT_ROWS_MAX: usize = 1000;
const INSERT_ARGUMENTS_MAX: usize = 30_000;
const INSERT_BYTES_MAX: usize = 1 << 20;

/// The mode in which sessions read and write: what does not fit is refused, and texts and
/// identifiers are written as they are by default.
const SQL_MODE: &str = "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION";

/// A session on a server.
#[derive(Debug)]
pub(crate) struct ServerSession {
    link: Link,
    ops: Vec<Statements>,
    begins: bool,
    commits: u64,
}

impl ServerSession {
    /// Sets a connection up for the operations.
    pub(crate) fn open(
        mut link: Link,
        dialect: Dialect,
        schema: &Arc<Schema>,
        options: &SessionOptions,
    ) -> Result<Self, TargetError> {
        let begins = dialect.begins && !options.autocommit;
        let autocommit = u8::from(options.autocommit || begins);
        link.order(&format!(
            "SET autocommit = {autocommit}, time_zone = '+00:00', sql_mode = '{SQL_MODE}'"
        ))?;
        let isolation = match options.isolation {
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        };
        link.order(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"))?;
        let statements = |op: &Op| Statements::new(op, schema, dialect, options.as_text);
        let ops: Result<Vec<Statements>, String> = options.ops.iter().map(statements).collect();
        let ops = ops.map_err(|text| link.refused("operation", text))?;
        link.cost = SessionCost::default();
        link.autocommit = options.autocommit;
        Ok(Self { link, ops, begins, commits: 0 })
    }

    /// The rows of arguments; none are left over.
    fn rows_of(&self, op: OpId, args: &[Value<'_>]) -> Result<usize, TargetError> {
        let Some(statements) = self.ops.get(op.0) else {
            let text = format!("operation {} of {} was requested", op.0, self.ops.len());
            return Err(self.link.refused("operation", text));
        };
        let stride = statements.stride;
        let rows = args.len().checked_div(stride).unwrap_or(1);
        let is_one = matches!(
            statements.op.access,
            Access::Scan { .. } | Access::CountBelow(_) | Access::Statement { .. }
        );
        let is_whole = args.len() == rows * stride || stride == 0;
        if is_whole && !(is_one && rows != 1) {
            return Ok(rows);
        }
        let name = statements.op.name;
        let text = format!("{name}: {} arguments in place of rows of {stride}", args.len());
        Err(self.link.refused("arguments", text))
    }

    fn execute(
        &mut self,
        op: OpId,
        args: &[Value<'_>],
        out: &mut Rows,
    ) -> Result<u64, TargetError> {
        let rows = self.rows_of(op, args)?;
        let Self { link, ops, .. } = self;
        let statements = &mut ops[op.0];
        out.clear(statements.op.width());
        if rows == 0 {
            return Ok(0);
        }
        let stride = statements.stride;
        let chunk = match statements.op.access {
            Access::Modify { .. } => return modify::run(link, statements, args, rows, out),
            Access::Statement { .. } => return run_text(link, statements, args, out),
            Access::Get { .. } if rows > KEYS_MAX => {
                let distinct = distinct_keys(args, stride);
                return in_chunks(link, statements, &distinct, KEYS_MAX, out);
            }
            Access::Insert => insert_rows_max(args, rows, stride),
            _ => KEYS_MAX,
        };
        in_chunks(link, statements, args, chunk, out)
    }

    /// Ends what the server may have left of a failed transaction.
    fn after(&mut self, result: Result<u64, TargetError>) -> Result<u64, TargetError> {
        if result.as_ref().is_err_and(|error| error.trouble == Trouble::Retry) {
            // A lock wait that ran out rolls back its statement only. That this fails too adds
            // nothing new.
            if !self.link.autocommit {
                let _ = self.link.order("ROLLBACK");
            }
            self.link.is_open = false;
        }
        result
    }
}

/// Runs the whole operation for so many rows of arguments at a time.
fn in_chunks(
    link: &mut Link,
    statements: &mut Statements,
    args: &[Value<'_>],
    chunk: usize,
    out: &mut Rows,
) -> Result<u64, TargetError> {
    let most = chunk * statements.stride;
    if args.len() <= most || most == 0 {
        return at_once(link, statements, args, out);
    }
    args.chunks(most).map(|piece| at_once(link, statements, piece, out)).sum()
}

/// Runs the whole operation by one statement.
#[inline]
fn at_once(
    link: &mut Link,
    statements: &mut Statements,
    args: &[Value<'_>],
    out: &mut Rows,
) -> Result<u64, TargetError> {
    let rows = args.len().checked_div(statements.stride).unwrap_or(1);
    let (gives, sums) = (Arc::clone(&statements.gives), statements.sums);
    let ready = statements.ready(link, Stage::Whole, rows)?;
    let mut found = 0;
    let changed = link.run(ready, args, &mut |row| {
        found += 1;
        take_row(row, &gives, sums, out)
    })?;
    Ok(if found == 0 { changed } else { found })
}

fn run_text(
    link: &mut Link,
    statements: &Statements,
    args: &[Value<'_>],
    out: &mut Rows,
) -> Result<u64, TargetError> {
    let Access::Statement { sql, .. } = &statements.op.access else {
        return Ok(0);
    };
    let mut found = 0;
    let changed = link.run_text(sql, args, &mut |row| {
        found += 1;
        take_row(row, &statements.gives, false, out)
    })?;
    Ok(if found == 0 { changed } else { found })
}

/// Adds a row of the server. The sum of no rows is nothing to the server and 0 to workloads.
#[inline]
fn take_row(row: &AnswerRow<'_>, gives: &[ValueKind], sums: bool, out: &mut Rows) -> Option<()> {
    if sums && row.is_null(0) {
        out.push(Value::Int(0));
        return Some(());
    }
    row.take(gives, out)
}

/// How many rows one INSERT takes.
fn insert_rows_max(args: &[Value<'_>], rows: usize, stride: usize) -> usize {
    let by_arguments = INSERT_ARGUMENTS_MAX / stride.max(1);
    let most = rows.min(INSERT_ROWS_MAX).min(by_arguments);
    let size = |value: &Value<'_>| if let Value::Text(text) = value { text.len() } else { 0 };
    let bytes: usize = if rows > 1 { args.iter().map(size).sum() } else { 0 };
    let by_bytes = if bytes > INSERT_BYTES_MAX { rows * INSERT_BYTES_MAX / bytes } else { most };
    most.min(by_bytes).max(1)
}

/// The keys, each once: those of two statements would give a row twice.
fn distinct_keys<'a>(args: &[Value<'a>], stride: usize) -> Vec<Value<'a>> {
    let mut keys: Vec<&[Value<'a>]> = args.chunks(stride).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.concat()
}

impl Session for ServerSession {
    fn begin(&mut self) -> Result<(), TargetError> {
        if self.link.has_late() && !self.link.is_open {
            self.ops.iter_mut().try_for_each(|statements| statements.catch_up(&mut self.link))?;
        }
        if self.begins {
            self.link.order("BEGIN")?;
            self.link.is_open = true;
        }
        Ok(())
    }

    fn run(&mut self, op: OpId, args: &[Value<'_>], out: &mut Rows) -> Result<u64, TargetError> {
        let result = self.execute(op, args, out);
        if result.is_ok() { result } else { self.after(result) }
    }

    fn stream(
        &mut self,
        op: OpId,
        args: &[Value<'_>],
        each: &mut dyn FnMut(&[Value<'_>]),
    ) -> Result<(), TargetError> {
        self.rows_of(op, args)?;
        let Self { link, ops, .. } = self;
        let statements = &mut ops[op.0];
        let (gives, sums) = (statements.gives.clone(), statements.sums);
        let mut one = Rows::new(gives.len());
        let mut hand = |row: &AnswerRow<'_>| {
            one.clear(gives.len());
            take_row(row, &gives, sums, &mut one)?;
            let values: Vec<Value<'_>> = (0..gives.len()).map(|at| one.get(0, at)).collect();
            each(&values);
            Some(())
        };
        let result = match &statements.op.access {
            Access::Statement { sql, .. } => link.run_text(sql, args, &mut hand),
            Access::Scan { .. } => {
                let ready = statements.ready(link, Stage::Whole, 1);
                ready.and_then(|ready| link.run(ready, args, &mut hand))
            }
            _ => {
                let text = format!("{}: only scans hand out their rows", statements.op.name);
                Err(link.refused("operation", text))
            }
        };
        self.after(result).map(drop)
    }

    fn commit(&mut self) -> Result<Ticket, TargetError> {
        if !self.link.autocommit {
            let result = self.link.order("COMMIT");
            self.after(result)?;
        }
        self.link.is_open = false;
        self.commits += 1;
        Ok(Ticket(self.commits))
    }

    fn settle(&mut self, _: Ticket, _: bool) -> Result<bool, TargetError> {
        Ok(true)
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        if self.link.is_open {
            self.link.order("ROLLBACK")?;
        }
        self.link.is_open = false;
        Ok(())
    }

    fn cost(&self) -> SessionCost {
        self.link.cost
    }
}

/// Whether the scan gives a sum.
fn is_sum(access: &Access) -> bool {
    matches!(access, Access::Scan { fold: Fold::Sum, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_are_bounded_by_rows_arguments_and_bytes() {
        let text = vec![b'x'; 1000];
        let row = |width: usize| vec![Value::Text(&text); width];
        assert_eq!(insert_rows_max(&row(1), 1, 1), 1);
        assert_eq!(insert_rows_max(&vec![Value::Int(1); 5000], 5000, 1), INSERT_ROWS_MAX);
        assert_eq!(insert_rows_max(&vec![Value::Int(1); 90_000], 900, 100), 300);
        assert_eq!(insert_rows_max(&row(4000), 2000, 2), 524);
    }

    #[test]
    fn a_key_that_is_named_twice_is_asked_for_once() {
        let args = [3, 1, 2, 2, 3, 1].map(Value::Int);
        assert_eq!(distinct_keys(&args, 2), [2, 2, 3, 1].map(Value::Int));
    }
}
