//! What a database workload runs on: the border between workloads and databases.
//!
//! Purpose: a workload declares its tables and its operations once; a SQL server prepares them as
//! statements, the embedded engine compiles them. Invariants: a workload does not depend on a
//! database or a client library; a target does not depend on a workload. Nothing here runs
//! anything: this crate defines the vocabulary that both sides share.

mod error;
mod facts;
mod op;
mod rows;
mod sample;
mod schema;
mod session;
mod stall;
mod value;

pub use error::{TargetError, Trouble};
pub use facts::{TableFacts, TargetFacts};
pub use iostrata_run::{
    Blocker, FileCounts, FileTable, LockKind, LockWait, OldestTransaction, SessionState,
    SessionWaits, StallSnapshot, StatementDigest, TargetSample,
};
pub use op::{Access, Assign, Change, Fold, JoinBelow, Op, OpId, Order};
pub use rows::Rows;
pub use sample::Sampler;
pub use schema::{Column, ColumnType, Index, Schema, Table, TableWords};
pub use session::{
    ADDED_KEY, Isolation, Part, Session, SessionCost, SessionOptions, Target, Ticket,
};
pub use stall::{StallRule, StallSample, StallSpan, stall_cause};
pub(crate) use stall::{is_short_of_processors, is_starved_of_processors};
pub use value::Value;
