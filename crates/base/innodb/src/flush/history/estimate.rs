//! XtraDB's `estimate`: each page is written at the rate at which its room in the redo shrinks.
//!
//! It has no cap of its own, and writes only the tail that frees the redo of one second.

use crate::Lsn;

use super::strategy::{Proposal, Strategy, Tick};
use crate::flush::ages::Ages;

/// Remembers the end of the redo at the last tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    last: Option<Lsn>,
}

impl Strategy for Estimate {
    fn flush(&mut self, seen: &Tick<'_, '_>, _: u64) -> Option<Proposal> {
        let now = seen.now;
        let last = self.last.replace(now.lsn)?;
        let (age, most) = (now.modified_age(), seen.ladder.wait_age);
        // A comment there says half; the code says a quarter.
        if age <= most / 4 || age > most - most / 8 {
            return None;
        }
        let made = now.lsn.since(last);
        let remaining = Ages::of(now).remaining_bytes(most);
        let want = pages(now.dirty_pages, made, remaining, now.settings.doublewrite);
        Some(Proposal { want, cap: None, until: seen.now.after_oldest(made), skips_sleep: false })
    }
}

/// Pages to write while `made` bytes of redo come, when all dirty pages together have `remaining`
/// bytes until they reach the limit.
fn pages(dirty: u64, made: u64, remaining: f64, doublewrite: bool) -> u64 {
    let dirty = dirty as f64;
    let pages = (dirty * dirty * made as f64 / remaining.max(1.0)) as u64;
    if doublewrite { pages } else { pages - pages.div_ceil(8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_the_mean_distance_to_the_limit() {
        let mib = f64::from(1 << 20);
        let of = |doublewrite| pages(10_000, 10 << 20, 10_000.0 * 500.0 * mib, doublewrite);
        assert_eq!((of(true), of(false)), (200, 175));
    }
}
