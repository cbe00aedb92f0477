//! Databases, as those know them who load, watch and tune them.
//!
//! Purpose: [`target`] is the border between workloads and databases, [`watch`] makes figures,
//! stalls and a document of a target's samples, [`tune`] answers samples with settings to change.
//! Invariant: pure. Nothing here talks to a database: `server` and `embedded` do.

pub mod target;
pub mod tune;
pub mod watch;
