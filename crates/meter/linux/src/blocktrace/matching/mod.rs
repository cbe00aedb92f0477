//! From events to the times of requests and calls. Pure.
//!
//! Purpose: follow every bio from the queue to completion, and every call from its begin over its
//! bios to its end. Invariants: every time is a difference of two events of the same request; a
//! request that was seen in part is counted as unmatched and adds no time. A bio is in exactly one
//! place: waiting for a request, in one request, or done. A thread has at most one system call
//! under way; a bio belongs to the call that its thread is in, or to the io_uring request that its
//! thread submitted last.
//!
//! Requests are known by device and sector. Where two of the same sector are under way, the older
//! one goes first; that exchanges their times at worst, and leaves the mean as it is. It makes no
//! distributions and passes no judgement: the tally does.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use super::event::{CallKind, EventKind, RequestKind, Span, TraceEvent};

/// What the events do not show.
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
pub struct MatchedRequests {
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
    /// Index of the call in [`MatchedRequests::calls`] that issued it.
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
pub fn match_events(mut events: Vec<TraceEvent>, options: &MatchOptions) -> MatchedRequests {
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

fn conclude(requests: Requests, mut calls: Calls, options: &MatchOptions) -> MatchedRequests {
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
    MatchedRequests {
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
// that it fits into: same direction, same length where the call has one, begun before the bio
// arrived and ended after it was complete; of several the one that ended first, since a call
// returns soon after its bio. Limits let requests of one direction through in their order, so that
// a wrong choice exchanges two calls and leaves the mean as it is. Write-back is left alone: no
// call waits for it, and the kernel marks it so.

/// At most this many calls are tried for one bio; more do not end nearly at the same time.
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

/// A place on a device: index and sector.
type RequestPlace = (u8, u64);

/// A bio that went the whole way.
#[derive(Clone, Copy, Debug)]
struct DoneBio {
    kind: RequestKind,
    bytes: u64,
    queued_ns: u64,
    got_ns: Option<u64>,
    inserted_ns: Option<u64>,
    issued_ns: u64,
    completed_ns: u64,
    call: Option<usize>,
    by_worker: bool,
    is_sync: bool,
}

/// What is left at the end of the window.
struct MatchOutcome {
    bios: Vec<DoneBio>,
    flushes_ns: Vec<u64>,
    unmatched: u64,
    merged: u64,
    requeued: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bio {
    span: Span,
    queued_ns: u64,
    tid: u32,
    by_worker: bool,
    call: Option<usize>,
    /// When it got a request; absent for one that joined another's.
    got_ns: Option<u64>,
}

#[derive(Clone, Debug)]
struct TracedRequest {
    device: u8,
    sector: u64,
    end: u64,
    inserted_ns: Option<u64>,
    issued_ns: Option<u64>,
    bios: Vec<Bio>,
}

/// Everything under way.
#[derive(Default)]
struct Requests {
    /// Bios without a request, by where they begin.
    waiting: HashMap<RequestPlace, Vec<Bio>>,
    /// Requests by number, and their numbers by where they begin and where they end.
    live: HashMap<u64, TracedRequest>,
    starts: HashMap<RequestPlace, Vec<u64>>,
    ends: HashMap<RequestPlace, Vec<u64>>,
    made: u64,
    /// When the flushes under way were issued, by device.
    flushing: HashMap<u8, Vec<u64>>,
    done: Vec<DoneBio>,
    flushes_ns: Vec<u64>,
    unmatched: u64,
    merged: u64,
    requeued: u64,
}

/// Whether a span is a piece of data that is followed.
fn is_followed(span: &Span) -> bool {
    let is_data = !matches!(span.kind, RequestKind::Flush | RequestKind::Other);
    is_data && span.sectors > 0
}

impl Requests {
    fn queued(&mut self, ns: u64, tid: u32, span: Span, by_worker: bool, call: Option<usize>) {
        if is_followed(&span) {
            let bio = Bio { span, queued_ns: ns, tid, by_worker, call, got_ns: None };
            self.waiting.entry((span.device, span.sector)).or_default().push(bio);
        }
    }

    /// Both halves keep the time of arrival and the call.
    fn split(&mut self, tid: u32, device: u8, sector: u64, at: u64) {
        let Some(mut first) = self.take_waiting((device, sector), tid) else { return };
        let end = first.span.end();
        if sector < at && at < end {
            let mut second = first;
            // Both are parts of a length that fits.
            first.span.sectors = (at - sector) as u32;
            second.span.sectors = (end - at) as u32;
            second.span.sector = at;
            self.waiting.entry((device, at)).or_default().push(second);
        }
        self.waiting.entry((device, sector)).or_default().push(first);
    }

    fn got(&mut self, ns: u64, tid: u32, span: Span) {
        if !is_followed(&span) {
            return;
        }
        let Some(mut bio) = self.take_waiting((span.device, span.sector), tid) else { return };
        bio.got_ns = Some(ns);
        let number = self.made;
        self.made += 1;
        let request = TracedRequest {
            device: span.device,
            sector: span.sector,
            end: span.end(),
            inserted_ns: None,
            issued_ns: None,
            bios: vec![bio],
        };
        self.enter(number, request);
    }

    fn back_merged(&mut self, tid: u32, span: Span) {
        self.join(tid, span, |requests| {
            let at = (span.device, span.sector);
            requests.find(requests.ends.get(&at), |request| request.issued_ns.is_none())
        });
    }

    fn front_merged(&mut self, tid: u32, span: Span) {
        self.join(tid, span, |requests| {
            let at = (span.device, span.end());
            requests.find(requests.starts.get(&at), |request| request.issued_ns.is_none())
        });
    }

    fn join(&mut self, tid: u32, span: Span, host: impl Fn(&Self) -> Option<u64>) {
        if !is_followed(&span) {
            return;
        }
        let Some(bio) = self.take_waiting((span.device, span.sector), tid) else { return };
        let Some((number, mut request)) = host(self).and_then(|number| self.leave(number)) else {
            // The host arrived before the window.
            self.unmatched += u64::from(is_counted(&bio));
            return;
        };
        self.merged += u64::from(is_counted(&bio));
        request.sector = request.sector.min(span.sector);
        request.end = request.end.max(span.end());
        request.bios.push(bio);
        self.enter(number, request);
    }

    /// `span` is the request that disappears; the request that ends where it begins takes its bios.
    fn request_merged(&mut self, span: Span) {
        let at = (span.device, span.sector);
        let is_idle = |request: &TracedRequest| request.issued_ns.is_none();
        let gone = self.find(self.starts.get(&at), is_idle);
        let host = self.find(self.ends.get(&at), is_idle);
        let (Some(gone), Some(host)) = (gone, host) else { return };
        let (Some((_, gone)), Some((number, mut host))) = (self.leave(gone), self.leave(host))
        else {
            return;
        };
        host.end = host.end.max(gone.end);
        host.bios.extend(gone.bios);
        self.enter(number, host);
    }

    fn inserted(&mut self, ns: u64, span: Span) {
        let is_new =
            |request: &TracedRequest| request.issued_ns.is_none() && request.inserted_ns.is_none();
        if let Some(request) = self.at_start(&span, is_new) {
            request.inserted_ns = Some(ns);
        }
    }

    fn issued(&mut self, ns: u64, span: Span) {
        if span.kind == RequestKind::Flush {
            self.flushing.entry(span.device).or_default().push(ns);
        } else if let Some(request) = self.at_start(&span, |request| request.issued_ns.is_none()) {
            request.issued_ns = Some(ns);
        }
    }

    fn requeued(&mut self, span: Span) {
        if let Some(request) = self.at_start(&span, |request| request.issued_ns.is_some()) {
            request.issued_ns = None;
            self.requeued += 1;
        }
    }

    fn completed(&mut self, ns: u64, span: Span) {
        if span.kind == RequestKind::Flush {
            let issued = self.flushing.get_mut(&span.device).filter(|issued| !issued.is_empty());
            self.flushes_ns.extend(issued.map(|issued| ns - issued.remove(0)));
            return;
        }
        if !is_followed(&span) {
            return;
        }
        let at = (span.device, span.sector);
        let found = self.find(self.starts.get(&at), |request| request.issued_ns.is_some());
        let Some((number, mut request)) = found.and_then(|number| self.leave(number)) else {
            self.unmatched += u64::from(span.kind != RequestKind::FlushWrite);
            return;
        };
        if span.end() < request.end {
            // The driver did a part; the rest goes on under the sector where it begins.
            request.sector = span.end();
            self.enter(number, request);
            return;
        }
        self.finish_request(ns, &request);
    }

    fn finish_request(&mut self, ns: u64, request: &TracedRequest) {
        let Some(issued_ns) = request.issued_ns else { return };
        let done = request.bios.iter().filter(|bio| is_counted(bio)).map(|bio| DoneBio {
            kind: bio.span.kind,
            bytes: u64::from(bio.span.sectors) * 512,
            queued_ns: bio.queued_ns,
            got_ns: bio.got_ns,
            inserted_ns: request.inserted_ns.filter(|_| bio.got_ns.is_some()),
            issued_ns,
            completed_ns: ns,
            call: bio.call,
            by_worker: bio.by_worker,
            is_sync: bio.span.is_sync,
        });
        self.done.extend(done);
    }

    /// What was followed to the end, in the order of arrival. What is still under way is unmatched.
    fn finish(mut self) -> MatchOutcome {
        let waiting = self.waiting.values().flatten();
        let left = waiting.chain(self.live.values().flat_map(|request| &request.bios));
        self.unmatched += left.filter(|bio| is_counted(bio)).count() as u64;
        self.done.sort_by_key(|bio| bio.queued_ns);
        MatchOutcome {
            bios: self.done,
            flushes_ns: self.flushes_ns,
            unmatched: self.unmatched,
            merged: self.merged,
            requeued: self.requeued,
        }
    }

    /// A waiting bio, that of the same thread if there are several: a thread goes on with its own.
    fn take_waiting(&mut self, at: RequestPlace, tid: u32) -> Option<Bio> {
        let bios = self.waiting.get_mut(&at)?;
        let own = bios.iter().position(|bio| bio.tid == tid).unwrap_or(0);
        let bio = (own < bios.len()).then(|| bios.remove(own));
        if bios.is_empty() {
            self.waiting.remove(&at);
        }
        bio
    }

    fn find(
        &self,
        numbers: Option<&Vec<u64>>,
        fits: impl Fn(&TracedRequest) -> bool,
    ) -> Option<u64> {
        let is_it = |number: &&u64| self.live.get(number).is_some_and(&fits);
        numbers?.iter().find(is_it).copied()
    }

    fn at_start(
        &mut self,
        span: &Span,
        fits: impl Fn(&TracedRequest) -> bool,
    ) -> Option<&mut TracedRequest> {
        if !is_followed(span) {
            return None;
        }
        let number = self.find(self.starts.get(&(span.device, span.sector)), fits)?;
        self.live.get_mut(&number)
    }

    fn enter(&mut self, number: u64, request: TracedRequest) {
        self.starts.entry((request.device, request.sector)).or_default().push(number);
        self.ends.entry((request.device, request.end)).or_default().push(number);
        self.live.insert(number, request);
    }

    fn leave(&mut self, number: u64) -> Option<(u64, TracedRequest)> {
        let request = self.live.remove(&number)?;
        forget(&mut self.starts, (request.device, request.sector), number);
        forget(&mut self.ends, (request.device, request.end), number);
        Some((number, request))
    }
}

fn forget(places: &mut HashMap<RequestPlace, Vec<u64>>, at: RequestPlace, number: u64) {
    if let Some(numbers) = places.get_mut(&at) {
        numbers.retain(|&other| other != number);
        if numbers.is_empty() {
            places.remove(&at);
        }
    }
}

/// Writes after a flush wait for it in the queue, so that their times do not count as times of
/// writes.
fn is_counted(bio: &Bio) -> bool {
    matches!(bio.span.kind, RequestKind::Read | RequestKind::Write)
}

#[derive(Clone, Copy, Debug)]
struct Call {
    kind: CallKind,
    began_ns: u64,
    ended_ns: Option<u64>,
    /// The requested length, where the call has one.
    bytes: Option<u64>,
    queued_ns: Option<u64>,
    completed_ns: u64,
    /// Bytes and bios at the queue, and those of them that are complete.
    queued_bytes: u64,
    done_bytes: u64,
    bios: u32,
    held_back: bool,
}

impl Call {
    /// Whether it brought no bio itself.
    fn is_bare(&self) -> bool {
        self.bios == 0
    }

    fn times(&self) -> Option<CallTimes> {
        let is_whole = self.done_bytes == self.queued_bytes
            && self.bytes.is_none_or(|bytes| bytes == self.queued_bytes);
        let (queued_ns, ended_ns) = (self.queued_ns?, self.ended_ns?);
        // An io_uring entry may be posted for an error before the device is done.
        let is_ordered = self.completed_ns <= ended_ns;
        (is_whole && is_ordered).then_some(CallTimes {
            kind: self.kind,
            began_ns: self.began_ns,
            queued_ns,
            completed_ns: self.completed_ns,
            ended_ns,
            bios: self.bios,
            held_back: self.held_back,
        })
    }

    fn queue(&mut self, ns: u64, bytes: u64) {
        self.queued_ns.get_or_insert(ns);
        self.queued_bytes += bytes;
        self.bios += 1;
    }

    fn complete(&mut self, ns: u64, bytes: u64) {
        self.done_bytes += bytes;
        self.completed_ns = self.completed_ns.max(ns);
    }
}

/// Every call of the window.
#[derive(Default)]
struct Calls {
    all: Vec<Call>,
    /// The system call that each thread is in.
    by_thread: HashMap<u32, usize>,
    /// The io_uring request that each thread submitted last.
    last_submitted: HashMap<u32, usize>,
    by_request: HashMap<u64, usize>,
}

impl Calls {
    fn open(&mut self, ns: u64, kind: CallKind, bytes: Option<u64>) -> usize {
        self.all.push(Call {
            kind,
            began_ns: ns,
            ended_ns: None,
            bytes,
            queued_ns: None,
            completed_ns: 0,
            queued_bytes: 0,
            done_bytes: 0,
            bios: 0,
            held_back: false,
        });
        self.all.len() - 1
    }

    fn began(&mut self, ns: u64, tid: u32, kind: CallKind, bytes: Option<u64>) {
        let call = self.open(ns, kind, bytes);
        self.by_thread.insert(tid, call);
    }

    fn ended(&mut self, ns: u64, tid: u32, kind: CallKind) {
        let call = self.by_thread.remove(&tid);
        if let Some(call) = call.and_then(|call| self.all.get_mut(call)) {
            call.ended_ns = (call.kind == kind).then_some(ns);
        }
    }

    fn submitted(&mut self, ns: u64, tid: u32, request: u64, kind: CallKind) {
        let call = self.open(ns, kind, None);
        self.last_submitted.insert(tid, call);
        self.by_request.insert(request, call);
    }

    fn posted(&mut self, ns: u64, request: u64) {
        let call = self.by_request.remove(&request);
        if let Some(call) = call.and_then(|call| self.all.get_mut(call)) {
            call.ended_ns = Some(ns);
        }
    }

    /// The call that this thread works for, if it requested such a bio.
    fn claim(&mut self, tid: u32, span: &Span, ns: u64) -> Option<usize> {
        let number = *self.by_thread.get(&tid).or_else(|| self.last_submitted.get(&tid))?;
        let call = self.all.get_mut(number)?;
        if !call.kind.asks_for(span.kind) || call.ended_ns.is_some() || span.sectors == 0 {
            return None;
        }
        call.queue(ns, u64::from(span.sectors) * 512);
        Some(number)
    }

    /// A bio of this call is done.
    fn completed(&mut self, call: usize, ns: u64, bytes: u64) {
        if let Some(call) = self.all.get_mut(call) {
            call.complete(ns, bytes);
        }
    }

    /// Gives a call without a bio one that went the whole way.
    fn give(&mut self, call: usize, queued: u64, done: u64, bytes: u64, held: bool) {
        if let Some(call) = self.all.get_mut(call) {
            call.queue(queued, bytes);
            call.complete(done, bytes);
            call.held_back = held;
        }
    }

    fn get(&self, call: usize) -> Option<&Call> {
        self.all.get(call)
    }

    fn all(&self) -> impl Iterator<Item = (usize, &Call)> {
        self.all.iter().enumerate()
    }

    /// The calls that were seen whole, and for every call its place among them.
    fn finish(self) -> (Vec<CallTimes>, Vec<Option<usize>>) {
        let mut whole = Vec::new();
        let places = self.all.iter().map(|call| {
            let times = call.times()?;
            whole.push(times);
            Some(whole.len() - 1)
        });
        let places = places.collect();
        (whole, places)
    }
}
