//! What one worker has in flight and writes down: histograms of the current segment, tallies of the
//! current slice.
//!
//! Invariant: recording touches only memory that was there before the window began. Time moves to
//! the next slice only through [`Recorder::cross`], which is also where the end is noticed.

use iostrata_io::Completion;
use iostrata_plan::OpKind;
use iostrata_run::TransactionFigures;

use crate::clock::{Clock, Ticks};
use crate::detail::{RequestDetail, Submissions};
use crate::generator::measured;
use crate::outcome::{FailedRequest, Failure};
use crate::rate_watch::RateWatch;
use crate::segment::{HistogramNeeds, Segment};
use crate::shared_stats::SharedStats;
use crate::tally::{SliceTally, Span};
use crate::usage::ThreadUse;

/// Whether the window continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Open,
    Closed,
}

pub(crate) struct Recorder {
    shared: SharedStats,
    worker: u32,
    slice: usize,
    /// End of the current slice: the only thing the loop compares its stamps with.
    slice_end: Ticks,
    tally: SliceTally,
    segments: Vec<Segment>,
    segment: usize,
    cpu_mark: ThreadUse,
    /// The slice before which this worker's part ends.
    end_slice: usize,
    closed: bool,
    ended: Ticks,
    /// The slice from which on requests count.
    counted_slice: usize,
    /// How often the worker has shown what it has.
    shown: u64,
}

impl Recorder {
    /// `first_slices`: where segments begin, rising, the first at 0.
    pub(crate) fn new(
        shared: SharedStats,
        worker: u32,
        first_slices: &[usize],
        recorded: &HistogramNeeds,
    ) -> Self {
        let segments = first_slices.iter().map(|first| Segment::new(*first, recorded)).collect();
        Self {
            shared,
            worker,
            slice: 0,
            slice_end: 0,
            tally: SliceTally::default(),
            segments,
            segment: 0,
            cpu_mark: ThreadUse::default(),
            end_slice: usize::MAX,
            closed: false,
            ended: 0,
            counted_slice: 0,
            shown: 0,
        }
    }

    /// Begins the worker's part of a window that started at `start`; false when the window ends
    /// before it.
    pub(crate) fn open(&mut self, start: Ticks, span: Span) -> bool {
        if !self.shared.begin_slice(span.first_slice) {
            return false;
        }
        let slice_ticks = self.shared.layout().slice_ticks;
        self.slice = span.first_slice;
        self.slice_end = start + (span.first_slice as u64 + 1) * slice_ticks;
        self.end_slice = span.end_slice.unwrap_or(usize::MAX);
        let begun = self.segments.iter().filter(|one| one.first_slice <= span.first_slice).count();
        self.segment = begun.saturating_sub(1);
        self.counted_slice = span.counted_slice;
        self.cpu_mark = ThreadUse::now();
        true
    }

    /// Ends the worker's part before its slice does, and returns when that was: `now`, or the end
    /// of the window if that came first.
    pub(crate) fn finish(&mut self, now: Ticks) -> Ticks {
        if self.closed {
            return self.ended;
        }
        self.shared.post_slice(self.worker, self.slice, &self.tally);
        self.close(now);
        now
    }

    /// Whether `now` lies beyond the current slice, so that [`cross`](Self::cross) must be called.
    #[inline(always)]
    pub(crate) fn is_beyond(&self, now: Ticks) -> bool {
        now >= self.slice_end
    }

    /// Counts one completed request.
    #[inline(always)]
    pub(crate) fn record(&mut self, kind: OpKind, service_ns: u64, response_ns: u64) {
        let tally = &mut self.tally[kind as usize];
        tally.count += 1;
        tally.service_ns += service_ns;
        tally.response_ns += response_ns;
        self.segments[self.segment].record(kind, service_ns, response_ns);
    }

    /// Counts the bytes of one completed request, where their number varies.
    #[inline]
    pub(crate) fn add_bytes(&mut self, kind: OpKind, bytes: u32) {
        self.segments[self.segment].add_bytes(kind, bytes);
    }

    /// Counts one completed request whose submission is apart.
    fn record_apart(&mut self, kind: OpKind, submission_ns: u64, completion_ns: u64) {
        self.tally[kind as usize].submission_ns += submission_ns;
        self.detail(|detail| detail.record(kind, submission_ns, completion_ns));
    }

    /// Notes something in the detail of the current segment, if it has any.
    pub(crate) fn detail(&mut self, note: impl FnOnce(&mut RequestDetail)) {
        if let Some(detail) = &mut self.segments[self.segment].detail {
            note(detail);
        }
    }

    /// Notes how late a scheduled request started.
    #[inline]
    pub(crate) fn record_lateness(&mut self, late_ns: u64) {
        self.segments[self.segment].record_lateness(late_ns);
    }

    /// Notes time spent waiting on the schedule with the processor.
    pub(crate) fn add_pacing(&mut self, ns: u64) {
        self.segments[self.segment].pacing_ns += ns;
    }

    /// The number of the current segment.
    pub(crate) fn segment(&self) -> usize {
        self.segment
    }

    /// What transactions count in a segment.
    pub(crate) fn transactions(&mut self, segment: usize) -> &mut TransactionFigures {
        &mut self.segments[segment].transactions
    }

    /// Posts every slice that ended by `now`, and returns whether the window is still open then.
    #[cold]
    pub(crate) fn cross(&mut self, now: Ticks) -> Edge {
        while !self.closed && now >= self.slice_end {
            self.shared.post_slice(self.worker, self.slice, &self.tally);
            self.tally = SliceTally::default();
            if self.slice + 1 == self.shared.layout().slices as usize
                || self.slice + 1 >= self.end_slice
                || !self.shared.begin_slice(self.slice + 1)
            {
                self.close(self.slice_end);
                break;
            }
            self.slice += 1;
            self.slice_end += self.shared.layout().slice_ticks;
            let next = self.segments.get(self.segment + 1);
            if next.is_some_and(|next| self.slice >= next.first_slice) {
                self.mark_cpu();
                self.segment += 1;
            }
        }
        if let Some(asked) = self.shared.asked()
            && !self.closed
            && asked != self.shown
        {
            self.shown = asked;
            self.mark_cpu();
            self.show(self.slice);
        }
        if self.closed { Edge::Closed } else { Edge::Open }
    }

    /// Shows what was written down in so many slices.
    fn show(&self, slices: usize) {
        let counts = |segment: &Segment| segment.first_slice >= self.counted_slice;
        let first = self.segments.iter().position(counts).unwrap_or(self.segments.len());
        let segments = self.segments.get(first..=self.segment).unwrap_or_default();
        self.shared.show(self.worker, slices, segments);
    }

    fn mark_cpu(&mut self) {
        let now = ThreadUse::now();
        self.segments[self.segment].cpu.add(now.since(self.cpu_mark));
        self.cpu_mark = now;
    }

    fn close(&mut self, now: Ticks) {
        self.mark_cpu();
        self.closed = true;
        self.ended = now;
        if self.shared.asked().is_some() {
            self.show(self.slice + 1);
        }
        self.slice_end = Ticks::MAX;
    }

    /// What was written down.
    pub(crate) fn into_segments(mut self) -> Vec<Segment> {
        self.segments.iter_mut().for_each(Segment::shrink);
        self.segments
    }
}

// The requests of a worker that are in flight, and where their completions are counted.
//
// Invariant: a completion makes room first, then is judged, then counted; one that failed is never
// counted, nor is one that comes after the window. Apart from the API, which is borrowed while it
// delivers them.

/// A request in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flight {
    pub started: Ticks,
    /// Where its response latency begins.
    pub since: Ticks,
    pub offset: u64,
    pub file: u32,
    pub len: u32,
}

/// Requests in flight and the results of completed ones.
pub(crate) struct InFlight<C> {
    pub clock: C,
    pub recorder: Recorder,
    pub requests: Box<[Flight]>,
    pub free: Vec<u32>,
    pub failure: Failure,
    pub closed: bool,
    /// The completion that has just made room, if it was a single one.
    pub stamp: Option<Ticks>,
    pub shared: SharedStats,
    pub number: u32,
    pub written_bytes: u64,
    pub written_bytes_max: u64,
    /// Only where requests are noted in detail.
    pub submissions: Option<Box<Submissions>>,
    /// Only where rates must be reached.
    pub rate_watch: Option<Box<RateWatch>>,
}

impl<C: Clock> InFlight<C> {
    /// Those that are in flight now.
    pub(crate) fn now(&self) -> impl Iterator<Item = Flight> {
        let is_free = |tag: usize| self.free.contains(&(tag as u32));
        let all = self.requests.iter().enumerate();
        all.filter(move |(tag, _)| !is_free(*tag)).map(|(_, flight)| *flight)
    }

    /// Counts a completion; what only streams have that are not plain, where `VARIED`.
    #[inline(always)]
    pub(crate) fn complete<const VARIED: bool>(&mut self, done: Completion, now: Ticks) {
        if self.recorder.is_beyond(now) {
            self.cross(now);
        }
        // Field by field, and nothing of it by reference: a copy of the whole would wait for the
        // stores that have just written its parts.
        let Completion { tag, kind, result } = done;
        let kind = measured(kind);
        let Flight { started, since, len, .. } = self.requests[tag as usize];
        self.free.push(tag);
        if result != len as i32 {
            self.fail(tag, kind, result);
            return;
        }
        if !self.closed {
            let service_ns = self.clock.to_ns(now.saturating_sub(started));
            let response_ns = self.clock.to_ns(now.saturating_sub(since));
            self.recorder.record(kind, service_ns, response_ns);
            if VARIED
                && let Some(submissions) = &self.submissions
                && submissions.is_apart
            {
                let at = submissions.stamps[tag as usize];
                let submission_ns = self.clock.to_ns(at.saturating_sub(started)).min(service_ns);
                self.recorder.record_apart(kind, submission_ns, service_ns - submission_ns);
            }
            if VARIED {
                self.recorder.add_bytes(kind, len);
                if let Some(watch) = &mut self.rate_watch {
                    watch.done(kind, len);
                }
            }
        }
    }

    /// Moves on to the slice of `now`; also where the budget of bytes is checked.
    #[cold]
    pub(crate) fn cross(&mut self, now: Ticks) -> Edge {
        self.shared.post_written(self.number, self.written_bytes);
        if self.written_bytes >= self.written_bytes_max {
            self.shared.post_stop_soon(now);
        }
        let edge = self.recorder.cross(now);
        self.closed = edge == Edge::Closed;
        edge
    }

    #[cold]
    fn fail(&mut self, tag: u32, kind: OpKind, result: i32) {
        let Flight { offset, file, len, .. } = self.requests[tag as usize];
        self.failure.add(FailedRequest { kind, file, offset, asked_bytes: len, result });
    }
}
