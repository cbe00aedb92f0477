//! Targets and their sessions.

use std::sync::Arc;

use iostrata_run::ResourceUse;

use crate::target::error::TargetError;
use crate::target::facts::{TableFacts, TargetFacts};
use crate::target::op::{Op, OpId};
use crate::target::rows::Rows;
use crate::target::sample::Sampler;
use crate::target::schema::Schema;
use crate::target::value::Value;

/// What a transaction sees of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each read sees what is committed when it begins.
    ReadCommitted,
    /// Plain reads see one state; locking reads and writes act on the newest rows.
    #[default]
    RepeatableRead,
    /// As if one transaction ran after the other; a target may refuse it.
    Serializable,
}

/// What a session is opened for.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// The operations that it will run.
    pub ops: Arc<[Op]>,
    /// Of its transactions.
    pub isolation: Isolation,
    /// Every statement is a transaction of its own: `begin` and `commit` are not sent.
    pub autocommit: bool,
    /// Statements are sent as text instead of being prepared.
    pub as_text: bool,
}

/// A commit that is ordered and visible, and perhaps not durable yet. Of the session that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// What a session has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCost {
    /// Times that it waited for an answer of the target.
    pub round_trips: u64,
    /// Statements, or calls of an embedded engine.
    pub statements: u64,
}

/// The key that a server's table without one gets where the server requires it.
pub const ADDED_KEY: &str = "iostrata_id";

/// Which rows of a table are loaded: those with this value in this column; all of them without.
pub type Part = Option<(usize, i64)>;

/// A database that workloads run on.
pub trait Target: Send + Sync {
    /// As the user named it, without secrets.
    fn name(&self) -> String;

    /// What it reports about itself now.
    ///
    /// # Errors
    /// When it does not answer.
    fn facts(&self) -> Result<TargetFacts, TargetError>;

    /// What it has used so far, by its own counters.
    ///
    /// # Errors
    /// When it does not answer.
    fn used(&self) -> Result<ResourceUse, TargetError>;

    /// The tables of the schema that are there, as numbers of its tables.
    ///
    /// # Errors
    /// The target's error.
    fn present(&self, schema: &Schema) -> Result<Vec<usize>, TargetError>;

    /// The names of the columns that a table has; none where the target does not keep them. One
    /// that
    /// [`ADDED_KEY`] names is left out.
    ///
    /// # Errors
    /// The target's error; no such table exists.
    fn columns(&self, _table: &str) -> Result<Option<Vec<String>>, TargetError> {
        Ok(None)
    }

    /// Makes a table, empty, with all indexes but the late ones.
    ///
    /// # Errors
    /// The target's error.
    fn create(&self, schema: &Schema, table: usize) -> Result<(), TargetError>;

    /// Makes the late indexes of all tables, where they are not there yet.
    ///
    /// # Errors
    /// The target's error.
    fn finish(&self, schema: &Schema) -> Result<(), TargetError>;

    /// Removes a table, if it is there.
    ///
    /// # Errors
    /// The target's error.
    fn remove(&self, schema: &Schema, table: usize) -> Result<(), TargetError>;

    /// Whether parts of a table may be loaded at the same time, each on its own; otherwise a
    /// table is loaded in one go, from the first to the last row.
    fn loads_parts(&self) -> bool;

    /// Loads rows in the order of the key, in place of what the table holds of this part. `next`
    /// clears the buffer and fills it with some rows, every column of each; none are left when it
    /// leaves it empty. Gives the number of rows. Durable when it returns.
    ///
    /// # Errors
    /// The target's error; a part of the rows may be there then.
    fn load(
        &self,
        schema: &Schema,
        table: usize,
        part: Part,
        next: &mut dyn FnMut(&mut Rows),
    ) -> Result<u64, TargetError>;

    /// Opens a session.
    ///
    /// # Errors
    /// When the target does not answer, refuses, or cannot do one of the operations.
    fn session(
        &self,
        schema: &Arc<Schema>,
        options: &SessionOptions,
    ) -> Result<Box<dyn Session>, TargetError>;

    /// The sampler of its state while sessions are at work; none where it reports nothing.
    ///
    /// # Errors
    /// When the target does not answer, or refuses.
    fn sampler(&self) -> Result<Option<Box<dyn Sampler>>, TargetError> {
        Ok(None)
    }

    /// Bytes of the files that hold the tables; none where it does not report them.
    ///
    /// # Errors
    /// When the target does not answer.
    fn data_bytes(&self) -> Result<Option<u64>, TargetError> {
        Ok(None)
    }

    /// How a table is kept, and how large it is now; cheap enough for once a second.
    ///
    /// # Errors
    /// When the target does not answer.
    fn table_facts(&self, _schema: &Schema, _table: usize) -> Result<TableFacts, TargetError> {
        Ok(TableFacts::default())
    }
}

/// A session: one transaction at a time. One that is dropped rolls back.
pub trait Session: Send {
    /// Begins a transaction.
    ///
    /// # Errors
    /// The target's error.
    fn begin(&mut self) -> Result<(), TargetError>;

    /// Runs an operation once for all rows of arguments, which follow each other in `args`, and
    /// puts what it gives into `out`, cleared before. Gives the rows found or changed.
    ///
    /// # Errors
    /// The target's error. After [`crate::target::Trouble::Retry`] the transaction is over.
    fn run(&mut self, op: OpId, args: &[Value<'_>], out: &mut Rows) -> Result<u64, TargetError>;

    /// Runs a scan and hands out one row after the other, without keeping them.
    ///
    /// # Errors
    /// The target's error.
    fn stream(
        &mut self,
        op: OpId,
        args: &[Value<'_>],
        each: &mut dyn FnMut(&[Value<'_>]),
    ) -> Result<(), TargetError>;

    /// Commits: ordered and visible when it returns, durable when its ticket is settled.
    ///
    /// # Errors
    /// The target's error; whether it is committed is unknown after
    /// [`crate::target::Trouble::Gone`].
    fn commit(&mut self) -> Result<Ticket, TargetError>;

    /// Whether a commit is durable; with `waits` returns only then.
    ///
    /// # Errors
    /// When it never will be.
    fn settle(&mut self, ticket: Ticket, waits: bool) -> Result<bool, TargetError>;

    /// Rolls back.
    ///
    /// # Errors
    /// The target's error.
    fn rollback(&mut self) -> Result<(), TargetError>;

    /// What it has cost so far.
    fn cost(&self) -> SessionCost;
}
