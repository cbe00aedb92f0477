//! Inserts into random places of three indexes: the load of an investigation of 2009.
//!
//! Purpose: rows with a counted key, three random keys and a string, so many in a commit, into a
//! table that only grows. While the indexes fit into memory the processor decides; afterwards the
//! disk does, and whoever sorts its writes.

mod check;
mod prepare;
mod row;
mod terminals;
mod workload;

pub use check::{check, read_all};
pub use prepare::{InsertSpec, cleanup, prepare, rows, rows_loaded};
pub use row::{TABLE, schema};
pub use terminals::{DEVIATIONS, InsertTerminals};
pub use workload::WORKLOAD;
