//! What a driver of transactions requires of a workload.
//!
//! Invariants: a driver decides when, on which session and for which terminal; a workload decides
//! what. A turn names a transaction for good: every thread that draws or runs it gets the same one,
//! so that equal seeds give equal work however the threads interleave.

use std::time::Duration;

use iostrata_plan::OpKind;

/// Why sessions could not be opened at all.
pub type SessionError = Box<dyn std::error::Error + Send + Sync>;

/// One transaction: whose it is, and how many that one had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn {
    /// The terminal. In a closed loop and on a schedule every slot is one.
    pub home: u32,
    /// Counts from 0 within the terminal.
    pub nth: u64,
}

impl Turn {
    /// The first turn of a terminal.
    pub(crate) fn first(home: u32) -> Self {
        Self { home, nth: 0 }
    }

    /// The one after it.
    pub(crate) fn following(self) -> Self {
        Self { nth: self.nth + 1, ..self }
    }
}

/// What a terminal does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextTransaction {
    /// The type of the transaction.
    pub kind: OpKind,
    /// Time to key it in, before it is due.
    pub keying: Duration,
    /// Time to think after its answer.
    pub think: Duration,
    /// Whether the terminal continues at once, and the transaction runs in the background.
    pub is_deferred: bool,
}

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionEnd {
    /// Done, and durable as far as its target makes it so. A rollback that the workload requests is
    /// done, too.
    Done,
    /// Committed, and durable when it is settled.
    Pending,
    /// It failed, after all retries.
    Failed(FailedTransaction),
}

/// A transaction that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTransaction {
    /// Under what it is counted: a server's error number, or an engine's word.
    pub code: String,
    /// What was attempted, the target's message, and the fix, in one sentence.
    pub text: String,
    /// What is over with it.
    pub reach: Reach,
}

/// What is over when a transaction fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The transaction; the next one may be done.
    Transaction,
    /// Its session, which may be opened again.
    Session,
    /// The window: while such a thing happens, what is done is no measure of the target.
    Window,
    /// The run: every further transaction would fail, too.
    Run,
}

/// What running a transaction came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Its type.
    pub kind: OpKind,
    /// How it ended.
    pub ended: TransactionEnd,
    /// How often it was begun again.
    pub retries: u32,
}

/// What became of a pending commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It is durable.
    Durable,
    /// It is not durable yet.
    NotYet,
    /// It never will be.
    Failed(FailedTransaction),
}

/// What sessions have cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionCost {
    /// Times that they waited for an answer.
    pub round_trips: u64,
    /// Statements, or calls of an embedded engine.
    pub statements: u64,
}

/// A workload on a target, from which the workers of a window come.
pub trait TransactionSource: Sync {
    /// The types of its transactions.
    fn kinds(&self) -> Vec<OpKind>;

    /// Whether a session keeps its thread waiting for the target. Each then gets a thread of its
    /// own; otherwise there are as many threads as processors, the target's work is done in them,
    /// and a commit may be pending.
    fn blocks(&self) -> bool;

    /// A worker with `slots` sessions of its own, the first of which has the number `first_slot`
    /// among all. It is made on the thread that uses it.
    ///
    /// # Errors
    /// When a session cannot be opened.
    fn worker(
        &self,
        first_slot: u32,
        slots: u32,
    ) -> Result<Box<dyn TransactionWorker + '_>, SessionError>;
}

/// Some sessions in the hands of one thread. Slots count from 0 within it.
pub trait TransactionWorker {
    /// What a terminal does in a turn. Cheap, without a round trip; another worker may run it.
    fn next(&mut self, turn: Turn) -> NextTransaction;

    /// Runs a turn on the session of a slot, up to its commit.
    fn run(&mut self, slot: u32, turn: Turn) -> Ran;

    /// Whether the pending commit of a slot is durable; with `waits` returns only when that is
    /// decided. Slots are polled in the order of their commits.
    fn settle(&mut self, slot: u32, waits: bool) -> Settlement;

    /// Reopens the session of a slot.
    ///
    /// # Errors
    /// The code under which the target refuses.
    fn reopen(&mut self, slot: u32) -> Result<(), String>;

    /// What its sessions have cost so far.
    fn cost(&self) -> TransactionCost;
}
