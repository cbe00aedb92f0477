//! One mini-transaction: latched pages, the records that change them, one frame of redo.
//!
//! Invariant: a page changes only by applying a record that goes into the frame; all changed pages
//! are marked dirty before the frame is appended and stamped with its end before any is unlatched.
//! So a frame is all there or not at all, for readers as for recovery. Where that fails, the pages
//! hold again what they held before, and nothing is written any more.
//! It waits for nothing but latches: room in the redo, frames and pages were seen to before.

use std::cell::Cell;
use std::ops::Range;

use iostrata_innodb::{Counter, Lsn, PageNo};

use crate::error::EngineError;
use crate::page::{Cells, PageEdit, PageKind, PageView, Record};
use crate::pool::{Exclusive, Pin};
use crate::storage::Storage;

thread_local! {
    /// Records are built, and what they replace is kept, in the same memory again and again.
    static SPARE: Cell<Spare> = const { Cell::new(Spare::NONE) };
}

#[derive(Default)]
struct Spare {
    body: Vec<u8>,
    undo: Undo,
}

impl Spare {
    const NONE: Self =
        Self { body: Vec::new(), undo: Undo { steps: Vec::new(), bytes: Vec::new() } };
}

/// What takes the changes back, the last one first.
#[derive(Default)]
struct Undo {
    steps: Vec<(PageHandle, UndoStep)>,
    /// Rows and pages that were replaced.
    bytes: Vec<u8>,
}

enum UndoStep {
    Inserted {
        slot: usize,
    },
    /// The row that went comes back, from here in the bytes.
    Deleted {
        slot: usize,
        row: Range<usize>,
    },
    /// As if it had gone and another had come.
    Revised {
        slot: usize,
        row: Range<usize>,
    },
    Left(PageNo),
    Right(PageNo),
    Bits {
        from: u32,
        count: u32,
        set: bool,
    },
    /// The whole page, from here in the bytes.
    Image(Range<usize>),
}

impl Undo {
    /// Keeps what a record is about to replace. Rows of leaves are kept alone: most changes are
    /// those.
    fn keep(&mut self, held: PageHandle, latched: &mut LatchedPage<'_>, record: &Record<'_>) {
        if latched.is_kept {
            return;
        }
        let page = PageView::new(&latched.page);
        let is_row = |slot| page.kind() == PageKind::Leaf && slot < page.count();
        let step = match *record {
            Record::Insert { slot, .. } => UndoStep::Inserted { slot },
            Record::Delete { slot } if is_row(slot) => {
                UndoStep::Deleted { slot, row: self.push(|bytes| page.cell(slot).push_to(bytes)) }
            }
            Record::Revise { slot, .. } | Record::Replace { slot, .. } if is_row(slot) => {
                UndoStep::Revised { slot, row: self.push(|bytes| page.cell(slot).push_to(bytes)) }
            }
            Record::SetLeft(_) => UndoStep::Left(page.left()),
            Record::SetRight(_) => UndoStep::Right(page.right()),
            Record::SetBits { from, count, set } => UndoStep::Bits { from, count, set: !set },
            _ => {
                latched.is_kept = true;
                UndoStep::Image(self.push(|bytes| bytes.extend_from_slice(page.bytes())))
            }
        };
        self.steps.push((held, step));
    }

    fn push(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Range<usize> {
        let from = self.bytes.len();
        fill(&mut self.bytes);
        from..self.bytes.len()
    }

    /// Takes all changes back. What was there before fits again.
    fn roll_back(&mut self, pages: &mut [LatchedPage<'_>]) {
        while let Some((PageHandle(at), step)) = self.steps.pop() {
            let page = &mut pages[at].page;
            let no = page.page_no();
            let mut apply = |record: Record<'_>| {
                let undone = record.apply(&mut PageEdit::new(page), no);
                debug_assert!(undone.is_ok(), "{undone:?}");
            };
            match step {
                UndoStep::Inserted { slot } => apply(Record::Delete { slot }),
                UndoStep::Deleted { slot: at, row } => {
                    apply(Record::Splice { at, cells: Cells::new(&self.bytes[row]) });
                }
                UndoStep::Revised { slot: at, row } => {
                    apply(Record::Delete { slot: at });
                    apply(Record::Splice { at, cells: Cells::new(&self.bytes[row]) });
                }
                UndoStep::Left(left) => apply(Record::SetLeft(left)),
                UndoStep::Right(right) => apply(Record::SetRight(right)),
                UndoStep::Bits { from, count, set } => apply(Record::SetBits { from, count, set }),
                UndoStep::Image(bytes) => page.copy_from_slice(&self.bytes[bytes]),
            }
        }
    }
}

/// A page of a mini-transaction: its place in the order of latching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHandle(usize);

struct LatchedPage<'c> {
    page: Exclusive<'c>,
    is_changed: bool,
    /// All that the page held is kept.
    is_kept: bool,
}

/// Pages held exclusively, and what happened to them.
pub(crate) struct Mtr<'c> {
    storage: &'c Storage,
    pages: Vec<LatchedPage<'c>>,
    body: Vec<u8>,
    undo: Undo,
    records: u64,
    is_logged: bool,
}

impl<'c> Mtr<'c> {
    pub fn begin(storage: &'c Storage) -> Self {
        let (Spare { body, undo }, pages) = (SPARE.take(), Vec::with_capacity(4));
        Self { storage, pages, body, undo, records: 0, is_logged: false }
    }

    /// Latches a page. The caller keeps the order: down a tree, leaves by page number, maps last.
    pub fn latch(&mut self, pin: Pin<'c>) -> PageHandle {
        self.hold(pin.exclusive())
    }

    pub fn hold(&mut self, page: Exclusive<'c>) -> PageHandle {
        self.pages.push(LatchedPage { page, is_changed: false, is_kept: false });
        PageHandle(self.pages.len() - 1)
    }

    pub fn page(&self, held: PageHandle) -> PageView<'_> {
        PageView::new(&self.pages[held.0].page)
    }

    pub fn page_version(&self, held: PageHandle) -> u32 {
        self.pages[held.0].page.page_version()
    }

    /// Makes threads that located this page before locate it again.
    pub fn moved(&mut self, held: PageHandle) {
        self.pages[held.0].page.bump_page_version();
    }

    pub fn change(&mut self, held: PageHandle, record: &Record<'_>) -> Result<(), EngineError> {
        let latched = &mut self.pages[held.0];
        let no = latched.page.page_no();
        record.encode(no, &mut self.body);
        latched.is_changed = true;
        self.records += 1;
        let before = (self.undo.steps.len(), latched.is_kept);
        self.undo.keep(held, latched, record);
        let applied = record.apply(&mut PageEdit::new(&mut latched.page), no);
        applied.map_err(|fault| {
            // The page is as it was.
            self.undo.steps.truncate(before.0);
            latched.is_kept = before.1;
            self.storage.poison.broken(format!("page {no}: {fault}"))
        })
    }

    /// Appends the frame and lets go of the pages. Gives the end of the frame.
    pub fn commit(mut self) -> Lsn {
        let redo = &self.storage.redo;
        let at = redo.lsn();
        if self.body.is_empty() {
            return at;
        }
        for latched in self.pages.iter_mut().filter(|latched| latched.is_changed) {
            latched.page.mark_dirty(at);
        }
        self.storage.counts.add(Counter::BufferPoolWriteRequests, self.records);
        let appended = redo.append(&self.body);
        self.is_logged = true;
        for latched in self.pages.iter_mut().filter(|latched| latched.is_changed) {
            PageEdit::new(&mut latched.page).set_lsn(appended.end);
        }
        appended.end
    }
}

impl Drop for Mtr<'_> {
    fn drop(&mut self) {
        if !self.is_logged && !self.body.is_empty() {
            // A failure in the middle, or a panic: the engine is poisoned before any thread can see
            // the pages.
            let _kept = self.storage.poison.broken("a change did not get into the redo".to_owned());
            self.undo.roll_back(&mut self.pages);
        }
        self.pages.clear();
        let mut spare =
            Spare { body: std::mem::take(&mut self.body), undo: std::mem::take(&mut self.undo) };
        spare.body.clear();
        spare.undo.steps.clear();
        spare.undo.bytes.clear();
        SPARE.set(spare);
    }
}
