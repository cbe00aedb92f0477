//! What is dirty when a simulation begins.
//!
//! A load that fills memory with dirty pages takes minutes to get there; it begins there instead.
//! Invariant: what is made up is what the load itself would hold: a journal's pages in any order, a
//! sweep's so that a page is the likelier dirty the longer ago the sweep passed it.

use super::layout::TableFiles;
use crate::cache::{CachePlan, Submission};
use iostrata_stats::Random;

/// Part of the index that is dirty when the limit does not bound it.
const INDEX_PART_MAX: f64 = 0.95;

/// How much is dirty at first, and in which way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Prefill {
    /// Nothing: the load gets to its course within seconds.
    Nothing,
    /// So many pages of the running transaction.
    Transaction(u32),
    /// So many pages in front of a sweep.
    Sweep(u32),
}

impl Prefill {
    /// What suits a load on a queue that holds so many requests.
    pub(super) fn of(plan: &CachePlan, layout: &TableFiles, nr_requests: u32) -> Self {
        let index = f64::from(layout.index_pages());
        let most = (index * INDEX_PART_MAX).min(f64::from(plan.dirty_pages_max - 8));
        match plan.submission {
            Submission::Unsorted => {
                // A commit that finds room for all its requests stops nobody, and rows come in
                // until the limit; any other stops them within moments. Pages come in any order, so
                // that half of the index makes more requests than all of it.
                let at_most = most.min(index / 2.0);
                let requests = at_most * (1.0 - at_most / index);
                match requests < f64::from(nr_requests) {
                    true => Self::Transaction(most as u32),
                    false => Self::Nothing,
                }
            }
            Submission::InodeOrdered if most > f64::from(plan.background_pages) => {
                Self::Sweep(most as u32)
            }
            Submission::InodeOrdered => Self::Nothing,
        }
    }

    /// The pages in order, and where a sweep goes on.
    pub(super) fn pages(self, index_pages: u32, random: &mut Random) -> (Vec<u32>, u32) {
        match self {
            Self::Nothing => (Vec::new(), 0),
            Self::Transaction(count) => (transaction(count, index_pages, random), 0),
            Self::Sweep(count) => sweep(count, index_pages, random),
        }
    }
}

/// So many different pages in any order.
fn transaction(count: u32, index_pages: u32, random: &mut Random) -> Vec<u32> {
    let mut pages: Vec<u32> = (1..=index_pages).collect();
    for place in 0..count {
        let other = u64::from(place) + random.below(u64::from(index_pages - place));
        pages.swap(place as usize, other as usize);
    }
    pages.truncate(count as usize);
    pages
}

/// Pages dirtied evenly since the sweep passed them: `1 - exp(-rate x)` of those that it passed a
/// part `x` of its way ago, with the rate that makes them as many as there are.
fn sweep(count: u32, index_pages: u32, random: &mut Random) -> (Vec<u32>, u32) {
    let part = f64::from(count) / f64::from(index_pages);
    let mean = |rate: f64| 1.0 - (1.0 - (-rate).exp()) / rate;
    let (mut low, mut high) = (1e-6, 1e4);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if mean(middle) < part { low = middle } else { high = middle }
    }
    let position = 1 + random.below(u64::from(index_pages)) as u32;
    let is_dirty = |page: &u32| {
        let ago = (position + index_pages - page) % index_pages;
        let ago = f64::from(ago) / f64::from(index_pages);
        random.uniform() < 1.0 - (-low * ago).exp()
    };
    ((1..=index_pages).filter(is_dirty).take(count as usize).collect(), position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_each_page_once_in_no_order() {
        let mut pages = transaction(5_000, 10_000, &mut Random::new(1));
        assert!(!pages.is_sorted());
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 5_000);
        assert!(pages[0] > 0 && pages[4_999] <= 10_000);
    }

    #[test]
    fn a_sweep_has_most_in_front_and_none_behind() {
        let (pages, position) = sweep(50_000, 100_000, &mut Random::new(3));
        assert!(pages.len().abs_diff(50_000) < 1_000, "{}", pages.len());
        let near = |from: u32| {
            let is_near = |page: &&u32| (**page + 100_000 - from) % 100_000 < 5_000;
            pages.iter().filter(is_near).count()
        };
        let (ahead, behind) = (near(position), near((position + 95_000) % 100_000));
        assert!(behind < 600 && ahead > 3_000, "{behind} {ahead}");
    }
}
