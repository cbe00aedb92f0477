//! What a protected cache holds for one set of disks.
//!
//! Invariant: ranges do not overlap and do not touch; writing them goes upwards by address and
//! around; a range that overlaps one in flight waits for it.

use std::collections::BTreeMap;
use std::ops::Range;

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
