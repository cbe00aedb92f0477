//! What calls of a session had to answer, and did.

use std::collections::HashMap;
use std::fmt::Debug;

use iostrata_engine::{EngineError, TransactionError};

use crate::common::committed::{Committed, RowKey};

/// What all sessions share.
pub struct World {
    pub committed: Committed,
    /// Who has locked which row.
    pub locks: HashMap<RowKey, u64>,
}

/// Why a session's work ended.
#[derive(Debug)]
pub enum Trouble {
    /// It saw what it must not see.
    Wrong(String),
    /// The engine failed.
    Failed(EngineError),
}

impl From<EngineError> for Trouble {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

/// What came of a call, as it had to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Fine,
    /// Another transaction has locked the row.
    Blocked,
    /// The row is there already.
    Exists,
    /// The transaction has no room for the change.
    TooLarge,
    /// The transaction was rolled back.
    Over,
}

/// What a call must answer.
pub enum Expected<T> {
    Value(T),
    Not(Answer),
}

/// Sets an answer against what it had to be.
pub fn compare<T: PartialEq + Debug>(
    what: &str,
    expected: Expected<T>,
    found: Result<T, EngineError>,
) -> Result<Answer, Trouble> {
    use TransactionError::{Conflict, Exists, LockTimeout, TooLarge};
    match (expected, found) {
        (Expected::Value(expected), Ok(found)) if expected == found => Ok(Answer::Fine),
        (Expected::Value(expected), Ok(found)) => {
            Err(Trouble::Wrong(format!("{what}: {found:02x?}, not {expected:02x?}")))
        }
        (Expected::Value(_), Err(EngineError::Transaction(TooLarge { .. }))) => {
            Ok(Answer::TooLarge)
        }
        (Expected::Not(answer), Err(EngineError::Transaction(error))) => {
            let found = match error {
                LockTimeout { .. } => Answer::Blocked,
                Exists { .. } => Answer::Exists,
                Conflict { .. } => Answer::Over,
                other => return Err(Trouble::Wrong(format!("{what}: {other}"))),
            };
            if found == answer {
                return Ok(answer);
            }
            Err(Trouble::Wrong(format!("{what}: {found:?}, not {answer:?}")))
        }
        (_, Err(EngineError::Transaction(error))) => {
            Err(Trouble::Wrong(format!("{what}: {error}")))
        }
        (_, Err(error)) => Err(Trouble::Failed(error)),
        (Expected::Not(answer), Ok(found)) => {
            Err(Trouble::Wrong(format!("{what}: {found:02x?}, not {answer:?}")))
        }
    }
}
