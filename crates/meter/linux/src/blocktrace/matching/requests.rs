//! Bios and requests on their way through the queue.
//!
//! Invariant: a bio is in exactly one place: waiting for a request, in one request, or done.
//! Requests are known by device and sector. Where two of the same sector are under way, the older
//! one goes first; that exchanges their times at worst, and leaves the mean as it is.

use std::collections::HashMap;

use crate::blocktrace::event::{RequestKind, Span};

/// A place on a device: index and sector.
type RequestPlace = (u8, u64);

/// A bio that went the whole way.
#[derive(Clone, Copy, Debug)]
pub(super) struct DoneBio {
    pub(super) kind: RequestKind,
    pub(super) bytes: u64,
    pub(super) queued_ns: u64,
    pub(super) got_ns: Option<u64>,
    pub(super) inserted_ns: Option<u64>,
    pub(super) issued_ns: u64,
    pub(super) completed_ns: u64,
    pub(super) call: Option<usize>,
    pub(super) by_worker: bool,
    pub(super) is_sync: bool,
}

/// What is left at the end of the window.
pub(super) struct MatchOutcome {
    pub(super) bios: Vec<DoneBio>,
    pub(super) flushes_ns: Vec<u64>,
    pub(super) unmatched: u64,
    pub(super) merged: u64,
    pub(super) requeued: u64,
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
pub(super) struct Requests {
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
    pub(super) fn queued(
        &mut self,
        ns: u64,
        tid: u32,
        span: Span,
        by_worker: bool,
        call: Option<usize>,
    ) {
        if is_followed(&span) {
            let bio = Bio { span, queued_ns: ns, tid, by_worker, call, got_ns: None };
            self.waiting.entry((span.device, span.sector)).or_default().push(bio);
        }
    }

    /// Both halves keep the time of arrival and the call.
    pub(super) fn split(&mut self, tid: u32, device: u8, sector: u64, at: u64) {
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

    pub(super) fn got(&mut self, ns: u64, tid: u32, span: Span) {
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

    pub(super) fn back_merged(&mut self, tid: u32, span: Span) {
        self.join(tid, span, |requests| {
            let at = (span.device, span.sector);
            requests.find(requests.ends.get(&at), |request| request.issued_ns.is_none())
        });
    }

    pub(super) fn front_merged(&mut self, tid: u32, span: Span) {
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

    /// `span` is the request that goes; the one that ends where it begins takes its bios.
    pub(super) fn request_merged(&mut self, span: Span) {
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

    pub(super) fn inserted(&mut self, ns: u64, span: Span) {
        let is_new =
            |request: &TracedRequest| request.issued_ns.is_none() && request.inserted_ns.is_none();
        if let Some(request) = self.at_start(&span, is_new) {
            request.inserted_ns = Some(ns);
        }
    }

    pub(super) fn issued(&mut self, ns: u64, span: Span) {
        if span.kind == RequestKind::Flush {
            self.flushing.entry(span.device).or_default().push(ns);
        } else if let Some(request) = self.at_start(&span, |request| request.issued_ns.is_none()) {
            request.issued_ns = Some(ns);
        }
    }

    pub(super) fn requeued(&mut self, span: Span) {
        if let Some(request) = self.at_start(&span, |request| request.issued_ns.is_some()) {
            request.issued_ns = None;
            self.requeued += 1;
        }
    }

    pub(super) fn completed(&mut self, ns: u64, span: Span) {
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
    pub(super) fn finish(mut self) -> MatchOutcome {
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

/// Writes after a flush wait for it in the queue, so that their times say nothing about writes.
fn is_counted(bio: &Bio) -> bool {
    matches!(bio.span.kind, RequestKind::Read | RequestKind::Write)
}
