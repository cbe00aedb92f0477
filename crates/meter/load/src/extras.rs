//! What a worker of a stream that is not plain has in addition to the loop.
//!
//! Purpose: keep all of it behind one look in the loop, so that plain streams do not pay for it.
//! Invariant: absent exactly where the loop is plain by the spec and no detail is requested.

use std::io;
use std::time::Duration;

use iostrata_io::{OpKind, OpenFiles};
use iostrata_plan::{Flow, IoSpec, Mix, Step};

use crate::arrivals::DirectionArrivals;
use crate::clock::Ticks;
use crate::generator::{Generator, Request};
use crate::log_replay::LogReplay;
use crate::pauses::Pauses;
use crate::recorder::Flight;
use crate::shared_stats::SharedStats;
use crate::varied::MixedRequests;

/// How long a job that is ahead of its flow leaves the processor to others.
const FLOW_WAIT_MIN: Duration = Duration::from_micros(10);

/// Sizes, offsets, pauses and bounds of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Extras {
    /// Chooses requests where the plain generator does not do.
    varied: Option<MixedRequests>,
    block_bytes: u32,
    /// Bytes that may still be requested in the present loop,
    bytes_left: u64,
    /// in each of those behind it, and how many these are.
    loop_bytes: u64,
    loops_left: u32,
    /// Whether it ends when ordered to.
    pub obeys: bool,
    pauses: Option<Pauses>,
    /// Schedules of the directions, and the kind that the mix wants next.
    directions: Option<DirectionArrivals>,
    wanted: Option<OpKind>,
    /// Its share of a flow, and the requests that it has made of it.
    flow: Option<(Flow, u64)>,
    /// Files that leave the page cache after each pass.
    passes: Option<Passes>,
    /// When a job that is ahead of its flow looks again.
    ahead_until: Option<Ticks>,
    /// Completions to wait for before more requests are started.
    pub reap_min: u32,
    /// Requests of a log, instead of any others.
    log: Option<LogReplay>,
    /// When the next of them is due.
    due: Option<Ticks>,
    /// Whether requests wait for those that they overlap,
    serializes: bool,
    /// and the one that waits, with the start of its response.
    held: Option<(Request, u32, Ticks)>,
    /// Files to flush after the last request.
    pub flushed_at_end: u32,
}

/// The passes of a job over its files.
#[derive(Clone, Debug)]
struct Passes {
    files: OpenFiles,
    /// Bytes of a pass, and those of the present one.
    bytes: u64,
    moved: u64,
}

impl Passes {
    fn of(spec: &IoSpec, files: &OpenFiles) -> Self {
        let bytes = spec.file_bytes() * u64::from(spec.files);
        let bytes = match spec.variation.step {
            Step::Skip(gap) => {
                let block = u64::from(spec.block_bytes);
                (bytes / (block + gap)).max(1) * block
            }
            _ => bytes,
        };
        Self { files: files.clone(), bytes, moved: 0 }
    }

    /// Takes note of a request; the first one of a pass finds nothing in the cache.
    fn advance(&mut self, bytes: u64) {
        if self.begins(bytes) {
            self.files.drop_cached();
        }
    }

    /// Whether a request is the first of a further pass.
    fn begins(&mut self, bytes: u64) -> bool {
        let begins = self.moved >= self.bytes;
        self.moved = if begins { bytes } else { self.moved + bytes };
        begins
    }
}

impl Extras {
    /// What worker `job` of a stream needs; `None` for a plain one whose requests are not noted in
    /// detail.
    ///
    /// # Errors
    /// The log that it replays cannot be read.
    pub(crate) fn of(
        spec: &IoSpec,
        job: u32,
        in_detail: bool,
        files: &OpenFiles,
    ) -> io::Result<Option<Self>> {
        let variation = &spec.variation;
        let in_pairs = spec.mix == Mix::TrimWrite;
        // Each loop is read back before the next one.
        let loops = variation.verify.as_ref().map_or(1, |verify| verify.loops.max(1));
        let loop_bytes = variation.io_bytes_max.map_or(u64::MAX, |bytes| bytes / u64::from(loops));
        let directions = DirectionArrivals::new(spec.pacing, spec.seed, job, spec.jobs);
        if !in_detail && !in_pairs && directions.is_none() && variation.is_plain_loop() {
            return Ok(None);
        }
        Ok(Some(Self {
            varied: (in_pairs || directions.is_some() || !variation.is_plain_order())
                .then(|| MixedRequests::new(spec, job)),
            block_bytes: spec.block_bytes,
            bytes_left: loop_bytes,
            loop_bytes,
            loops_left: loops - 1,
            obeys: variation.steady.is_some(),
            pauses: variation.pause.map(Pauses::new),
            directions,
            wanted: None,
            flow: variation.flow.map(|flow| (flow, 0)),
            passes: variation.drops_each_pass.then(|| Passes::of(spec, files)),
            ahead_until: None,
            reap_min: variation.reap_min,
            log: variation.replay.as_ref().map(LogReplay::of).transpose()?,
            due: None,
            serializes: variation.serialize_overlap,
            held: None,
            flushed_at_end: if variation.end_flush { spec.files } else { 0 },
        }))
    }

    /// The next request and its bytes; `None` when nothing is left to request.
    pub(crate) fn next_request(&mut self, plain: &mut Generator) -> Option<(Request, u32)> {
        if let Some(log) = &mut self.log {
            return log.next_request();
        }
        // What was discarded is written, as the other half of its bytes.
        if self.bytes_left == 0 && !self.varied.as_ref().is_some_and(MixedRequests::owes_a_write) {
            return None;
        }
        let (request, bytes) = match &mut self.varied {
            Some(varied) => match self.wanted.take() {
                Some(kind) => varied.next_of(kind),
                None => varied.next_request(),
            },
            None => plain.next_request().map(|request| (request, self.block_bytes))?,
        };
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(bytes));
        if let Some(passes) = &mut self.passes {
            passes.advance(u64::from(bytes));
        }
        Some((request, bytes))
    }

    /// Begins the next loop, if any.
    pub(crate) fn begin_loop(&mut self) -> bool {
        let begins = self.loops_left > 0;
        if begins {
            (self.bytes_left, self.loops_left) = (self.loop_bytes, self.loops_left - 1);
        }
        begins
    }

    /// Whether directions have schedules of their own.
    pub(crate) fn paces_directions(&self) -> bool {
        self.directions.is_some()
    }

    /// When the next request of any direction is due, in nanoseconds from the start; `None` where
    /// one of them waits for nothing.
    pub(crate) fn direction_due_ns(&self) -> Option<u64> {
        self.directions.as_ref().and_then(DirectionArrivals::due_ns)
    }

    /// Chooses the direction of a request that starts at `now_ns`; `None` while none is due. With
    /// it comes when that was due, where the direction has a schedule.
    pub(crate) fn choose_direction(&mut self, now_ns: u64) -> Option<Option<u64>> {
        let (Some(directions), Some(varied)) = (&mut self.directions, &mut self.varied) else {
            return Some(None);
        };
        let wanted = *self.wanted.get_or_insert_with(|| varied.next_kind());
        let chosen = directions.choose(usize::from(wanted != OpKind::Read), now_ns)?;
        self.wanted = Some([OpKind::Read, OpKind::Write][chosen]);
        Some(directions.advance(chosen))
    }

    /// Where the response of the request begins that waits for another one.
    pub(crate) fn held_since(&self) -> Option<Ticks> {
        self.held.map(|(_, _, since)| since)
    }

    /// The request that waits, which may start now or has to wait again.
    pub(crate) fn take_held(&mut self) -> Option<(Request, u32)> {
        self.held.take().map(|(request, len, _)| (request, len))
    }

    /// Keeps a request back that overlaps one in flight; false where it may start.
    pub(crate) fn holds_back(
        &mut self,
        next: Option<(Request, u32)>,
        since: Ticks,
        in_flight: impl Iterator<Item = Flight>,
    ) -> bool {
        let Some((request, len)) = next.filter(|_| self.serializes) else { return false };
        let end = request.offset + u64::from(len);
        let mut overlapping = in_flight.filter(|flight| {
            flight.file == request.file
                && flight.offset < end
                && request.offset < flight.offset + u64::from(flight.len)
        });
        let overlaps = overlapping.next().is_some();
        self.held = overlaps.then_some((request, len, since));
        overlaps
    }

    /// Whether the next request of a log is due only after `now`; `ticks_at` are those of a moment.
    pub(crate) fn is_early(&mut self, now: Ticks, ticks_at: impl Fn(u64) -> Ticks) -> bool {
        let due_ns = self.log.as_ref().and_then(LogReplay::due_ns);
        self.due = due_ns.map(ticks_at).filter(|due| now < *due);
        self.due.is_some()
    }

    /// Whether requests must wait at `now`.
    pub(crate) fn pauses_at(
        &mut self,
        now: Ticks,
        in_flight: u32,
        ticks_in: impl Fn(Duration) -> Ticks,
    ) -> bool {
        let is_logged = self.log.is_some();
        self.due = self.due.filter(|due| now < *due);
        let pauses = |pauses: &mut Pauses| pauses.holds(now, in_flight, ticks_in);
        (is_logged && self.due.is_some()) || self.pauses.as_mut().is_some_and(pauses)
    }

    /// Begins to take part in the flow, or ends it.
    pub(crate) fn join_flow(&self, shared: &SharedStats, worker: u32, joins: bool) {
        if let Some((flow, requests)) = self.flow {
            shared.post_flow(worker, flow.id, if joins { flow.weight } else { 0 }, requests);
        }
    }

    /// Whether the job is ahead of the others of its flow and has to wait, at least until then.
    pub(crate) fn is_ahead(
        &mut self,
        shared: &SharedStats,
        now: Ticks,
        ticks_in: impl Fn(Duration) -> Ticks,
    ) -> bool {
        let Some((flow, requests)) = &self.flow else { return false };
        if self.ahead_until.is_some_and(|until| now < until) {
            return true;
        }
        let (weights, all) = shared.flow(flow.id);
        let is_ahead = requests * weights > u64::from(flow.weight) * (all + 1);
        self.ahead_until = is_ahead.then(|| now + ticks_in(flow.wait.max(FLOW_WAIT_MIN)));
        is_ahead
    }

    /// Takes note of a request of the flow.
    pub(crate) fn flows(&mut self, shared: &SharedStats, worker: u32) {
        if let Some((flow, requests)) = &mut self.flow {
            *requests += 1;
            shared.post_flow(worker, flow.id, flow.weight, *requests);
        }
    }

    /// Takes note of a request that was started; true when no further one may start.
    pub(crate) fn pauses_after_start(&mut self) -> bool {
        self.pauses.as_mut().is_some_and(Pauses::started)
    }

    /// The end of the present pause, if any.
    pub(crate) fn pause_until(&self) -> Option<Ticks> {
        let pause = self.due.or(self.pauses.as_ref().and_then(Pauses::until));
        self.ahead_until.or(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_begins_when_all_of_the_files_was_gone_through() {
        let mut spec = IoSpec::new("x");
        spec.size_bytes = 3 * 4096;
        let begins = |spec: &IoSpec| -> Vec<usize> {
            let mut passes = Passes::of(spec, &OpenFiles::null(1, 3 * 4096));
            (0..8).filter(|_| passes.begins(4096)).collect()
        };
        assert_eq!(begins(&spec), [3, 6]);
        spec.variation.step = Step::Skip(8192);
        assert_eq!(begins(&spec), [1, 2, 3, 4, 5, 6, 7], "one block and a gap");
    }
}
