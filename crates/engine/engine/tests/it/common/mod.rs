//! What every proof shares: chance, plans of work, the model that judges, altered disks, and what a
//! store under test can do.

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

/// Whether the long forms were asked for.
pub fn is_soak() -> bool {
    std::env::var_os("IOSTRATA_SOAK").is_some()
}
