//! Why a target did not carry out a request.

use thiserror::Error;

/// What a failure means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// The transaction was rolled back and may be begun again: a deadlock, a conflict, a lock
    /// that was waited for too long.
    Retry,
    /// The connection or the server is gone; a new session may work.
    Gone,
    /// The row is there already.
    Exists,
    /// The target is not as the caller needs it: no such database, table or right.
    NotReady,
    /// No space is left where the target keeps its data.
    NoSpace,
    /// The target does nothing more until it is opened again.
    Stopped,
    /// Anything else.
    Failed,
}

/// Why a target did not carry out a request.
#[derive(Clone, Debug, Error)]
#[error("{target}: {text}{}", or_nothing(.fix))]
pub struct TargetError {
    /// What it means for the caller.
    pub trouble: Trouble,
    /// Under what it is counted: a server's error number, or the engine's word for it.
    pub code: String,
    /// Which target, without secrets.
    pub target: String,
    /// What was attempted and the target's message.
    pub text: String,
    /// What would help, if that is known.
    pub fix: Option<String>,
}

impl TargetError {
    /// The target is not as the caller needs it; what it holds, and the fix.
    pub fn not_ready(target: &str, code: &str, text: String, fix: &str) -> Self {
        let (target, code, fix) = (target.to_owned(), code.to_owned(), Some(fix.to_owned()));
        Self { trouble: Trouble::NotReady, code, target, text, fix }
    }

    /// A part of a table was to be loaded into a target that loads whole ones.
    pub fn whole_tables_only(target: &str) -> Self {
        let text = "it loads whole tables, and a part of one was requested".to_owned();
        Self::not_ready(target, "unsupported", text, "load the whole table")
    }
}

fn or_nothing(fix: &Option<String>) -> String {
    fix.as_ref().map_or(String::new(), |fix| format!("; {fix}"))
}
