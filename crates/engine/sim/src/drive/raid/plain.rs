//! An array without a protected cache: what the disks say is what the host hears.
//!
//! Invariant: a request is done when all its parts are, plus what the controller adds. A flush is
//! done when every disk has flushed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::layout::Layout;
use super::mirrors::Mirrors;
use super::parameters::RaidParameters;
use crate::drive::{Command, Done, Drive, DriveFacts, Request};

/// Mirrored pairs, striped, in virtual time. One pair is RAID 1.
#[derive(Debug)]
pub struct Raid {
    parameters: RaidParameters,
    capacity_bytes: u64,
    layout: Layout,
    mirrors: Mirrors,
    now_ns: u64,
    outside: VecDeque<Request>,
    held: u32,
    id_of: HashMap<u64, u64>,
    next_task: u64,
    leaving: BinaryHeap<Reverse<(u64, u64)>>,
    finished: VecDeque<Done>,
}

impl Raid {
    /// An array of `capacity_bytes`; each disk has its share of them, spread over its whole stroke.
    ///
    /// # Panics
    /// When the spindles are not pairs or the capacity is 0.
    pub fn new(parameters: RaidParameters, capacity_bytes: u64, seed: u64) -> Self {
        let spindles = parameters.spindles;
        assert!(spindles >= 2 && spindles.is_multiple_of(2), "{spindles} spindles are no pairs");
        let layout = Layout::new(spindles / 2, parameters.stripe_bytes);
        Self {
            mirrors: Mirrors::new(&parameters, layout.disk_bytes(capacity_bytes), seed),
            parameters,
            capacity_bytes,
            layout,
            now_ns: 0,
            outside: VecDeque::new(),
            held: 0,
            id_of: HashMap::new(),
            next_task: 0,
            leaving: BinaryHeap::new(),
            finished: VecDeque::new(),
        }
    }

    fn next_ns(&self) -> Option<u64> {
        let leaving = self.leaving.peek().map(|Reverse((at_ns, _))| *at_ns);
        leaving.into_iter().chain(self.mirrors.next_ns()).min()
    }

    fn run_until(&mut self, until_ns: u64) {
        assert!(until_ns >= self.now_ns, "time went back from {} to {until_ns}", self.now_ns);
        let mut ended = Vec::new();
        while let Some(at_ns) = self.next_ns().filter(|at_ns| *at_ns <= until_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            self.mirrors.advance(self.now_ns, &mut ended);
            let overhead_ns = u64::from(self.parameters.controller_overhead_us) * 1_000;
            for task in ended.drain(..) {
                if let Some(id) = self.id_of.remove(&task) {
                    self.leaving.push(Reverse((self.now_ns + overhead_ns, id)));
                }
            }
            while let Some(Reverse((leaves_ns, id))) = self.leaving.peek().copied()
                && leaves_ns <= self.now_ns
            {
                self.leaving.pop();
                self.held -= 1;
                self.finished.push_back(Done { id, at_ns: leaves_ns });
            }
            self.let_in();
        }
        self.now_ns = until_ns;
    }

    fn let_in(&mut self) {
        while self.held < self.parameters.queue_depth.max(1) {
            let Some(request) = self.outside.pop_front() else { return };
            self.held += 1;
            self.start(request);
        }
    }

    fn start(&mut self, request: Request) {
        let (now_ns, task) = (self.now_ns, self.next_task);
        self.next_task += 1;
        if request.command == Command::Flush {
            self.id_of.insert(task, request.id);
            return self.mirrors.flush(now_ns, task);
        }
        let parts = self.layout.parts(request.at_bytes, request.bytes);
        if parts.is_empty() {
            return self.leaving.push(Reverse((now_ns, request.id)));
        }
        self.id_of.insert(task, request.id);
        for part in parts {
            match request.command {
                Command::Read => self.mirrors.read(now_ns, task, part),
                command => self.mirrors.write(now_ns, task, command, part),
            }
        }
    }
}

impl Drive for Raid {
    fn facts(&self) -> DriveFacts {
        DriveFacts {
            capacity_bytes: self.capacity_bytes,
            queue_depth: self.parameters.queue_depth,
            volatile_bytes: self.mirrors.volatile_bytes(),
            is_rotational: true,
        }
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        let end = request.at_bytes + u64::from(request.bytes);
        let fits = end <= self.capacity_bytes;
        assert!(fits, "{request:?} reaches beyond {} bytes", self.capacity_bytes);
        self.run_until(now_ns);
        self.outside.push_back(request);
        self.let_in();
    }

    fn next_event_ns(&self) -> Option<u64> {
        if self.finished.is_empty() { self.next_ns() } else { Some(self.now_ns) }
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        self.run_until(now_ns);
        done.extend(self.finished.drain(..));
    }
}
