//! TPC-C as revision 5.11 of the specification has it; deviations are in docs/tpcc.md.

mod check;
mod counts;
mod dataset;
pub(crate) mod draw;
mod input;
mod mix;
mod ops;
mod population;
mod prepare;
mod schema;
mod terminals;
mod transaction;
mod workload;

pub use check::{CONDITIONS, CheckPlan, check, next_order};
pub use dataset::{Dataset, Stage};
pub use draw::{Constants, is_legal};
pub use input::{Customer, Home, Input, Inputs, OrderItem};
pub use mix::{KINDS, Mix, Waits};
pub(crate) use population::numbers;
pub use population::{Population, RowSource, rows_per_warehouse};
pub use prepare::{PrepareOptions, Prepared, Progress, cleanup, prepare};
pub(crate) use schema::{CUSTOMERS, DISTRICTS, ITEMS, made};
pub use schema::{TableId, schema};
pub use terminals::{OrderCounts, TerminalOptions, Terminals, deviations, now_s};
pub use workload::WORKLOAD;
