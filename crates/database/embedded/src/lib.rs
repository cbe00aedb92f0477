//! The embedded engine as a target of database workloads.
//!
//! Purpose: tables that a workload declares become tables of the engine, its operations become
//! reads and writes of rows, through nothing but what the engine offers everybody. Invariants: a
//! key is in the order of its columns; a number that changes changes no other byte of its row; an
//! operation that fails leaves nothing behind. It does not depend on a workload and prints nothing.

mod compile;
mod error;
mod key;
mod layout;
mod op;
mod sampler;
mod scan;
mod session;
mod table;
mod target;

pub use sampler::PublishedSampler;
pub use target::EmbeddedTarget;

/// How rows of declared tables become keys and values, for any store of ordered keys.
pub mod rows {
    pub use crate::error::OpError;
    pub use crate::key::{KeyField, KeyMisfit, ValueError};
    pub use crate::layout::{
        ChangeError, ColumnChange, Layout, NullBit, PathField, Place, change_columns,
    };
    pub use crate::scan::KeySpan;
    pub use crate::table::{IndexKey, Projection, SharedTable};
}
