//! Private servers: an installed server program, started on data of its own for one run.
//!
//! Purpose: [`ServerProgram`] finds a program and reads its version; [`PrivateServer`] makes or
//! copies a data directory, starts the program on it, stops it and removes the directory;
//! [`find_prepared`] and [`keep_prepared`] care for copies with loaded tables; [`PrivateCluster`]
//! does so for the nodes of a Galera cluster.
//! Invariant: every directory and process is a change of an [`iostrata_change::Session`], so that
//! nothing of it outlives the run, or `iostrata restore` after a kill; the system's own server and
//! its data are never touched. It sends no statement: its users connect to
//! [`PrivateServer::address`].

mod cluster;
mod data_dir;
mod error;
mod options;
mod ports;
mod prepared;
mod program;
mod server;
#[cfg(any(test, feature = "testing"))]
mod testing;

pub use cluster::{ClusterPlan, PrivateCluster, galera_provider};
pub use error::PrivateError;
pub use prepared::{find_prepared, keep_prepared, scratch_of};
pub use program::ProgramVersion;
pub use program::ServerProgram;
pub use server::{DataSource, PrivatePlan, PrivateServer};
#[cfg(any(test, feature = "testing"))]
pub use testing::{ServerTurn, TestServer};
