//! Where the pages of a flash drive go: the cache between the host and the dies, and the dies:
//! reads first, then programs, and cleaning when their erased pages run out.
//!
//! Which pages are still valid is not tracked: a block that is cleaned holds a share of valid pages
//! that follows from the data sheet's rate and from how random the writes have been lately.
//! Invariant: an epoch is drained when every page that was taken in it, and in all before it, is
//! programmed. A flush closes the epoch in which it comes and waits for it.

use std::collections::VecDeque;

use iostrata_stats::Random;

use super::FlashParameters;

/// Pages that are moved before the die checks its reads again.
const MOVES_AT_A_TIME: u32 = 4;
/// How far a read's time and a block's share of valid pages stray.
const STRAY: f64 = 0.1;

/// What a die does for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Reads so many pages for a request.
    Read { slot: u32, pages: u32 },
    /// Programs a page.
    Program(Dirty),
    /// Moves valid pages or erases.
    Clean,
}

/// A block that is being cleaned.
#[derive(Clone, Copy, Debug)]
struct Victim {
    moves_left: u32,
    pages_won: u32,
}

/// One die.
pub(super) struct Die {
    work: Option<Work>,
    reads: VecDeque<(u32, u32)>,
    erased_pages: u64,
    victim: Option<Victim>,
    is_refilling: bool,
    /// Cleaning that the pages programmed from a low reserve have not paid yet.
    owed_ns: i64,
}

/// What the dies share.
pub(super) struct Wearing {
    /// Share of lately written pages that did not follow their predecessor, 0 to 1.
    pub(super) random_share: f64,
    valid_random: f64,
    valid_sequential: f64,
    reserve_pages: u64,
    /// Erased pages below which every page written pays for its cleaning at once.
    low_pages: u64,
    move_page_ns: f64,
    erase_page_ns: f64,
}

impl Wearing {
    pub(super) fn new(parameters: &FlashParameters) -> Self {
        let reserve_pages = parameters.reserve_pages / u64::from(parameters.dies);
        Self {
            random_share: 1.0,
            valid_random: parameters.valid_share_random(),
            valid_sequential: parameters.valid_share_sequential(),
            reserve_pages,
            low_pages: (reserve_pages / 2).min(2 * u64::from(parameters.block_pages)),
            move_page_ns: parameters.move_page_ns() as f64,
            erase_page_ns: parameters.erase_ns as f64 / f64::from(parameters.block_pages),
        }
    }

    fn valid_share(&self) -> f64 {
        self.valid_sequential + self.random_share * (self.valid_random - self.valid_sequential)
    }

    /// Cleaning time behind every page won.
    fn cleaning_page_ns(&self) -> i64 {
        let valid = self.valid_share();
        ((valid * self.move_page_ns + self.erase_page_ns) / (1.0 - valid)) as i64
    }
}

impl Die {
    pub(super) fn new(erased_pages: u64) -> Self {
        Self {
            work: None,
            reads: VecDeque::new(),
            erased_pages,
            victim: None,
            is_refilling: false,
            owed_ns: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.work.is_none()
    }

    pub(super) fn add_read(&mut self, slot: u32, pages: u32) {
        self.reads.push_back((slot, pages));
    }

    /// Ends its current work and returns it.
    pub(super) fn end(&mut self) -> Option<Work> {
        let ended = self.work.take();
        if ended == Some(Work::Clean)
            && let Some(victim) = self.victim.as_mut()
        {
            if victim.moves_left > 0 {
                victim.moves_left -= victim.moves_left.min(MOVES_AT_A_TIME);
            } else {
                // Nothing was left to move, so this was the erase.
                self.erased_pages += u64::from(victim.pages_won);
                self.victim = None;
            }
        }
        ended
    }

    /// Begins the next work, if any, and returns how long it takes.
    pub(super) fn begin(
        &mut self,
        parameters: &FlashParameters,
        wearing: &Wearing,
        cache: &mut Cache,
        random: &mut Random,
    ) -> Option<u64> {
        if let Some((slot, pages)) = self.reads.pop_front() {
            self.work = Some(Work::Read { slot, pages });
            let read_ns = parameters.read_page_ns as f64 * f64::from(pages);
            return Some((read_ns * stray(random)) as u64);
        }
        self.is_refilling |= self.erased_pages < wearing.reserve_pages / 2;
        self.is_refilling &= self.erased_pages < wearing.reserve_pages;
        let has_dirty = !cache.is_empty();
        // Writes pay for their pages as they go, so that the die is never away for a whole block.
        let may_program = self.erased_pages > 0 && self.owed_ns <= 0;
        if has_dirty && may_program {
            self.erased_pages -= 1;
            let is_low = self.erased_pages < wearing.low_pages;
            self.owed_ns = if is_low { self.owed_ns + wearing.cleaning_page_ns() } else { 0 };
            self.work = cache.next().map(Work::Program);
            return Some(parameters.program_page_ns);
        }
        if has_dirty || self.is_refilling {
            self.work = Some(Work::Clean);
            let takes_ns = self.clean_ns(parameters, wearing, random);
            self.owed_ns -= takes_ns as i64;
            return Some(takes_ns);
        }
        None
    }

    /// Time of the next piece of cleaning.
    fn clean_ns(
        &mut self,
        parameters: &FlashParameters,
        wearing: &Wearing,
        random: &mut Random,
    ) -> u64 {
        let victim = *self.victim.get_or_insert_with(|| {
            let block = parameters.block_pages;
            let won = (1.0 - wearing.valid_share()) * stray(random) * f64::from(block);
            // Rounded by chance, so that the mean keeps its fraction.
            let pages_won = ((won + random.uniform()) as u32).clamp(1, block);
            Victim { moves_left: block - pages_won, pages_won }
        });
        match victim.moves_left {
            0 => parameters.erase_ns,
            left => u64::from(left.min(MOVES_AT_A_TIME)) * parameters.move_page_ns(),
        }
    }
}

fn stray(random: &mut Random) -> f64 {
    1.0 + STRAY * (2.0 * random.uniform() - 1.0)
}

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

    /// Takes as many of the pages as there is room for, and returns how many.
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
