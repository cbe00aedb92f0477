//! The journal of ext3 with `data=ordered`: commits that force out what was written.
//!
//! Rules, from fs/jbd/{commit,transaction}.c and fs/jbd/journal.c of Linux 2.6.18: a written page
//! belongs to the running transaction. When that one is five seconds old and no other is being
//! committed, its pages are submitted in the order in which they joined, and the commit ends when
//! all have arrived. A page of the transaction being committed that is written again moves to the
//! running one at once when it was submitted already; otherwise the writer submits it and waits.
//! Invariant: a page belongs to each transaction at most once.

use super::bits::Bits;
use super::pages::Pages;
use super::plan::{COMMIT_NS, JOURNAL};
use crate::queue::BlockQueue;

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
    /// Pages of the commit that were looked at.
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

    /// Pages of the commit that were not looked at, when it waits for room in the queue.
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
