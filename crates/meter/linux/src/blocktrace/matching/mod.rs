//! From events to the times of requests and calls. Pure.
//!
//! Purpose: follow every bio from the queue to completion, and every call from its begin over its
//! bios to its end. Invariant: every time is a difference of two events of the same request; a
//! request that was seen in part is counted as unmatched and adds no time.
//! It makes no distributions and passes no judgement: the tally does.

mod calls;
mod held;
mod requests;
#[cfg(test)]
mod tests;

use crate::blocktrace::event::{CallKind, EventKind, RequestKind, TraceEvent};
use calls::Calls;
use requests::Requests;

/// What the events cannot tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchOptions {
    /// Whether an I/O limit is in force, so that a request brought by a kernel worker was held
    /// back by it.
    pub is_limited: bool,
    /// Whether the calls are of known processes. Only then may a worker's bio be given to one:
    /// among everyone's calls some fit by chance.
    pub knows_callers: bool,
}

/// Everything that could be followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Reads and writes that went the whole way, in the order of their arrival.
    pub bios: Vec<BioTimes>,
    /// Calls that began and ended in the window and whose requests all did.
    pub calls: Vec<CallTimes>,
    /// Flushes of the device, from issued to complete, in nanoseconds.
    pub flushes_ns: Vec<u64>,
    /// Reads and writes seen in part.
    pub unmatched: u64,
    /// Bios that joined a neighbour's request.
    pub merged: u64,
    /// Requests handed back by the driver.
    pub requeued: u64,
    /// Followed requests that a kernel worker brought and no call was found for.
    pub unclaimed: u64,
}

/// The way of one bio, in nanoseconds of the trace's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioTimes {
    /// Read or write.
    pub kind: RequestKind,
    /// It arrived at the queue.
    pub queued_ns: u64,
    /// It got a request of its own; absent where it joined another.
    pub got_ns: Option<u64>,
    /// That request entered the scheduler; absent where it went past it.
    pub inserted_ns: Option<u64>,
    /// Its request went to the driver for the last time.
    pub issued_ns: u64,
    /// Its request was complete.
    pub completed_ns: u64,
    /// Index of the call in [`Matched::calls`] that asked for it.
    pub call: Option<usize>,
}

/// The way of one call, in nanoseconds of the trace's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimes {
    /// Read or write.
    pub kind: CallKind,
    /// The application called.
    pub began_ns: u64,
    /// Its first bio arrived at the queue.
    pub queued_ns: u64,
    /// Its last request was complete.
    pub completed_ns: u64,
    /// The call returned.
    pub ended_ns: u64,
    /// Device requests that it took.
    pub bios: u32,
    /// Whether an I/O limit held it back.
    pub held_back: bool,
}

/// Follows requests and calls through the events, in whatever order these come.
pub fn match_events(mut events: Vec<TraceEvent>, options: &MatchOptions) -> Matched {
    // Processors are read one after the other; the clock is common to all.
    events.sort_by_key(|event| event.ns);
    let (mut requests, mut calls) = (Requests::default(), Calls::default());
    for TraceEvent { ns, tid, kind } in events {
        match kind {
            EventKind::BioQueued { span, by_worker } => {
                let call = calls.claim(tid, &span, ns);
                requests.queued(ns, tid, span, by_worker, call);
            }
            EventKind::Split { device, sector, at } => requests.split(tid, device, sector, at),
            EventKind::Got(span) => requests.got(ns, tid, span),
            EventKind::BackMerged(span) => requests.back_merged(tid, span),
            EventKind::FrontMerged(span) => requests.front_merged(tid, span),
            EventKind::RequestMerged(span) => requests.request_merged(span),
            EventKind::Inserted(span) => requests.inserted(ns, span),
            EventKind::Issued(span) => requests.issued(ns, span),
            EventKind::Requeued(span) => requests.requeued(span),
            EventKind::Completed(span) => requests.completed(ns, span),
            EventKind::CallBegan { kind, bytes } => calls.began(ns, tid, kind, bytes),
            EventKind::CallEnded { kind } => calls.ended(ns, tid, kind),
            EventKind::RingSubmitted { request, kind } => calls.submitted(ns, tid, request, kind),
            EventKind::RingCompleted { request } => calls.posted(ns, request),
        }
    }
    conclude(requests, calls, options)
}

fn conclude(requests: Requests, mut calls: Calls, options: &MatchOptions) -> Matched {
    let mut outcome = requests.finish();
    for bio in &outcome.bios {
        if let Some(call) = bio.call {
            calls.completed(call, bio.completed_ns, bio.bytes);
        }
    }
    let unclaimed = if options.knows_callers {
        held::claim(&mut outcome.bios, &mut calls, options.is_limited)
    } else {
        0
    };
    let (calls, places) = calls.finish();
    let place = |call: usize| places.get(call).copied().flatten();
    let bios = outcome.bios.iter().map(|bio| BioTimes {
        kind: bio.kind,
        queued_ns: bio.queued_ns,
        got_ns: bio.got_ns,
        inserted_ns: bio.inserted_ns,
        issued_ns: bio.issued_ns,
        completed_ns: bio.completed_ns,
        call: bio.call.and_then(place),
    });
    Matched {
        bios: bios.collect(),
        calls,
        flushes_ns: outcome.flushes_ns,
        unmatched: outcome.unmatched,
        merged: outcome.merged,
        requeued: outcome.requeued,
        unclaimed,
    }
}
