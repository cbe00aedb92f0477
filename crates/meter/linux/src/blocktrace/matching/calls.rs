//! Calls of the application and the bios that each of them brought.
//!
//! Invariant: a thread has at most one system call under way. A bio belongs to the call that its
//! thread is in, or to the io_uring request that its thread submitted last.

use std::collections::HashMap;

use super::CallTimes;
use crate::blocktrace::event::{CallKind, Span};

#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) kind: CallKind,
    pub(super) began_ns: u64,
    pub(super) ended_ns: Option<u64>,
    /// What was asked for, where the call says.
    pub(super) bytes: Option<u64>,
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
    pub(super) fn is_bare(&self) -> bool {
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
pub(super) struct Calls {
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

    pub(super) fn began(&mut self, ns: u64, tid: u32, kind: CallKind, bytes: Option<u64>) {
        let call = self.open(ns, kind, bytes);
        self.by_thread.insert(tid, call);
    }

    pub(super) fn ended(&mut self, ns: u64, tid: u32, kind: CallKind) {
        let call = self.by_thread.remove(&tid);
        if let Some(call) = call.and_then(|call| self.all.get_mut(call)) {
            call.ended_ns = (call.kind == kind).then_some(ns);
        }
    }

    pub(super) fn submitted(&mut self, ns: u64, tid: u32, request: u64, kind: CallKind) {
        let call = self.open(ns, kind, None);
        self.last_submitted.insert(tid, call);
        self.by_request.insert(request, call);
    }

    pub(super) fn posted(&mut self, ns: u64, request: u64) {
        let call = self.by_request.remove(&request);
        if let Some(call) = call.and_then(|call| self.all.get_mut(call)) {
            call.ended_ns = Some(ns);
        }
    }

    /// The call that this thread works for, if that asked for such a bio.
    pub(super) fn claim(&mut self, tid: u32, span: &Span, ns: u64) -> Option<usize> {
        let number = *self.by_thread.get(&tid).or_else(|| self.last_submitted.get(&tid))?;
        let call = self.all.get_mut(number)?;
        if !call.kind.asks_for(span.kind) || call.ended_ns.is_some() || span.sectors == 0 {
            return None;
        }
        call.queue(ns, u64::from(span.sectors) * 512);
        Some(number)
    }

    /// A bio of this call is done.
    pub(super) fn completed(&mut self, call: usize, ns: u64, bytes: u64) {
        if let Some(call) = self.all.get_mut(call) {
            call.complete(ns, bytes);
        }
    }

    /// Gives a call without a bio one that went the whole way.
    pub(super) fn give(&mut self, call: usize, queued: u64, done: u64, bytes: u64, held: bool) {
        if let Some(call) = self.all.get_mut(call) {
            call.queue(queued, bytes);
            call.complete(done, bytes);
            call.held_back = held;
        }
    }

    pub(super) fn get(&self, call: usize) -> Option<&Call> {
        self.all.get(call)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &Call)> {
        self.all.iter().enumerate()
    }

    /// The calls that were seen whole, and for every call its place among them.
    pub(super) fn finish(self) -> (Vec<CallTimes>, Vec<Option<usize>>) {
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
