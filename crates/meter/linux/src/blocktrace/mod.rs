//! Latency by layer: where a request's time goes between the application and the device.
//!
//! Purpose: read the kernel's block, system call and io_uring events of a short traced window into
//! [`BlockLatency`](iostrata_run::host::BlockLatency). Invariant: it reads a trace instance that
//! the caller made and leaves every setting to the caller ([`Setting`]); it alters nothing
//! itself. What the events do not show stays absent and is named in the notes. Everything between
//! the bytes and the result is pure; the core is [`match_events`]. It does not measure: tracing
//! costs, so the traced window is not the measured one.

mod event;
mod matching;
mod ring_buffer;
mod tally;
mod trace;
mod tracepoint;

pub use event::{CallKind, EventKind, RequestKind, Span, TraceEvent};
pub use matching::{MatchOptions, MatchedRequests, match_events};
pub use trace::{BlockTrace, Setting, Switch};
pub use tracepoint::{TraceError, TraceScope, TracedDevice, buffer_kib, events};
