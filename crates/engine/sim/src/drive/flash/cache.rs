//! Pages between the host and the dies.
//!
//! Invariant: an epoch is drained when every page that was taken in it, and in all before it, is
//! programmed. A flush closes the epoch in which it comes and waits for it.

use std::collections::VecDeque;

/// Pages of one write that wait for dies.
#[derive(Clone, Copy, Debug)]
struct PageRun {
    pages: u32,
    page: Dirty,
}

/// A page on its way to a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dirty {
    /// In which epoch it was taken.
    pub(super) epoch: u64,
    /// The write that waits for it to be programmed, if one does.
    pub(super) waiter: Option<u32>,
}

/// The pages, in the order in which they came.
pub(super) struct Cache {
    room: u32,
    waiting: VecDeque<PageRun>,
    /// Pages not yet programmed of the oldest epoch that is not drained, and of all after it.
    undrained: VecDeque<u64>,
    first_epoch: u64,
}

impl Cache {
    pub(super) fn new(pages: u32) -> Self {
        Self {
            room: pages,
            waiting: VecDeque::new(),
            undrained: VecDeque::from([0]),
            first_epoch: 0,
        }
    }

    /// Takes as many of the pages as there is room for, and says how many.
    pub(super) fn take(&mut self, pages: u32, waiter: Option<u32>) -> u32 {
        let taken = pages.min(self.room);
        if taken > 0 {
            self.room -= taken;
            let epoch = self.first_epoch + self.undrained.len() as u64 - 1;
            if let Some(count) = self.undrained.back_mut() {
                *count += u64::from(taken);
            }
            self.waiting.push_back(PageRun { pages: taken, page: Dirty { epoch, waiter } });
        }
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next page for a die.
    pub(super) fn next(&mut self) -> Option<Dirty> {
        let run = self.waiting.front_mut()?;
        let page = run.page;
        run.pages -= 1;
        if run.pages == 0 {
            self.waiting.pop_front();
        }
        Some(page)
    }

    /// A page is programmed.
    pub(super) fn programmed(&mut self, page: Dirty) {
        self.room += 1;
        self.undrained[(page.epoch - self.first_epoch) as usize] -= 1;
        while self.undrained.len() > 1 && self.undrained[0] == 0 {
            self.undrained.pop_front();
            self.first_epoch += 1;
        }
    }

    /// Closes the current epoch and names it.
    pub(super) fn close_epoch(&mut self) -> u64 {
        let epoch = self.first_epoch + self.undrained.len() as u64 - 1;
        self.undrained.push_back(0);
        while self.undrained.len() > 1 && self.undrained[0] == 0 {
            self.undrained.pop_front();
            self.first_epoch += 1;
        }
        epoch
    }

    /// Whether an epoch that was closed is drained.
    pub(super) fn is_drained(&self, epoch: u64) -> bool {
        epoch < self.first_epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_drained_with_its_last_page() {
        let mut cache = Cache::new(3);
        assert_eq!(cache.take(2, None), 2);
        let first = cache.close_epoch();
        assert_eq!(cache.take(5, Some(7)), 1, "room for one");
        let second = cache.close_epoch();
        let pages: Vec<Dirty> = std::iter::from_fn(|| cache.next()).collect();
        assert_eq!(pages.len(), 3);
        assert_eq!(pages[2].waiter, Some(7));
        // The later epoch's page first: neither is drained, for the first is still open.
        cache.programmed(pages[2]);
        assert!(!cache.is_drained(first) && !cache.is_drained(second));
        cache.programmed(pages[0]);
        assert!(!cache.is_drained(first));
        cache.programmed(pages[1]);
        assert!(cache.is_drained(first) && cache.is_drained(second));
        let empty = cache.close_epoch();
        assert!(cache.is_drained(empty), "nothing was taken since");
        assert_eq!(cache.take(9, None), 3, "all room is back");
    }
}
