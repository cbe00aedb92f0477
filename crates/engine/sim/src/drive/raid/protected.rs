//! An array behind a cache that a battery keeps through a power cut.
//!
//! Invariant: a write is done when it is in the cache, and that is beyond a power cut; so a flush
//! has nothing to wait for. The dirty bytes are bounded: when the cache is full, writes go at the
//! pace of the disks. Each pair writes its ranges in the order of addresses, several at a time, so
//! that its disks can choose.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::dirty::PairDirty;
use super::layout::{Layout, Part};
use super::mirrors::Mirrors;
use super::parameters::{ProtectedCacheParameters, RaidParameters};
use crate::drive::{Command, Done, Drive, DriveFacts, Request};

/// Most bytes that go to a disk in one command.
const JOB_BYTES_MAX: u64 = 512 << 10;
/// Ranges in flight for a pair while the cache is less than half full: reads wait behind few.
const IN_FLIGHT_CALM: usize = 4;
/// The same when it is fuller: the disks' own queues make the most of it.
const IN_FLIGHT_PRESSED: usize = 32;

#[derive(Clone, Copy, Debug)]
enum Task {
    Host { id: u64 },
    Destage { part: Part },
}

/// Mirrored pairs behind a protected cache, in virtual time.
#[derive(Debug)]
pub struct ProtectedRaid {
    parameters: RaidParameters,
    cache: ProtectedCacheParameters,
    capacity_bytes: u64,
    layout: Layout,
    mirrors: Mirrors,
    now_ns: u64,
    outside: VecDeque<Request>,
    held: u32,
    controller_free_ns: u64,
    dirty: Vec<PairDirty>,
    dirty_bytes: u64,
    writes_without_room: VecDeque<Request>,
    tasks: HashMap<u64, Task>,
    next_task: u64,
    leaving: BinaryHeap<Reverse<(u64, u64)>>,
    finished: VecDeque<Done>,
}

impl ProtectedRaid {
    /// An array of `capacity_bytes`; each disk has its share of them, spread over its whole stroke.
    /// The disks' own write caches are off, whatever the parameters say: what left the battery's
    /// care must be on the medium.
    ///
    /// # Panics
    /// When the spindles are not pairs or the capacity is 0.
    pub fn new(
        parameters: RaidParameters,
        cache: ProtectedCacheParameters,
        capacity_bytes: u64,
        seed: u64,
    ) -> Self {
        let spindles = parameters.spindles;
        assert!(spindles >= 2 && spindles.is_multiple_of(2), "{spindles} spindles are no pairs");
        let mut parameters = parameters;
        parameters.disk.write_cache = false;
        let layout = Layout::new(spindles / 2, parameters.stripe_bytes);
        Self {
            mirrors: Mirrors::new(&parameters, layout.disk_bytes(capacity_bytes), seed),
            parameters,
            cache,
            capacity_bytes,
            layout,
            now_ns: 0,
            outside: VecDeque::new(),
            held: 0,
            controller_free_ns: 0,
            dirty: (0..spindles / 2).map(|_| PairDirty::default()).collect(),
            dirty_bytes: 0,
            writes_without_room: VecDeque::new(),
            tasks: HashMap::new(),
            next_task: 0,
            leaving: BinaryHeap::new(),
            finished: VecDeque::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn check_bounds(&self) {
        let held: u64 = self.dirty.iter().map(PairDirty::bytes).sum();
        assert_eq!(held, self.dirty_bytes);
        let alone = self.cache.cache_bytes.max(4 << 20);
        assert!(self.dirty_bytes <= alone, "{} dirty bytes", self.dirty_bytes);
    }

    #[cfg(test)]
    pub(crate) fn check_clean(&self) {
        assert_eq!((self.dirty_bytes, self.held, self.tasks.len()), (0, 0, 0));
    }

    fn task(&mut self, task: Task) -> u64 {
        let key = self.next_task;
        self.next_task += 1;
        self.tasks.insert(key, task);
        key
    }

    /// Done by the controller alone, after its processor and the transfer.
    fn leave_from_cache(&mut self, id: u64, bytes: u64, at_least_us: u32) {
        let transfer_ns = bytes * 1_000_000_000 / self.cache.bytes_per_s.max(1);
        let begins_ns = self.now_ns.max(self.controller_free_ns);
        let command_ns = u64::from(self.cache.command_us) * 1_000;
        self.controller_free_ns = begins_ns + command_ns.max(transfer_ns);
        let latency_us = self.cache.latency_us.max(at_least_us);
        let at_ns = begins_ns + u64::from(latency_us) * 1_000 + transfer_ns;
        self.leaving.push(Reverse((at_ns, id)));
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
            for key in ended.drain(..) {
                self.end(key);
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

    fn end(&mut self, key: u64) {
        match self.tasks.remove(&key) {
            Some(Task::Host { id }) => {
                let overhead_ns = u64::from(self.parameters.controller_overhead_us) * 1_000;
                self.leaving.push(Reverse((self.now_ns + overhead_ns, id)));
            }
            Some(Task::Destage { part }) => {
                let bytes = u64::from(part.bytes);
                self.dirty[part.pair].finish(part.at_bytes, part.at_bytes + bytes);
                self.dirty_bytes -= bytes;
                self.take_writes();
                self.destage(part.pair);
            }
            None => {}
        }
    }

    fn let_in(&mut self) {
        while self.held < self.parameters.queue_depth.max(1) {
            let Some(request) = self.outside.pop_front() else { return };
            self.held += 1;
            match request.command {
                Command::Flush => self.leave_from_cache(request.id, 0, self.cache.flush_us_min),
                Command::Read => self.read(request),
                Command::Write | Command::WriteThrough => {
                    self.writes_without_room.push_back(request);
                    self.take_writes();
                }
            }
        }
    }

    fn read(&mut self, request: Request) {
        let parts = self.layout.parts(request.at_bytes, request.bytes);
        let on_disk: Vec<Part> = parts
            .into_iter()
            .filter(|it| {
                !self.dirty[it.pair].covers(it.at_bytes, it.at_bytes + u64::from(it.bytes))
            })
            .collect();
        if on_disk.is_empty() {
            return self.leave_from_cache(request.id, u64::from(request.bytes), 0);
        }
        let key = self.task(Task::Host { id: request.id });
        for part in on_disk {
            self.mirrors.read(self.now_ns, key, part);
        }
    }

    fn take_writes(&mut self) {
        while let Some(request) = self.writes_without_room.front().copied() {
            let bytes = u64::from(request.bytes);
            // A write larger than the whole cache is let in when the cache is empty.
            if self.dirty_bytes > 0 && self.dirty_bytes + bytes > self.cache.cache_bytes {
                return;
            }
            self.writes_without_room.pop_front();
            for part in self.layout.parts(request.at_bytes, request.bytes) {
                let added = self.dirty[part.pair].take(part.at_bytes, u64::from(part.bytes));
                self.dirty_bytes += added;
                self.destage(part.pair);
            }
            self.leave_from_cache(request.id, bytes, 0);
        }
    }

    fn destage(&mut self, pair: usize) {
        let is_calm = self.dirty_bytes * 2 < self.cache.cache_bytes;
        let most = if is_calm { IN_FLIGHT_CALM } else { IN_FLIGHT_PRESSED };
        while self.dirty[pair].in_flight() < most {
            let Some((start, end)) = self.dirty[pair].begin(JOB_BYTES_MAX) else { return };
            let part = Part { pair, at_bytes: start, bytes: (end - start) as u32 };
            let key = self.task(Task::Destage { part });
            self.mirrors.write(self.now_ns, key, Command::Write, part);
        }
    }
}

impl Drive for ProtectedRaid {
    fn facts(&self) -> DriveFacts {
        DriveFacts {
            capacity_bytes: self.capacity_bytes,
            queue_depth: self.parameters.queue_depth,
            volatile_bytes: 0,
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
