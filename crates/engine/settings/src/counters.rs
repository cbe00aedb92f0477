//! Every counter of the engine, and the page on which a running engine publishes them.

mod catalogue;
mod page;
mod row;
mod values;

pub use catalogue::{COUNTERS, Counter};
pub use page::{STATUS_BYTES, StatusFault, StatusPage, TABLE_HASH};
pub use row::{CounterKind, CounterOrigin, CounterRow, CounterUnit};
pub use values::Counters;

#[cfg(test)]
mod tests;
