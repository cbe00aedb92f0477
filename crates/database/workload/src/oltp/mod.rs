//! The OLTP family: sysbench's tables, statements and defaults.
//!
//! Purpose: what people type today, with the same meaning. Facts of sysbench 1.0: statements, row
//! shapes, counts per transaction and distributions; its defaults hold but for the distribution,
//! which is uniform as in 1.1.

mod distribution;
mod prepare;
mod spec;
mod statements;
mod terminals;
mod workload;

pub use distribution::{Distribution, RandParameters};
pub use prepare::{cleanup, prepare, read_all};
pub use spec::{Counts, Member, OltpSpec};
pub use terminals::OltpTerminals;
pub use workload::WORKLOAD;
