//! Why something did not work, and what it means for the caller.

use iostrata_database::target::{TargetError, Trouble};
use iostrata_engine::{EngineError, OpenError, RequestError, TableError, TransactionError};

use crate::key::ValueError;
use crate::layout::ChangeError;

/// Why an operation did not work.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each text says what its fields are")]
pub enum OpError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("a row of table {table} is damaged; its key is {}", key.escape_ascii())]
    Damaged { table: String, key: Vec<u8> },
    #[error("it takes {wanted} arguments for each row, and {found} were given")]
    Arguments { wanted: usize, found: usize },
    #[error("the numbers of the rows of table {table} are used up")]
    NoNumber { table: String },
    #[error("the sum of column {column} is beyond what a number holds")]
    SumTooLarge { column: String },
}

impl OpError {
    /// A row that was not changed.
    pub fn not_changed(error: ChangeError, table: &str, key: &[u8]) -> Self {
        match error {
            ChangeError::Value(error) => Self::Value(error),
            ChangeError::Damaged => Self::damaged(table, key),
        }
    }

    /// A row that is not what it should be.
    pub fn damaged(table: &str, key: &[u8]) -> Self {
        Self::Damaged { table: table.to_owned(), key: key.to_vec() }
    }

    /// As the target reports it.
    pub fn told(self, target: &str, doing: &str) -> TargetError {
        let (trouble, code, fix) = match &self {
            Self::Engine(error) => judged(error),
            Self::Damaged { .. } => (Trouble::Failed, "damaged", Some(CHECK)),
            Self::Value(_) | Self::Arguments { .. } => (Trouble::Failed, "value", None),
            Self::NoNumber { .. } | Self::SumTooLarge { .. } => (Trouble::Failed, "range", None),
        };
        let text = format!("cannot {doing}: {self}");
        let (code, fix) = (code.to_owned(), fix.map(str::to_owned));
        TargetError { trouble, code, target: target.to_owned(), text, fix }
    }
}

const CHECK: &str = "run `iostrata engine check` on its directory";

/// An error of the engine, as the target reports it.
pub(crate) fn told(error: EngineError, target: &str, doing: &str) -> TargetError {
    OpError::Engine(error).told(target, doing)
}

/// A call that does not go with the calls before.
pub(crate) fn misused(target: &str, text: String) -> TargetError {
    let (target, code) = (target.to_owned(), "misuse".to_owned());
    TargetError { trouble: Trouble::Failed, code, target, text, fix: None }
}

/// What an error of the engine means, its word, and what would help if the error does not name it.
fn judged(error: &EngineError) -> (Trouble, &'static str, Option<&'static str>) {
    match error {
        EngineError::Transaction(error) => of_transaction(error),
        // One that has stopped because its disk was full does not resume when space is free again.
        EngineError::Poisoned { .. } if error.is_full() => (Trouble::Stopped, "no_space", None),
        error if error.is_full() => {
            (Trouble::NoSpace, "no_space", Some("make room on the disk, or load less"))
        }
        EngineError::Poisoned { .. } => (Trouble::Stopped, "poisoned", None),
        EngineError::Broken { .. } => (Trouble::Failed, "broken", None),
        EngineError::Corrupt { .. } => (Trouble::Failed, "corrupt", Some(CHECK)),
        EngineError::Request(error) => match error {
            RequestError::Closed => (Trouble::Gone, "closed", Some("open it again")),
            RequestError::Setting(_) | RequestError::SettingRange { .. } => {
                (Trouble::NotReady, "setting", None)
            }
            RequestError::PoolExhausted { .. } => (Trouble::Failed, "pool_exhausted", None),
            RequestError::RowTooLarge(_) => {
                (Trouble::Failed, "row_too_large", Some("make it again with a larger page_size"))
            }
            _ => (Trouble::Failed, "refused", None),
        },
        EngineError::Open(OpenError::Locked(_)) => {
            (Trouble::NotReady, "locked", Some("end the process that has it, then try again"))
        }
        EngineError::Open(_) => (Trouble::NotReady, "not_an_engine", None),
        EngineError::Table(TableError::Exists { .. }) => (Trouble::Exists, "table_exists", None),
        EngineError::Table(_) => (Trouble::NotReady, "table", None),
        _ => (Trouble::Failed, "io", None),
    }
}

fn of_transaction(error: &TransactionError) -> (Trouble, &'static str, Option<&'static str>) {
    match error {
        TransactionError::Deadlock { .. } => (Trouble::Retry, "deadlock", None),
        TransactionError::LockTimeout { .. } => (Trouble::Retry, "lock_timeout", None),
        TransactionError::Conflict { .. } => (Trouble::Retry, "conflict", None),
        TransactionError::DefinitionChanged { .. } => (Trouble::Retry, "definition_changed", None),
        TransactionError::Exists { .. } => (Trouble::Exists, "exists", None),
        TransactionError::TooLarge { .. } => (Trouble::Failed, "too_large", None),
        _ => (Trouble::Failed, "transaction", None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use iostrata_engine::Failure;

    use super::*;

    #[test]
    fn what_the_engine_says_is_passed_on_with_what_it_means() {
        let (table, key) = ("t".to_owned(), vec![1]);
        let full = EngineError::NoSpace { cause: Failure::new(std::io::Error::other("full")) };
        let because = |cause| EngineError::Poisoned { cause: Arc::new(cause) };
        let broken = EngineError::Broken { what: "a rule".to_owned() };
        let waited = Duration::from_secs(1);
        let timeout = TransactionError::LockTimeout {
            transaction: 1,
            holder: 2,
            waited,
            table: table.clone(),
            key: key.clone(),
        };
        let conflict = TransactionError::Conflict { transaction: 1, table, key };
        for (error, trouble, code, words) in [
            (full.clone(), Trouble::NoSpace, "no_space", "full"),
            (because(full), Trouble::Stopped, "no_space", "stopped writing"),
            (because(broken), Trouble::Stopped, "poisoned", "stopped writing"),
            (timeout.into(), Trouble::Retry, "lock_timeout", "waited 1000 ms"),
            (conflict.into(), Trouble::Retry, "conflict", "begin it again"),
            (RequestError::Closed.into(), Trouble::Gone, "closed", "is closed"),
        ] {
            let said = told(error, "engine:/data", "run a thing");
            assert_eq!((said.trouble, said.code.as_str()), (trouble, code), "{said}");
            let text = said.to_string();
            assert!(text.starts_with("engine:/data: cannot run a thing: "), "{text}");
            assert!(text.contains(words), "{text} lacks {words}");
        }
    }
}
