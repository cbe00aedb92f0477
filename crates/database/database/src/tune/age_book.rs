//! The ages of dirty pages. No server reports them; they are derived from what it does report.
//!
//! Method: pages that became dirty between two samples are the growth of the dirty pages and those
//! that were written; their oldest change lies in the redo of that time. What is written, or behind
//! the checkpoint, is gone, the oldest first. Invariant: the pages are as many as the server
//! reports.

use iostrata_innodb::{Lsn, flush::Ages};

/// Parts of the redo that are distinguished.
const PARTS: u64 = 128;
/// The pages that are dirty at the first sample are taken to lie evenly.
const FIRST_PARTS: u64 = 16;

/// What the server reports of its dirty pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirtyNow {
    /// End of the redo, and where recovery would begin.
    pub end: Lsn,
    pub oldest: Lsn,
    /// Dirty pages.
    pub pages: f64,
    /// Pages written since the start; absent where the server does not count them.
    pub written: Option<u64>,
    /// Bytes of redo beyond which nothing can lie.
    pub limit_bytes: u64,
}

/// The dirty pages by age.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgeBook {
    /// First LSN and pages of each part, the oldest first.
    parts: Vec<(Lsn, f64)>,
    last: Option<DirtyNow>,
    /// The same in whole pages.
    whole: Vec<(Lsn, u32)>,
    oldest: Lsn,
    end: Lsn,
}

impl AgeBook {
    /// Takes in what the server reports.
    pub fn take(&mut self, now: DirtyNow) {
        match self.last.replace(now) {
            None => self.begin(now),
            Some(was) => {
                let written = now.written.zip(was.written);
                let written = written.map_or(0, |(now, was)| now.saturating_sub(was)) as f64;
                self.add(was.end, (now.pages - was.pages + written).max(0.0), now.limit_bytes);
            }
        }
        self.forget_before(now.oldest, now.end);
        self.level(now.pages);
        let gone = self.parts.iter().take_while(|part| part.1 < 0.5).count();
        self.parts.drain(..gone);
        let first = self.parts.first().map_or(now.end, |part| part.0);
        (self.oldest, self.end) = (first.max(now.oldest), now.end);
        let whole = |(start, pages): &(Lsn, f64)| (*start, pages.round() as u32);
        self.whole = self.parts.iter().map(whole).collect();
    }

    /// Redo since the oldest change of a dirty page, in bytes: the checkpoint may lie behind.
    pub fn modified_age(&self) -> u64 {
        self.end.since(self.oldest)
    }

    /// The pages by age.
    pub fn ages(&self) -> Ages<'_> {
        Ages::between(&self.whole, self.oldest, self.end)
    }

    fn begin(&mut self, now: DirtyNow) {
        let step = (now.end.since(now.oldest) / FIRST_PARTS).max(1);
        let part = |at| (now.oldest.plus(at * step), now.pages / FIRST_PARTS as f64);
        self.parts = (0..FIRST_PARTS).map(part).collect();
    }

    fn add(&mut self, from: Lsn, pages: f64, limit_bytes: u64) {
        match self.parts.last_mut() {
            Some((start, sum)) if from.since(*start) < limit_bytes / PARTS => *sum += pages,
            _ => self.parts.push((from, pages)),
        }
    }

    /// What lies before the checkpoint was written; of a part as much as lies before it.
    fn forget_before(&mut self, oldest: Lsn, end: Lsn) {
        let next = |parts: &[(Lsn, f64)], at: usize| parts.get(at + 1).map_or(end, |part| part.0);
        let is_gone = |at: &usize| next(&self.parts, *at) <= oldest;
        let gone = (0..self.parts.len()).take_while(is_gone).count();
        self.parts.drain(..gone);
        let first_end = next(&self.parts, 0);
        if let Some((start, pages)) = self.parts.first_mut()
            && oldest > *start
        {
            let left = first_end.since(oldest) as f64 / first_end.since(*start).max(1) as f64;
            (*start, *pages) = (oldest, *pages * left);
        }
    }

    /// Makes the pages as many as the server reports: excess ones are removed from the oldest part
    /// on, missing ones are spread evenly.
    fn level(&mut self, pages: f64) {
        let sum: f64 = self.parts.iter().map(|part| part.1).sum();
        let mut over = sum - pages;
        if over < 0.0 && sum > 0.0 {
            self.parts.iter_mut().for_each(|part| part.1 *= pages / sum);
        }
        for part in &mut self.parts {
            let less = over.clamp(0.0, part.1);
            part.1 -= less;
            over -= less;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(end: u64, oldest: u64, pages: f64, written: u64) -> DirtyNow {
        let (end, oldest) = (Lsn(end), Lsn(oldest));
        DirtyNow { end, oldest, pages, written: Some(written), limit_bytes: 12_800 }
    }

    #[test]
    fn pages_are_as_old_as_the_redo_in_which_they_became_dirty() {
        let mut book = AgeBook::default();
        book.take(now(1000, 1000, 0.0, 0));
        // Many at first, then few.
        book.take(now(2000, 1000, 900.0, 0));
        book.take(now(3000, 1000, 950.0, 0));
        book.take(now(4000, 1000, 1000.0, 0));
        let before = |book: &AgeBook, lsn| book.ages().pages_before(Lsn(lsn)).round();
        assert_eq!([2000, 3000, 4000].map(|lsn| before(&book, lsn)), [900.0, 950.0, 1000.0]);
        // 500 of the oldest are written and 100 became dirty meanwhile.
        book.take(now(5000, 1500, 600.0, 500));
        assert_eq!([2000, 4000, 5000].map(|lsn| before(&book, lsn)), [400.0, 500.0, 600.0]);
        // The checkpoint is behind the first part.
        book.take(now(6000, 2000, 300.0, 900));
        assert_eq!(before(&book, 2000), 0.0);
        assert_eq!(before(&book, 6000), 300.0);
    }

    #[test]
    fn what_is_there_at_first_lies_evenly() {
        let mut book = AgeBook::default();
        book.take(now(9000, 1000, 800.0, 5));
        assert_eq!(book.ages().pages_before(Lsn(5000)).round(), 400.0);
    }

    #[test]
    fn the_sum_is_what_the_server_tells() {
        let mut book = AgeBook::default();
        for at in 1..500_u64 {
            let pages = 300.0 + (at * 7919 % 400) as f64;
            book.take(now(at * 100, at.saturating_sub(90) * 100, pages, at * 13));
            let sum = book.ages().pages_before(Lsn(at * 100));
            assert!((sum - pages).abs() <= 130.0, "{at}: {sum} {pages}");
        }
    }
}
