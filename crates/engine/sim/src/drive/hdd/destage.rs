//! Which dirty range is written next.
//!
//! Invariant: while a flush waits, only what it waits for is written; else the range that the head
//! reaches first; a range that many younger writes have passed goes first, so that none stays dirty
//! for ever.

use super::choice::Arm;
use super::geometry::Geometry;
use super::write_cache::WriteCache;

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
