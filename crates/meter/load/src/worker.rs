//! The measuring loop of one worker.
//!
//! Invariant: between the start and the end of the window it allocates nothing, takes no lock,
//! formats nothing and reads the clock at most once per batch of starts and once per batch of
//! completions. A request has a stamp at its start and one at its completion; where a single
//! completion makes room for the next request, its stamp is that request's start. The same code
//! runs for every API and every clock. Waiting for a schedule reads it as often as it must: that is
//! pacing, not part of a request.
//! It decides nothing: requests come from the generator, times from the schedule, the end from the
//! board.

use iostrata_io::{Buffers, Done, FileApi, IoError, Op, OpKind};
use iostrata_spec::IoSpec;

use crate::arrivals::Arrivals;
use crate::board::Board;
use crate::clock::{Clock, Ticks};
use crate::failure::{FailedRequest, Failure};
use crate::flush_turns::FlushTurns;
use crate::generator::Generator;
use crate::recorder::{Edge, Recorder};

/// The longest wait before a worker looks whether the window has ended.
const WAIT_NS_MAX: u64 = 5_000_000;
/// Below this a wait is spent asking the API again, since a timer would be late.
const POLL_NS: u64 = 60_000;

/// A request in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    started: Ticks,
    /// Where its response latency begins.
    since: Ticks,
    offset: u64,
    file: u32,
    len: u32,
}

/// What completions are entered in; apart from the API, which is borrowed while it delivers them.
struct Books<C> {
    clock: C,
    recorder: Recorder,
    flights: Box<[Flight]>,
    free: Vec<u32>,
    failure: Failure,
    closed: bool,
    /// The completion that has just made room, if it was a single one.
    stamp: Option<Ticks>,
    board: Board,
    number: u32,
    written_bytes: u64,
    written_bytes_max: u64,
}

/// One worker, ready to start.
pub(crate) struct Worker<A, C> {
    api: A,
    books: Books<C>,
    generator: Generator,
    arrivals: Option<Arrivals>,
    turns: FlushTurns,
    buffers: Buffers,
    block_bytes: u32,
    depth: u32,
    start: Ticks,
    requests: u64,
    exhausted: bool,
}

/// What a worker is made of beside its API.
pub(crate) struct WorkerParts<C> {
    pub clock: C,
    pub board: Board,
    pub recorder: Recorder,
    pub buffers: Buffers,
    /// Number among all workers of the window.
    pub number: u32,
    /// Number among the workers of its stream.
    pub job: u32,
}

impl<A: FileApi, C: Clock> Worker<A, C> {
    pub(crate) fn new(spec: &IoSpec, api: A, parts: WorkerParts<C>) -> Self {
        let books = Books {
            clock: parts.clock,
            recorder: parts.recorder,
            flights: vec![Flight::default(); spec.depth as usize].into_boxed_slice(),
            free: (0..spec.depth).rev().collect(),
            failure: Failure::default(),
            closed: false,
            stamp: None,
            board: parts.board,
            number: parts.number,
            written_bytes: 0,
            written_bytes_max: spec
                .write_bytes_max
                .map_or(u64::MAX, |all| (all / u64::from(spec.jobs)).max(1)),
        };
        Self {
            api,
            books,
            generator: Generator::new(spec, parts.job),
            arrivals: Arrivals::new(spec.pacing, spec.seed, parts.job, spec.jobs),
            turns: FlushTurns::new(spec.flush, spec.files),
            buffers: parts.buffers,
            block_bytes: spec.block_bytes,
            depth: spec.depth,
            start: 0,
            requests: 0,
            exhausted: false,
        }
    }

    /// Runs from `start` to the end of the window and waits for what is then in flight.
    ///
    /// # Errors
    /// When the API itself fails. Failed requests are in the [`Failure`] instead.
    pub(crate) fn run(mut self, start: Ticks) -> Result<(Recorder, Failure), IoError> {
        self.books.clock.wait(start);
        self.start = start;
        self.books.recorder.open(start);
        loop {
            self.fill();
            if self.in_flight() == 0 {
                if self.books.closed {
                    break;
                }
                self.idle();
                continue;
            }
            let answer = self.reap();
            if answer.is_err() || self.books.failure.is_set() {
                self.books.board.post_stop_soon(self.books.clock.now());
                self.exhausted = true;
            }
            answer?;
        }
        self.books.board.post_written(self.books.number, self.books.written_bytes);
        Ok((self.books.recorder, self.books.failure))
    }

    #[inline(always)]
    fn in_flight(&self) -> u32 {
        self.depth - self.books.free.len() as u32
    }

    /// Starts every request that may start now.
    #[inline(always)]
    fn fill(&mut self) {
        if self.books.closed || self.exhausted || self.books.free.is_empty() {
            return;
        }
        let now = self.books.stamp.take().unwrap_or_else(|| self.books.clock.now());
        if self.books.recorder.is_beyond(now) && self.books.cross(now) == Edge::Closed {
            return;
        }
        if self.turns.is_due() {
            self.start_flush(now);
            return;
        }
        while !self.books.free.is_empty() {
            let Some(since) = self.due(now) else { return };
            let Some(request) = self.generator.next_request() else {
                self.exhausted = true;
                self.books.board.post_stop_soon(now);
                return;
            };
            let writes = request.kind == OpKind::Write;
            let len = if request.kind == OpKind::Sync { 0 } else { self.block_bytes };
            self.start_request(request.kind, request.file, request.offset, len, now, since);
            self.turns.started(writes, request.file, since);
            if self.turns.is_due() {
                return;
            }
        }
    }

    /// Where the response of a request that starts now begins; `None` while none is due.
    #[inline(always)]
    fn due(&mut self, now: Ticks) -> Option<Ticks> {
        let Some(arrivals) = &mut self.arrivals else { return Some(now) };
        let due = self.start + self.books.clock.ticks_in(arrivals.due_ns());
        if due > now {
            return None;
        }
        arrivals.advance();
        self.books.recorder.record_lateness(self.books.clock.to_ns(now - due));
        Some(due)
    }

    fn start_flush(&mut self, now: Ticks) {
        if self.in_flight() == 0
            && let Some((file, since)) = self.turns.next()
        {
            self.start_request(OpKind::Sync, file, 0, 0, now, since.unwrap_or(now));
        }
    }

    #[inline(always)]
    fn start_request(
        &mut self,
        kind: OpKind,
        file: u32,
        offset: u64,
        len: u32,
        started: Ticks,
        since: Ticks,
    ) {
        let Some(tag) = self.books.free.pop() else { return };
        self.requests += 1;
        if kind == OpKind::Write {
            self.books.written_bytes += u64::from(len);
            let number = u64::from(self.books.number);
            self.buffers.stamp(tag, self.requests ^ (number << 48), offset);
        }
        self.books.flights[tag as usize] = Flight { started, since, offset, file, len };
        self.api.queue(Op { kind, file, offset, len, buffer: tag, tag });
    }

    /// Submits what is queued and enters what has completed.
    #[inline(always)]
    fn reap(&mut self) -> Result<(), IoError> {
        let (min, wait_at_most) = self.patience();
        let Self { api, books, .. } = self;
        let mut stamp = None;
        let before = if min == 0 { books.clock.now() } else { 0 };
        let count = api.reap(min, wait_at_most, |done| {
            let now = *stamp.get_or_insert_with(|| books.clock.now());
            books.complete(done, now);
        })?;
        match count {
            0 => self.nothing_came(min, before),
            1 => self.books.stamp = stamp,
            _ => self.books.stamp = None,
        }
        Ok(())
    }

    /// How many completions to wait for, and how long: with a schedule and room for another request
    /// no longer than until that is due.
    #[inline(always)]
    fn patience(&self) -> (u32, Option<u64>) {
        let Some(arrivals) = &self.arrivals else { return (1, None) };
        if self.books.free.is_empty() || self.turns.is_due() || self.books.closed || self.exhausted
        {
            return (1, None);
        }
        let due = self.start + self.books.clock.ticks_in(arrivals.due_ns());
        let left_ns = self.books.clock.to_ns(due.saturating_sub(self.books.clock.now()));
        if left_ns < POLL_NS { (0, None) } else { (1, Some(left_ns - POLL_NS / 2)) }
    }

    /// Time passed without a completion: it counts as pacing, and the window may have ended.
    #[cold]
    fn nothing_came(&mut self, min: u32, before: Ticks) {
        let now = self.books.clock.now();
        if min == 0 {
            let polled_ns = self.books.clock.to_ns(now.saturating_sub(before));
            self.books.recorder.add_pacing(polled_ns);
        }
        if self.books.recorder.is_beyond(now) {
            self.books.cross(now);
        }
    }

    /// Nothing is in flight and nothing is due: waits for the schedule, or for the end.
    #[cold]
    fn idle(&mut self) {
        if self.turns.is_due() && !self.exhausted {
            return;
        }
        let now = self.books.clock.now();
        let mut until = now + self.books.clock.ticks_in(WAIT_NS_MAX);
        if let Some(arrivals) = &self.arrivals
            && !self.exhausted
        {
            until = until.min(self.start + self.books.clock.ticks_in(arrivals.due_ns()));
        } else if !self.exhausted {
            return;
        }
        let spun_ns = self.books.clock.wait(until);
        self.books.recorder.add_pacing(spun_ns);
        let now = self.books.clock.now();
        if self.books.recorder.is_beyond(now) {
            self.books.cross(now);
        }
    }
}

impl<C: Clock> Books<C> {
    #[inline(always)]
    fn complete(&mut self, done: Done, now: Ticks) {
        if self.recorder.is_beyond(now) {
            self.cross(now);
        }
        let flight = self.flights[done.tag as usize];
        self.free.push(done.tag);
        if done.result != flight.len as i32 {
            self.fail(done, flight);
            return;
        }
        if !self.closed {
            let service_ns = self.clock.to_ns(now.saturating_sub(flight.started));
            let response_ns = self.clock.to_ns(now.saturating_sub(flight.since));
            self.recorder.record(done.kind, service_ns, response_ns);
        }
    }

    /// Moves on to the slice of `now`; also where the budget of bytes is looked at.
    #[cold]
    fn cross(&mut self, now: Ticks) -> Edge {
        self.board.post_written(self.number, self.written_bytes);
        if self.written_bytes >= self.written_bytes_max {
            self.board.post_stop_soon(now);
        }
        let edge = self.recorder.cross(now);
        self.closed = edge == Edge::Closed;
        edge
    }

    #[cold]
    fn fail(&mut self, done: Done, flight: Flight) {
        self.failure.add(FailedRequest {
            kind: done.kind,
            file: flight.file,
            offset: flight.offset,
            asked_bytes: flight.len,
            result: done.result,
        });
    }
}
