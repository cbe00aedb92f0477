//! Database workloads: what is run on a target.
//!
//! Purpose: TPC-C as specified, the OLTP family in sysbench's words, a load inspired by dbSTRESS,
//! inserts into random places of indexes: tables, first rows, terminals, transactions and checks.
//! Invariants: a workload uses a target's public operations alone and does not depend on a
//! database; the same seed makes the same requests. It measures nothing: the driver in `load` does.

mod catalogue;
pub mod compat;
pub mod insert;
mod loaded_mark;
pub mod oltp;
mod slots;
pub mod stress;
pub mod tpcc;
mod workload;

pub use catalogue::{WORKLOADS, workload};
pub use loaded_mark::LoadCounts;
pub use workload::{
    CheckResult, Condition, GrowingTable, LoadOptions, OptionForm, RunnableWorkload, SourceOptions,
    TableCount, Verb, VerbHelp, Workload, WorkloadConstructor, WorkloadError, WorkloadKind,
    WorkloadOption, WorkloadSettings,
};
