//! What was done but is not on the medium yet.
//!
//! Invariant: ranges do not overlap and do not touch; a byte that was taken stays dirty until the
//! job that writes it is done; every range knows the oldest write in it, so that a flush knows what
//! it waits for. It knows no time: when to write what is the drive's choice.

use std::collections::BTreeMap;

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

    /// Takes a write, joined with what it overlaps and touches; `position` tells where a byte lies.
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
