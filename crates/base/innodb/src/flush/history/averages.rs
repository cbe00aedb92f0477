//! What page cleaners average, in whole numbers as they do.

use super::strategy::{Proposal, SECOND_US, Strategy, Tick};
use crate::Lsn;
use crate::flush::FlushSample;
use crate::flush::ages::Ages;

/// Averages over `flushing_avg_loops` passes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Averages {
    /// End of the redo and time from which the rates are taken.
    begun: (Lsn, u64),
    passes: u64,
    pages: u64,
    /// Pages flushed per second.
    pub pages_rate: u64,
    /// Redo made, in bytes per second.
    pub lsn_rate: u64,
}

/// What a sum is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The passes, whatever time they took: MySQL 5.6.
    Passes,
    /// The seconds that passed: from 5.7 on.
    Seconds,
}

impl Averages {
    /// These rates, at the beginning of a sum.
    #[cfg(test)]
    pub fn known(pages_rate: u64, lsn_rate: u64) -> Self {
        Averages { pages_rate, lsn_rate, ..Averages::default() }
    }

    /// The rates are taken from here on: the first look begins them and counts as no pass.
    pub fn begin(&mut self, now: &FlushSample<'_>) {
        self.begun = (now.lsn, now.now_us);
    }

    /// Takes in one pass and the pages that the one before flushed.
    pub fn pass(&mut self, now: &FlushSample<'_>, flushed: u64, over: Over) {
        let (lsn, us) = self.begun;
        let loops = u64::from(now.settings.flushing_avg_loops.max(1));
        self.passes += 1;
        self.pages = self.pages.saturating_add(flushed);
        let seconds = now.now_us.saturating_sub(us) / SECOND_US;
        let of = match over {
            Over::Passes if self.passes >= loops => loops,
            Over::Seconds if self.passes >= loops || seconds >= loops => seconds.max(1),
            _ => return,
        };
        self.pages_rate = (self.pages / of).midpoint(self.pages_rate);
        self.lsn_rate = (now.lsn.since(lsn) / of).midpoint(self.lsn_rate);
        (self.passes, self.pages) = (0, 0);
        self.begin(now);
    }
}

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

    #[test]
    fn nothing_is_known_before_all_passes_were_made() {
        let after = |passes: u64, step_us: u64, over: Over| {
            let mut averages = Averages::default();
            let at = |step: u64| FlushSample {
                now_us: 7 * SECOND_US + step * step_us,
                lsn: Lsn(5_000 + step * 600),
                ..FlushSample::default()
            };
            averages.begin(&at(0));
            (1..=passes).for_each(|step| averages.pass(&at(step), 90, over));
            (averages.pages_rate, averages.lsn_rate)
        };
        assert_eq!(after(29, SECOND_US, Over::Passes), (0, 0));
        assert_eq!(after(30, SECOND_US, Over::Passes), (45, 300));
        assert_eq!(after(30, SECOND_US / 10, Over::Passes), (45, 300), "time is not looked at");
        assert_eq!(after(30, SECOND_US / 2, Over::Seconds), (90, 600), "15 seconds");
        assert_eq!(after(15, 2 * SECOND_US, Over::Seconds), (22, 150), "30 seconds");
    }

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
