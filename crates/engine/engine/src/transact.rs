//! Transactions of an engine: how one begins, and how one is run until it is committed.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::ticket::Ticket;
use crate::transaction::{Transaction, TransactionOptions, run};

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
        body: impl FnMut(&mut Transaction) -> Result<R, E>,
    ) -> Result<(R, Ticket), E> {
        run(&self.parts().pages, options.into(), body, Transaction::commit)
    }
}
