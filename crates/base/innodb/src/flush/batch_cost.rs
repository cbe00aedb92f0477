//! What a batch of pages costs: a part for its syncs, and a part for each page.

/// How much of the past a new batch leaves.
const KEPT: f64 = 0.9;

/// Bounds of a page's cost as shares of the mean cost with everything included.
const PAGE_SHARE_MIN: f64 = 0.02;

/// Before batches of different lengths were seen, all of the time is taken to be the pages': the
/// next batch is then one that fits its time, of another length than the first, which teaches.
const PAGE_SHARE_FIRST: f64 = 1.0;

/// What a batch that teaches nothing leaves of what was learnt: batches become shorter until they
/// teach again, so that a device that has changed is noticed.
const FORGOTTEN: f64 = 0.05;

/// Lengths of batches must spread by this share of their mean, squared, to separate the parts.
const SPREAD_MIN: f64 = 0.01;

/// Syncs take at most a quarter of a batch's time, where it may be as long as that takes.
const BATCH_TO_SYNCS: f64 = 4.0;

/// A batch is at most this many times the mean of those before, and takes at most this long when
/// it costs what those did, in microseconds: a wrong guess then teaches better without a stall.
const GROWTH_MAX: f64 = 1.5;
const BATCH_US_MAX: f64 = 1_000_000.0;

/// A line through times over pages of recent batches, by least squares that forget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchCost {
    batches: f64,
    pages: f64,
    us: f64,
    pages_pages: f64,
    pages_us: f64,
    /// The pages' part of the mean cost, as it was when it could last be determined.
    page_share: f64,
}

impl Default for BatchCost {
    fn default() -> BatchCost {
        let (batches, pages, us, pages_pages, pages_us) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let page_share = PAGE_SHARE_FIRST;
        BatchCost { batches, pages, us, pages_pages, pages_us, page_share }
    }
}

impl BatchCost {
    /// Takes in a batch and how long it took. A batch of no pages is ignored.
    pub fn observe(&mut self, pages: u32, took_us: u64) {
        if pages == 0 {
            return;
        }
        let (pages, us) = (f64::from(pages), took_us.max(1) as f64);
        for (sum, new) in [
            (&mut self.batches, 1.0),
            (&mut self.pages, pages),
            (&mut self.us, us),
            (&mut self.pages_pages, pages * pages),
            (&mut self.pages_us, pages * us),
        ] {
            *sum = *sum * KEPT + new;
        }
        let spread = self.batches * self.pages_pages - self.pages * self.pages;
        if spread >= SPREAD_MIN * self.pages * self.pages {
            let slope_us = (self.batches * self.pages_us - self.pages * self.us) / spread;
            self.page_share = (slope_us * self.pages / self.us).clamp(PAGE_SHARE_MIN, 1.0);
        } else {
            self.page_share += (1.0 - self.page_share) * FORGOTTEN;
        }
    }

    /// Time of each page, in microseconds; nothing before the first batch.
    #[must_use]
    pub fn page_us(&self) -> Option<f64> {
        (self.batches > 0.0).then(|| self.us / self.pages * self.page_share)
    }

    /// Pages written per second while there is something to write; nothing before the first batch.
    #[must_use]
    pub fn pages_per_s(&self) -> Option<f64> {
        (self.us > 0.0).then(|| self.pages * 1e6 / self.us)
    }

    /// Time of a batch apart from its pages, in microseconds; nothing before the first batch.
    #[must_use]
    pub fn batch_us(&self) -> Option<f64> {
        let page_us = self.page_us()?;
        Some((self.us - page_us * self.pages) / self.batches)
    }

    /// Pages that take about `us`, or more where the syncs would be most of it; nothing before the
    /// first batch.
    #[must_use]
    pub fn pages_in(&self, us: f64) -> Option<f64> {
        let (page_us, batch_us) = (self.page_us()?, self.batch_us()?);
        let pages = (us.max(batch_us * BATCH_TO_SYNCS) - batch_us) / page_us;
        let mean_pages = self.pages / self.batches;
        let longest = BATCH_US_MAX * self.pages / self.us;
        Some(pages.min(mean_pages * GROWTH_MAX + 1.0).min(longest).max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(batches: impl Iterator<Item = u32>, batch_us: f64, page_us: f64) -> BatchCost {
        let mut cost = BatchCost::default();
        for pages in batches {
            cost.observe(pages, (batch_us + f64::from(pages) * page_us) as u64);
        }
        cost
    }

    #[test]
    fn nothing_is_known_before_the_first_batch() {
        let mut cost = BatchCost::default();
        cost.observe(0, 1000);
        assert_eq!((cost.page_us(), cost.batch_us(), cost.pages_in(1e6)), (None, None, None));
    }

    #[test]
    fn both_parts_are_found_from_batches_of_different_lengths() {
        let cost = learnt((0..40).map(|at| 10 + at % 7 * 5), 4000.0, 100.0);
        assert!((cost.page_us().unwrap() - 100.0).abs() < 0.5, "{cost:?}");
        assert!((cost.batch_us().unwrap() - 4000.0).abs() < 10.0, "{cost:?}");
    }

    #[test]
    fn batches_grow_until_syncs_are_a_quarter_and_then_fit_the_time() {
        for (batch_us, page_us, us) in
            [(4000.0, 100.0, 1000.0), (4000.0, 100.0, 30_000.0), (50.0, 2000.0, 20_000.0)]
        {
            let mut cost = BatchCost::default();
            let mut pages = 4.0_f64;
            for _ in 0..60 {
                cost.observe(pages as u32, (batch_us + pages.floor() * page_us) as u64);
                pages = cost.pages_in(us).unwrap();
            }
            let best = (f64::max(us, 4.0 * batch_us) - batch_us) / page_us;
            assert!((pages / best - 1.0).abs() < 0.3, "{pages} instead of {best}");
        }
    }

    #[test]
    fn noise_does_not_let_a_batch_take_more_than_about_a_second() {
        let mut cost = BatchCost::default();
        let mut pages = 1.0_f64;
        for at in 0..200_u64 {
            let took_us = 1000 + (at * 7919 % 13) * 40_000;
            cost.observe(pages as u32, took_us);
            pages = cost.pages_in(200_000.0).unwrap();
            let mean_us = cost.us / cost.pages;
            assert!(pages >= 1.0 && pages * mean_us <= 1.01e6, "{pages} {mean_us}");
        }
    }

    #[test]
    fn a_device_that_has_changed_is_noticed_from_equal_batches() {
        let mut cost = learnt((0..40).map(|at| 10 + at % 7 * 5), 20_000.0, 20.0);
        let before = cost.pages_in(1000.0).unwrap();
        for _ in 0..200 {
            cost.observe(20, 100_000);
        }
        let after = cost.pages_in(1000.0).unwrap();
        assert!(before > 20.0 && after < 2.0, "{before}, then {after}");
    }
}
