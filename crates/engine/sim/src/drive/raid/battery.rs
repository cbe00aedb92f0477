//! A cache that a battery keeps through a power cut, in front of any drive.
//!
//! Invariants: a write is done when it is in the cache, and that is beyond a power cut; so a flush
//! has nothing to wait for. The dirty bytes are bounded: when the cache is full, writes go at the
//! pace of the drive. What lies on one set of disks is written in the order of addresses, upwards
//! and around, several ranges at a time, so that the disks can choose; it leaves the battery's care
//! only when it is beyond a power cut. Ranges of a set do not overlap and do not touch; one that
//! overlaps another in flight waits for it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

use super::{ProtectedCacheParameters, Raid, RaidParameters, Stripes};
use crate::drive::{
    Agenda, Command, Device, Drive, DriveCompletion, DriveFacts, QueuedDevice, Request,
};

/// Most bytes that go to the drive in one command: those of a stripe. Ranges are kept by their
/// addresses in the array, where the next stripe of a set of disks is no neighbour.
const JOB_BYTES_MAX: u64 = 256 << 10;
/// Ranges in flight for a set of disks while the cache is less than half full: reads wait behind
/// few.
const IN_FLIGHT_CALM: usize = 4;
/// The same when it is fuller: the disks' own queues make the most of it.
const IN_FLIGHT_PRESSED: usize = 32;

/// The request to the drive.
#[derive(Clone, Debug)]
enum Task {
    /// A part of a read of the host.
    Read { id: u64 },
    /// Dirty bytes of a set of disks.
    Destage { pair: usize, range: Range<u64> },
}

/// A drive behind a protected cache.
pub type ProtectedDrive = QueuedDevice<BatteryCache>;

/// A protected cache behind its queue.
pub struct BatteryCache {
    cache: ProtectedCacheParameters,
    queue_depth: u32,
    drive: Box<dyn Drive>,
    stripes: Stripes,
    controller_free_ns: u64,
    /// By set of disks.
    dirty: Vec<Dirty>,
    dirty_bytes: u64,
    writes_without_room: VecDeque<Request>,
    tasks: HashMap<u64, Task>,
    next_task: u64,
    /// Parts of reads that are not done, by request.
    left: HashMap<u64, u32>,
    leaving: Agenda<u64>,
    ended: Vec<DriveCompletion>,
}

impl ProtectedDrive {
    /// A cache in front of one drive.
    #[cfg(test)]
    pub(crate) fn before(drive: Box<dyn Drive>, cache: ProtectedCacheParameters) -> Self {
        let queue_depth = drive.facts().queue_depth;
        Self::striped(drive, cache, queue_depth, Stripes::new(1, 1))
    }

    /// A cache in front of an array of `capacity_bytes`. The disks' own write caches are off,
    /// whatever the parameters are.
    ///
    /// # Panics
    /// When the spindles are not pairs or the capacity is 0.
    pub fn array(
        mut parameters: RaidParameters,
        cache: ProtectedCacheParameters,
        capacity_bytes: u64,
        seed: u64,
    ) -> Self {
        let (queue_depth, stripes) = (parameters.queue_depth, parameters.stripes());
        parameters.disk.write_cache = false;
        // What the cache writes back needs no place in the controller's queue.
        parameters.queue_depth = u32::MAX;
        let array = Box::new(Raid::new(parameters, capacity_bytes, seed));
        Self::striped(array, cache, queue_depth, stripes)
    }

    fn striped(
        drive: Box<dyn Drive>,
        cache: ProtectedCacheParameters,
        queue_depth: u32,
        stripes: Stripes,
    ) -> Self {
        Self::over(BatteryCache {
            cache,
            queue_depth,
            drive,
            stripes,
            controller_free_ns: 0,
            dirty: (0..stripes.pairs()).map(|_| Dirty::default()).collect(),
            dirty_bytes: 0,
            writes_without_room: VecDeque::new(),
            tasks: HashMap::new(),
            next_task: 0,
            left: HashMap::new(),
            leaving: Agenda::new(),
            ended: Vec::new(),
        })
    }
}

impl BatteryCache {
    #[cfg(test)]
    pub(crate) fn check_bounds(&self) {
        let held: u64 = self.dirty.iter().map(Dirty::bytes).sum();
        assert_eq!(held, self.dirty_bytes);
        let alone = self.cache.cache_bytes.max(4 << 20);
        assert!(self.dirty_bytes <= alone, "{} dirty bytes", self.dirty_bytes);
    }

    #[cfg(test)]
    pub(crate) fn check_clean(&self) {
        assert_eq!((self.dirty_bytes, self.left.len(), self.tasks.len()), (0, 0, 0));
    }

    fn ask(&mut self, now_ns: u64, task: Task, command: Command, range: &Range<u64>) {
        let id = self.next_task;
        self.next_task += 1;
        self.tasks.insert(id, task);
        let bytes = (range.end - range.start) as u32;
        self.drive.submit(now_ns, Request { id, command, at_bytes: range.start, bytes });
    }

    /// Done by the controller alone, after its processor and the transfer.
    fn leave_from_cache(&mut self, now_ns: u64, request: &Request, at_least_us: u32) {
        let transfer_ns = u64::from(request.bytes) * 1_000_000_000 / self.cache.bytes_per_s.max(1);
        let begins_ns = now_ns.max(self.controller_free_ns);
        let command_ns = u64::from(self.cache.command_us) * 1_000;
        self.controller_free_ns = begins_ns + command_ns.max(transfer_ns);
        let latency_us = self.cache.latency_us.max(at_least_us);
        self.leaving.note(begins_ns + u64::from(latency_us) * 1_000 + transfer_ns, request.id);
    }

    fn end(&mut self, now_ns: u64, task: u64) {
        match self.tasks.remove(&task) {
            Some(Task::Read { id }) => {
                let Some(left) = self.left.get_mut(&id) else { return };
                *left -= 1;
                if *left == 0 {
                    self.left.remove(&id);
                    self.leaving.note(now_ns, id);
                }
            }
            Some(Task::Destage { pair, range }) => {
                self.dirty[pair].finish(range.start, range.end);
                self.dirty_bytes -= range.end - range.start;
                self.take_writes(now_ns);
                self.destage(now_ns, pair);
            }
            None => {}
        }
    }

    /// Reads what is not in the cache; neighbours as one.
    fn read(&mut self, now_ns: u64, request: Request) {
        let mut missing: Vec<Range<u64>> = Vec::new();
        for (pair, piece) in self.stripes.pieces(request.at_bytes, request.bytes) {
            if self.dirty[pair].covers(piece.start, piece.end) {
                continue;
            }
            match missing.last_mut().filter(|last| last.end == piece.start) {
                Some(last) => last.end = piece.end,
                None => missing.push(piece),
            }
        }
        if missing.is_empty() {
            return self.leave_from_cache(now_ns, &request, 0);
        }
        self.left.insert(request.id, missing.len() as u32);
        for range in missing {
            self.ask(now_ns, Task::Read { id: request.id }, Command::Read, &range);
        }
    }

    fn take_writes(&mut self, now_ns: u64) {
        while let Some(request) = self.writes_without_room.front().copied() {
            let bytes = u64::from(request.bytes);
            // A write larger than the whole cache is let in when the cache is empty.
            if self.dirty_bytes > 0 && self.dirty_bytes + bytes > self.cache.cache_bytes {
                return;
            }
            self.writes_without_room.pop_front();
            for (pair, piece) in self.stripes.pieces(request.at_bytes, request.bytes) {
                self.dirty_bytes += self.dirty[pair].take(piece.start, piece.end);
                self.destage(now_ns, pair);
            }
            self.leave_from_cache(now_ns, &request, 0);
        }
    }

    fn destage(&mut self, now_ns: u64, pair: usize) {
        let is_calm = self.dirty_bytes * 2 < self.cache.cache_bytes;
        let most = if is_calm { IN_FLIGHT_CALM } else { IN_FLIGHT_PRESSED };
        while self.dirty[pair].in_flight() < most {
            let Some(range) = self.dirty[pair].begin(JOB_BYTES_MAX) else { return };
            let task = Task::Destage { pair, range: range.clone() };
            self.ask(now_ns, task, Command::WriteThrough, &range);
        }
    }
}

impl Device for BatteryCache {
    fn facts(&self) -> DriveFacts {
        DriveFacts { queue_depth: self.queue_depth, volatile_bytes: 0, ..self.drive.facts() }
    }

    fn admit(&mut self, now_ns: u64, request: Request, _: u64) {
        match request.command {
            Command::Flush => self.leave_from_cache(now_ns, &request, self.cache.flush_us_min),
            Command::Read => self.read(now_ns, request),
            Command::Write | Command::WriteThrough => {
                self.writes_without_room.push_back(request);
                self.take_writes(now_ns);
            }
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.leaving.next_ns().into_iter().chain(self.drive.next_event_ns()).min()
    }

    /// What the drive writes back concerns only reads, and writes that find no room.
    fn next_done_ns(&self) -> Option<u64> {
        if self.left.is_empty() && self.writes_without_room.is_empty() {
            return self.leaving.next_ns();
        }
        self.next_event_ns()
    }

    fn step(&mut self, now_ns: u64, done: &mut VecDeque<DriveCompletion>) {
        let mut ended = std::mem::take(&mut self.ended);
        if self.drive.next_event_ns().is_some_and(|next_ns| next_ns <= now_ns) {
            self.drive.advance(now_ns, &mut ended);
        }
        ended.drain(..).for_each(|one| self.end(now_ns, one.id));
        self.ended = ended;
        while let Some((at_ns, id)) = self.leaving.due(now_ns) {
            done.push_back(DriveCompletion { id, at_ns });
        }
    }
}

/// Dirty ranges of one set of disks.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    ranges: BTreeMap<u64, u64>,
    flying: Vec<(u64, u64)>,
    cursor: u64,
}

impl Dirty {
    /// Takes a write; gives how many dirty bytes that adds.
    pub(crate) fn take(&mut self, start: u64, end: u64) -> u64 {
        let (mut first, mut end) = (start, end);
        let before = self.ranges.range(..=start).next_back();
        if let Some((key, _)) = before.filter(|(_, range_end)| **range_end >= start) {
            first = *key;
        }
        let mut held = 0;
        while let Some((key, range_end)) = self.ranges.range(first..=end).next() {
            let (key, range_end) = (*key, *range_end);
            self.ranges.remove(&key);
            held += range_end - key;
            end = end.max(range_end);
        }
        self.ranges.insert(first, end);
        end - first - held
    }

    /// Whether a read finds all its bytes here.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let before = self.ranges.range(..=start).next_back();
        before.is_some_and(|(_, range_end)| *range_end >= end)
            || self.flying.iter().any(|(first, last)| *first <= start && end <= *last)
    }

    /// Dirty bytes, in flight included.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        let waiting: u64 = self.ranges.iter().map(|(start, end)| end - start).sum();
        waiting + self.flying.iter().map(|(start, end)| end - start).sum::<u64>()
    }

    /// Ranges that are being written.
    pub(crate) fn in_flight(&self) -> usize {
        self.flying.len()
    }

    /// Takes the next range to write, at most `bytes_max` of it: the first at or above the last
    /// one.
    pub(crate) fn begin(&mut self, bytes_max: u64) -> Option<Range<u64>> {
        let above = self.ranges.range(self.cursor..);
        let all = above.chain(self.ranges.range(..self.cursor));
        let free = |start: u64, end: u64| {
            self.flying.iter().all(|(first, last)| end <= *first || *last <= start)
        };
        let (start, end) = all
            .map(|(start, end)| (*start, *end, (*end).min(start + bytes_max)))
            .find_map(|(start, end, part_end)| free(start, part_end).then_some((start, end)))?;
        let part_end = end.min(start + bytes_max);
        self.ranges.remove(&start);
        if part_end < end {
            self.ranges.insert(part_end, end);
        }
        self.flying.push((start, part_end));
        self.cursor = part_end;
        Some(start..part_end)
    }

    /// A range that was begun is on the disks.
    pub(crate) fn finish(&mut self, start: u64, end: u64) {
        self.flying.retain(|range| *range != (start, end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_go_out_upwards_and_around() {
        let mut dirty = Dirty::default();
        assert_eq!(dirty.take(500, 510), 10);
        assert_eq!(dirty.begin(100), Some(500..510));
        assert_eq!(dirty.take(100, 110) + dirty.take(600, 610) + dirty.take(605, 615), 25);
        assert_eq!(dirty.begin(100), Some(600..615));
        assert_eq!(dirty.begin(100), Some(100..110));
        assert_eq!(dirty.begin(100), None);
        assert_eq!(dirty.in_flight(), 3);
    }

    #[test]
    fn what_flies_is_not_written_twice_at_once() {
        let mut dirty = Dirty::default();
        dirty.take(0, 10);
        assert_eq!(dirty.begin(100), Some(0..10));
        dirty.take(5, 15);
        assert_eq!(dirty.begin(100), None);
        assert!(dirty.covers(0, 10) && dirty.covers(5, 15) && !dirty.covers(0, 15));
        dirty.finish(0, 10);
        assert_eq!(dirty.begin(4), Some(5..9));
        assert_eq!(dirty.begin(100), Some(9..15));
    }
}
