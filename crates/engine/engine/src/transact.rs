//! Transactions of an engine: how one begins, and how one is run until it is committed.

use std::collections::BTreeSet;

use iostrata_lock::LockId;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::row_locks::TRIES;
use crate::ticket::Ticket;
use crate::transaction::{Transaction, TransactionOptions};

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
