//! The loop itself.
//!
//! Invariant: exactly `depth` requests are in flight at any moment of the loop.

use iostrata_stats::{LatencyHistogram, Random, estimate};

use super::{BenchError, BenchOutcome, BenchWindow, Load, VisitOrder};
use crate::bench::Figures;
use crate::drive::{Command, Done, Drive, Request};

/// Bits of a request's id that hold its place among those in flight.
const SLOT_BITS: u32 = 16;
const DEPTH_MAX: u32 = 1 << SLOT_BITS;

/// Keeps `load` on `drive` for the window; the drive's clock must not be past 0.
///
/// # Errors
/// When the load does not fit the drive, or nothing was done in the counted span.
///
/// # Panics
/// When the drive breaks its promises: a request in flight but nothing to come, time going back.
pub fn run(
    drive: &mut dyn Drive,
    load: &Load,
    window: BenchWindow,
    seed: u64,
) -> Result<BenchOutcome, BenchError> {
    let mut source = RequestStream::new(load, drive.facts().capacity_bytes, seed)?;
    if window.span_ns == 0 {
        return Err(BenchError::Nothing { span_ns: 0 });
    }
    let mut tally = Counted::new(window, load.block_bytes);
    let mut in_flight: Vec<(Command, u64)> = Vec::with_capacity(load.depth as usize);
    for slot in 0..u64::from(load.depth) {
        let request = source.next(slot);
        in_flight.push((request.command, 0));
        drive.submit(0, request);
    }
    let end_ns = window.warm_up_ns.saturating_add(window.span_ns);
    let mut now_ns = 0;
    let mut done: Vec<Done> = Vec::new();
    while let Some(next_ns) = drive.next_event_ns() {
        assert!(next_ns >= now_ns, "the drive's next event lies {} ns back", now_ns - next_ns);
        if next_ns >= end_ns {
            return tally.outcome();
        }
        now_ns = next_ns;
        drive.advance(now_ns, &mut done);
        for Done { id, at_ns } in done.drain(..) {
            let slot = id % u64::from(DEPTH_MAX);
            let (command, submitted_ns) = in_flight[slot as usize];
            tally.count(command, submitted_ns, at_ns);
            let request = source.next(slot);
            in_flight[slot as usize] = (request.command, now_ns);
            drive.submit(now_ns, request);
        }
    }
    unreachable!("{} requests are in flight and the drive says that it is idle", load.depth)
}

/// Makes the requests.
struct RequestStream {
    load: Load,
    first_byte: u64,
    blocks: u64,
    next_block: u64,
    requests: u64,
    writes_since_flush: u32,
    random: Random,
}

impl RequestStream {
    fn new(load: &Load, capacity_bytes: u64, seed: u64) -> Result<Self, BenchError> {
        let number = |what, found: u32, bounds| {
            Err(BenchError::Number { what, found: u64::from(found), bounds })
        };
        if !(1..=DEPTH_MAX).contains(&load.depth) {
            return number("the depth", load.depth, "1 to 65,536");
        }
        if load.read_pct > 100 {
            return number("the share of reads", load.read_pct.into(), "0 to 100 percent");
        }
        if load.block_bytes == 0 {
            return number("the block", 0, "at least 1 byte");
        }
        let region = load.region_bytes.clone().unwrap_or(0..capacity_bytes);
        let blocks = region.end.saturating_sub(region.start) / u64::from(load.block_bytes);
        if blocks == 0 || region.end > capacity_bytes {
            return Err(BenchError::Region {
                block_bytes: load.block_bytes,
                start: region.start,
                end: region.end,
                capacity_bytes,
            });
        }
        Ok(Self {
            load: load.clone(),
            first_byte: region.start,
            blocks,
            next_block: 0,
            requests: 0,
            writes_since_flush: 0,
            random: Random::new(seed),
        })
    }

    fn next(&mut self, slot: u64) -> Request {
        let id = (self.requests << SLOT_BITS) | slot;
        self.requests += 1;
        if self.load.flush_every.is_some_and(|every| self.writes_since_flush >= every) {
            self.writes_since_flush = 0;
            return Request { id, command: Command::Flush, at_bytes: 0, bytes: 0 };
        }
        let block = match self.load.order {
            VisitOrder::Random => self.random.below(self.blocks),
            VisitOrder::Sequential => {
                let block = self.next_block;
                self.next_block = (block + 1) % self.blocks;
                block
            }
        };
        Request {
            id,
            command: self.command(),
            at_bytes: self.first_byte + block * u64::from(self.load.block_bytes),
            bytes: self.load.block_bytes,
        }
    }

    fn command(&mut self) -> Command {
        let read_pct = u64::from(self.load.read_pct);
        if read_pct == 100 || (read_pct > 0 && self.random.below(100) < read_pct) {
            return Command::Read;
        }
        self.writes_since_flush += 1;
        if self.load.write_through { Command::WriteThrough } else { Command::Write }
    }
}

/// Slices of the counted span, for the interval.
const SLICES: usize = 100;

/// What was done so far.
struct Counted {
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
