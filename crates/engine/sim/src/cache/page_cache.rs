//! The cache as its users see it: they write to pages, and sometimes wait.

use super::Submission;
use super::flusher::Flusher;
use super::journal::Journal;
use super::pages::{PageCounts, Pages};
use super::plan::{CachePlan, FLUSHER, JOURNAL, PAGE_BYTES, WRITER};
use crate::queue::{BlockQueue, Completed, Submitter};

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The page is changed.
    Done,
    /// Not changed; write again when the wait is over.
    Waits(Waits),
}

/// What a writer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// That a page arrives.
    Arrival(u32),
    /// That the queue wakes it.
    Wake,
    /// That fewer pages are dirty.
    Limit,
    /// That it reads the page, which is not in memory, and calls [`PageCache::has_read`].
    Read(u32),
}

/// A page cache above a block queue.
#[derive(Clone, Debug)]
pub struct PageCache {
    plan: CachePlan,
    pages: Pages,
    journal: Option<Journal>,
    flusher: Flusher,
    /// Absent when memory holds every page anyway.
    lru: Option<Lru>,
    submitted: Vec<u32>,
}

impl PageCache {
    /// A cache in which nothing is dirty. When memory does not hold all pages, the first ones are
    /// in it; otherwise all.
    pub fn new(plan: CachePlan) -> Self {
        let mut lru =
            (plan.pages > plan.memory_pages).then(|| Lru::new(plan.pages, plan.memory_pages));
        if let Some(lru) = &mut lru {
            (0..plan.memory_pages).for_each(|page| lru.use_page(page, |_| true));
        }
        let journal = (plan.submission == Submission::Unsorted).then(|| Journal::new(plan.pages));
        Self {
            plan,
            pages: Pages::new(&plan),
            journal,
            flusher: Flusher::new(&plan),
            lru,
            submitted: Vec::new(),
        }
    }

    /// Pages so far and now.
    pub fn counts(&self) -> PageCounts {
        self.pages.counts()
    }

    /// Where a page lies on the drive.
    pub fn at_bytes(&self, page: u32) -> u64 {
        self.pages.at_bytes(page)
    }

    /// The writer changes a page, of which it knows the content when `is_whole`: then the page need
    /// not be in memory before.
    pub fn write(
        &mut self,
        now_ns: u64,
        page: u32,
        is_whole: bool,
        queue: &mut BlockQueue,
    ) -> Access {
        if let Some(lru) = &mut self.lru {
            if !is_whole && !lru.has(page) {
                return Access::Waits(Waits::Read(page));
            }
            let pages = &self.pages;
            lru.use_page(page, |old| !pages.is_dirty(old) && !pages.is_under_write(old));
        }
        if !self.pages.is_dirty(page) && self.is_at_limit() {
            return Access::Waits(Waits::Limit);
        }
        if let Some(journal) = &mut self.journal {
            if journal.must_write_first(page, &self.pages) {
                if self.pages.is_under_write(page) {
                    return Access::Waits(Waits::Arrival(page));
                }
                if self.pages.submit(now_ns, page, 1, queue, WRITER) == 0 {
                    return Access::Waits(Waits::Wake);
                }
                journal.submitted(page);
                return Access::Waits(Waits::Arrival(page));
            }
            journal.join(now_ns, page, &self.pages);
        }
        self.pages.make_dirty(page);
        self.flusher.dirtied(now_ns);
        Access::Done
    }

    /// Makes pages dirty before the load begins, as members of the running transaction in this
    /// order; the thread that writes back goes on at `position`.
    pub fn prefill(&mut self, pages: &[u32], position: u32) {
        for &page in pages {
            if let Some(journal) = &mut self.journal {
                journal.join(0, page, &self.pages);
            }
            self.pages.make_dirty(page);
        }
        self.flusher.begin_at(position);
    }

    /// A page that was missing has been read.
    pub fn has_read(&mut self, page: u32) {
        if let Some(lru) = &mut self.lru {
            let pages = &self.pages;
            lru.use_page(page, |old| !pages.is_dirty(old) && !pages.is_under_write(old));
        }
    }

    /// Pages in memory; all when memory holds them all.
    pub fn pages_in_memory(&self) -> u32 {
        self.lru.as_ref().map_or(self.plan.pages, Lru::held)
    }

    /// Whether what a writer waits for has come; a wake and a read are told by the queue.
    pub fn is_over(&self, waits: Waits) -> bool {
        match waits {
            Waits::Arrival(page) => !self.pages.is_under_write(page),
            Waits::Limit => !self.is_at_limit(),
            Waits::Wake | Waits::Read(_) => false,
        }
    }

    fn is_at_limit(&self) -> bool {
        self.pages.unwritten() >= self.plan.dirty_pages_max
    }

    /// A write request of this cache is done.
    pub fn completed(&mut self, request: &Completed) {
        let first = self.pages.page_at(request.at_bytes);
        let count = u64::from(request.bytes) / PAGE_BYTES;
        for page in first..first + count as u32 {
            self.pages.arrived(page);
            if let Some(journal) = &mut self.journal {
                journal.arrived(page, &self.pages);
            }
        }
    }

    /// The queue woke a submitter.
    pub fn woken(&mut self, who: Submitter) {
        match who {
            FLUSHER => self.flusher.woken(),
            JOURNAL => {
                if let Some(journal) = &mut self.journal {
                    journal.woken();
                }
            }
            _ => {}
        }
    }

    /// Pages that a commit has still to submit while it waits for room in the queue: a load without
    /// change as long as there are many.
    pub fn backlog(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.backlog() as u64)
    }

    /// Commits so far; absent without a journal.
    pub fn commits(&self) -> Option<u64> {
        self.journal.as_ref().map(Journal::starts)
    }

    /// Lets up to so many pages of the backlog be written without the queue, as if `takes_ns` had
    /// passed while the queue stood still; how many there were.
    pub fn skip(&mut self, pages_max: u64, takes_ns: u64) -> u64 {
        let Some(journal) = &mut self.journal else { return 0 };
        journal.age(takes_ns);
        self.flusher.age(takes_ns);
        journal.skip(pages_max, &mut self.pages)
    }

    /// Whether the writer would have to wait for a page that a commit has not submitted yet.
    pub fn is_in_backlog(&self, page: u32) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.must_write_first(page, &self.pages))
    }

    /// The next moment at which a thread of the cache starts something by itself.
    pub fn next_event_ns(&self) -> Option<u64> {
        let commit = self.journal.as_ref().and_then(Journal::next_event_ns);
        commit.into_iter().chain(self.flusher.next_event_ns()).min()
    }

    /// Lets the threads of the cache go on; to be called after completions, wakes, and when its
    /// next event is due.
    pub fn run(&mut self, now_ns: u64, queue: &mut BlockQueue) {
        if let Some(journal) = &mut self.journal {
            journal.run(now_ns, &mut self.pages, queue);
        }
        self.flusher.run(now_ns, &mut self.pages, queue, &mut self.submitted);
        for page in self.submitted.drain(..) {
            if let Some(journal) = &mut self.journal {
                journal.submitted(page);
            }
        }
    }
}

// Which pages are in memory, by the time of their last use.
//
// Invariant: no more than the bound are in memory, except for pages that may not leave. Exact
// least-recently-used order; the kernel's two lists only come near it.

const NONE: u32 = u32::MAX;
const ABSENT: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Link {
    /// `ABSENT` when the page is not in memory.
    older: u32,
    younger: u32,
}

/// The pages in memory.
#[derive(Clone, Debug)]
pub(super) struct Lru {
    links: Vec<Link>,
    oldest: u32,
    youngest: u32,
    held: u32,
    held_max: u32,
}

impl Lru {
    /// Nothing in memory yet, of so many pages.
    pub(super) fn new(pages: u32, held_max: u32) -> Self {
        let links = vec![Link { older: ABSENT, younger: NONE }; pages as usize];
        Self { links, oldest: NONE, youngest: NONE, held: 0, held_max }
    }

    pub(super) fn has(&self, page: u32) -> bool {
        self.links[page as usize].older != ABSENT
    }

    pub(super) fn held(&self) -> u32 {
        self.held
    }

    /// Makes a page the youngest, and takes the oldest that may leave out until there is room.
    pub(super) fn use_page(&mut self, page: u32, may_leave: impl Fn(u32) -> bool) {
        if self.has(page) {
            self.unlink(page);
        }
        self.link(page);
        let mut candidate = self.oldest;
        while self.held > self.held_max && candidate != page {
            let next = self.links[candidate as usize].younger;
            if may_leave(candidate) {
                self.unlink(candidate);
            }
            candidate = next;
        }
    }

    fn link(&mut self, page: u32) {
        self.links[page as usize] = Link { older: self.youngest, younger: NONE };
        match self.youngest {
            NONE => self.oldest = page,
            before => self.links[before as usize].younger = page,
        }
        self.youngest = page;
        self.held += 1;
    }

    fn unlink(&mut self, page: u32) {
        let Link { older, younger } = self.links[page as usize];
        match older {
            NONE => self.oldest = younger,
            older => self.links[older as usize].younger = younger,
        }
        match younger {
            NONE => self.youngest = older,
            younger => self.links[younger as usize].older = older,
        }
        self.links[page as usize].older = ABSENT;
        self.held -= 1;
    }
}
