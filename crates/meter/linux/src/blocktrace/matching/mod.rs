//! From events to the times of requests and calls. Pure.
//!
//! Purpose: follow every bio from the queue to completion, and every call from its begin over its
//! bios to its end. Invariant: every time is a difference of two events of the same request; a
//! request that was seen in part is counted as unmatched and adds no time.
//! It makes no distributions and passes no judgement: the tally does.

mod calls;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use calls::Calls;
use requests::Requests;

use crate::blocktrace::event::{CallKind, EventKind, RequestKind, TraceEvent};
use crate::blocktrace::matching::requests::DoneBio;

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
        claim(&mut outcome.bios, &mut calls, options.is_limited)
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

// Bios that another task brought to the queue for a call that waits.
//
// An I/O limit takes a bio away from its caller and lets a kernel worker bring it later; so do
// encrypted devices. Such a bio names no call. It is given to the call without a bio of its own
// that it fits into: same direction, same length where the call says,
// begun before the bio arrived and ended after it was complete; of several the one that ended
// first, since a call returns soon after its bio. Limits let requests of one direction through in
// their order, so that a wrong choice exchanges two calls and leaves the mean as it is.
// Write-back is left alone: nobody waits for it, and the kernel marks it so.

/// Calls are looked at up to this many for one bio; more do not end nearly at the same time.
const TRIED_MAX: usize = 4096;

/// Calls without a bio, in the order of their ends.
type Bare = HashMap<(CallKind, Option<u64>), BTreeSet<(u64, usize)>>;

/// Gives bios that a kernel worker brought to calls without a bio. Returns how many of them went
/// without.
fn claim(bios: &mut [DoneBio], calls: &mut Calls, is_limited: bool) -> u64 {
    let mut bare: Bare = HashMap::new();
    for (number, call) in calls.all() {
        if let (true, Some(ended)) = (call.is_bare(), call.ended_ns) {
            bare.entry((call.kind, call.bytes)).or_default().insert((ended, number));
        }
    }
    let is_waited_for = |bio: &DoneBio| bio.is_sync || bio.kind == RequestKind::Read;
    let is_lonely = |bio: &DoneBio| bio.call.is_none() && bio.by_worker && is_waited_for(bio);
    let mut lonely: Vec<&mut DoneBio> = bios.iter_mut().filter(|bio| is_lonely(bio)).collect();
    lonely.sort_by_key(|bio| bio.completed_ns);
    let mut unclaimed = 0;
    for bio in lonely {
        match take_fitting(&mut bare, calls, bio) {
            Some(call) => {
                calls.give(call, bio.queued_ns, bio.completed_ns, bio.bytes, is_limited);
                bio.call = Some(call);
            }
            None => unclaimed += 1,
        }
    }
    unclaimed
}

fn take_fitting(bare: &mut Bare, calls: &Calls, bio: &DoneBio) -> Option<usize> {
    let kind = match bio.kind {
        RequestKind::Read => CallKind::Read,
        RequestKind::Write => CallKind::Write,
        _ => return None,
    };
    let fits = |number: usize| calls.get(number).is_some_and(|call| call.began_ns <= bio.queued_ns);
    let best = |bytes: Option<u64>| {
        let ends = bare.get(&(kind, bytes))?.range((bio.completed_ns, 0)..);
        ends.take(TRIED_MAX).find(|(_, number)| fits(*number)).copied()
    };
    let (known, unknown) = (best(Some(bio.bytes)), best(None));
    let (chosen, bytes) = match (known, unknown) {
        (Some(known), Some(unknown)) if unknown < known => (unknown, None),
        (Some(known), _) => (known, Some(bio.bytes)),
        (None, unknown) => (unknown?, None),
    };
    bare.get_mut(&(kind, bytes))?.remove(&chosen);
    Some(chosen.1)
}
