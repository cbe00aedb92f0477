//! What every modelled drive does alike: a queue before it, a clock, and answers in order.
//!
//! Invariant: the device holds at most its queue depth of requests; further ones wait in the order
//! in which they came, and one is let in for each that is done.

use std::collections::VecDeque;

use super::{Done, Drive, DriveFacts, Request};

/// A device behind its queue: what it does with the requests that it holds.
pub trait Device: Send {
    /// What holds for it.
    fn facts(&self) -> DriveFacts;

    /// What it wants to know, when a request is let in, of the moment at which that came.
    fn mark(&self, now_ns: u64) -> u64 {
        now_ns
    }

    /// Takes a request that came at `mark`; there is a place for it in the queue.
    fn admit(&mut self, now_ns: u64, request: Request, mark: u64);

    /// The next moment at which something happens by itself.
    fn next_event_ns(&self) -> Option<u64>;

    /// A moment before which none of the requests that it holds is done; it holds some.
    fn next_done_ns(&self) -> Option<u64> {
        self.next_event_ns()
    }

    /// Lets happen what is to happen at `now_ns`; appends the requests that are done.
    fn step(&mut self, now_ns: u64, done: &mut VecDeque<Done>);
}

/// A device with its queue: a drive.
#[derive(Debug)]
pub struct Queued<D> {
    device: D,
    facts: DriveFacts,
    now_ns: u64,
    /// Requests that are not let in yet, with their marks.
    waiting: VecDeque<(Request, u64)>,
    in_flight: u32,
    done: VecDeque<Done>,
}

impl<D: Device> Queued<D> {
    /// An idle drive at the moment 0.
    ///
    /// # Panics
    /// Without a queue or a capacity: not a drive.
    pub(super) fn over(device: D) -> Self {
        let facts = device.facts();
        assert!(facts.queue_depth > 0, "a drive without a queue");
        assert!(facts.capacity_bytes > 0, "a drive without a capacity");
        let (waiting, done) = (VecDeque::new(), VecDeque::new());
        Self { device, facts, now_ns: 0, waiting, in_flight: 0, done }
    }

    /// The device itself.
    pub(crate) fn device(&self) -> &D {
        &self.device
    }

    /// The drive over a device that was changed before anything came.
    pub(super) fn altered(self, change: impl FnOnce(D) -> D) -> Self {
        Self::over(change(self.device))
    }

    /// Requests that it holds or that wait.
    pub(crate) fn requests(&self) -> usize {
        self.in_flight as usize + self.waiting.len()
    }

    fn let_in(&mut self) {
        while self.in_flight < self.facts.queue_depth
            && let Some((request, mark)) = self.waiting.pop_front()
        {
            self.in_flight += 1;
            self.device.admit(self.now_ns, request, mark);
        }
    }

    fn run_until(&mut self, until_ns: u64) {
        assert!(until_ns >= self.now_ns, "time went back from {} to {until_ns}", self.now_ns);
        while let Some(at_ns) = self.device.next_event_ns().filter(|at_ns| *at_ns <= until_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            let before = self.done.len();
            self.device.step(self.now_ns, &mut self.done);
            self.in_flight -= (self.done.len() - before) as u32;
            self.let_in();
        }
        self.now_ns = until_ns;
    }
}

impl<D: Device> Drive for Queued<D> {
    fn facts(&self) -> DriveFacts {
        self.facts
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        let fits = request.end() <= self.facts.capacity_bytes;
        assert!(fits, "{request:?} reaches beyond {} bytes", self.facts.capacity_bytes);
        self.run_until(now_ns);
        self.waiting.push_back((request, self.device.mark(now_ns)));
        self.let_in();
    }

    fn next_event_ns(&self) -> Option<u64> {
        let done_ns = self.done.front().map(|done| done.at_ns);
        done_ns.or_else(|| self.device.next_event_ns())
    }

    fn next_done_ns(&self) -> Option<u64> {
        let done_ns = self.done.front().map(|done| done.at_ns);
        done_ns.or_else(|| self.device.next_done_ns().filter(|_| self.in_flight > 0))
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        self.run_until(now_ns);
        done.extend(self.done.drain(..));
    }
}
