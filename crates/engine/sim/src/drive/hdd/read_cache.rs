//! What the buffer holds of what the head has read.
//!
//! Invariant: segments hold bytes that the head has passed and that no later write touched. A
//! segment is a ring: when it grows beyond its size it forgets its first bytes. The one that was
//! used longest ago makes place.

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
    segment_bytes: u64,
    uses: u64,
}

impl ReadCache {
    pub(crate) fn new(bytes: u64, segments: u32) -> Self {
        let segments_max = segments.max(1) as usize;
        let segment_bytes = bytes / segments_max as u64;
        Self { segments: Vec::new(), segments_max, segment_bytes, uses: 0 }
    }

    /// How far the drive reads ahead: half a segment, so that what was just read stays.
    pub(crate) fn ahead_bytes(&self) -> u64 {
        self.segment_bytes / 2
    }

    /// The end of the segment that holds the byte `start`, or ends there.
    pub(crate) fn end_of(&self, start: u64) -> Option<u64> {
        let holding = self.segments.iter().filter(|it| it.start <= start && start <= it.end);
        holding.map(|it| it.end).max()
    }

    /// Notes that the head has passed a range.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        self.uses += 1;
        let used = self.uses;
        let joined = self.segments.iter_mut().find(|it| it.start <= start && start <= it.end);
        if let Some(segment) = joined {
            segment.end = segment.end.max(end);
            segment.start = segment.start.max(segment.end.saturating_sub(self.segment_bytes));
            segment.used = used;
            return;
        }
        let start = start.max(end.saturating_sub(self.segment_bytes));
        let segment = Segment { start, end, used };
        if self.segments.len() < self.segments_max {
            self.segments.push(segment);
        } else if let Some(oldest) = self.segments.iter_mut().min_by_key(|it| it.used) {
            *oldest = segment;
        }
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
        let mut cache = ReadCache::new(1_000, 10);
        for start in (0..500).step_by(10) {
            cache.add(start, start + 10);
        }
        assert_eq!(cache.segments.len(), 1);
        assert_eq!(cache.end_of(450), Some(500));
        assert_eq!(cache.end_of(399), None);
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
