//! The page cache and how it writes back.
//!
//! Purpose: when a written page reaches the block queue, in which order, and who waits for it.
//! Invariants: every page that was dirtied is written or still dirty; a page is never in the queue
//! twice; dirty pages pass the limit by no more than the pages of one write.
//! Pages are one row of neighbours on the drive, all files one after the other in the order of
//! their numbers; metadata and the journal's own blocks are left out, as is read-ahead.

mod pages;
mod writeback;

use iostrata_run::KernelThen;

pub use pages::PageCounts;

use crate::queue::{BlockQueue, Completion, Submitter};
use pages::Pages;
use writeback::{Flusher, Journal};

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
/// Age at which a file's dirty pages are written (`dirty_expire_centisecs` of 3,000), in ns.
pub const EXPIRE_NS: u64 = 30_000_000_000;
/// How often the flusher looks for them (`dirty_writeback_centisecs` of 500), in ns.
pub const PERIODIC_NS: u64 = 5_000_000_000;
/// Age at which a journal transaction is committed (ext3's `commit=5`), in ns.
pub const COMMIT_NS: u64 = 5_000_000_000;
/// Pages that the flusher submits before it checks the limits again (`MAX_WRITEBACK_PAGES`).
pub const WRITEBACK_PAGES_MAX: u32 = 1024;

/// The program that writes.
pub const WRITER: Submitter = Submitter(0);
/// The thread that commits the journal.
pub const JOURNAL: Submitter = Submitter(1);
/// The thread that writes back.
pub const FLUSHER: Submitter = Submitter(2);

/// How a cache is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePlan {
    /// Pages of all files; they lie on the drive from `base_bytes` on.
    pub pages: u32,
    /// Where the first page lies.
    pub base_bytes: u64,
    /// Pages that memory holds.
    pub memory_pages: u32,
    /// Dirty pages, those on their way to the drive included, at which a writer waits.
    pub dirty_pages_max: u32,
    /// Dirty pages above which the flusher writes without waiting for their age.
    pub background_pages: u32,
    /// Who submits, and in which order.
    pub submission: Submission,
}

impl CachePlan {
    /// The defaults of a kernel for so much memory. Sources: Documentation/filesystems/proc.txt of
    /// 2.6.18 (`dirty_ratio` 40, `dirty_background_ratio` 10) and
    /// Documentation/admin-guide/sysctl/vm.rst of today (20 and 10); mm/page-writeback.c of today
    /// holds a writer at the mean of the limit and of half the way between both.
    pub fn of(kernel: KernelThen, memory_bytes: u64, pages: u32, base_bytes: u64) -> Self {
        let memory_pages = (memory_bytes / PAGE_BYTES) as u32;
        let (ratio_pct, background_pages) = match kernel {
            KernelThen::Y2009 => (40, memory_pages / 10),
            KernelThen::Today => (20, memory_pages / 10),
        };
        let limit = (u64::from(memory_pages) * ratio_pct / 100) as u32;
        let dirty_pages_max = match kernel {
            KernelThen::Y2009 => limit,
            KernelThen::Today => (limit + limit.midpoint(background_pages)) / 2,
        };
        Self {
            pages,
            base_bytes,
            memory_pages,
            dirty_pages_max,
            background_pages,
            submission: Submission::of(kernel),
        }
    }
}

/// Who submits dirty pages, and in which order.
///
/// Sources: Linux Documentation/filesystems/ext3.txt (`data=ordered`, the default: "all data are
/// forced directly out to the main file system prior to its metadata being committed to the
/// journal"; `commit=5`: every five seconds), fs/jbd/commit.c of 2.6.18 (`t_sync_datalist` is
/// written in the order in which its buffers were dirtied); Documentation/filesystems/ext4
/// (delayed allocation: overwritten data take no part in a commit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Submission {
    /// ext3 of 2009: every five seconds a journal commit forces out the pages dirtied since the
    /// last one, in the order of dirtying; a writer to one that is not submitted yet submits it and
    /// waits.
    Unsorted,
    /// Today: only the flusher writes, by file and offset.
    InodeOrdered,
}

impl Submission {
    /// What the file systems of that time do.
    pub fn of(kernel: KernelThen) -> Self {
        match kernel {
            KernelThen::Y2009 => Self::Unsorted,
            KernelThen::Today => Self::InodeOrdered,
        }
    }

    /// Most pages in a bio of write-back: 512 KiB today.
    fn bio_pages_max(self) -> u32 {
        match self {
            Self::Unsorted => 1,
            Self::InodeOrdered => 128,
        }
    }
}

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

    /// The writer changes a page. With `is_whole` it replaces all of it, and the page need not be
    /// in memory before.
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

    /// Whether what a writer waits for has come; wakes and reads are reported by the queue.
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
    pub fn completed(&mut self, request: &Completion) {
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
struct Lru {
    links: Vec<Link>,
    oldest: u32,
    youngest: u32,
    held: u32,
    held_max: u32,
}

impl Lru {
    /// Nothing in memory yet, of so many pages.
    fn new(pages: u32, held_max: u32) -> Self {
        let links = vec![Link { older: ABSENT, younger: NONE }; pages as usize];
        Self { links, oldest: NONE, youngest: NONE, held: 0, held_max }
    }

    fn has(&self, page: u32) -> bool {
        self.links[page as usize].older != ABSENT
    }

    fn held(&self) -> u32 {
        self.held
    }

    /// Makes a page the youngest, and takes the oldest that may leave out until there is room.
    fn use_page(&mut self, page: u32, may_leave: impl Fn(u32) -> bool) {
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

/// The rules of write-back, one by one, and what holds for any load.
#[cfg(test)]
mod tests {
    use iostrata_run::KernelThen::{Today, Y2009};
    use iostrata_stats::Random;
    use proptest::prelude::*;

    use super::*;
    use crate::queue::standin::{Arm, Sent};
    use crate::queue::{QueuePlan, Scheduler};

    const S: u64 = 1_000_000_000;

    /// A cache of so many pages above a queue without order and a drive of 1 ms per request.
    fn cache(
        kernel: KernelThen,
        nr_requests: u32,
        plan: CachePlan,
    ) -> (PageCache, BlockQueue, Sent) {
        let (arm, sent) = Arm::new(1, 1_000_000, 0);
        let queue = QueuePlan { kernel, scheduler: Scheduler::None, nr_requests };
        (PageCache::new(plan), BlockQueue::new(queue, arm), sent)
    }

    fn plan(kernel: KernelThen) -> CachePlan {
        CachePlan::of(kernel, 5 << 30, 10_000, 0)
    }

    /// Lets everything up to `until_ns` happen.
    fn pass(cache: &mut PageCache, queue: &mut BlockQueue, until_ns: u64) {
        let mut completed = Vec::new();
        loop {
            let events = queue.next_event_ns().into_iter().chain(cache.next_event_ns());
            let now_ns = events.min().unwrap_or(u64::MAX).max(queue.now_ns());
            if now_ns > until_ns {
                return;
            }
            queue.advance(now_ns, &mut completed);
            completed.drain(..).for_each(|one| cache.completed(&one));
            while let Some(who) = queue.wake(now_ns) {
                cache.woken(who);
            }
            cache.run(now_ns, queue);
        }
    }

    fn dirty(cache: &mut PageCache, queue: &mut BlockQueue, now_ns: u64, pages: &[u32]) {
        for &page in pages {
            assert_eq!(cache.write(now_ns, page, false, queue), Access::Done);
        }
    }

    fn sent_pages(sent: &Sent) -> Vec<u64> {
        sent.lock().unwrap().iter().map(|one| one.at_bytes / PAGE_BYTES).collect()
    }

    #[test]
    fn limits_are_those_of_the_kernels() {
        let pages = 5 * 1024 * 1024 / 4;
        let then = CachePlan::of(Y2009, 5 << 30, 10, 0);
        assert_eq!((then.dirty_pages_max, then.background_pages), (pages * 2 / 5, pages / 10));
        let now = CachePlan::of(Today, 5 << 30, 10, 0);
        // Between 20 % and half the way between 10 and 20 %: 17.5 %.
        assert_eq!((now.dirty_pages_max, now.background_pages), (pages * 7 / 40, pages / 10));
    }

    #[test]
    fn a_commit_writes_in_the_order_of_dirtying_after_five_seconds() {
        let (mut cache, mut queue, sent) = cache(Y2009, 128, plan(Y2009));
        dirty(&mut cache, &mut queue, S, &[900, 4, 500, 4, 70]);
        pass(&mut cache, &mut queue, 6 * S - 1);
        assert!(sent_pages(&sent).is_empty());
        pass(&mut cache, &mut queue, 7 * S);
        assert_eq!(sent_pages(&sent), [900, 4, 500, 70]);
        assert_eq!(cache.counts().written, 4);
    }

    #[test]
    fn today_the_flusher_writes_by_offset_after_thirty_seconds() {
        let (mut cache, mut queue, sent) = cache(Today, 128, plan(Today));
        dirty(&mut cache, &mut queue, S, &[900, 4, 500, 4, 70]);
        pass(&mut cache, &mut queue, 34 * S);
        assert!(sent_pages(&sent).is_empty(), "the look at 30 s finds them 29 s old");
        pass(&mut cache, &mut queue, 36 * S);
        assert_eq!(sent_pages(&sent), [4, 70, 500, 900]);
    }

    #[test]
    fn today_neighbours_are_one_bio_of_up_to_512_kib() {
        for (kernel, until_ns, has_merges) in [(Today, 36 * S, false), (Y2009, 7 * S, true)] {
            let (mut cache, mut queue, sent) = cache(kernel, 1_024, plan(kernel));
            let pages: Vec<u32> = (5..6).chain(10..14).chain(1_000..1_200).collect();
            dirty(&mut cache, &mut queue, S, &pages);
            pass(&mut cache, &mut queue, until_ns);
            let requests: Vec<_> =
                sent.lock().unwrap().iter().map(|one| one.bytes / 4096).collect();
            assert_eq!(requests, [1, 4, 128, 72], "{kernel}");
            // Then neighbours came to the queue page by page.
            assert_eq!(queue.counters(queue.now_ns()).write.merges > 0, has_merges, "{kernel}");
        }
    }

    #[test]
    fn more_than_the_background_limit_is_written_at_once() {
        let plan = CachePlan { background_pages: 50, ..plan(Today) };
        let (mut cache, mut queue, _) = cache(Today, 128, plan);
        (0..51).for_each(|page| dirty(&mut cache, &mut queue, S, &[page * 2]));
        cache.run(S, &mut queue);
        assert!(cache.counts().under_write > 0);
        pass(&mut cache, &mut queue, 2 * S);
        assert_eq!(cache.counts().dirty, 0);
    }

    #[test]
    fn a_writer_waits_at_the_limit_until_pages_arrive() {
        let plan = CachePlan { dirty_pages_max: 20, background_pages: 10, ..plan(Today) };
        let (mut cache, mut queue, _) = cache(Today, 128, plan);
        (0..20).for_each(|page| dirty(&mut cache, &mut queue, S, &[page * 2]));
        assert_eq!(cache.write(S, 100, false, &mut queue), Access::Waits(Waits::Limit));
        assert_eq!(cache.write(S, 2, false, &mut queue), Access::Done, "dirty already");
        assert!(!cache.is_over(Waits::Limit));
        cache.run(S, &mut queue);
        pass(&mut cache, &mut queue, 2 * S);
        assert!(cache.is_over(Waits::Limit));
    }

    #[test]
    fn a_page_of_a_commit_is_written_before_it_is_changed() {
        // Four requests of room: most of the commit is not submitted yet.
        let (mut cache, mut queue, sent) = cache(Y2009, 4, plan(Y2009));
        let pages: Vec<u32> = (0..100).map(|page| page * 2).collect();
        dirty(&mut cache, &mut queue, 0, &pages);
        pass(&mut cache, &mut queue, 5 * S);
        // The first is on its way: it may be changed at once, and belongs to the next transaction.
        assert_eq!(cache.write(5 * S, 0, false, &mut queue), Access::Done);
        // The last is not: the writer would have to submit it, and there is no room.
        assert_eq!(cache.write(5 * S, 198, false, &mut queue), Access::Waits(Waits::Wake));
        pass(&mut cache, &mut queue, 5 * S + 50_000_000);
        let waits = cache.write(queue.now_ns(), 190, false, &mut queue);
        assert!(matches!(waits, Access::Waits(_)), "{waits:?}");
        pass(&mut cache, &mut queue, 9 * S);
        assert_eq!(sent_pages(&sent).len(), 100);
        assert_eq!(cache.counts().dirty, 1, "the first, changed again");
        pass(&mut cache, &mut queue, 20 * S);
        assert_eq!(sent_pages(&sent).last(), Some(&0));
    }

    #[test]
    fn what_is_not_in_memory_is_read_and_pushes_the_oldest_clean_page_out() {
        let plan = CachePlan { memory_pages: 100, ..plan(Today) };
        let (mut cache, mut queue, _) = cache(Today, 128, plan);
        dirty(&mut cache, &mut queue, 0, &[0]);
        assert_eq!(cache.write(0, 500, false, &mut queue), Access::Waits(Waits::Read(500)));
        cache.has_read(500);
        dirty(&mut cache, &mut queue, 0, &[500]);
        assert_eq!(cache.pages_in_memory(), 100);
        // 1 was the oldest clean one; 0 is dirty and stays.
        assert_eq!(cache.write(0, 1, false, &mut queue), Access::Waits(Waits::Read(1)));
        dirty(&mut cache, &mut queue, 0, &[0, 2]);
        // A page written whole need not be read.
        assert_eq!(cache.write(0, 700, true, &mut queue), Access::Done);
    }

    proptest! {
        #![proptest_config(crate::cases(64, 4096))]

        #[test]
        fn every_dirtied_page_is_written_or_still_dirty(
            seed: u64,
            is_2009: bool,
            nr_requests in 4u32..60,
            dirty_pages_max in 20u32..300,
            writes in 1u32..1500,
        ) {
            let kernel = if is_2009 { Y2009 } else { Today };
            let background_pages = dirty_pages_max / 2;
            let limits = CachePlan { dirty_pages_max, background_pages, ..plan(kernel) };
            let run = || {
                let (mut cache, mut queue, sent) = cache(kernel, nr_requests, limits);
                let (mut random, mut now_ns) = (Random::new(seed), 0);
                for _ in 0..writes {
                    now_ns += random.below(30_000_000);
                    pass(&mut cache, &mut queue, now_ns);
                    let page = random.below(400) as u32;
                    while let Access::Waits(waits) = cache.write(now_ns, page, false, &mut queue) {
                        cache.run(now_ns, &mut queue);
                        while !cache.is_over(waits) {
                            // Woken or not, it tries again after the next event.
                            let events = [queue.next_event_ns(), cache.next_event_ns()];
                            now_ns = events.into_iter().flatten().min().unwrap().max(now_ns);
                            pass(&mut cache, &mut queue, now_ns);
                            if waits == Waits::Wake {
                                break;
                            }
                        }
                        if waits == Waits::Wake && queue.held(crate::queue::Direction::Write) > 0 {
                            // The stand-in does not sleep: let the queue run dry instead.
                            while let Some(next_ns) = queue.next_event_ns() {
                                now_ns = now_ns.max(next_ns);
                                pass(&mut cache, &mut queue, now_ns);
                            }
                        }
                    }
                    let counts = cache.counts();
                    assert_eq!(counts.dirtied, counts.submitted + u64::from(counts.dirty));
                    assert_eq!(counts.submitted, counts.written + u64::from(counts.under_write));
                    assert!(counts.dirty + counts.under_write <= dirty_pages_max);
                }
                pass(&mut cache, &mut queue, now_ns + 300 * S);
                let sent = sent.lock().unwrap();
                let written = sent.iter().map(|one| u64::from(one.bytes)).sum::<u64>();
                (cache.counts(), written / PAGE_BYTES)
            };
            let (counts, written) = run();
            prop_assert_eq!((counts.dirty, counts.under_write), (0, 0));
            prop_assert_eq!(counts.dirtied, counts.written);
            prop_assert_eq!(counts.written, written);
            prop_assert_eq!(run(), (counts, written));
        }
    }
}
