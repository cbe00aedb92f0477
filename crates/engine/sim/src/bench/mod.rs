//! A closed loop over any drive, in virtual time.
//!
//! Purpose: the one way by which a model is asked how fast it is, so that its answer can be set
//! against a data sheet, against what a probe measured and against the same drive emulated in real
//! time. So many requests are kept in flight; each that is done is followed at once by the next.
//! Invariant: the same drive, load and seed give the same outcome.
//! It has no queue of a kernel above the drive and costs no processor time.

mod closed_loop;
#[cfg(test)]
mod tests;

use std::ops::Range;

use iostrata_stats::{LatencyUs, Measured};
use thiserror::Error;

pub use closed_loop::run;

/// In which order places are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitOrder {
    /// Each block of the region equally likely.
    Random,
    /// One block after another, from the region's start again at its end.
    Sequential,
}

/// What is asked of the drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Order of places.
    pub order: VisitOrder,
    /// Share of reads in percent; the rest are writes.
    pub read_pct: u8,
    /// Bytes of a request.
    pub block_bytes: u32,
    /// Requests in flight.
    pub depth: u32,
    /// Bytes of the drive that are used; `None` for all of them.
    pub region_bytes: Option<Range<u64>>,
    /// After so many writes one of the requests in flight is a flush; `None` for never.
    pub flush_every: Option<u32>,
    /// Whether writes are forced beyond a power cut
    /// ([`Command::WriteThrough`](crate::drive::Command)).
    pub write_through: bool,
}

impl Load {
    /// Random reads of 4 KiB at a depth.
    pub fn random_read(depth: u32) -> Self {
        Self {
            order: VisitOrder::Random,
            read_pct: 100,
            block_bytes: 4096,
            depth,
            region_bytes: None,
            flush_every: None,
            write_through: false,
        }
    }

    /// Random writes of 4 KiB at a depth.
    pub fn random_write(depth: u32) -> Self {
        Self { read_pct: 0, ..Self::random_read(depth) }
    }

    /// Sequential reads at a depth.
    pub fn sequential_read(block_bytes: u32, depth: u32) -> Self {
        Self { order: VisitOrder::Sequential, block_bytes, ..Self::random_read(depth) }
    }

    /// Sequential writes at a depth.
    pub fn sequential_write(block_bytes: u32, depth: u32) -> Self {
        Self { read_pct: 0, ..Self::sequential_read(block_bytes, depth) }
    }
}

/// How long, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchWindow {
    /// Not counted, in ns.
    pub warm_up_ns: u64,
    /// Counted, in ns.
    pub span_ns: u64,
}

impl BenchWindow {
    /// A window in seconds.
    pub fn seconds(warm_up_s: f64, span_s: f64) -> Self {
        Self { warm_up_ns: (warm_up_s * 1e9) as u64, span_ns: (span_s * 1e9) as u64 }
    }
}

/// Requests of one kind that were done in the counted span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// How many.
    pub ios: u64,
    /// `ios` over the span, per second.
    pub iops: f64,
    /// From submission to done.
    pub latency_us: LatencyUs,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchOutcome {
    /// Reads and writes per second, with the interval of 100 equal slices of the span.
    pub iops: Measured,
    /// Bytes of them per second.
    pub bytes_per_s: f64,
    /// Reads; `None` when none were done.
    pub read: Option<Figures>,
    /// Writes; `None` when none were done.
    pub write: Option<Figures>,
    /// Flushes; `None` when none were done.
    pub flush: Option<Figures>,
}

/// Why a load can't be put on a drive.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BenchError {
    /// No block fits.
    #[error(
        "blocks of {block_bytes} bytes do not fit into the region {start}..{end} of a drive of \
         {capacity_bytes} bytes; use a smaller block or another region"
    )]
    Region {
        /// Bytes of a request.
        block_bytes: u32,
        /// First byte of the region.
        start: u64,
        /// First byte after it.
        end: u64,
        /// Size of the drive.
        capacity_bytes: u64,
    },
    /// A number out of its bounds.
    #[error("{what} is {found}; it takes {bounds}")]
    Number {
        /// Which.
        what: &'static str,
        /// What was found.
        found: u64,
        /// What would have been taken.
        bounds: &'static str,
    },
    /// Nothing was done in the counted span.
    #[error("no request was done in {span_ns} ns; count for longer")]
    Nothing {
        /// The counted span.
        span_ns: u64,
    },
}
