//! The load of sysbench-tpcc on its own tables, for comparisons and for its own check.
//!
//! Purpose: the statements that kit sends, in its order and as text, with everything in which it
//! differs from TPC-C: statements one by one, warehouses that are never remote, constants of NURand
//! drawn anew at each call, an order status that reads the order whose number is the district's.
//! Facts of the kit; names of tables and columns are its own, since its check reads them.
//! Only servers run it.

mod prepare;
mod rows;
mod schema;
mod statements;
mod terminals;
mod transaction;

pub use prepare::{cleanup, prepare};
pub use schema::schema;
pub use terminals::CompatTerminals;

/// How large it is, in the kit's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompatSpec {
    /// Warehouses of each set of tables (`--scale`).
    pub scale: i64,
    /// Sets of tables (`--tables`).
    pub tables: u32,
    /// Foreign keys, as the kit has them by default (`--use_fk`).
    pub foreign_keys: bool,
    /// Of everything that is drawn.
    pub seed: u64,
}

/// In what the load differs from TPC-C.
pub const DEVIATIONS: &[&str] = &[
    "no remote warehouses: orders and payments stay at home, although orders say otherwise",
    "items and customers are drawn uniformly: the constants of NURand change at every draw",
    "warehouses are drawn for each transaction: there are no home terminals",
    "an order status reads the order whose number is the district's",
    "a rolled back order has its unused item on the second to last line, or on none",
    "stock changes its quantity alone, and is refilled at a remainder of 0",
    "amounts of lines include tax and discount and are cut to whole units",
    "payments and deliveries per customer: payments are not counted",
    "texts are one repeated letter; no data hold ORIGINAL",
    "no keying or think times; no prepared statements",
];
