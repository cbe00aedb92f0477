//! TPC-C as revision 5.11 of the specification has it; deviations are in docs/tpcc.md.

mod check;
mod dataset;
pub(crate) mod draw;
mod input;
mod population;
mod schema;
mod terminals;
mod transaction;
mod workload;

pub use check::{CONDITIONS, CheckPlan, check, next_order};
pub use dataset::{Dataset, PrepareOptions, PreparedRows, Progress, Stage, cleanup, prepare};
pub use draw::{Constants, is_legal};
pub use input::{Customer, Home, Input, Inputs, KINDS, Mix, OrderItem, Waits};
pub(crate) use population::numbers;
pub use population::{Population, RowSource, rows_per_warehouse};
pub(crate) use schema::{CUSTOMERS, DISTRICTS, ITEMS, made};
pub use schema::{TableId, schema};
pub use terminals::{OrderCounts, TerminalOptions, Terminals, deviations, now_s};
pub use workload::WORKLOAD;
