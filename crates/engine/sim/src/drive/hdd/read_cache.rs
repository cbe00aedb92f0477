//! What the buffer holds of what the head has read.
//!
//! Invariant: segments hold bytes that the head has passed and that no later write touched.
//! Together they hold no more than the buffer; their number is bounded. A segment is a ring: one
//! that grows beyond a quarter of the buffer forgets its first bytes. The one that was used longest
//! ago makes place.

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

    /// Notes that a range was asked for again.
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
}
