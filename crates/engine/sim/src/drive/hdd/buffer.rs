//! What a disk's buffer holds: what the head has read, and what was done but is not on the medium
//! yet.
//!
//! Invariants of what was read: segments hold bytes that the head has passed and that no later
//! write touched. Together they hold no more than the buffer; their number is bounded. A segment is
//! a ring: one that grows beyond a quarter of the buffer forgets its first bytes. The one that was
//! used longest ago makes place.
//! Invariants of what was written: ranges do not overlap and do not touch; a byte that was taken
//! stays dirty until the job that writes it is done; every range records its oldest write, which a
//! flush waits for. It has no clock: when to write what is the drive's choice.

use std::collections::BTreeMap;

/// A range of bytes in the buffer.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    used: u64,
}

/// The read segments.
#[derive(Debug)]
pub(crate) struct ReadCache {
    segments: Vec<Segment>,
    segments_max: usize,
    bytes_max: u64,
    uses: u64,
}

impl ReadCache {
    pub(crate) fn new(bytes_max: u64, segments: u32) -> Self {
        Self { segments: Vec::new(), segments_max: segments.max(1) as usize, bytes_max, uses: 0 }
    }

    fn segment_bytes_max(&self) -> u64 {
        self.bytes_max / 4
    }

    /// How far the drive reads ahead: half of the longest segment, so that what was just read
    /// stays.
    pub(crate) fn ahead_bytes(&self) -> u64 {
        self.segment_bytes_max() / 2
    }

    /// The end of the segment that holds the byte `start`, or ends there.
    pub(crate) fn end_of(&self, start: u64) -> Option<u64> {
        let holding = self.segments.iter().filter(|it| it.start <= start && start <= it.end);
        holding.map(|it| it.end).max()
    }

    /// Notes that the head has passed a range.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        self.uses += 1;
        let joined = self.segments.iter().position(|it| it.start <= start && start <= it.end);
        let mut segment = Segment { start, end, used: self.uses };
        if let Some(index) = joined {
            let old = self.segments.swap_remove(index);
            segment.start = old.start;
            segment.end = end.max(old.end);
        }
        let first = segment.end.saturating_sub(self.segment_bytes_max());
        segment.start = segment.start.max(first);
        self.segments.push(segment);
        while self.segments.len() > self.segments_max || self.bytes() > self.bytes_max {
            let oldest = self.segments.iter().enumerate().min_by_key(|(_, it)| it.used);
            let Some((index, _)) = oldest else { return };
            self.segments.swap_remove(index);
        }
    }

    fn bytes(&self) -> u64 {
        self.segments.iter().map(|it| it.end - it.start).sum()
    }

    /// Notes that a range was requested again.
    pub(crate) fn touch(&mut self, start: u64) {
        self.uses += 1;
        let used = self.uses;
        for segment in self.segments.iter_mut().filter(|it| it.start <= start && start < it.end) {
            segment.used = used;
        }
    }

    /// Forgets every segment that a write touches.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        self.segments.retain(|it| it.end <= start || end <= it.start);
    }
}

/// A range that is dirty; its first byte is its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dirty {
    /// One past its last byte.
    pub(crate) end: u64,
    /// Where it begins on the medium, in turns.
    pub(crate) position: f64,
    /// Number of the oldest write in it.
    pub(crate) oldest: u64,
}

/// A range that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) start: u64,
    pub(crate) end: u64,
    oldest: u64,
}

/// The write cache.
#[derive(Debug)]
pub(crate) struct WriteCache {
    ranges: BTreeMap<u64, Dirty>,
    in_flight: Option<InFlight>,
    dirty_bytes: u64,
    bytes_max: u64,
    ranges_max: usize,
    next: u64,
}

impl WriteCache {
    pub(crate) fn new(bytes_max: u64, ranges_max: u32) -> Self {
        Self {
            ranges: BTreeMap::new(),
            in_flight: None,
            dirty_bytes: 0,
            bytes_max,
            ranges_max: ranges_max.max(1) as usize,
            next: 0,
        }
    }

    /// Ranges that wait to be written, by address.
    pub(crate) fn ranges(&self) -> &BTreeMap<u64, Dirty> {
        &self.ranges
    }

    /// Most ranges at a time.
    pub(crate) fn ranges_max(&self) -> u64 {
        self.ranges_max as u64
    }

    /// Whether so much is dirty that writing it should not wait for idle time.
    pub(crate) fn is_pressing(&self) -> bool {
        self.ranges.len() * 2 > self.ranges_max || self.dirty_bytes * 2 > self.bytes_max
    }

    /// The number that the next write will have: what a flush that comes now waits for lies below.
    pub(crate) fn mark(&self) -> u64 {
        self.next
    }

    /// Whether every write below `mark` is on the medium.
    pub(crate) fn is_safe(&self, mark: u64) -> bool {
        let in_flight = self.in_flight.iter().map(|range| range.oldest);
        self.ranges.values().map(|range| range.oldest).chain(in_flight).all(|it| it >= mark)
    }

    fn first_touching(&self, start: u64) -> Option<u64> {
        let before = self.ranges.range(..=start).next_back();
        before.filter(|(_, range)| range.end >= start).map(|(first, _)| *first)
    }

    /// Whether a write fits. One larger than the whole cache never does.
    pub(crate) fn has_room(&self, start: u64, bytes: u64) -> bool {
        if self.dirty_bytes + bytes > self.bytes_max {
            return false;
        }
        let used = self.ranges.len() + usize::from(self.in_flight.is_some());
        used < self.ranges_max
            || self.first_touching(start).is_some()
            || self.ranges.range(start..=start + bytes).next().is_some()
    }

    /// Whether a write of so many bytes could ever fit.
    pub(crate) fn could_hold(&self, bytes: u64) -> bool {
        bytes <= self.bytes_max
    }

    /// Takes a write, joined with what it overlaps and touches; `position` gives the place of a
    /// byte.
    pub(crate) fn take(&mut self, start: u64, bytes: u64, position: impl Fn(u64) -> f64) {
        let mut first = start;
        let mut end = start + bytes;
        let mut oldest = self.next;
        self.next += 1;
        if let Some(before) = self.first_touching(start) {
            first = before;
        }
        while let Some((key, range)) = self.ranges.range(first..=end).next().map(|(k, r)| (*k, *r))
        {
            self.ranges.remove(&key);
            self.dirty_bytes -= range.end - key;
            end = end.max(range.end);
            oldest = oldest.min(range.oldest);
        }
        self.dirty_bytes += end - first;
        self.ranges.insert(first, Dirty { end, position: position(first), oldest });
    }

    /// Whether a read finds all its bytes here.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let flying = self.in_flight.is_some_and(|range| range.start <= start && end <= range.end);
        flying
            || self
                .ranges
                .range(..=start)
                .next_back()
                .is_some_and(|(_, range)| range.end >= end && range.end > start)
    }

    /// Whether no byte of a range is dirty, in flight included.
    #[cfg(test)]
    pub(crate) fn is_clean(&self, start: u64, end: u64) -> bool {
        let flying = self.in_flight.is_some_and(|it| it.start < end && start < it.end);
        !flying && !self.ranges.iter().any(|(first, range)| *first < end && start < range.end)
    }

    /// Begins writing the range at `start`, at most `bytes_max` of it.
    ///
    /// # Panics
    /// When there is no such range or one is in flight.
    pub(crate) fn begin(
        &mut self,
        start: u64,
        bytes_max: u64,
        position: impl Fn(u64) -> f64,
    ) -> InFlight {
        assert!(self.in_flight.is_none(), "one arm writes one range at a time");
        let Some(range) = self.ranges.remove(&start) else {
            panic!("no dirty range begins at {start}");
        };
        let end = range.end.min(start + bytes_max);
        if end < range.end {
            let rest = Dirty { end: range.end, position: position(end), oldest: range.oldest };
            self.ranges.insert(end, rest);
        }
        let job = InFlight { start, end, oldest: range.oldest };
        self.in_flight = Some(job);
        job
    }

    /// What was begun is on the medium.
    pub(crate) fn finish(&mut self) {
        if let Some(range) = self.in_flight.take() {
            self.dirty_bytes -= range.end - range.start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_stays_in_one_ring() {
        let mut cache = ReadCache::new(400, 10);
        for start in (0..500).step_by(10) {
            cache.add(start, start + 10);
        }
        assert_eq!(cache.segments.len(), 1);
        assert_eq!(cache.end_of(450), Some(500));
        assert_eq!(cache.end_of(399), None);
    }

    #[test]
    fn segments_share_the_buffer() {
        let mut cache = ReadCache::new(400, 10);
        for start in (0..10).map(|index| index * 1_000) {
            cache.add(start, start + 90);
        }
        assert_eq!((cache.segments.len(), cache.bytes()), (4, 360));
        assert_eq!((cache.end_of(5_000), cache.end_of(6_000)), (None, Some(6_090)));
    }

    #[test]
    fn the_one_used_longest_ago_makes_place_and_writes_forget() {
        let mut cache = ReadCache::new(1_000, 2);
        cache.add(0, 10);
        cache.add(100, 110);
        cache.touch(0);
        cache.add(200, 210);
        assert_eq!(cache.end_of(5), Some(10));
        assert_eq!(cache.end_of(105), None);
        cache.forget(9, 20);
        assert_eq!(cache.end_of(5), None);
        assert_eq!(cache.end_of(205), Some(210));
    }

    fn cache() -> WriteCache {
        WriteCache::new(1 << 20, 4)
    }

    fn take(cache: &mut WriteCache, start: u64, bytes: u64) {
        cache.take(start, bytes, |byte| byte as f64);
    }

    fn ranges(cache: &WriteCache) -> Vec<(u64, u64)> {
        cache.ranges().iter().map(|(start, range)| (*start, range.end)).collect()
    }

    #[test]
    fn what_overlaps_or_touches_is_joined() {
        let mut cache = cache();
        for (start, bytes) in [(0, 10), (20, 10), (10, 5), (40, 10), (25, 17), (100, 1)] {
            take(&mut cache, start, bytes);
        }
        assert_eq!(ranges(&cache), [(0, 15), (20, 50), (100, 101)]);
        assert_eq!(cache.dirty_bytes, 46);
        assert!(cache.covers(20, 50) && cache.covers(100, 101));
        assert!(!cache.covers(14, 16) && !cache.covers(50, 51));
    }

    #[test]
    fn room_ends_with_bytes_and_with_ranges() {
        let mut cache = cache();
        for start in [0, 1_000, 2_000, 3_000] {
            assert!(cache.has_room(start, 10));
            take(&mut cache, start, 10);
        }
        assert!(!cache.has_room(4_000, 10));
        assert!(cache.has_room(3_010, 10) && cache.has_room(990, 10));
        assert!(!cache.has_room(0, 1 << 20) && cache.could_hold(1 << 20));
        cache.begin(0, 100, |byte| byte as f64);
        assert!(!cache.has_room(4_000, 10), "what is in flight still takes its place");
        cache.finish();
        assert!(cache.has_room(4_000, 10));
    }

    #[test]
    fn a_flush_waits_for_what_came_before_only() {
        let mut cache = cache();
        take(&mut cache, 0, 10);
        let mark = cache.mark();
        take(&mut cache, 100, 10);
        assert!(!cache.is_safe(mark));
        cache.begin(0, 100, |byte| byte as f64);
        assert!(!cache.is_safe(mark), "in flight is not on the medium");
        // The same bytes again, while the old ones fly: younger than the flush.
        take(&mut cache, 0, 10);
        cache.finish();
        assert!(cache.is_safe(mark));
        assert_eq!(ranges(&cache), [(0, 10), (100, 110)]);
    }

    #[test]
    fn a_long_range_is_written_in_parts() {
        let mut cache = cache();
        take(&mut cache, 0, 1_000);
        let mark = cache.mark();
        let job = cache.begin(0, 400, |byte| byte as f64);
        assert_eq!((job.start, job.end), (0, 400));
        assert!(cache.covers(0, 400) && cache.covers(400, 1_000));
        cache.finish();
        assert_eq!(ranges(&cache), [(400, 1_000)]);
        assert!(!cache.is_safe(mark));
    }
}
