//! The disk itself: commands come in, the controller looks at them, the arm serves them.
//!
//! Invariant: events happen in the order of their moments; a command holds a place in the queue
//! from when it is let in until it is done. The controller looks at one command at a time, in
//! order, while the arm works. What the arm serves next is chosen when it is free.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::choice::{Arm, Candidate, Candidates};
use super::destage::{JOB_BYTES_MAX, next_range};
use super::geometry::Geometry;
use super::parameters::HddParameters;
use super::read_ahead::ReadAhead;
use super::read_cache::ReadCache;
use super::write_cache::WriteCache;
use crate::drive::{Command, Done, Drive, DriveFacts, Request};
use crate::random::Random;

/// A command, and for a flush what it waits for.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    request: Request,
    mark: u64,
}

/// What the arm is doing.
#[derive(Clone, Copy, Debug)]
enum Work {
    Serve(Candidate),
    Destage,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    ends_ns: u64,
    /// Byte after the last.
    end: u64,
    work: Work,
}

#[derive(Clone, Copy, Debug)]
struct Flush {
    id: u64,
    mark: u64,
    at_ns_min: u64,
}

/// A rotating disk in virtual time.
#[derive(Debug)]
pub struct Hdd {
    parameters: HddParameters,
    capacity_bytes: u64,
    geometry: Geometry,
    now_ns: u64,
    outside: VecDeque<Arrived>,
    held: u32,
    looked_at: VecDeque<(u64, Arrived)>,
    candidates: Candidates,
    writes_without_room: VecDeque<Request>,
    flushes: VecDeque<Flush>,
    write_cache: WriteCache,
    read_cache: ReadCache,
    read_ahead: Option<ReadAhead>,
    job: Option<Job>,
    head: f64,
    was_destage: bool,
    leaving: BinaryHeap<Reverse<(u64, u64)>>,
    finished: VecDeque<Done>,
}

impl Hdd {
    /// A disk of `capacity_bytes`, spread over the whole stroke; `seed` gives the angle at which it
    /// stands at time 0.
    ///
    /// # Panics
    /// When the capacity is 0.
    pub fn new(parameters: HddParameters, capacity_bytes: u64, seed: u64) -> Self {
        assert!(capacity_bytes > 0, "a disk has bytes");
        let access_ns = parameters.random_write_ns(0);
        let age_ns_max = 2.0 * f64::from(parameters.queue_depth.max(16)) * access_ns;
        // Half of the buffer reads, all of it writes: firmware lends the segments to and fro.
        let read_bytes = parameters.cache_bytes / 2;
        Self {
            geometry: Geometry::new(&parameters, capacity_bytes, Random::new(seed).uniform()),
            parameters,
            capacity_bytes,
            now_ns: 0,
            outside: VecDeque::new(),
            held: 0,
            looked_at: VecDeque::new(),
            candidates: Candidates::new(age_ns_max as u64),
            writes_without_room: VecDeque::new(),
            flushes: VecDeque::new(),
            write_cache: WriteCache::new(parameters.cache_bytes, parameters.write_cache_entries),
            read_cache: ReadCache::new(read_bytes, parameters.read_segments),
            read_ahead: None,
            job: None,
            head: 0.0,
            was_destage: false,
            leaving: BinaryHeap::new(),
            finished: VecDeque::new(),
        }
    }

    /// Its parameters.
    pub fn parameters(&self) -> &HddParameters {
        &self.parameters
    }

    /// Commands that it holds or that wait outside.
    pub fn commands(&self) -> usize {
        self.held as usize + self.outside.len()
    }

    /// How many turns of the medium lie between the head and a byte.
    pub(crate) fn turns_away(&self, at_bytes: u64) -> u64 {
        (self.geometry.position(at_bytes) - self.head).abs() as u64
    }

    /// Its clock.
    #[cfg(test)]
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Whether a range would survive a power cut now.
    #[cfg(test)]
    pub(crate) fn is_on_medium(&self, start: u64, end: u64) -> bool {
        self.write_cache.is_clean(start, end)
    }

    fn transfer_ns(&self, bytes: u32) -> u64 {
        u64::from(bytes) * 1_000_000_000 / self.parameters.interface_bytes_per_s
    }

    fn let_in(&mut self) {
        while self.held < self.parameters.queue_depth.max(1) {
            let Some(arrived) = self.outside.pop_front() else { return };
            self.held += 1;
            let free_ns = self.looked_at.back().map_or(0, |(ready_ns, _)| *ready_ns);
            let overhead_ns = u64::from(self.parameters.controller_overhead_us) * 1_000;
            self.looked_at.push_back((self.now_ns.max(free_ns) + overhead_ns, arrived));
        }
    }

    fn leave(&mut self, at_ns: u64, id: u64) {
        self.leaving.push(Reverse((at_ns, id)));
    }

    fn next_ns(&self) -> Option<u64> {
        let leaving = self.leaving.peek().map(|Reverse((at_ns, _))| *at_ns);
        let job = self.job.map(|job| job.ends_ns);
        let looked_at = self.looked_at.front().map(|(ready_ns, _)| *ready_ns);
        [leaving, job, looked_at].into_iter().flatten().min()
    }

    fn run_until(&mut self, until_ns: u64) {
        assert!(until_ns >= self.now_ns, "time went back from {} to {until_ns}", self.now_ns);
        while let Some(at_ns) = self.next_ns().filter(|at_ns| *at_ns <= until_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            self.happen(at_ns);
        }
        self.now_ns = until_ns;
    }

    fn happen(&mut self, at_ns: u64) {
        if let Some(Reverse((leaves_ns, id))) = self.leaving.peek().copied()
            && leaves_ns == at_ns
        {
            self.leaving.pop();
            self.held -= 1;
            self.finished.push_back(Done { id, at_ns });
            self.let_in();
            return;
        }
        if let Some(job) = self.job.filter(|job| job.ends_ns == at_ns) {
            self.job = None;
            self.end_job(job);
        } else if let Some((_, arrived)) = self.looked_at.pop_front() {
            self.dispatch(arrived);
        }
        if self.job.is_none() {
            self.choose();
        }
    }

    fn dispatch(&mut self, arrived: Arrived) {
        let request = arrived.request;
        let cached = self.parameters.write_cache;
        match request.command {
            Command::Read => self.dispatch_read(request),
            Command::Write if cached && self.write_cache.could_hold(request.bytes.into()) => {
                self.writes_without_room.push_back(request);
                self.take_writes();
            }
            Command::Write | Command::WriteThrough => {
                self.read_cache.forget(request.at_bytes, end_of(&request));
                self.need_medium(request, request.at_bytes, true);
            }
            Command::Flush => {
                let at_ns_min = self.now_ns + u64::from(self.parameters.flush_us_min) * 1_000;
                self.flushes.push_back(Flush { id: request.id, mark: arrived.mark, at_ns_min });
                self.end_flushes();
            }
        }
    }

    fn need_medium(&mut self, request: Request, first: u64, is_write: bool) {
        let position = self.geometry.position(first);
        let since_ns = self.now_ns;
        self.candidates.push(Candidate { request, first, position, is_write, since_ns });
    }

    fn dispatch_read(&mut self, request: Request) {
        let (start, end) = (request.at_bytes, end_of(&request));
        self.note_read_ahead();
        let held_end = self.read_cache.end_of(start);
        if held_end.is_some_and(|it| it >= end) || self.write_cache.covers(start, end) {
            self.leave(self.now_ns + self.transfer_ns(request.bytes), request.id);
            self.read_cache.touch(start);
            if let Some(held_end) = held_end {
                self.keep_ahead(end, held_end);
            }
        } else {
            self.need_medium(request, held_end.map_or(start, |it| it.max(start)), false);
        }
    }

    fn take_writes(&mut self) {
        while let Some(request) = self.writes_without_room.front().copied() {
            let (start, bytes) = (request.at_bytes, u64::from(request.bytes));
            if !self.write_cache.has_room(start, bytes) {
                return;
            }
            self.writes_without_room.pop_front();
            self.read_cache.forget(start, start + bytes);
            let geometry = &self.geometry;
            self.write_cache.take(start, bytes, |byte| geometry.position(byte));
            self.leave(self.now_ns + self.transfer_ns(request.bytes), request.id);
        }
    }

    fn end_flushes(&mut self) {
        while let Some(flush) = self.flushes.front().copied() {
            if !self.write_cache.is_safe(flush.mark) {
                return;
            }
            self.flushes.pop_front();
            self.leave(self.now_ns.max(flush.at_ns_min), flush.id);
        }
    }

    fn end_job(&mut self, job: Job) {
        self.head = self.geometry.position(job.end);
        match job.work {
            Work::Destage => {
                self.write_cache.finish();
                self.take_writes();
                self.end_flushes();
            }
            Work::Serve(candidate) => {
                self.leave(self.now_ns, candidate.request.id);
                if !candidate.is_write {
                    self.read_cache.add(candidate.first, job.end);
                    let limit = job.end + self.read_cache.ahead_bytes();
                    let limit = limit.min(self.capacity_bytes);
                    let begins_ns = self.now_ns;
                    self.read_ahead = Some(ReadAhead { begins_ns, from: job.end, limit });
                }
            }
        }
    }

    fn note_read_ahead(&mut self) {
        if let Some(ahead) = self.read_ahead {
            let passed = ahead.passed(&self.geometry, self.now_ns);
            if passed > ahead.from {
                self.read_cache.add(ahead.from, passed);
            }
            self.head = self.geometry.position(passed);
        }
    }

    /// Reads on when the host has used up half of what was read ahead.
    fn keep_ahead(&mut self, taken_end: u64, held_end: u64) {
        let ahead_bytes = self.read_cache.ahead_bytes();
        let limit = (taken_end + ahead_bytes).min(self.capacity_bytes);
        if let Some(ahead) = &mut self.read_ahead
            && ahead.passed(&self.geometry, self.now_ns) < ahead.limit
        {
            if held_end >= ahead.from {
                ahead.limit = ahead.limit.max(limit);
            }
            return;
        }
        if self.job.is_none() && held_end - taken_end < ahead_bytes / 2 && held_end < limit {
            let to = self.geometry.position(held_end);
            let access_ns = self.geometry.access_ns(self.now_ns, self.head, to, false);
            let begins_ns = self.now_ns + access_ns.round() as u64;
            self.read_ahead = Some(ReadAhead { begins_ns, from: held_end, limit });
        }
    }

    fn choose(&mut self) {
        let dirty = !self.write_cache.ranges().is_empty();
        let urgent = self.write_cache.is_pressing()
            || !self.writes_without_room.is_empty()
            || !self.flushes.is_empty();
        let has_command = !self.candidates.is_empty();
        if !dirty && !has_command {
            return;
        }
        self.note_read_ahead();
        self.read_ahead = None;
        let arm = Arm { now_ns: self.now_ns, position: self.head };
        // Turn about when both want the arm, so that neither waits for the other's end.
        if dirty && (!has_command || (urgent && !self.was_destage)) {
            self.was_destage = true;
            self.begin_destage(arm);
        } else if let Some(candidate) = self.candidates.take_next(&self.geometry, arm) {
            self.was_destage = false;
            self.begin_service(arm, candidate);
        }
    }

    fn begin_destage(&mut self, arm: Arm) {
        let mark = self.flushes.front().map(|flush| flush.mark);
        let Some(start) = next_range(&self.write_cache, &self.geometry, arm, mark) else { return };
        let geometry = &self.geometry;
        let range = self.write_cache.begin(start, JOB_BYTES_MAX, |byte| geometry.position(byte));
        self.begin_job(arm, start, range.end, Work::Destage, true);
    }

    fn begin_service(&mut self, arm: Arm, candidate: Candidate) {
        let (end, is_write) = (end_of(&candidate.request), candidate.is_write);
        self.begin_job(arm, candidate.first, end, Work::Serve(candidate), is_write);
    }

    fn begin_job(&mut self, arm: Arm, first: u64, end: u64, work: Work, is_write: bool) {
        let (from, to) = (self.geometry.position(first), self.geometry.position(end));
        let access_ns = self.geometry.access_ns(arm.now_ns, arm.position, from, is_write);
        let transfer_ns = self.geometry.transfer_ns(from, to);
        let ends_ns = arm.now_ns + (access_ns + transfer_ns).round() as u64;
        self.job = Some(Job { ends_ns, end, work });
    }
}

fn end_of(request: &Request) -> u64 {
    request.at_bytes + u64::from(request.bytes)
}

impl Drive for Hdd {
    fn facts(&self) -> DriveFacts {
        let volatile = self.parameters.write_cache;
        DriveFacts {
            capacity_bytes: self.capacity_bytes,
            queue_depth: self.parameters.queue_depth,
            volatile_bytes: if volatile { self.parameters.cache_bytes } else { 0 },
            is_rotational: true,
        }
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        let fits = end_of(&request) <= self.capacity_bytes;
        assert!(fits, "{request:?} reaches beyond {} bytes", self.capacity_bytes);
        self.run_until(now_ns);
        let mark = self.write_cache.mark();
        self.outside.push_back(Arrived { request, mark });
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
