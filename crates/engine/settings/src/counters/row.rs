//! What a row of the counters' catalogue says.

use std::fmt;

use super::Counter;

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

/// What a counter counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    /// Events.
    Events,
    /// Pages, or frames that hold one.
    Pages,
    /// Bytes.
    Bytes,
    /// A place in the redo, in bytes from its beginning.
    Lsn,
    /// Rows.
    Rows,
    /// Nanoseconds of processor time.
    Nanoseconds,
    /// Seconds.
    Seconds,
}

impl fmt::Display for CounterUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CounterUnit::Events => "events",
            CounterUnit::Pages => "pages",
            CounterUnit::Bytes => "bytes",
            CounterUnit::Lsn => "LSN",
            CounterUnit::Rows => "rows",
            CounterUnit::Nanoseconds => "ns",
            CounterUnit::Seconds => "s",
        })
    }
}

/// Whether a counter only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// Grows from 0 at the opening of the engine: its rate means something.
    Counter,
    /// What is now: goes up and down.
    Gauge,
}

impl fmt::Display for CounterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CounterKind::Counter => "counter",
            CounterKind::Gauge => "gauge",
        })
    }
}

/// Where a counter's name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterOrigin {
    /// SHOW GLOBAL STATUS, with the prefix `Innodb_`.
    Status,
    /// INFORMATION_SCHEMA.INNODB_METRICS.
    Metrics,
    /// This engine.
    Ours,
}
