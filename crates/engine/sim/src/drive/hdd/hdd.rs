//! The disk itself: commands come in, the controller looks at them, the arm serves them.
//!
//! Invariant: events happen in the order of their moments; a command holds a place in the queue
//! from when it is let in until it is done. The controller looks at one command at a time, in
//! order, while the arm works. What the arm serves next is chosen when it is free.

use std::collections::VecDeque;

use iostrata_stats::Random;

use super::choice::{Arm, Candidate, Candidates};
use super::geometry::Geometry;
use super::parameters::HddParameters;
use super::read_cache::ReadCache;
use super::write_cache::WriteCache;
use crate::drive::{Agenda, Command, Device, Done, DriveFacts, Queued, Request};

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
pub type Hdd = Queued<Spindle>;

/// A rotating disk behind its queue.
#[derive(Debug)]
pub struct Spindle {
    parameters: HddParameters,
    capacity_bytes: u64,
    geometry: Geometry,
    now_ns: u64,
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
    leaving: Agenda<u64>,
}

impl Hdd {
    /// A disk of `capacity_bytes`, spread over the whole stroke; `seed` gives the angle at which it
    /// stands at time 0.
    ///
    /// # Panics
    /// When the capacity or the queue is 0.
    pub fn new(parameters: HddParameters, capacity_bytes: u64, seed: u64) -> Self {
        let access_ns = parameters.random_write_ns(0);
        let age_ns_max = 2.0 * f64::from(parameters.queue_depth.max(16)) * access_ns;
        // Half of the buffer reads, all of it writes: firmware lends the segments to and fro.
        let read_bytes = parameters.cache_bytes / 2;
        Self::over(Spindle {
            geometry: Geometry::new(&parameters, capacity_bytes, Random::new(seed).uniform()),
            parameters,
            capacity_bytes,
            now_ns: 0,
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
            leaving: Agenda::new(),
        })
    }
}

impl Spindle {
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
                self.read_cache.forget(request.at_bytes, request.end());
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
        let (start, end) = (request.at_bytes, request.end());
        self.note_read_ahead();
        let held_end = self.read_cache.end_of(start);
        if held_end.is_some_and(|it| it >= end) || self.write_cache.covers(start, end) {
            self.leaving.note(self.now_ns + self.transfer_ns(request.bytes), request.id);
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
            self.leaving.note(self.now_ns + self.transfer_ns(request.bytes), request.id);
        }
    }

    fn end_flushes(&mut self) {
        while let Some(flush) = self.flushes.front().copied() {
            if !self.write_cache.is_safe(flush.mark) {
                return;
            }
            self.flushes.pop_front();
            self.leaving.note(self.now_ns.max(flush.at_ns_min), flush.id);
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
                self.leaving.note(self.now_ns, candidate.request.id);
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
        let (end, is_write) = (candidate.request.end(), candidate.is_write);
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

impl Device for Spindle {
    fn facts(&self) -> DriveFacts {
        let volatile = self.parameters.write_cache;
        DriveFacts {
            capacity_bytes: self.capacity_bytes,
            queue_depth: self.parameters.queue_depth,
            volatile_bytes: if volatile { self.parameters.cache_bytes } else { 0 },
            is_rotational: true,
        }
    }

    /// A flush waits for the writes that came before it.
    fn mark(&self, _: u64) -> u64 {
        self.write_cache.mark()
    }

    fn admit(&mut self, now_ns: u64, request: Request, mark: u64) {
        self.now_ns = now_ns;
        let free_ns = self.looked_at.back().map_or(0, |(ready_ns, _)| *ready_ns);
        let overhead_ns = u64::from(self.parameters.controller_overhead_us) * 1_000;
        self.looked_at.push_back((now_ns.max(free_ns) + overhead_ns, Arrived { request, mark }));
    }

    fn next_event_ns(&self) -> Option<u64> {
        let job = self.job.map(|job| job.ends_ns);
        let looked_at = self.looked_at.front().map(|(ready_ns, _)| *ready_ns);
        [self.leaving.next_ns(), job, looked_at].into_iter().flatten().min()
    }

    fn step(&mut self, now_ns: u64, done: &mut VecDeque<Done>) {
        self.now_ns = now_ns;
        if let Some((at_ns, id)) = self.leaving.due(now_ns) {
            return done.push_back(Done { id, at_ns });
        }
        if let Some(job) = self.job.filter(|job| job.ends_ns <= now_ns) {
            self.job = None;
            self.end_job(job);
        } else if let Some((_, arrived)) = self.looked_at.pop_front() {
            self.dispatch(arrived);
        }
        if self.job.is_none() {
            self.choose();
        }
    }
}

// The head reads on while nobody asks for anything.
//
// Invariant: at any moment the byte under the head follows from when the reading began; it stops
// at a limit that moves with what the host has taken. It keeps no bytes: the read cache does.

/// One run of reading on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadAhead {
    /// When the head is at `from`, in ns.
    pub(crate) begins_ns: u64,
    /// First byte of the run.
    pub(crate) from: u64,
    /// Byte at which the buffer is full.
    pub(crate) limit: u64,
}

impl ReadAhead {
    /// One past the last byte that the head has passed.
    pub(crate) fn passed(&self, geometry: &Geometry, now_ns: u64) -> u64 {
        if now_ns <= self.begins_ns {
            return self.from;
        }
        let turned = geometry.turned(now_ns - self.begins_ns);
        let byte = geometry.byte(geometry.position(self.from) + turned);
        byte.clamp(self.from, self.limit)
    }
}

// Which dirty range is written next.
//
// Invariant: while a flush waits, only what it waits for is written; else the range that the head
// reaches first; a range that many younger writes have passed goes first, so that none stays dirty
// for ever.

/// Most bytes that one job writes: a read waits no longer than for this.
pub(crate) const JOB_BYTES_MAX: u64 = 512 << 10;

/// A range is overdue when this many times the cache's ranges were written after it.
const OVERDUE_TURNOVERS: u64 = 16;

/// The first byte of the range to write next; `flush_mark` is that of the oldest waiting flush.
pub(crate) fn next_range(
    cache: &WriteCache,
    geometry: &Geometry,
    arm: Arm,
    flush_mark: Option<u64>,
) -> Option<u64> {
    let overdue = cache.mark().saturating_sub(OVERDUE_TURNOVERS * cache.ranges_max());
    let mut oldest: Option<(u64, u64)> = None;
    let mut nearest: Option<(u64, f64)> = None;
    for (start, range) in cache.ranges() {
        if flush_mark.is_some_and(|mark| range.oldest >= mark) {
            continue;
        }
        if range.oldest < overdue && oldest.is_none_or(|(_, least)| range.oldest < least) {
            oldest = Some((*start, range.oldest));
        }
        let ns = geometry.expected_ns(arm.now_ns, arm.position, range.position, true);
        if nearest.is_none_or(|(_, least)| ns < least) {
            nearest = Some((*start, ns));
        }
    }
    oldest.map(|(start, _)| start).or(nearest.map(|(start, _)| start))
}
