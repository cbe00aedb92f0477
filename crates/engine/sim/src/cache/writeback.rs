//! Who writes dirty pages back: the thread of the kernel, by age and by amount, and the journal of
//! ext3 with `data=ordered`, whose commits force out what was written.
//!
//! Rules of the thread, from mm/page-writeback.c and fs/fs-writeback.c: every five seconds, when
//! the oldest dirty file is 30 s old, one pass over all its dirty pages by offset, from where the
//! last pass ended and around; as long as more than the background limit are dirty, pass after
//! pass. In 2009 it holds back while the queue is congested; today it sleeps in the queue like
//! everybody. When a pass finds nothing that is not on its way already, it rests for a tenth of a
//! second. Today a file system writes neighbours that are dirty as one bio (`ext4_writepages`,
//! `iomap_writepages`); the one of 2009 submitted page by page. Rules of the journal, from
//! fs/jbd/{commit,transaction}.c and fs/jbd/journal.c of Linux 2.6.18: a written page belongs to
//! the running transaction. When that one is five seconds old and no other is being committed, its
//! pages are submitted in the order in which they joined, and the commit ends when all have
//! arrived. A page of the transaction being committed that is written again moves to the running
//! one at once when it was submitted already; otherwise the writer submits it and waits.
//! Invariants: the thread never submits a page that is on its way; it skips it. A page belongs to
//! each transaction at most once.

use super::pages::{Bits, Pages};
use super::{COMMIT_NS, CachePlan, EXPIRE_NS, FLUSHER, JOURNAL, PERIODIC_NS, WRITEBACK_PAGES_MAX};
use crate::queue::{BlockQueue, Direction};

/// How long it rests when there was nothing to submit (`HZ/10`), in ns.
const REST_NS: u64 = 100_000_000;

/// Where a pass is.
#[derive(Clone, Copy, Debug)]
struct Pass {
    /// Page where it started.
    from: u32,
    /// Whether it went around.
    is_around: bool,
    /// Whether it ends when few enough are dirty.
    is_background: bool,
    /// Pages submitted since it last looked.
    submitted: u32,
}

/// The state of the thread.
#[derive(Clone, Debug)]
pub(super) struct Flusher {
    background_pages: u32,
    /// Most pages of a bio.
    bio_pages_max: u32,
    position: u32,
    pass: Option<Pass>,
    next_look_ns: u64,
    /// Since when something is dirty that no pass took.
    dirty_since_ns: Option<u64>,
    rests_until_ns: u64,
    is_asleep: bool,
}

impl Flusher {
    pub(super) fn new(plan: &CachePlan) -> Self {
        Self {
            background_pages: plan.background_pages,
            bio_pages_max: plan.submission.bio_pages_max(),
            position: 0,
            pass: None,
            next_look_ns: PERIODIC_NS,
            dirty_since_ns: None,
            rests_until_ns: 0,
            is_asleep: false,
        }
    }

    /// Goes on at a page.
    pub(super) fn begin_at(&mut self, position: u32) {
        self.position = position;
    }

    pub(super) fn dirtied(&mut self, now_ns: u64) {
        self.dirty_since_ns.get_or_insert(now_ns);
    }

    pub(super) fn woken(&mut self) {
        self.is_asleep = false;
    }

    /// Makes everything older.
    pub(super) fn age(&mut self, by_ns: u64) {
        let since_ns = self.dirty_since_ns.iter_mut();
        since_ns.for_each(|since_ns| *since_ns = since_ns.saturating_sub(by_ns));
    }

    pub(super) fn next_event_ns(&self) -> Option<u64> {
        // While a pass runs, completions drive it.
        self.pass.is_none().then_some(self.next_look_ns.max(self.rests_until_ns))
    }

    /// Goes on as far as it can; appends the pages that it submitted.
    pub(super) fn run(
        &mut self,
        now_ns: u64,
        pages: &mut Pages,
        queue: &mut BlockQueue,
        submitted: &mut Vec<u32>,
    ) {
        self.start(now_ns, pages);
        while let Some(mut pass) = self.pass {
            if self.is_asleep || queue.is_congested(Direction::Write) {
                return;
            }
            let Some(page) = self.next_page(&mut pass, pages) else {
                if pass.submitted == 0 {
                    self.rests_until_ns = now_ns + REST_NS;
                }
                self.end(now_ns, pages);
                self.start(now_ns, pages);
                continue;
            };
            let end = if pass.is_around { pass.from } else { u32::MAX };
            let most = self.bio_pages_max.min(end - page);
            let count = pages.submit(now_ns, page, most, queue, FLUSHER);
            if count == 0 {
                self.is_asleep = true;
                return;
            }
            submitted.extend(page..page + count);
            self.position = page + count;
            let chunks = pass.submitted / WRITEBACK_PAGES_MAX;
            pass.submitted += count;
            self.pass = Some(pass);
            if pass.submitted / WRITEBACK_PAGES_MAX > chunks
                && pass.is_background
                && pages.unwritten() <= self.background_pages
            {
                self.end(now_ns, pages);
            }
        }
    }

    fn start(&mut self, now_ns: u64, pages: &Pages) {
        if self.pass.is_some() || now_ns < self.rests_until_ns {
            return;
        }
        if pages.unwritten() > self.background_pages {
            self.pass = Some(self.pass_from_here(true));
        }
        if now_ns < self.next_look_ns {
            return;
        }
        self.next_look_ns = (now_ns / PERIODIC_NS + 1) * PERIODIC_NS;
        let is_due = |since_ns: u64| since_ns + EXPIRE_NS <= now_ns;
        if self.pass.is_none() && self.dirty_since_ns.is_some_and(is_due) {
            self.pass = Some(self.pass_from_here(false));
        }
    }

    fn pass_from_here(&self, is_background: bool) -> Pass {
        Pass { from: self.position, is_around: false, is_background, submitted: 0 }
    }

    fn next_page(&mut self, pass: &mut Pass, pages: &Pages) -> Option<u32> {
        if !pass.is_around {
            if let Some(page) = pages.next_to_submit(self.position) {
                return Some(page);
            }
            pass.is_around = true;
            self.position = 0;
            self.pass = Some(*pass);
        }
        pages.next_to_submit(self.position).filter(|&page| page < pass.from)
    }

    fn end(&mut self, now_ns: u64, pages: &Pages) {
        self.pass = None;
        self.dirty_since_ns = (pages.counts().dirty > 0).then_some(now_ns);
    }
}

#[derive(Clone, Debug)]
struct Transaction {
    /// In the order in which they joined.
    order: Vec<u32>,
    members: Bits,
}

impl Transaction {
    fn new(pages: u32) -> Self {
        Self { order: Vec::new(), members: Bits::new(pages) }
    }
}

/// The running transaction and the one being committed.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    running: Transaction,
    running_since_ns: Option<u64>,
    committing: Transaction,
    is_committing: bool,
    /// Pages of the commit that were visited.
    looked_at: usize,
    /// Members of the commit that are on their way.
    awaited: u32,
    is_asleep: bool,
    /// Commits so far.
    starts: u64,
}

impl Journal {
    pub(super) fn new(pages: u32) -> Self {
        Self {
            running: Transaction::new(pages),
            running_since_ns: None,
            committing: Transaction::new(pages),
            is_committing: false,
            looked_at: 0,
            awaited: 0,
            is_asleep: false,
            starts: 0,
        }
    }

    /// Whether the page must be written before it may be changed.
    pub(super) fn must_write_first(&self, page: u32, pages: &Pages) -> bool {
        self.committing.members.has(page) && pages.is_dirty(page)
    }

    /// A page that was changed joins the running transaction.
    pub(super) fn join(&mut self, now_ns: u64, page: u32, pages: &Pages) {
        if self.committing.members.take(page) && pages.is_under_write(page) {
            self.awaited -= 1;
        }
        if self.running.members.add(page) {
            self.running.order.push(page);
            self.running_since_ns.get_or_insert(now_ns);
        }
    }

    /// A page was submitted, by whomever.
    pub(super) fn submitted(&mut self, page: u32) {
        self.awaited += u32::from(self.committing.members.has(page));
    }

    /// A page arrived.
    pub(super) fn arrived(&mut self, page: u32, pages: &Pages) {
        if self.committing.members.has(page) {
            self.awaited -= 1;
            if !pages.is_dirty(page) {
                self.committing.members.take(page);
            }
        }
    }

    pub(super) fn woken(&mut self) {
        self.is_asleep = false;
    }

    /// Commits so far.
    pub(super) fn starts(&self) -> u64 {
        self.starts
    }

    /// Pages of the commit that were not visited, when it waits for room in the queue.
    pub(super) fn backlog(&self) -> usize {
        if self.is_committing && self.is_asleep {
            self.committing.order.len() - self.looked_at
        } else {
            0
        }
    }

    /// Lets the next pages of the commit be written without the queue; how many there were.
    pub(super) fn skip(&mut self, most: u64, pages: &mut Pages) -> u64 {
        let mut skipped = 0;
        while skipped < most
            && let Some(&page) = self.committing.order.get(self.looked_at)
        {
            let is_member = self.committing.members.has(page);
            match (pages.is_dirty(page), pages.is_under_write(page)) {
                (true, true) if is_member => break,
                (true, false) if is_member => {
                    pages.write_unseen(page);
                    self.committing.members.take(page);
                    skipped += 1;
                }
                (false, false) => {
                    self.committing.members.take(page);
                }
                _ => {}
            }
            self.looked_at += 1;
        }
        skipped
    }

    /// Makes the running transaction older.
    pub(super) fn age(&mut self, by_ns: u64) {
        let since_ns = self.running_since_ns.iter_mut();
        since_ns.for_each(|since_ns| *since_ns = since_ns.saturating_sub(by_ns));
    }

    /// When the running transaction is due; `None` while another is committed.
    pub(super) fn next_event_ns(&self) -> Option<u64> {
        let due = self.running_since_ns.map(|since_ns| since_ns + COMMIT_NS);
        due.filter(|_| !self.is_committing)
    }

    /// Goes on with the commit as far as it can.
    pub(super) fn run(&mut self, now_ns: u64, pages: &mut Pages, queue: &mut BlockQueue) {
        if !self.is_committing {
            if self.next_event_ns().is_none_or(|due_ns| due_ns > now_ns) {
                return;
            }
            self.start(pages);
        }
        if !self.is_asleep {
            self.submit(now_ns, pages, queue);
        }
    }

    fn start(&mut self, pages: &Pages) {
        self.committing.order.clear();
        std::mem::swap(&mut self.running, &mut self.committing);
        self.running_since_ns = None;
        self.starts += 1;
        (self.is_committing, self.looked_at) = (true, 0);
        let order = self.committing.order.iter();
        self.awaited = order.filter(|&&page| pages.is_under_write(page)).count() as u32;
    }

    fn submit(&mut self, now_ns: u64, pages: &mut Pages, queue: &mut BlockQueue) {
        while let Some(&page) = self.committing.order.get(self.looked_at) {
            if self.committing.members.has(page) {
                if pages.is_dirty(page) {
                    // Written once already and changed since: that write must arrive first.
                    if pages.is_under_write(page) {
                        return;
                    }
                    if pages.submit(now_ns, page, 1, queue, JOURNAL) == 0 {
                        self.is_asleep = true;
                        return;
                    }
                    self.awaited += 1;
                } else if !pages.is_under_write(page) {
                    self.committing.members.take(page);
                }
            }
            self.looked_at += 1;
        }
        self.is_committing = self.awaited > 0;
    }
}
