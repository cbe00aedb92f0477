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
mod workload;

pub use prepare::{cleanup, prepare, warehouses};
pub use schema::schema;
pub use terminals::CompatTerminals;
pub use workload::WORKLOAD;

use crate::tpcc::{CUSTOMERS, ITEMS};

/// How large it is, in the kit's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompatSpec {
    /// Warehouses of each set of tables (`--scale`).
    pub scale: i64,
    /// Sets of tables (`--tables`).
    pub tables: u32,
    /// Customers of each district, each with a first order: the kit has 3,000.
    pub customers: i64,
    /// Items, and rows of stock of each warehouse: the kit has 100,000.
    pub items: i64,
    /// Foreign keys, as the kit has them by default (`--use_fk`).
    pub foreign_keys: bool,
    /// Of everything that is drawn.
    pub seed: u64,
}

impl Default for CompatSpec {
    /// One warehouse of the kit's size.
    fn default() -> Self {
        let (customers, items) = (CUSTOMERS, ITEMS);
        Self { scale: 1, tables: 1, customers, items, foreign_keys: true, seed: 1 }
    }
}

impl CompatSpec {
    /// The first of the last three tenths of a district's orders, which wait for their delivery.
    fn first_new_order(&self) -> i64 {
        self.customers - 3 * self.customers / 10 + 1
    }
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
