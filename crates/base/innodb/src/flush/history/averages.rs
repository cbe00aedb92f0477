//! What page cleaners average, in whole numbers as they do.

use crate::Lsn;

use super::strategy::SECOND_US;
use crate::flush::FlushSample;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
