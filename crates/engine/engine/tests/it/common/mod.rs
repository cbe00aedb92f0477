//! What every proof shares: chance, plans of work, the model that judges, altered disks, and what a
//! store under test can do.

use iostrata_engine::{EngineError, OpenError};

pub mod accounts;
pub mod altered;
pub mod answers;
pub mod between;
pub mod chance;
pub mod committed;
pub mod engine;
pub mod failing;
pub mod halves;
pub mod history;
pub mod history_graph;
pub mod lists;
pub mod model;
pub mod plan;
pub mod quiet;
pub mod record;
pub mod restarts;
pub mod session;
pub mod session_threads;
pub mod sessions;
pub mod store;
pub mod sweep;

/// Whether the long forms were requested.
pub fn is_soak() -> bool {
    std::env::var_os("IOSTRATA_SOAK").is_some()
}

/// What failed, also where an engine has stopped for it since.
pub fn first_failure(error: &EngineError) -> String {
    match error {
        EngineError::Poisoned { cause } => first_failure(cause),
        error => error.to_string(),
    }
}

/// Whether a file is named as damaged with these words.
pub fn is_damage(error: &EngineError, words: &[&str]) -> bool {
    let said = error.to_string();
    matches!(error, EngineError::Open(OpenError::Damaged(_)))
        && words.iter().all(|word| said.contains(word))
}
