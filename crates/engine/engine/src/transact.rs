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
    /// with the rows locked from the beginning where the tries before ended. An error of `body`
    /// rolls back. What was written survives a crash when this returns, as after
    /// [`Transaction::commit`].
    ///
    /// # Errors
    /// What `body` says, or what beginning and committing said.
    pub fn transact<R, E: From<EngineError>>(
        &self,
        options: impl Into<TransactionOptions>,
        body: impl FnMut(&mut Transaction) -> Result<R, E>,
    ) -> Result<R, E> {
        let (result, ticket) = self.transact_async(options, body)?;
        ticket.wait()?;
        Ok(result)
    }

    /// As [`transact`](Self::transact), and leaves it to the ticket to wait until that is durable.
    ///
    /// # Errors
    /// What `body` says, or what beginning and committing said.
    pub fn transact_async<R, E: From<EngineError>>(
        &self,
        options: impl Into<TransactionOptions>,
        body: impl FnMut(&mut Transaction) -> Result<R, E>,
    ) -> Result<(R, Ticket), E> {
        run(&self.parts().pages, options.into(), body, Transaction::commit_async)
    }
}
