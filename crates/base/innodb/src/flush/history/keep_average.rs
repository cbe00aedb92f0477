//! XtraDB's `keep_average`: ten looks a second, less what other threads have flushed.
//!
//! That server remembered its newest page and counted the pages in front of it; where that page had
//! been flushed, all counted as new. Here pages are counted by age, so the quirk does not occur.

use crate::Lsn;

use super::strategy::{Proposal, SECOND_US, Strategy, Tick};
use crate::flush::ages::Ages;

/// Remembers the last look.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeepAverage {
    /// End of the redo, and dirty pages.
    last: Option<(Lsn, u64)>,
}

impl Strategy for KeepAverage {
    fn tick_us(&self) -> u64 {
        SECOND_US / 10
    }

    fn flush(&mut self, seen: &Tick<'_, '_>, own: u64) -> Option<Proposal> {
        let now = seen.now;
        let (mark, before) = self.last.replace((now.lsn, now.dirty_pages))?;
        let older = Ages::of(now).pages_before(mark) as u64;
        let new = now.dirty_pages.saturating_sub(older);
        let flushed_by_all = new.saturating_add(before).saturating_sub(now.dirty_pages);
        let made = now.lsn.since(mark);
        let want = pages(now.dirty_pages, made, seen.ladder.async_age);
        let want = want.saturating_sub(flushed_by_all.saturating_sub(own));
        let until = seen.now.after_oldest(made);
        (want > 0).then(|| Proposal { want: want + 1, cap: None, until, skips_sleep: false })
    }
}

/// The share of the dirty pages that the redo made since the last look is of the async limit.
fn pages(dirty: u64, made: u64, async_age: u64) -> u64 {
    (dirty as f64 * made as f64 / async_age.max(1) as f64).min(1e18) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flush::{FlushSample, Ladder};

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_look_writes_its_share_and_credits_what_others_wrote() {
        let ladder = Ladder { async_age: 7258 * MIB / 10, ..Ladder::default() };
        let flush = |own: u64, others: u64| {
            let mut policy = KeepAverage::default();
            let ages = [(Lsn(MIB), 9_900), (Lsn(500 * MIB), 100)];
            let first = FlushSample {
                lsn: Lsn(500 * MIB),
                oldest: Some(Lsn(MIB)),
                dirty_pages: 9_900 + own + others,
                age_histogram: &ages[..1],
                ..FlushSample::default()
            };
            policy.flush(&Tick { now: &first, ladder, io: 200 }, 0);
            let lsn = Lsn(501 * MIB);
            let now = FlushSample { lsn, dirty_pages: 10_000, age_histogram: &ages, ..first };
            policy.flush(&Tick { now: &now, ladder, io: 200 }, own)
        };
        let batch = flush(50, 0).unwrap();
        assert_eq!((batch.want, batch.until), (14, Lsn(2 * MIB)), "13 and one more");
        assert_eq!(flush(50, 5).unwrap().want, 9, "less what others flushed");
        assert_eq!(flush(50, 13), None);
    }
}
