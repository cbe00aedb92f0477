//! One mini-transaction: latched pages, the records that change them, one frame of redo.
//!
//! Invariant: a page changes only by applying a record that goes into the frame; all changed pages
//! are marked dirty before the frame is appended and stamped with its end before any is unlatched.
//! So a frame is all there or not at all, for readers as for recovery. Where that fails nothing is
//! written any more.
//! It waits for nothing but latches: room in the redo, frames and pages were seen to before.

use std::cell::Cell;

use iostrata_page::{Lsn, PageEdit, PageView, Record};
use iostrata_pool::{Exclusive, Pin};

use crate::error::EngineError;
use crate::storage::Storage;

thread_local! {
    /// Bodies are built in the same memory again and again.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A page of a mini-transaction: its place in the order of latching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held(usize);

struct Latched<'c> {
    page: Exclusive<'c>,
    is_changed: bool,
}

/// Pages held exclusively, and what happened to them.
pub(crate) struct Mtr<'c> {
    storage: &'c Storage,
    pages: Vec<Latched<'c>>,
    body: Vec<u8>,
    records: u64,
    is_logged: bool,
}

impl<'c> Mtr<'c> {
    /// Nothing held yet.
    pub fn begin(storage: &'c Storage) -> Self {
        Self {
            storage,
            pages: Vec::with_capacity(4),
            body: SPARE.take(),
            records: 0,
            is_logged: false,
        }
    }

    /// Latches a page. The caller keeps the order: down a tree, leaves by page number, maps last.
    pub fn latch(&mut self, pin: Pin<'c>) -> Held {
        self.hold(pin.exclusive())
    }

    /// Takes a page that is latched already.
    pub fn hold(&mut self, page: Exclusive<'c>) -> Held {
        self.pages.push(Latched { page, is_changed: false });
        Held(self.pages.len() - 1)
    }

    /// What a held page shows.
    pub fn page(&self, held: Held) -> PageView<'_> {
        PageView::new(&self.pages[held.0].page)
    }

    /// The version of a held page.
    pub fn page_version(&self, held: Held) -> u32 {
        self.pages[held.0].page.page_version()
    }

    /// Says that whoever located this page before has to look again.
    pub fn moved(&mut self, held: Held) {
        self.pages[held.0].page.bump_page_version();
    }

    /// Changes a page by a record.
    ///
    /// # Errors
    /// [`EngineError::Broken`], and the engine is poisoned: what was built does not fit the page.
    pub fn change(&mut self, held: Held, record: &Record<'_>) -> Result<(), EngineError> {
        let latched = &mut self.pages[held.0];
        let no = latched.page.page_no();
        record.encode(no, &mut self.body);
        latched.is_changed = true;
        self.records += 1;
        let applied = record.apply(&mut PageEdit::new(&mut latched.page), no);
        applied.map_err(|fault| self.storage.poison.broken(format!("page {no}: {fault}")))
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
        self.storage.counts.pages_changed(self.records);
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
            // A failure in the middle, or a panic: said before anybody can see the pages.
            let _kept = self.storage.poison.broken("a change did not get into the redo".to_owned());
        }
        self.pages.clear();
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        SPARE.set(body);
    }
}
