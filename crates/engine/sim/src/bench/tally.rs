//! Counts what is done in the counted span.

use iostrata_stats::{LatencyHistogram, estimate};

use super::{BenchError, BenchOutcome, BenchWindow, Figures};
use crate::drive::Command;

/// Slices of the counted span, for the interval.
const SLICES: usize = 100;

/// What was done so far.
pub(super) struct Counted {
    window: BenchWindow,
    block_bytes: u32,
    slices: Vec<f64>,
    reads: LatencyHistogram,
    writes: LatencyHistogram,
    flushes: LatencyHistogram,
}

impl Counted {
    pub(super) fn new(window: BenchWindow, block_bytes: u32) -> Self {
        Self {
            window,
            block_bytes,
            slices: vec![0.0; SLICES],
            reads: LatencyHistogram::new(),
            writes: LatencyHistogram::new(),
            flushes: LatencyHistogram::new(),
        }
    }

    /// Counts a request that was done at `at_ns`, unless that was in the warm-up.
    pub(super) fn count(&mut self, command: Command, submitted_ns: u64, at_ns: u64) {
        let Some(since_ns) = at_ns.checked_sub(self.window.warm_up_ns) else { return };
        assert!(since_ns < self.window.span_ns, "the loop ends with the counted span");
        let latency_ns = at_ns - submitted_ns;
        match command {
            Command::Read => self.reads.record_ns(latency_ns),
            Command::Write | Command::WriteThrough => self.writes.record_ns(latency_ns),
            Command::Flush => return self.flushes.record_ns(latency_ns),
        }
        let slice = u128::from(since_ns) * SLICES as u128 / u128::from(self.window.span_ns);
        self.slices[slice as usize] += 1.0;
    }

    pub(super) fn outcome(self) -> Result<BenchOutcome, BenchError> {
        let span_ns = self.window.span_ns;
        let nothing = BenchError::Nothing { span_ns };
        if self.reads.is_empty() && self.writes.is_empty() && self.flushes.is_empty() {
            return Err(nothing);
        }
        let per_slice = estimate(&self.slices).ok_or(nothing)?.measured();
        let iops = per_slice.scaled(SLICES as f64 * 1e9 / span_ns as f64);
        Ok(BenchOutcome {
            bytes_per_s: iops.value * f64::from(self.block_bytes),
            iops,
            read: figures(&self.reads, span_ns),
            write: figures(&self.writes, span_ns),
            flush: figures(&self.flushes, span_ns),
        })
    }
}

fn figures(latencies: &LatencyHistogram, span_ns: u64) -> Option<Figures> {
    let latency_us = latencies.summary()?;
    let ios = latencies.count();
    Some(Figures { ios, iops: ios as f64 * 1e9 / span_ns as f64, latency_us })
}
