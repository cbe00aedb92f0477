//! A disk that turns.
//!
//! Purpose: what a disk with given data-sheet figures does with commands: seeks, turns, reads
//! ahead, caches, chooses among the commands that it holds. The figures of three disks that were
//! sold are here; a figure without a comment of its own is from the manual that the constant names.
//! What no manual states (entries of the write cache, segments of the read cache, tags of SAS) is
//! marked as an assumption where it is declared.
//! Invariants: [`crate::drive::Drive`]'s; with the write cache on, a flush is done only when all
//! that was done before it came is on the medium. Events happen in the order of their moments; a
//! command holds a place in the queue from when it is let in until it is done. The controller
//! handles one command at a time, in order, while the arm works. What the arm serves next is chosen
//! when it is free: the command whose data it reaches first. The shortest access time wins, seek
//! and rotation together (Seltzer, Chen and Ousterhout, "Disk scheduling revisited", 1990); a
//! command that has waited longer than the bound goes first, oldest before younger, so that none
//! starves. With one command there is no choice. It does not model errors, spin-up, thermal
//! recalibration or remapped sectors.

mod buffer;
mod geometry;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;

use iostrata_stats::Random;

use crate::drive::{Agenda, Command, Device, DriveCompletion, DriveFacts, QueuedDevice, Request};
use buffer::{ReadCache, WriteCache};
use geometry::Geometry;

/// Seek times of a data sheet, settling included and controller overhead not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekTimes {
    /// To the next track, in us.
    pub track_to_track_us: u32,
    /// Mean over pairs of tracks drawn evenly, in us.
    pub average_us: u32,
    /// From the first track to the last, in us.
    pub full_stroke_us: u32,
}

/// A rotating disk. Change a field of a constant for a variant:
/// `HddParameters { queue_depth: 1, ..HDD_15K }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HddParameters {
    /// The disk whose data sheet this is.
    pub name: &'static str,
    /// Its size in bytes as sold. A model may be given another size: it is spread over the whole
    /// stroke, so that latency stays as on the data sheet.
    pub capacity_bytes: u64,
    /// Turns of the platters in a minute.
    pub turns_per_minute: u32,
    /// Seeks before a read.
    pub seek_read: SeekTimes,
    /// Seeks before a write; longer, because the head must settle closer.
    pub seek_write: SeekTimes,
    /// Rate of the medium at the first byte, track switches included.
    pub outer_bytes_per_s: u64,
    /// The same at the last byte.
    pub inner_bytes_per_s: u64,
    /// Rate between host and buffer.
    pub interface_bytes_per_s: u64,
    /// Time of the controller for one command, in us. It handles one command at a time, while the
    /// arm works on another.
    pub controller_overhead_us: u32,
    /// How much later than after the mean seek time firmware counts on being on the track when it
    /// chooses among commands, in percent of a turn.
    pub choice_margin_turn_pct: u32,
    /// Buffer in bytes: bounds the dirty bytes of the write cache, and is what the read segments
    /// share.
    pub cache_bytes: u64,
    /// Ranges that the read cache keeps.
    pub read_segments: u32,
    /// Ranges that the write cache holds until they are on the medium; adjacent writes make one.
    pub write_cache_entries: u32,
    /// Commands that it considers at a time; 1 is no command queueing.
    pub queue_depth: u32,
    /// Whether writes are done when they are in the cache.
    pub write_cache: bool,
    /// What a flush takes at least, in us.
    pub flush_us_min: u32,
}

/// Segments of the buffer of the disks below. According to the manuals firmware makes and removes
/// them as it sees fit; an assumption.
const SEGMENTS: u32 = 32;

/// Margin of the choice of the disks below. No manual states it. Without one, 32 commands at a time
/// would give 2.7 times the reads of one at a time; published are "nearly 100 %" more for SATA with
/// deep queues, and for Savvio "exceeding 400 IOPS, more than doubling" (IOPS, Wikipedia). With
/// this one the model gives 2.0 times at 32 commands and 2.5 times at 128.
const CHOICE_MARGIN_TURN_PCT: u32 = 15;

/// Ranges in the write cache of the disks below. No manual states it: an assumption, calibrated
/// with the one published figure for two disks of 15,000 turns with the write cache on (see the
/// test `random_writes_into_a_small_index`).
const WRITE_CACHE_ENTRIES: u32 = 64;

/// 16 MiB, the buffer of all three.
const BUFFER_BYTES: u64 = 16 << 20;

/// 7,200 turns: Seagate Constellation ST9500430SS, 500 GB.
///
/// Source: Constellation SAS Product Manual, Rev. E, 100538693, sections 5.1 and 5.2
/// (manualsdump.com/en/manuals/seagate-st9500430ss-st9500432ss-st9500431ss/136786/18,
/// office.manualsonline.com/manuals/mfg/seagate/st9500432ss.html?p=19). The rates are from the line
/// "data buffer to/from disc media"; the line "sustained" of that manual (95 to 100 MB/s) lies
/// between. The queue is NCQ's, which most disks of this speed use.
pub const HDD_7K2: HddParameters = HddParameters {
    name: "Seagate Constellation ST9500430SS",
    capacity_bytes: 500_107_862_016,
    turns_per_minute: 7_200,
    seek_read: SeekTimes { track_to_track_us: 500, average_us: 8_000, full_stroke_us: 17_350 },
    seek_write: SeekTimes { track_to_track_us: 700, average_us: 8_400, full_stroke_us: 17_820 },
    outer_bytes_per_s: 142_000_000,
    inner_bytes_per_s: 75_000_000,
    interface_bytes_per_s: 600_000_000,
    controller_overhead_us: 200,
    choice_margin_turn_pct: CHOICE_MARGIN_TURN_PCT,
    cache_bytes: BUFFER_BYTES,
    read_segments: SEGMENTS,
    write_cache_entries: WRITE_CACHE_ENTRIES,
    queue_depth: 32,
    write_cache: true,
    flush_us_min: 0,
};

/// 10,000 turns: Seagate Savvio 10K.4 ST9600204SS, 600 GB.
///
/// Source: Savvio 10K.4 SAS Product Manual, Rev. A, 100539221, sections 4.1 and 4.2
/// (manualsdump.com/amp/en/manuals/136758/17 and /18).
pub const HDD_10K: HddParameters = HddParameters {
    name: "Seagate Savvio 10K.4 ST9600204SS",
    capacity_bytes: 600_127_266_816,
    turns_per_minute: 10_000,
    seek_read: SeekTimes { track_to_track_us: 300, average_us: 3_800, full_stroke_us: 7_810 },
    seek_write: SeekTimes { track_to_track_us: 560, average_us: 4_400, full_stroke_us: 8_180 },
    outer_bytes_per_s: 135_000_000,
    inner_bytes_per_s: 72_000_000,
    interface_bytes_per_s: 600_000_000,
    controller_overhead_us: 200,
    choice_margin_turn_pct: CHOICE_MARGIN_TURN_PCT,
    cache_bytes: BUFFER_BYTES,
    read_segments: SEGMENTS,
    write_cache_entries: WRITE_CACHE_ENTRIES,
    queue_depth: 128,
    write_cache: true,
    flush_us_min: 0,
};

/// 15,000 turns: Seagate Savvio 15K.1 ST973451, 73.4 GB.
///
/// Source: Savvio 15K.1 FC Product Manual, Rev. B, sections 4.1 and 4.2
/// (manualsdump.com/amp/en/manuals/136737/19). That table gives seeks without the controller
/// overhead only; the overhead is taken from its siblings (Savvio SAS and Savvio 10K.4 SAS:
/// 0.2 ms). The interface is the SAS version's, 3 Gbit/s.
pub const HDD_15K: HddParameters = HddParameters {
    name: "Seagate Savvio 15K.1 ST973451",
    capacity_bytes: 73_407_868_928,
    turns_per_minute: 15_000,
    seek_read: SeekTimes { track_to_track_us: 200, average_us: 2_600, full_stroke_us: 4_900 },
    seek_write: SeekTimes { track_to_track_us: 400, average_us: 3_100, full_stroke_us: 5_500 },
    outer_bytes_per_s: 89_000_000,
    inner_bytes_per_s: 57_000_000,
    interface_bytes_per_s: 300_000_000,
    controller_overhead_us: 200,
    choice_margin_turn_pct: CHOICE_MARGIN_TURN_PCT,
    cache_bytes: BUFFER_BYTES,
    read_segments: SEGMENTS,
    write_cache_entries: WRITE_CACHE_ENTRIES,
    queue_depth: 128,
    write_cache: true,
    flush_us_min: 0,
};

impl HddParameters {
    /// One turn, in ns.
    pub fn turn_ns(&self) -> f64 {
        60e9 / f64::from(self.turns_per_minute)
    }

    /// What a random read that is alone takes by the data sheet, in ns: overhead, mean seek, half a
    /// turn, and the transfer at the mean rate.
    pub fn random_read_ns(&self, bytes: u32) -> f64 {
        self.random_ns(self.seek_read, bytes)
    }

    /// The same of a write that waits for the medium, in ns.
    pub fn random_write_ns(&self, bytes: u32) -> f64 {
        self.random_ns(self.seek_write, bytes)
    }

    fn random_ns(&self, seek: SeekTimes, bytes: u32) -> f64 {
        let rate = (self.outer_bytes_per_s + self.inner_bytes_per_s) as f64 / 2.0;
        let transfer_ns = f64::from(bytes) / rate * 1e9;
        let arm_ns = f64::from(self.controller_overhead_us + seek.average_us) * 1e3;
        arm_ns + self.turn_ns() / 2.0 + transfer_ns
    }
}

/// A command, and for a flush what it waits for.
#[derive(Clone, Copy, Debug)]
struct Arrival {
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
pub type Hdd = QueuedDevice<Spindle>;

/// A rotating disk behind its queue.
#[derive(Debug)]
pub struct Spindle {
    parameters: HddParameters,
    capacity_bytes: u64,
    geometry: Geometry,
    now_ns: u64,
    looked_at: VecDeque<(u64, Arrival)>,
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

    fn dispatch(&mut self, arrived: Arrival) {
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
        self.looked_at.push_back((now_ns.max(free_ns) + overhead_ns, Arrival { request, mark }));
    }

    fn next_event_ns(&self) -> Option<u64> {
        let job = self.job.map(|job| job.ends_ns);
        let looked_at = self.looked_at.front().map(|(ready_ns, _)| *ready_ns);
        [self.leaving.next_ns(), job, looked_at].into_iter().flatten().min()
    }

    fn step(&mut self, now_ns: u64, done: &mut VecDeque<DriveCompletion>) {
        self.now_ns = now_ns;
        if let Some((at_ns, id)) = self.leaving.due(now_ns) {
            return done.push_back(DriveCompletion { id, at_ns });
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

// The head reads on while there are no requests.
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

/// The first byte of the range to write next; `flush_mark` is the mark of the oldest waiting flush.
fn next_range(
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

/// Where the arm is and when it can leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    pub(crate) now_ns: u64,
    /// In turns.
    pub(crate) position: f64,
}

/// A command that needs the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) request: Request,
    /// The first byte that the medium must give or take; later than the request's first when the
    /// buffer has the beginning.
    pub(crate) first: u64,
    /// Where that byte lies, in turns.
    pub(crate) position: f64,
    pub(crate) is_write: bool,
    pub(crate) since_ns: u64,
}

/// The commands that need the medium.
#[derive(Debug)]
pub(crate) struct Candidates {
    all: Vec<Candidate>,
    age_ns_max: u64,
}

impl Candidates {
    pub(crate) fn new(age_ns_max: u64) -> Self {
        Self { all: Vec::new(), age_ns_max }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn push(&mut self, candidate: Candidate) {
        self.all.push(candidate);
    }

    /// Takes out the one to serve next.
    fn take_next(&mut self, geometry: &Geometry, arm: Arm) -> Option<Candidate> {
        let oldest = self.all.iter().enumerate().min_by_key(|(_, it)| it.since_ns)?;
        let index = if arm.now_ns.saturating_sub(oldest.1.since_ns) > self.age_ns_max {
            oldest.0
        } else {
            self.nearest(geometry, arm)?
        };
        // The order in the vector is the order of arrival: `remove`, not `swap_remove`, so that
        // equal ages and equal distances are served in order.
        Some(self.all.remove(index))
    }

    fn nearest(&self, geometry: &Geometry, arm: Arm) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for (index, it) in self.all.iter().enumerate() {
            let ns = geometry.expected_ns(arm.now_ns, arm.position, it.position, it.is_write);
            if best.is_none_or(|(_, least)| ns < least) {
                best = Some((index, ns));
            }
        }
        best.map(|(index, _)| index)
    }
}

#[cfg(test)]
mod choice_tests {
    use super::*;

    fn candidate(id: u64, position: f64, since_ns: u64) -> Candidate {
        let request = Request { id, command: Command::Read, at_bytes: 0, bytes: 4_096 };
        Candidate { request, first: 0, position, is_write: false, since_ns }
    }

    fn geometry() -> Geometry {
        Geometry::new(&HDD_15K, HDD_15K.capacity_bytes, 0.0)
    }

    #[test]
    fn rotation_counts_as_much_as_distance() {
        let mut candidates = Candidates::new(u64::MAX);
        // The same track but just passed, so nearly a turn away; a little farther but in time.
        candidates.push(candidate(1, 100.99, 0));
        candidates.push(candidate(2, 140.5, 0));
        let arm = Arm { now_ns: 0, position: 100.0 };
        let first = candidates.take_next(&geometry(), arm).expect("two");
        assert_eq!(first.request.id, 2);
    }

    #[test]
    fn one_that_waited_too_long_goes_first() {
        let mut candidates = Candidates::new(1_000_000);
        candidates.push(candidate(1, 200_000.0, 10));
        candidates.push(candidate(2, 100.5, 2_000_000));
        let arm = Arm { now_ns: 2_000_000, position: 100.0 };
        assert_eq!(candidates.take_next(&geometry(), arm).map(|it| it.request.id), Some(1));
        assert_eq!(candidates.take_next(&geometry(), arm).map(|it| it.request.id), Some(2));
        assert!(candidates.take_next(&geometry(), arm).is_none());
    }
}
