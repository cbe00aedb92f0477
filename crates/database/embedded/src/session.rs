//! A session: one transaction of the engine at a time, and the commits that are not acknowledged
//! yet.
//!
//! Invariant: an operation that fails leaves nothing behind; after [`Trouble::Retry`] the
//! transaction is over. A commit never waits for the disk: that is what its ticket is for. Without
//! transactions of the caller's each operation is one, and is durable when it returns.

use std::collections::VecDeque;
use std::sync::Arc;

use iostrata_database::target::{
    Fold, OpId, Rows, Session, SessionCost, TargetError, Ticket, Trouble, Value,
};
use iostrata_engine::{Engine, EngineError, Isolation, Ticket as Commit, Transaction};

use crate::compile::{CompiledOp, OpAction, OpBuffers, OpRun, one_row};
use crate::error::{OpError, misused, told};
use crate::scan::each_row;

/// Values of a row that are handed out without allocating memory.
const WIDTH_AT_HAND: usize = 32;

/// A session of the embedded engine.
#[derive(Debug)]
pub(crate) struct EmbeddedSession {
    /// What the target calls itself in errors.
    pub target: Arc<str>,
    pub engine: Engine,
    pub ops: Box<[CompiledOp]>,
    pub isolation: Isolation,
    pub autocommit: bool,
    pub transaction: Option<Transaction>,
    pub tickets: Tickets,
    pub buffers: OpBuffers,
    pub statements: u64,
}

impl EmbeddedSession {
    fn told(&self, error: EngineError, doing: &str) -> TargetError {
        told(error, &self.target, doing)
    }

    /// Makes sure that a transaction is open.
    fn ready(&mut self, op: OpId) -> Result<(), TargetError> {
        if op.0 >= self.ops.len() {
            let text = format!("the session was opened with {} operations", self.ops.len());
            return Err(misused(&self.target, format!("there is no operation {}: {text}", op.0)));
        }
        if self.transaction.is_some() {
            self.statements += 1;
            return Ok(());
        }
        if !self.autocommit {
            let name = self.ops[op.0].name;
            let text = format!("{name}: no transaction was begun, or it is over; begin one");
            return Err(misused(&self.target, text));
        }
        self.statements += 1;
        self.begin_one()
    }

    fn begin_one(&mut self) -> Result<(), TargetError> {
        let begun = self.engine.begin(self.isolation);
        self.transaction = Some(begun.map_err(|error| self.told(error, "begin a transaction"))?);
        Ok(())
    }

    /// Runs `body` in the transaction; takes back what it wrote when it fails.
    fn attempt<R>(
        &mut self,
        op: OpId,
        body: impl FnOnce(&mut OpRun<'_>, &CompiledOp) -> Result<R, OpError>,
    ) -> Result<R, TargetError> {
        self.ready(op)?;
        let Self { transaction, ops, buffers, isolation, .. } = self;
        let (op, Some(transaction)) = (&ops[op.0], transaction) else {
            return Err(misused(&self.target, "the transaction is over".to_owned()));
        };
        let before = op.action.writes().then(|| transaction.savepoint());
        // An entry and its row are two reads.
        let rereads = *isolation == Isolation::ReadCommitted;
        let result = body(&mut OpRun { transaction, buffers, rereads }, op);
        let error = match result {
            Ok(result) if self.autocommit => return self.commit_one().map(|()| result),
            Ok(result) => return Ok(result),
            Err(error) => error.told(&self.target, &format!("run {}", op.name)),
        };
        if let Some(before) = before {
            // One that fell victim is over already.
            let _over = transaction.rollback_to(before);
        }
        if self.autocommit || error.trouble == Trouble::Retry {
            self.transaction = None;
        }
        Err(error)
    }

    /// Commits and waits until that is durable.
    fn commit_one(&mut self) -> Result<(), TargetError> {
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        let committed = transaction.commit();
        committed.map_err(|error| self.told(error, "commit"))
    }
}

impl Session for EmbeddedSession {
    fn begin(&mut self) -> Result<(), TargetError> {
        if self.autocommit {
            return Ok(());
        }
        if self.transaction.is_some() {
            let text = "a transaction is open: commit it or roll it back before the next begins";
            return Err(misused(&self.target, text.to_owned()));
        }
        self.begin_one()
    }

    fn run(&mut self, op: OpId, args: &[Value<'_>], out: &mut Rows) -> Result<u64, TargetError> {
        out.clear(self.ops.get(op.0).map_or(0, |op| op.width));
        let result = self.attempt(op, |run, op| run.run(op, args, out));
        if result.is_err() {
            out.clear(0);
        }
        result
    }

    fn stream(
        &mut self,
        op: OpId,
        args: &[Value<'_>],
        each: &mut dyn FnMut(&[Value<'_>]),
    ) -> Result<(), TargetError> {
        let mut one = Rows::default();
        self.attempt(op, |run, op| {
            let OpAction::Scan(scan) = &op.action else {
                one.clear(op.width);
                run.run(op, args, &mut one)?;
                (0..one.len()).for_each(|row| hand_out(&one, (row, op.width), each));
                return Ok(());
            };
            if scan.fold != Fold::Rows {
                one.clear(op.width);
                run.run(op, args, &mut one)?;
                (0..one.len()).for_each(|row| hand_out(&one, (row, op.width), each));
                return Ok(());
            }
            let (args, mut text) = (one_row(args, op.args)?, Vec::new());
            let layout = &op.table.shared.layout;
            each_row(run, &op.table, (&scan.path, scan.order()), args, &mut |key, row| {
                one.clear(op.width);
                let pushed = scan.wanted.push(layout, (key, row), (&mut text, &mut one));
                pushed.ok_or_else(|| op.table.damaged(key))?;
                hand_out(&one, (0, op.width), each);
                Ok(())
            })
        })
    }

    fn commit(&mut self) -> Result<Ticket, TargetError> {
        let transaction = match self.transaction.take() {
            Some(transaction) => transaction,
            // Everything was committed by itself: what is left to commit is nothing.
            None if self.autocommit => {
                self.begin_one()?;
                return self.commit();
            }
            None => {
                let text = "no transaction was begun, or it is over; there is nothing to commit";
                return Err(misused(&self.target, text.to_owned()));
            }
        };
        let committed = transaction.commit_async();
        let ticket = committed.map_err(|error| self.told(error, "commit"))?;
        Ok(self.tickets.add(ticket))
    }

    fn settle(&mut self, ticket: Ticket, waits: bool) -> Result<bool, TargetError> {
        match self.tickets.settle(ticket, waits) {
            Some(settled) => settled.map_err(|error| self.told(error, "make a commit durable")),
            None => {
                let text = format!("ticket {} is not of this session", ticket.0);
                Err(misused(&self.target, text))
            }
        }
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        self.transaction = None;
        Ok(())
    }

    fn cost(&self) -> SessionCost {
        SessionCost { round_trips: 0, statements: self.statements }
    }
}

/// Hands out a row.
fn hand_out(rows: &Rows, (row, width): (usize, usize), each: &mut dyn FnMut(&[Value<'_>])) {
    if width > WIDTH_AT_HAND {
        each(&rows.row(row).collect::<Vec<_>>());
        return;
    }
    let mut values = [Value::Null; WIDTH_AT_HAND];
    for (slot, value) in values.iter_mut().zip(rows.row(row)) {
        *slot = value;
    }
    each(&values[..width]);
}

// The commits of one session that are not acknowledged yet.
//
// Invariant: numbers rise; a ticket is released once it is settled, in whatever order they are
// settled.

/// Commits by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    /// The number of the first one.
    first: u64,
    /// None where it is settled.
    open: VecDeque<Option<Commit>>,
}

impl Tickets {
    /// Adds a commit.
    pub fn add(&mut self, commit: Commit) -> Ticket {
        self.open.push_back(Some(commit));
        Ticket(self.first + self.open.len() as u64 - 1)
    }

    /// Whether a commit is settled; with `waits` returns only then. None for a ticket that this
    /// session has not given.
    ///
    /// # Errors
    /// The engine's error.
    pub fn settle(&mut self, ticket: Ticket, waits: bool) -> Option<Result<bool, EngineError>> {
        let Some(at) = ticket.0.checked_sub(self.first) else { return Some(Ok(true)) };
        let open = self.open.get_mut(usize::try_from(at).ok()?)?;
        let Some(commit) = open else { return Some(Ok(true)) };
        let settled = if waits { commit.wait().map(|()| true) } else { commit.try_wait() };
        if matches!(settled, Ok(true)) {
            *open = None;
            while let Some(None) = self.open.front() {
                self.open.pop_front();
                self.first += 1;
            }
        }
        Some(settled)
    }
}
