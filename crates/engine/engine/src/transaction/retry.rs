//! Running a transaction again until it was not rolled back by the engine.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::EngineError;
use crate::lock::LockId;
use crate::pages::Pages;
use crate::row_locks::TRIES;
use crate::ticket::Ticket;
use crate::transaction::{Transaction, TransactionOptions};

/// Runs `body` in a transaction and ends that by `commit`; after a deadlock or a conflict again,
/// with the rows locked from the beginning where the tries before ended.
pub(crate) fn run<R, E: From<EngineError>>(
    pages: &Arc<Pages>,
    options: TransactionOptions,
    mut body: impl FnMut(&mut Transaction) -> Result<R, E>,
    commit: impl FnOnce(Transaction) -> Result<Ticket, EngineError>,
) -> Result<(R, Ticket), E> {
    let mut tries = 1;
    // In one order, so that those who try again are in no deadlock with each other. Without it a
    // thousand threads on ten rows are refused again and again, and nobody gets on.
    let mut contested = BTreeSet::new();
    loop {
        let first: Vec<LockId> = contested.iter().copied().collect();
        let mut transaction = Transaction::begin(pages, options, &first)?;
        let outcome = body(&mut transaction);
        let was_victim = transaction.was_victim();
        let failure = match outcome {
            Ok(result) if !was_victim => return Ok((result, commit(transaction)?)),
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
