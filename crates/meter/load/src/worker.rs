//! The measuring loop of one worker.
//!
//! Invariant: between the start and the end of the window it allocates nothing, takes no lock,
//! formats nothing and reads the clock at most once per batch of starts and once per batch of
//! completions, and once more per submission where requests are noted in detail. A request has a
//! stamp at its start and one at its completion; where a single completion makes room for the next
//! request, its stamp is that request's start. The same code runs for every API and every clock.
//! Waiting for a schedule reads it as often as it must: that is pacing, not part of a request.
//! It decides nothing: requests come from the generator, times from the schedule, the end from the
//! shared statistics.

use std::time::Duration;

use iostrata_io::{Buffers, FileApi, IoError, Op, OpKind, OpenFiles, SyncKind};
use iostrata_plan::IoSpec;

use crate::arrivals::Arrivals;
use crate::clock::{Clock, Ticks};
use crate::detail::{Submissions, batch_class};
use crate::extras::Extras;
use crate::flush_schedule::FlushSchedule;
use crate::generator::{Generator, Request};
use crate::outcome::Failure;
use crate::rate_watch::RateWatch;
use crate::recorder::{Edge, Flight, InFlight, Recorder};
use crate::request_log::RequestLogWriter;
use crate::shared_stats::SharedStats;
use crate::tally::Span;
use crate::verification::{CONTENT_ERRNO, Verification};

/// The longest wait before a worker looks whether the window has ended.
const WAIT_NS_MAX: u64 = 5_000_000;
/// Below this a wait is spent polling the API, since a timer would be late.
const POLL_NS: u64 = 60_000;

/// One worker, ready to start.
pub(crate) struct Worker<A, C> {
    api: A,
    in_flight: InFlight<C>,
    generator: Generator,
    arrivals: Option<Arrivals>,
    flushes: FlushSchedule,
    buffers: Buffers,
    block_bytes: u32,
    depth: u32,
    /// Start of the worker's part of the window.
    start: Ticks,
    span: Span,
    requests: u64,
    /// What only streams that are not plain need.
    extras: Option<Box<Extras>>,
    /// What only streams need whose contents are verified.
    verification: Option<Box<Verification>>,
    /// Where requests are logged.
    request_log: Option<RequestLogWriter>,
    /// Ticks that it read back in the loops before the present one, and when it began to in this.
    read_back: Ticks,
    reads_back_since: Option<Ticks>,
    exhausted: bool,
    /// Whether the worker ends by itself when it has requested its bytes.
    ends_alone: bool,
    ends_window: bool,
}

/// What a worker is made of, apart from its API.
pub(crate) struct WorkerParts<C> {
    pub clock: C,
    pub shared: SharedStats,
    pub recorder: Recorder,
    pub files: OpenFiles,
    pub buffers: Buffers,
    /// Number among all workers of the window.
    pub number: u32,
    /// Number among the workers of its stream.
    pub job: u32,
    /// Its part of the window.
    pub span: Span,
    /// How it flushes its files.
    pub flush: SyncKind,
    /// Only where requests are noted in detail.
    pub submissions: Option<Box<Submissions>>,
}

impl<A: FileApi, C: Clock> Worker<A, C> {
    /// # Errors
    /// The log that it replays cannot be read, or that of its requests cannot be opened.
    pub(crate) fn new(spec: &IoSpec, api: A, parts: WorkerParts<C>) -> Result<Self, IoError> {
        let in_flight = InFlight {
            clock: parts.clock,
            recorder: parts.recorder,
            requests: vec![Flight::default(); spec.depth as usize].into_boxed_slice(),
            free: (0..spec.depth).rev().collect(),
            failure: Failure::default(),
            closed: false,
            stamp: None,
            shared: parts.shared,
            number: parts.number,
            written_bytes: 0,
            written_bytes_max: spec
                .write_bytes_max
                .map_or(u64::MAX, |all| (all / u64::from(spec.jobs)).max(1)),
            submissions: parts.submissions,
            rate_watch: RateWatch::of(spec).map(Box::new),
        };
        let (varied, in_detail) = (&spec.variation, in_flight.submissions.is_some());
        let extras = Extras::of(spec, parts.job, in_detail, &parts.files)
            .map_err(|source| IoError::System { api: "read_iolog", call: "reading", source })?;
        let request_log = RequestLogWriter::begin(spec, parts.job, parts.flush)
            .map_err(|source| log_error("opening the log", source))?;
        Ok(Self {
            api,
            in_flight,
            generator: Generator::new(spec, parts.job),
            arrivals: Arrivals::new(spec.pacing, spec.seed, parts.job, spec.jobs),
            flushes: FlushSchedule::of(spec),
            buffers: parts.buffers,
            block_bytes: spec.block_bytes,
            depth: spec.depth,
            start: 0,
            span: parts.span,
            requests: 0,
            extras: extras.map(Box::new),
            verification: Verification::of(spec, parts.number, &parts.files).map(Box::new),
            request_log,
            read_back: 0,
            reads_back_since: None,
            exhausted: false,
            ends_alone: varied.io_bytes_max.is_some(),
            ends_window: varied.ends_window,
        })
    }

    /// Runs from `start` to the end of the window and waits for what is then in flight.
    ///
    /// # Errors
    /// When the API itself fails. Failed requests are in the [`Failure`] instead.
    pub(crate) fn run(mut self, start: Ticks) -> Result<(Recorder, Failure), IoError> {
        if !self.begin(start) {
            return Ok((self.in_flight.recorder, self.in_flight.failure));
        }
        self.join_flow(true);
        loop {
            self.fill();
            if self.extras.is_some() {
                self.note_submission()?;
            }
            if self.depth_now() == 0 {
                if self.in_flight.closed || (self.exhausted && self.ends_alone) {
                    break;
                }
                self.idle();
                continue;
            }
            let answer = self.reap();
            if answer.is_err() || self.in_flight.failure.is_set() {
                self.in_flight.shared.post_stop_soon(self.in_flight.clock.now());
                self.exhausted = true;
            }
            answer?;
        }
        self.join_flow(false);
        self.end(start);
        self.flush_at_end()?;
        if let Some(log) = self.request_log.take() {
            let at_us = self.at_us(self.in_flight.clock.now());
            log.end(at_us).map_err(|source| log_error("writing the log", source))?;
        }
        Ok((self.in_flight.recorder, self.in_flight.failure))
    }

    /// Waits for the worker's own start; false when the window ends before it.
    fn begin(&mut self, start: Ticks) -> bool {
        let slice_ticks = self.in_flight.shared.layout().slice_ticks;
        self.start = start + self.span.first_slice as u64 * slice_ticks;
        let look = self.in_flight.clock.ticks_in(WAIT_NS_MAX);
        let mut now = start;
        while now < self.start {
            self.in_flight.clock.wait(self.start.min(now + look));
            now = self.in_flight.clock.now();
            if self.in_flight.shared.stop() <= now.min(self.start) {
                return false;
            }
        }
        self.in_flight.clock.wait(self.start);
        self.in_flight.recorder.open(start, self.span)
    }

    /// Microseconds of a moment from the worker's own start.
    fn at_us(&self, now: Ticks) -> u64 {
        self.in_flight.clock.to_ns(now.saturating_sub(self.start)) / 1000
    }

    fn join_flow(&self, joins: bool) {
        if let Some(extras) = &self.extras {
            extras.join_flow(&self.in_flight.shared, self.in_flight.number, joins);
        }
    }

    /// Posts what the worker did and when it ended.
    fn end(&mut self, start: Ticks) {
        let now = self.in_flight.clock.now();
        let ended = self.in_flight.recorder.finish(now);
        self.in_flight.closed = true;
        if self.read_back > 0 && self.reads_back_since.is_none() {
            // It ended as it wrote.
            self.post_reads_back(ended);
        }
        let (shared, number) = (&self.in_flight.shared, self.in_flight.number);
        shared.post_written(number, self.in_flight.written_bytes);
        shared.post_ended(number, ended.saturating_sub(start));
        if self.ends_window {
            shared.post_stop_soon(now);
        }
    }

    /// Flushes every file if that was requested, when nothing is counted any more.
    fn flush_at_end(&mut self) -> Result<(), IoError> {
        let files = self.extras.as_ref().map_or(0, |extras| extras.flushed_at_end);
        for file in 0..files {
            let now = self.in_flight.clock.now();
            self.start_request::<true>(
                Request { kind: OpKind::Sync, file, offset: 0 },
                0,
                now,
                now,
            );
            while self.depth_now() > 0 {
                self.reap_at_least::<true>(1, None)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn depth_now(&self) -> u32 {
        self.depth - self.in_flight.free.len() as u32
    }

    /// Starts every request that may start now.
    #[inline(always)]
    fn fill(&mut self) {
        if self.in_flight.closed || self.exhausted || self.in_flight.free.is_empty() {
            return;
        }
        let now = self.in_flight.stamp.take().unwrap_or_else(|| self.in_flight.clock.now());
        if self.in_flight.recorder.is_beyond(now) && self.in_flight.cross(now) == Edge::Closed {
            return;
        }
        if self.flushes.is_due() {
            self.start_flush(now);
            return;
        }
        if self.extras.is_some() {
            self.fill_varied(now);
            return;
        }
        while !self.in_flight.free.is_empty() {
            let Some(since) = self.due(now) else { return };
            let Some(request) = self.generator.next_request() else {
                self.exhaust(now);
                return;
            };
            let len = if request.kind == OpKind::Sync { 0 } else { self.block_bytes };
            self.start_request::<false>(request, len, now, since);
            self.flushes.started(request, len, since);
            if self.flushes.is_due() {
                return;
            }
        }
    }

    /// The same for a stream that is not plain.
    #[inline(never)]
    fn fill_varied(&mut self, now: Ticks) {
        if self.in_flight.rate_watch.is_some() && self.misses_a_rate(now) {
            return;
        }
        let Some(mut extras) = self.extras.take() else { return };
        if extras.obeys && self.in_flight.shared.is_told_to_end(self.in_flight.number) {
            (self.exhausted, self.ends_alone) = (true, true);
            self.extras = Some(extras);
            return;
        }
        let clock = &self.in_flight.clock;
        let ticks_in = |time: Duration| clock.ticks_in(time.as_nanos() as u64);
        if !extras.pauses_at(now, self.depth_now(), ticks_in) {
            while !self.in_flight.free.is_empty() {
                let (start, clock) = (self.start, &self.in_flight.clock);
                if extras.is_early(now, |ns| start + clock.ticks_in(ns)) {
                    break;
                }
                let held = extras.held_since();
                let ticks_in = |time: Duration| clock.ticks_in(time.as_nanos() as u64);
                if held.is_none() && extras.is_ahead(&self.in_flight.shared, now, ticks_in) {
                    break;
                }
                let since = held.or_else(|| self.due_in_mix(&mut extras, now));
                let Some(since) = since else { break };
                let is_idle = self.depth_now() == 0;
                let verification = self.verification.as_deref_mut();
                let (next, is_unread) = match verification {
                    _ if held.is_some() => (extras.take_held(), false),
                    Some(read) if read.is_reading() => (read.next_read(), false),
                    read => {
                        let next = extras.next_request(&mut self.generator);
                        (next, read.is_some_and(|read| next.is_none() && read.has_unread()))
                    }
                };
                if extras.holds_back(next, since, self.in_flight.now()) {
                    break;
                }
                let Some((request, len)) = next else {
                    match self.is_reading_back() {
                        // What is in flight is written or read first.
                        _ if (is_unread || self.is_reading_back()) && !is_idle => {}
                        false if is_unread => self.begin_to_read_back(now),
                        true if extras.begin_loop() => self.end_to_read_back(now),
                        _ => self.exhaust(now),
                    }
                    break;
                };
                self.start_request::<true>(request, len, now, since);
                extras.flows(&self.in_flight.shared, self.in_flight.number);
                self.flushes.started(request, len, since);
                if self.flushes.is_due() || extras.pauses_after_start() {
                    break;
                }
            }
        }
        self.extras = Some(extras);
    }

    /// Begins to read back what was written.
    #[cold]
    fn begin_to_read_back(&mut self, now: Ticks) {
        self.reads_back_since = Some(now);
        self.post_reads_back(now);
        if let Some(Err(error)) = self.verification.as_deref_mut().map(Verification::begin) {
            self.in_flight.failure.add_flush(&error);
        }
    }

    /// Goes on to write, in the next loop.
    #[cold]
    fn end_to_read_back(&mut self, now: Ticks) {
        self.read_back += self.reads_back_since.take().map_or(0, |since| now.saturating_sub(since));
        self.verification.iter_mut().for_each(|read| read.end());
    }

    /// Posts when it began to read back, as if all that it did of it came last.
    fn post_reads_back(&self, now: Ticks) {
        let shared = &self.in_flight.shared;
        let start = shared.start().unwrap_or(self.start) + self.read_back;
        shared.post_reads_back(self.in_flight.number, now.saturating_sub(start).max(1));
    }

    /// Ends the job where it misses a rate that it must reach; reading back has none.
    fn misses_a_rate(&mut self, now: Ticks) -> bool {
        let is_reading_back = self.is_reading_back();
        let InFlight { rate_watch, clock, failure, .. } = &mut self.in_flight;
        let Some(watch) = rate_watch.as_mut().filter(|_| !is_reading_back) else { return false };
        let now_ns = clock.to_ns(now.saturating_sub(self.start));
        let Some(missed) = watch.missed(now_ns) else { return false };
        failure.add_missed(missed);
        (self.exhausted, self.ends_alone) = (true, true);
        self.ends_window |= watch.ends_window;
        true
    }

    /// Nothing more is to be requested.
    #[cold]
    fn exhaust(&mut self, now: Ticks) {
        self.exhausted = true;
        if !self.ends_alone {
            self.in_flight.shared.post_stop_soon(now);
        }
    }

    /// Where the response of a request that starts now begins; `None` while none is due.
    #[inline(always)]
    fn due(&mut self, now: Ticks) -> Option<Ticks> {
        let Some(arrivals) = &mut self.arrivals else { return Some(now) };
        let due = self.start + self.in_flight.clock.ticks_in(arrivals.due_ns());
        if due > now {
            return None;
        }
        arrivals.advance();
        self.in_flight.recorder.record_lateness(self.in_flight.clock.to_ns(now - due));
        Some(due)
    }

    /// The same where directions may have schedules of their own; reading back follows none.
    fn due_in_mix(&mut self, extras: &mut Extras, now: Ticks) -> Option<Ticks> {
        if self.is_reading_back() {
            return Some(now);
        }
        if !extras.paces_directions() {
            return self.due(now);
        }
        let now_ns = self.in_flight.clock.to_ns(now.saturating_sub(self.start));
        let Some(due_ns) = extras.choose_direction(now_ns)? else { return Some(now) };
        let due = (self.start + self.in_flight.clock.ticks_in(due_ns)).min(now);
        self.in_flight.recorder.record_lateness(self.in_flight.clock.to_ns(now - due));
        Some(due)
    }

    fn is_reading_back(&self) -> bool {
        self.verification.as_ref().is_some_and(|read| read.is_reading())
    }

    /// When the next request is due by a schedule, in nanoseconds from the start.
    #[inline(always)]
    fn next_due_ns(&self) -> Option<u64> {
        if self.is_reading_back() {
            return None;
        }
        match &self.arrivals {
            Some(arrivals) => Some(arrivals.due_ns()),
            None => self.extras.as_ref().and_then(|extras| extras.direction_due_ns()),
        }
    }

    fn start_flush(&mut self, now: Ticks) {
        if self.depth_now() == 0
            && let Some((flush, len, since)) = self.flushes.next()
        {
            self.start_request::<true>(flush, len, now, since.unwrap_or(now));
        }
    }

    #[inline(always)]
    fn start_request<const VARIED: bool>(
        &mut self,
        request: Request,
        len: u32,
        started: Ticks,
        since: Ticks,
    ) {
        let Some(tag) = self.in_flight.free.pop() else { return };
        let Request { kind, file, offset } = request;
        self.requests += 1;
        if kind == OpKind::Write {
            self.in_flight.written_bytes += u64::from(len);
            let number = u64::from(self.in_flight.number);
            self.buffers.stamp(tag, self.requests ^ (number << 48), offset);
            if let Some(verification) = &mut self.verification {
                verification.seal(&mut self.buffers, tag, request, len);
            }
        }
        if VARIED && self.request_log.is_some() {
            let at_us = self.at_us(started);
            self.request_log.iter_mut().for_each(|log| log.note(at_us, request, len));
        }
        // A flush moves nothing of its range.
        let moved = if VARIED && kind == OpKind::Sync { 0 } else { len };
        self.in_flight.requests[tag as usize] = Flight { started, since, offset, file, len: moved };
        self.api.queue(Op { kind, file, offset, len, buffer: tag, tag });
        if VARIED && let Some(submissions) = &mut self.in_flight.submissions {
            submissions.started(tag);
        }
    }

    /// Submits what was started, where the API does so apart from completing, and notes when.
    #[inline(never)]
    fn note_submission(&mut self) -> Result<(), IoError> {
        let in_flight = self.depth_now();
        let InFlight { clock, recorder, submissions, .. } = &mut self.in_flight;
        let Some(submissions) = submissions.as_deref_mut().filter(|one| one.has_fresh()) else {
            return Ok(());
        };
        let mut now = 0;
        if submissions.is_apart {
            self.api.submit()?;
            now = clock.now();
        }
        recorder.detail(|detail| submissions.note(now, in_flight, detail));
        Ok(())
    }

    /// Submits what is queued and enters what has completed.
    #[inline(always)]
    fn reap(&mut self) -> Result<(), IoError> {
        if self.extras.is_some() {
            return self.reap_varied();
        }
        let (min, wait_at_most) = self.patience();
        self.reap_at_least::<false>(min, wait_at_most)
    }

    /// The same for a stream that is not plain.
    #[inline(never)]
    fn reap_varied(&mut self) -> Result<(), IoError> {
        let (min, wait_at_most) = self.patience();
        let batch = self.extras.as_ref().map_or(1, |extras| extras.reap_min);
        let waits_for_more = wait_at_most.is_none() && min == 1;
        let min = if waits_for_more { batch.min(self.depth_now()) } else { min };
        self.reap_at_least::<true>(min, wait_at_most)
    }

    #[inline(always)]
    fn reap_at_least<const VARIED: bool>(
        &mut self,
        min: u32,
        wait_at_most: Option<u64>,
    ) -> Result<(), IoError> {
        let Self { api, in_flight, verification, buffers, .. } = self;
        let mut stamp = None;
        let before = if min == 0 { in_flight.clock.now() } else { 0 };
        let count = api.reap(min, wait_at_most, |done| {
            let now = *stamp.get_or_insert_with(|| in_flight.clock.now());
            let mut done = done;
            if VARIED
                && let Some(read) = verification
                && done.kind == OpKind::Read
                && done.result > 0
                && !read.holds(buffers, done.tag, &in_flight.requests[done.tag as usize])
            {
                done.result = -CONTENT_ERRNO;
            }
            in_flight.complete::<VARIED>(done, now);
        })?;
        if VARIED && in_flight.submissions.is_some() {
            in_flight.recorder.detail(|detail| detail.completions[batch_class(count)] += 1);
        }
        match count {
            0 => self.nothing_came(min, before),
            1 => self.in_flight.stamp = stamp,
            _ => self.in_flight.stamp = None,
        }
        Ok(())
    }

    /// How many completions to wait for, and how long: with a schedule and room for another request
    /// no longer than until that is due.
    #[inline(always)]
    fn patience(&self) -> (u32, Option<u64>) {
        let Some(due_ns) = self.next_due_ns() else { return (1, None) };
        if self.in_flight.free.is_empty()
            || self.flushes.is_due()
            || self.in_flight.closed
            || self.exhausted
        {
            return (1, None);
        }
        let due = self.start + self.in_flight.clock.ticks_in(due_ns);
        let left_ns = self.in_flight.clock.to_ns(due.saturating_sub(self.in_flight.clock.now()));
        if left_ns < POLL_NS { (0, None) } else { (1, Some(left_ns - POLL_NS / 2)) }
    }

    /// Time passed without a completion: it counts as pacing, and the window may have ended.
    #[cold]
    fn nothing_came(&mut self, min: u32, before: Ticks) {
        let now = self.in_flight.clock.now();
        if min == 0 {
            let polled_ns = self.in_flight.clock.to_ns(now.saturating_sub(before));
            self.in_flight.recorder.add_pacing(polled_ns);
        }
        if self.in_flight.recorder.is_beyond(now) {
            self.in_flight.cross(now);
        }
    }

    /// Nothing is in flight and nothing is due: waits for the schedule, or for the end.
    #[cold]
    fn idle(&mut self) {
        if self.flushes.is_due() && !self.exhausted {
            return;
        }
        let now = self.in_flight.clock.now();
        let mut until = now + self.in_flight.clock.ticks_in(WAIT_NS_MAX);
        if let Some(end) = self.extras.as_ref().and_then(|extras| extras.pause_until())
            && !self.exhausted
        {
            until = until.min(end);
        } else if let Some(due_ns) = self.next_due_ns()
            && !self.exhausted
        {
            until = until.min(self.start + self.in_flight.clock.ticks_in(due_ns));
        } else if !self.exhausted {
            return;
        }
        let spun_ns = self.in_flight.clock.wait(until);
        self.in_flight.recorder.add_pacing(spun_ns);
        let now = self.in_flight.clock.now();
        if self.in_flight.recorder.is_beyond(now) {
            self.in_flight.cross(now);
        }
    }
}

fn log_error(call: &'static str, source: std::io::Error) -> IoError {
    IoError::System { api: "write_iolog", call, source }
}
