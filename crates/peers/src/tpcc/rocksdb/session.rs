//! A session: one transaction at a time, its reads and writes.
//!
//! Invariant: after an error that asks for another try the transaction is over. Memory is used
//! again from one operation to the next.

use std::mem::take;

use iostrata_database::target::{
    Fold, OpId, Rows, Session, SessionCost, TargetError, Ticket, Trouble, Value,
};
use iostrata_embedded::rows::{ChangeError, OpError, change_columns};
use rocksdb::{SnapshotWithThreadMode, Transaction, TransactionOptions, WriteOptions};

use super::access::Access;
use super::load::{RowRefusal, entry};
use super::op::{Action, CompiledOp, Scan};
use super::{Database, NAME};

/// A session of RocksDB.
pub(super) struct RocksdbSession {
    /// Before the snapshot, which its reads may use.
    transaction: Option<Transaction<'static, Database>>,
    snapshot: Option<SnapshotWithThreadMode<'static, Database>>,
    database: &'static Database,
    ops: Vec<CompiledOp>,
    /// Whether plain reads of a transaction see one state.
    is_repeatable: bool,
    buffers: SessionBuffers,
    statements: u64,
}

/// Memory that operations use again.
#[derive(Default)]
struct SessionBuffers {
    key: Vec<u8>,
    row: Vec<u8>,
    before: Vec<u8>,
    whole: Vec<u8>,
    text: Vec<u8>,
}

impl RocksdbSession {
    pub fn new(database: &'static Database, ops: Vec<CompiledOp>, is_repeatable: bool) -> Self {
        Self {
            transaction: None,
            snapshot: None,
            database,
            ops,
            is_repeatable,
            buffers: SessionBuffers::default(),
            statements: 0,
        }
    }

    fn attempt(
        &mut self,
        op: OpId,
        args: &[Value<'_>],
        out: &mut Rows,
    ) -> Result<u64, TargetError> {
        let (Some(transaction), Some(op)) = (&self.transaction, self.ops.get(op.0)) else {
            let text = format!("operation {}: it is none, or no transaction was begun", op.0);
            return Err(TargetError::not_ready(NAME, "misused", text, "begin a transaction first"));
        };
        self.statements += 1;
        let access = Access { transaction, snapshot: self.snapshot.as_ref() };
        let done = run(&access, op, args, (&mut self.buffers, out));
        let told = done.map_err(|refusal| refusal.told(&format!("run {}", op.name)));
        if let Err(TargetError { trouble: Trouble::Retry, .. }) = &told {
            self.end();
        }
        told
    }

    fn end(&mut self) {
        (self.transaction, self.snapshot) = (None, None);
    }
}

impl Session for RocksdbSession {
    fn begin(&mut self) -> Result<(), TargetError> {
        if self.transaction.is_some() {
            let text = "a transaction is open".to_owned();
            return Err(TargetError::not_ready(NAME, "misused", text, "commit it or roll it back"));
        }
        let (mut writing, mut locking) = (WriteOptions::default(), TransactionOptions::new());
        writing.set_sync(true);
        locking.set_deadlock_detect(true);
        self.snapshot = self.is_repeatable.then(|| self.database.snapshot());
        self.transaction = Some(self.database.transaction_opt(&writing, &locking));
        Ok(())
    }

    fn run(&mut self, op: OpId, args: &[Value<'_>], out: &mut Rows) -> Result<u64, TargetError> {
        out.clear(self.ops.get(op.0).map_or(0, |op| op.width));
        self.attempt(op, args, out)
    }

    fn stream(
        &mut self,
        op: OpId,
        args: &[Value<'_>],
        each: &mut dyn FnMut(&[Value<'_>]),
    ) -> Result<(), TargetError> {
        let mut rows = Rows::default();
        self.run(op, args, &mut rows)?;
        let mut row = Vec::new();
        for at in 0..rows.len() {
            row.clear();
            row.extend(rows.row(at));
            each(&row);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<Ticket, TargetError> {
        let Some(transaction) = self.transaction.take() else {
            let text = "no transaction was begun".to_owned();
            return Err(TargetError::not_ready(NAME, "misused", text, "begin one"));
        };
        let committed = transaction.commit();
        self.end();
        committed.map_err(|error| super::told(&error, "commit"))?;
        Ok(Ticket(0))
    }

    fn settle(&mut self, _ticket: Ticket, _waits: bool) -> Result<bool, TargetError> {
        // A commit that returned is durable.
        Ok(true)
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        self.end();
        Ok(())
    }

    fn cost(&self) -> SessionCost {
        SessionCost { round_trips: 0, statements: self.statements }
    }
}

/// Runs an operation for all rows of arguments.
fn run(
    access: &Access<'_>,
    op: &CompiledOp,
    args: &[Value<'_>],
    (buffers, out): (&mut SessionBuffers, &mut Rows),
) -> Result<u64, RowRefusal> {
    match &op.action {
        Action::Get { locks } => get(access, op, (args, *locks), (buffers, out)),
        Action::Scan(path, fold) => scan(access, op, (path, *fold), args, (buffers, out)),
        Action::Insert => {
            let rows = args.chunks_exact(op.stride);
            rows.map(|row| insert(access, op, row, buffers)).sum()
        }
        Action::Modify { .. } => {
            let rows = args.chunks_exact(op.stride);
            rows.map(|row| modify(access, op, row, (buffers, out))).sum()
        }
        Action::Delete => {
            let rows = args.chunks_exact(op.stride);
            rows.map(|row| delete(access, op, row, buffers)).sum()
        }
        Action::Count { .. } => count(access, op, args, (buffers, out)),
    }
}

/// Replaces `whole` by the key of a row; false when no row can have it.
fn name(op: &CompiledOp, args: &[Value<'_>], whole: &mut Vec<u8>) -> bool {
    whole.clear();
    whole.extend_from_slice(&[op.number, 0]);
    let both = op.table.layout.key.iter().zip(args);
    both.fold(true, |fits, (field, value)| fits && field.push(*value, whole).is_ok())
}

fn get(
    access: &Access<'_>,
    op: &CompiledOp,
    (args, locks): (&[Value<'_>], bool),
    (buffers, out): (&mut SessionBuffers, &mut Rows),
) -> Result<u64, RowRefusal> {
    let SessionBuffers { row, text, .. } = buffers;
    let mut keys = Vec::with_capacity(args.len() / op.stride);
    for args in args.chunks_exact(op.stride) {
        let mut whole = Vec::with_capacity(16);
        if name(op, args, &mut whole) {
            keys.push(whole);
        }
    }
    // A row once; and in one order, so that sessions that lock the same rows wait in turn.
    keys.sort();
    keys.dedup();
    let mut found = 0;
    for whole in &keys {
        if access.get(whole, locks, row)? {
            let pushed = op.wanted.push(&op.table.layout, (&whole[2..], row), (text, out));
            pushed.ok_or_else(|| damaged(op, whole))?;
            found += 1;
        }
    }
    Ok(found)
}

fn scan(
    access: &Access<'_>,
    op: &CompiledOp,
    (path, fold): (&Scan, Fold),
    args: &[Value<'_>],
    (buffers, out): (&mut SessionBuffers, &mut Rows),
) -> Result<u64, RowRefusal> {
    let (layout, mut text) = (&op.table.layout, take(&mut buffers.text));
    let (mut rows, mut found) = (Rows::new(op.width), 0);
    let given = if fold == Fold::Rows { &mut *out } else { &mut rows };
    access.each_row((op.number, &op.table), path, args, &mut |key, row| {
        found += 1;
        let pushed = op.wanted.push(layout, (key, row), (&mut text, &mut *given));
        pushed.ok_or_else(|| damaged(op, key))
    })?;
    buffers.text = text;
    if fold == Fold::Rows {
        return Ok(found);
    }
    let mut values: Vec<Value<'_>> = (0..rows.len()).map(|row| rows.get(row, 0)).collect();
    if fold == Fold::Sum {
        let numbers = values.iter().filter(|value| !value.is_null()).map(|value| value.int());
        out.push(numbers.reduce(|sum, number| sum + number).map_or(Value::Null, Value::Int));
        return Ok(1);
    }
    values.sort();
    if fold == Fold::Distinct {
        values.dedup();
    }
    values.iter().for_each(|value| out.push(*value));
    Ok(values.len() as u64)
}

fn insert(
    access: &Access<'_>,
    op: &CompiledOp,
    args: &[Value<'_>],
    buffers: &mut SessionBuffers,
) -> Result<u64, RowRefusal> {
    let SessionBuffers { key, row, before, whole, .. } = buffers;
    op.table.new_key(|column| args[column], key)?;
    op.table.layout.encode(|column| args[column], row)?;
    whole.clear();
    whole.extend_from_slice(&[op.number, 0]);
    whole.extend_from_slice(key);
    // A hidden key is unique.
    if !op.table.layout.has_hidden_key() && access.get(whole, true, before)? {
        return Err(RowRefusal::Exists);
    }
    access.transaction.put(&whole, &row)?;
    for nth in 0..op.table.indexes.len() {
        entry(&op.table, (op.number, nth), (key, row), whole)?;
        access.transaction.put(&whole, &key)?;
    }
    Ok(1)
}

fn delete(
    access: &Access<'_>,
    op: &CompiledOp,
    args: &[Value<'_>],
    buffers: &mut SessionBuffers,
) -> Result<u64, RowRefusal> {
    let SessionBuffers { key, row, whole, .. } = buffers;
    if !name(op, args, whole) || !access.get(whole, true, row)? {
        return Ok(0);
    }
    key.clear();
    key.extend_from_slice(&whole[2..]);
    access.transaction.delete(&whole)?;
    for nth in 0..op.table.indexes.len() {
        entry(&op.table, (op.number, nth), (key, row), whole)?;
        access.transaction.delete(&whole)?;
    }
    Ok(1)
}

fn modify(
    access: &Access<'_>,
    op: &CompiledOp,
    args: &[Value<'_>],
    (buffers, out): (&mut SessionBuffers, &mut Rows),
) -> Result<u64, RowRefusal> {
    let Action::Modify { path, changes } = &op.action else { return Ok(0) };
    let SessionBuffers { key, row, before, whole, text } = buffers;
    let (layout, mut modified) = (&op.table.layout, 0);
    let mut change = |at: &[u8], old: &[u8]| {
        op.wanted.push(layout, (at, old), (text, out)).ok_or_else(|| damaged(op, at))?;
        row.clear();
        row.extend_from_slice(old);
        change_columns(layout, changes, args, row).map_err(|error| match error {
            ChangeError::Value(error) => OpError::Value(error),
            ChangeError::Damaged => OpError::damaged(&layout.table.name, at),
        })?;
        key.clear();
        key.extend_from_slice(&[op.number, 0]);
        key.extend_from_slice(at);
        access.transaction.put(&key, &row)?;
        for nth in 0..op.table.indexes.len() {
            entry(&op.table, (op.number, nth), (at, old), whole)?;
            let then = whole.clone();
            entry(&op.table, (op.number, nth), (at, row), whole)?;
            if then != *whole {
                access.transaction.delete(&then)?;
                access.transaction.put(&whole, at)?;
            }
        }
        modified += 1;
        Ok(())
    };
    if path.prefix.len() < layout.key.len() || layout.has_hidden_key() {
        access.each_row((op.number, &op.table), path, &args[..path.prefix.len()], &mut change)?;
        return Ok(modified);
    }
    let mut named = Vec::with_capacity(16);
    if name(op, &args[..path.prefix.len()], &mut named) && access.get(&named, true, before)? {
        change(&named[2..], before)?;
    }
    Ok(modified)
}

fn count(
    access: &Access<'_>,
    op: &CompiledOp,
    args: &[Value<'_>],
    (buffers, out): (&mut SessionBuffers, &mut Rows),
) -> Result<u64, RowRefusal> {
    let Action::Count { path, other: (number, other), join } = &op.action else { return Ok(0) };
    let SessionBuffers { row, text, .. } = buffers;
    let (layout, mut keys) = (&op.table.layout, Vec::new());
    let (bounds, limit) = args.split_at(join.prefix + 2);
    access.each_row((op.number, &op.table), path, bounds, &mut |key, row| {
        let mut led_to = vec![*number, 0];
        for (field, column) in other.layout.key.iter().zip(&join.leads_by) {
            let value = layout.read(layout.places[*column], (key, row), text);
            if field.push(value.ok_or_else(|| damaged(op, key))?, &mut led_to).is_err() {
                return Ok(());
            }
        }
        keys.push(led_to);
        Ok(())
    })?;
    keys.sort();
    keys.dedup();
    let mut below = 0;
    for whole in &keys {
        if access.get(whole, false, row)? {
            let tested = other.layout.places[join.tested];
            let tested = other.layout.read(tested, (&whole[2..], row), text);
            let tested = tested.ok_or_else(|| damaged(op, whole))?;
            below += i64::from(!tested.is_null() && tested < limit[0]);
        }
    }
    out.push(Value::Int(below));
    Ok(1)
}

fn damaged(op: &CompiledOp, key: &[u8]) -> RowRefusal {
    RowRefusal::Op(OpError::damaged(&op.table.layout.table.name, key))
}
