//! A closed loop over any drive, in virtual time.
//!
//! Purpose: the one way to measure how fast a model is, so that it can be compared with a data
//! sheet, with what a probe measured and with the same drive emulated in real time. So many
//! requests are kept in flight; each that is done is followed at once by the next.
//! Invariants: exactly `depth` requests are in flight at any moment of the loop; the same drive,
//! load and seed give the same outcome. It has no queue of a kernel above the drive and costs no
//! processor time.

use std::ops::Range;

use iostrata_stats::{LatencyHistogram, LatencyUs, Measured, Random, estimate};
use thiserror::Error;

use crate::drive::{Command, Drive, DriveCompletion, Request};

/// In which order places are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitOrder {
    /// Each block of the region equally likely.
    Random,
    /// One block after another, from the region's start again at its end.
    Sequential,
}

/// The load on the drive.
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
    let mut tally = BenchCounts::new(window, load.block_bytes);
    let mut in_flight: Vec<(Command, u64)> = Vec::with_capacity(load.depth as usize);
    for slot in 0..u64::from(load.depth) {
        let request = source.next(slot);
        in_flight.push((request.command, 0));
        drive.submit(0, request);
    }
    let end_ns = window.warm_up_ns.saturating_add(window.span_ns);
    let mut now_ns = 0;
    let mut done: Vec<DriveCompletion> = Vec::new();
    while let Some(next_ns) = drive.next_event_ns() {
        assert!(next_ns >= now_ns, "the drive's next event lies {} ns back", now_ns - next_ns);
        if next_ns >= end_ns {
            return tally.outcome();
        }
        now_ns = next_ns;
        drive.advance(now_ns, &mut done);
        for DriveCompletion { id, at_ns } in done.drain(..) {
            let slot = id % u64::from(DEPTH_MAX);
            let (command, submitted_ns) = in_flight[slot as usize];
            tally.count(command, submitted_ns, at_ns);
            let request = source.next(slot);
            in_flight[slot as usize] = (request.command, now_ns);
            drive.submit(now_ns, request);
        }
    }
    unreachable!("{} requests are in flight and the drive reports that it is idle", load.depth)
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
struct BenchCounts {
    window: BenchWindow,
    block_bytes: u32,
    slices: Vec<f64>,
    reads: LatencyHistogram,
    writes: LatencyHistogram,
    flushes: LatencyHistogram,
}

impl BenchCounts {
    fn new(window: BenchWindow, block_bytes: u32) -> Self {
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
    fn count(&mut self, command: Command, submitted_ns: u64, at_ns: u64) {
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

    fn outcome(self) -> Result<BenchOutcome, BenchError> {
        let span_ns = self.window.span_ns;
        let nothing = BenchError::Nothing { span_ns };
        if self.reads.is_empty() && self.writes.is_empty() && self.flushes.is_empty() {
            return Err(nothing);
        }
        let per_slice = estimate(&self.slices).ok_or(nothing)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::DriveFacts;

    /// So many servers of one queue, 100 us a request, 1 ms a flush; remembers what came.
    struct Servers {
        free_at_ns: Vec<u64>,
        done: Vec<DriveCompletion>,
        seen: Vec<Request>,
    }

    impl Servers {
        fn new(count: usize) -> Self {
            Self { free_at_ns: vec![0; count], done: Vec::new(), seen: Vec::new() }
        }
    }

    impl Drive for Servers {
        fn facts(&self) -> DriveFacts {
            DriveFacts {
                capacity_bytes: 1 << 20,
                queue_depth: 64,
                volatile_bytes: 0,
                is_rotational: false,
            }
        }

        fn submit(&mut self, now_ns: u64, request: Request) {
            let free = self.free_at_ns.iter_mut().min().unwrap();
            let cost_ns = if request.command == Command::Flush { 1_000_000 } else { 100_000 };
            *free = (*free).max(now_ns) + cost_ns;
            self.done.push(DriveCompletion { id: request.id, at_ns: *free });
            self.seen.push(request);
        }

        fn next_event_ns(&self) -> Option<u64> {
            self.done.iter().map(|done| done.at_ns).min()
        }

        fn advance(&mut self, now_ns: u64, done: &mut Vec<DriveCompletion>) {
            self.done.sort_by_key(|done| done.at_ns);
            let due = self.done.partition_point(|done| done.at_ns <= now_ns);
            done.extend(self.done.drain(..due));
        }
    }

    fn outcome(drive: &mut Servers, load: &Load) -> BenchOutcome {
        run(drive, load, BenchWindow::seconds(0.1, 1.0), 1).unwrap()
    }

    #[test]
    fn it_finds_the_rate_and_latency_of_known_servers() {
        for (depth, iops, latency_us) in [(1, 10_000.0, 100.0), (4, 40_000.0, 100.0)] {
            let found = outcome(&mut Servers::new(4), &Load::random_read(depth));
            assert!((found.iops.value / iops - 1.0).abs() < 0.001, "{found:?}");
            let [low, high] = found.iops.ci95.unwrap();
            assert!(low <= iops && iops <= high && high - low < iops * 0.01, "{found:?}");
            assert_eq!(found.read.unwrap().latency_us.mean, latency_us);
            assert!(found.write.is_none() && found.flush.is_none());
        }
        // Twice as many as there are servers: every request waits for one other.
        let found = outcome(&mut Servers::new(4), &Load::random_write(8));
        assert!((found.write.unwrap().latency_us.mean / 200.0 - 1.0).abs() < 0.001, "{found:?}");
    }

    #[test]
    fn sequential_places_follow_each_other_and_wrap() {
        let mut drive = Servers::new(1);
        let load = Load { region_bytes: Some(65_536..196_608), ..Load::sequential_read(65_536, 1) };
        let found = outcome(&mut drive, &load);
        let places: Vec<u64> = drive.seen.iter().take(3).map(|request| request.at_bytes).collect();
        assert_eq!(places, [65_536, 131_072, 65_536]);
        assert!((found.bytes_per_s / (10_000.0 * 65_536.0) - 1.0).abs() < 0.001);
    }

    #[test]
    fn a_flush_follows_every_so_many_writes() {
        let mut drive = Servers::new(1);
        let load = Load { flush_every: Some(10), write_through: true, ..Load::random_write(1) };
        let found = outcome(&mut drive, &load);
        assert!(drive.seen[..10].iter().all(|request| request.command == Command::WriteThrough));
        assert_eq!(drive.seen[10].command, Command::Flush);
        assert_eq!(drive.seen[10].bytes, 0);
        assert_eq!(found.flush.unwrap().latency_us.mean, 1_000.0);
        // Ten writes of 100 us and a flush of 1 ms: 5,000 writes a second.
        assert!((found.iops.value / 5_000.0 - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_mix_holds_its_share_and_the_seed_its_places() {
        let load = Load { read_pct: 70, ..Load::random_read(4) };
        let (mut one, mut other) = (Servers::new(4), Servers::new(4));
        let found = outcome(&mut one, &load);
        let share = found.read.unwrap().iops / found.iops.value;
        assert!((share - 0.7).abs() < 0.02, "{share}");
        assert_eq!(found, outcome(&mut other, &load));
        assert_eq!(one.seen, other.seen);
    }

    #[test]
    fn loads_that_do_not_fit_are_refused() {
        let refused = |load: &Load| {
            run(&mut Servers::new(1), load, BenchWindow::seconds(0.0, 1.0), 1)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(&Load::random_read(0)).contains("the depth is 0"));
        assert!(refused(&Load { read_pct: 101, ..Load::random_read(1) }).contains("0 to 100"));
        let wide = Load { block_bytes: 2 << 20, ..Load::random_read(1) };
        assert!(refused(&wide).contains("do not fit"));
        let beyond = Load { region_bytes: Some(0..2 << 20), ..Load::random_read(1) };
        assert!(refused(&beyond).contains("do not fit"));
        let short = BenchWindow { warm_up_ns: 0, span_ns: 10 };
        let error = run(&mut Servers::new(1), &Load::random_read(1), short, 1).unwrap_err();
        assert_eq!(error, BenchError::Nothing { span_ns: 10 });
    }
}
