//! Which pages are copied for readers, and who reads the copies.
//!
//! Invariant: a copy is handed out only where a use of its page need not be noted, so that pages
//! which are read by their copies alone still count as used.
//! What a copy is, and when it is good, is in `read_copies`.

use std::sync::atomic::Ordering;

use iostrata_innodb::PageNo;

use crate::pool::guard::Shared;
use crate::pool::pool::Pool;
use crate::pool::read_copies::ReadCopy;
use crate::pool::word::Word;

impl Pool {
    /// The copy of a page, if it has one that holds what the page does. None as well when the use
    /// of the page has to be noted: then it is pinned, as without copies.
    #[inline]
    pub fn read_copy(&self, page: PageNo) -> Option<ReadCopy<'_>> {
        if self.read_copies.is_empty() {
            return None;
        }
        let word = Word(self.table.existing(page)?.load(Ordering::Acquire));
        if !word.is_resident() || word.is_unread() {
            return None;
        }
        let frame = self.frames.get(word.frame());
        let since = frame.since.load(Ordering::Relaxed);
        if !word.is_used_most() && self.queues.counts_use(since) {
            return None;
        }
        let copy = self.read_copies.current(frame, page)?;
        self.requests.count();
        Some(copy)
    }

    /// Copies a page that is latched, if readers met at it since it was copied last.
    #[inline]
    pub fn offer_read_copy(&self, page: &Shared<'_>) {
        if self.settings.copies_always || page.frame().have_readers_met() {
            self.take_read_copy(page);
        }
    }

    #[cold]
    fn take_read_copy(&self, page: &Shared<'_>) {
        page.frame().forget_meeting();
        self.read_copies.take(page.frame(), page.page_no(), page);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iostrata_innodb::Lsn;

    use super::*;
    use crate::page::PageSize;
    use crate::pool::border::{Nothing, PoolSettings};

    fn pool(frames: usize) -> Pool {
        let settings = PoolSettings::new(PageSize::new(4096).unwrap(), frames);
        let settings = PoolSettings { copies_always: true, ..settings };
        Pool::new(settings, Arc::default(), Arc::new(Nothing), Arc::new(Nothing))
    }

    /// After so many uses that another one would not be noted.
    fn offer(pool: &Pool, page: PageNo) {
        (0..8).for_each(|_| drop(pool.pin(page).unwrap()));
        pool.offer_read_copy(&pool.pin(page).unwrap().shared());
    }

    #[test]
    fn a_copy_is_good_until_the_page_is_held_exclusively() {
        let pool = pool(4);
        let page = PageNo(3);
        assert!(pool.read_copy(page).is_none());
        offer(&pool, page);
        let copy = pool.read_copy(page).unwrap();
        assert!(copy.is_current() && copy.iter().all(|byte| *byte == 0));
        let mut held = pool.pin(page).unwrap().exclusive();
        assert!(!copy.is_current() && pool.read_copy(page).is_none(), "somebody may be writing");
        held.mark_dirty(Lsn(1));
        held[100] = 7;
        drop(held);
        assert!(!copy.is_current() && pool.read_copy(page).is_none(), "it is another page now");
        assert_eq!(copy[100], 0);
        offer(&pool, page);
        assert_eq!(pool.read_copy(page).unwrap()[100], 7);
    }

    #[test]
    fn a_page_that_leaves_takes_its_copy_along() {
        let pool = pool(1);
        offer(&pool, PageNo(1));
        let copy = pool.read_copy(PageNo(1)).unwrap();
        for page in 2..9 {
            drop(pool.pin(PageNo(page)).unwrap());
        }
        assert!(!copy.is_current() && pool.read_copy(PageNo(1)).is_none());
        assert!(pool.read_copies.is_empty());
        assert_eq!(copy.len(), 4096, "who still reads it may");
    }

    #[test]
    fn copies_are_bounded() {
        let pool = pool(64);
        for page in 1..60 {
            offer(&pool, PageNo(page));
        }
        assert_eq!(pool.read_copies.len(), 8);
    }

    #[test]
    fn nothing_is_copied_before_readers_meet() {
        let settings = PoolSettings::new(PageSize::new(4096).unwrap(), 4);
        let pool = Pool::new(settings, Arc::default(), Arc::new(Nothing), Arc::new(Nothing));
        offer(&pool, PageNo(3));
        assert!(pool.read_copy(PageNo(3)).is_none());
        pool.pin(PageNo(3)).unwrap().frame().note_meeting();
        offer(&pool, PageNo(3));
        assert!(pool.read_copy(PageNo(3)).is_some());
        assert!(!pool.pin(PageNo(3)).unwrap().frame().have_readers_met());
    }
}
