//! Units, kinds and origins of counters.

use std::fmt;

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
