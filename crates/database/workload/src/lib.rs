//! Database workloads: what is run on a target.
//!
//! Purpose: TPC-C as specified, the OLTP family in sysbench's words: tables, first rows, terminals,
//! transactions and checks. Invariants: a workload uses a target's public operations alone and
//! knows no database; the same seed asks for the same things. It measures nothing: the driver in
//! `load` does.

pub mod compat;
mod filling;
pub mod oltp;
mod slots;
pub mod tpcc;
