//! What a transaction begins with.

use std::time::Duration;

use iostrata_innodb::FlushLogAt;

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
