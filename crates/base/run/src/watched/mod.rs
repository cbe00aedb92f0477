//! What is watched of a target: samples of counters and gauges, what lies between two of them, and
//! the one table of the figures that follow.
//!
//! Invariant: pure. A sample holds counters and gauges, a span makes rates of two, and the table
//! defines for each figure how it is obtained and where it is shown.

mod figure;
mod files;
mod sample;
mod session_waits;
mod snapshot;
mod span;

pub use figure::{
    CHARTS, FIGURES, Figure, FigureChart, FigureColumn, FigureKind, FigureMetric, FigureRow,
    WatchSample,
};
pub use files::{FileCounts, FileOpCounts, FileTable};
pub use sample::{OldestTransaction, TargetSample};
pub use session_waits::SessionWaits;
pub use snapshot::{Blocker, LockKind, LockWait, SessionState, StallSnapshot, StatementDigest};
pub use span::{SampleField, SampleSpan, WatchDevice};
