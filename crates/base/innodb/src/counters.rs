//! Every counter of the engine, and the page on which a running engine publishes them.

mod catalogue;
mod page;
mod unit;
mod values;

pub use catalogue::{COUNTERS, Counter};
pub use page::{STATUS_BYTES, StatusFault, StatusPage, TABLE_HASH};
pub use unit::{CounterKind, CounterOrigin, CounterUnit};
pub use values::Counters;

/// One counter, as documents and readers of the status page describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterRow {
    /// The counter.
    pub counter: Counter,
    /// Its name, InnoDB's without the prefix where InnoDB has it.
    pub name: &'static str,
    /// What it counts in.
    pub unit: CounterUnit,
    /// Whether it only grows.
    pub kind: CounterKind,
    /// Where its name comes from.
    pub origin: CounterOrigin,
    /// One sentence.
    pub doc: &'static str,
}

impl CounterRow {
    /// What InnoDB calls it in full, if it has it.
    #[must_use]
    pub fn innodb_name(&self) -> Option<String> {
        match self.origin {
            CounterOrigin::Status => Some(format!("Innodb_{}", self.name)),
            CounterOrigin::Metrics => Some(self.name.to_owned()),
            CounterOrigin::Ours => None,
        }
    }
}

#[cfg(test)]
mod tests;
