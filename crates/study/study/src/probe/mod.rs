//! The probe: a shipped adaptive plan.
//!
//! Purpose: climb the ladder on one directory within a bound of time and of written bytes.
//! Invariant: it writes only into own files of that directory, never more than its budget, and
//! every block is interleaved. It draws no conclusion: `diagnose` names suspicions, and the points
//! that would confirm them are measured here like any other.

mod blocks;
mod budget;
mod climb;
#[cfg(test)]
mod plan_tests;
mod prepare;
mod runner;

pub use budget::{Announcement, ProbeOptions, Shape, TooSmall, Transactions, announce};
pub use climb::{ProbedDatabase, TopRung, run};
