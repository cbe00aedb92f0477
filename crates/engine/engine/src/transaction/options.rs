//! How a transaction begins, and how one is run until it is committed.

use std::collections::BTreeSet;
use std::time::Duration;

use iostrata_lock::LockId;
use iostrata_settings::FlushLogAt;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::row_locks::TRIES;
use crate::ticket::Ticket;
use crate::transaction::Transaction;

/// What a transaction sees of others that run at the same time. Nothing uncommitted is ever seen;
/// writes and locking reads act on the newest committed rows and hold their locks to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Each read sees what is committed when it begins.
    ReadCommitted,
    /// All plain reads see what was committed at the first of them, as in InnoDB.
    #[default]
    RepeatableRead,
    /// All reads see what was committed when the transaction began; a row that was changed since
    /// cannot be written or locked ([`TransactionError::Conflict`](crate::TransactionError)).
    Snapshot,
}

/// What a transaction begins with.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TransactionOptions {
    /// What it sees of others.
    pub isolation: Isolation,
    /// It refuses to write.
    pub is_read_only: bool,
    /// What its ticket waits for, if not what the engine's settings say.
    pub flush_log_at: Option<FlushLogAt>,
    /// How long it waits for a row lock, if not as long as the engine's settings say.
    pub lock_wait_timeout: Option<Duration>,
}

impl From<Isolation> for TransactionOptions {
    fn from(isolation: Isolation) -> Self {
        Self { isolation, ..Self::default() }
    }
}

impl Engine {
    /// Begins a transaction. It ends by [`Transaction::commit`]; one that is dropped is rolled
    /// back.
    ///
    /// # Errors
    /// A closed or poisoned engine.
    pub fn begin(
        &self,
        options: impl Into<TransactionOptions>,
    ) -> Result<Transaction, EngineError> {
        Transaction::begin(&self.parts().pages, options.into(), &[])
    }

    /// Runs `body` in a transaction and commits it; after a deadlock or a conflict runs it again,
    /// with the rows locked from the beginning where the tries before ended.
    /// An error of `body` rolls back. What it gives is ordered but not yet durable: wait for the
    /// ticket before telling anybody.
    ///
    /// # Errors
    /// What `body` says, or what beginning and committing said.
    pub fn transact<R, E: From<EngineError>>(
        &self,
        options: impl Into<TransactionOptions>,
        mut body: impl FnMut(&mut Transaction) -> Result<R, E>,
    ) -> Result<(R, Ticket), E> {
        let options = options.into();
        let mut tries = 1;
        // In one order, so that those who try again are in no deadlock with each other. Without it
        // a thousand threads on ten rows are refused again and again, and nobody gets on.
        let mut contested = BTreeSet::new();
        loop {
            let first: Vec<LockId> = contested.iter().copied().collect();
            let mut transaction = Transaction::begin(&self.parts().pages, options, &first)?;
            let outcome = body(&mut transaction);
            let was_victim = transaction.was_victim();
            let failure = match outcome {
                Ok(result) if !was_victim => {
                    return Ok((result, transaction.commit()?));
                }
                // The body went on although the transaction was over.
                Ok(_) => transaction.finished().into(),
                Err(error) => error,
            };
            if !was_victim || tries == TRIES {
                return Err(failure);
            }
            tries += 1;
            contested.extend(transaction.contested());
        }
    }
}
