//! The requests of a worker that are in flight, and where their completions are counted.
//!
//! Invariant: a completion makes room first, then is judged, then counted; one that failed is never
//! counted, nor is one that comes after the window. Apart from the API, which is borrowed while it
//! delivers them.

use iostrata_io::Done;
use iostrata_plan::OpKind;

use crate::clock::{Clock, Ticks};
use crate::detail::Submissions;
use crate::failure::{FailedRequest, Failure};
use crate::generator::measured;
use crate::recorder::{Edge, Recorder};
use crate::shared_stats::SharedStats;

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

/// Requests in flight and what became of those that are not any more.
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
    pub(crate) fn complete<const VARIED: bool>(&mut self, done: Done, now: Ticks) {
        if self.recorder.is_beyond(now) {
            self.cross(now);
        }
        // Field by field, and nothing of it by reference: a copy of the whole would wait for the
        // stores that have just written its parts.
        let Done { tag, kind, result } = done;
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
            }
        }
    }

    /// Moves on to the slice of `now`; also where the budget of bytes is looked at.
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
