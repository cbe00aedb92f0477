//! The embedded engine as a target of database workloads.
//!
//! Purpose: tables that a workload declares become tables of the engine, its operations become
//! reads and writes of rows, through nothing but what the engine offers everybody. Invariants: a
//! key is in the order of its columns; a number that changes changes no other byte of its row; an
//! operation that fails leaves nothing behind. It knows no workload and prints nothing.

mod change;
mod compile;
mod context;
mod count;
mod definition;
mod error;
mod facts;
mod fold;
mod key;
mod layout;
mod load;
mod op;
mod sampler;
mod scan;
mod session;
mod span;
mod table;
mod target;
mod tickets;
mod values;

pub use target::EmbeddedTarget;
