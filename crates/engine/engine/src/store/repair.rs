//! Repair after a crash.
//!
//! Invariant: only a batch that may not have been durable in place when the crash came is believed,
//! and only a copy that is good in every byte replaces a page that is not. All is durable before
//! the copies are forgotten, so a crash in repair leaves the same work to the next.
//! What a killed process, or one whose write or sync failed, left in a cache looks whole and is not
//! durable, or may be overtaken by what the device still holds: copies are written again before
//! they are used, whole pages of such a batch are written again from their copies too, every data
//! file is synced, and the copies are forgotten even where none are found.
//! With order kept, a page of a batch with a bad copy is never torn: its place was not begun. What
//! breaks that (a device that lied) is reported as torn and not restorable.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering::{Acquire, Release};

use iostrata_innodb::PageNo;
use iostrata_io::disk::{Aligned, DiskError};

use crate::error::EngineError;
use crate::page::PageView;
use crate::store::data::PageCopy;
use crate::store::doublewrite::{BatchKind, DoublewriteFile, FoundBatch};
use crate::store::{ReadError, Store, check};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Pages that were examined in place.
    pub examined: u64,
    /// Pages that were torn and now hold their copy, durably.
    pub restored: Vec<PageNo>,
    /// Pages that are torn and have no good copy: always so with doublewrite set to detect only.
    pub torn_unrestorable: Vec<PageNo>,
}

impl Store {
    /// Puts doublewrite copies over torn pages, makes the data files durable as they are, and
    /// forgets the copies. Every opening needs it before anything is written; later calls do
    /// nothing.
    ///
    /// # Errors
    /// An error of the disk; a failed write or sync poisons the store. [`EngineError::NoSpace`]
    /// when a page lies beyond the end of its file and that cannot grow, or the doublewrite files
    /// cannot.
    pub fn repair(&self) -> Result<Repair, EngineError> {
        self.data.poison.check()?;
        let _growing = self.lock_growth();
        let mut files = self.doublewrite.all();
        let mut repair = Repair::default();
        if self.repaired.load(Acquire) {
            return Ok(repair);
        }
        let found = files.iter().map(|file| file.find());
        let found = found.collect::<Result<Vec<_>, _>>()?;
        for found in found.iter().flatten() {
            self.doublewrite.order.continue_after(found.sequence);
        }
        let mut copies = self.examine(&files, &found, &mut repair)?;
        if !copies.is_empty() {
            let all = files.iter().zip(&found);
            let mut all = all.filter_map(|(file, found)| Some((file, found.as_ref()?)));
            let rewritten =
                all.try_for_each(|(file, found)| file.rewrite(found, self.data.sync_kind()));
            rewritten.map_err(|error| self.data.poison.keep(error))?;
        }
        self.put_back(&mut copies)?;
        for file in &files {
            file.lengthen(self.data.sync_kind())?;
        }
        self.forget_copies(&mut files)?;
        self.repaired.store(true, Release);
        Ok(repair)
    }

    /// Reads the place of every page of every batch that counts. Returns the pages to be written.
    fn examine(
        &self,
        files: &[MutexGuard<'_, DoublewriteFile>],
        found: &[Option<FoundBatch>],
        repair: &mut Repair,
    ) -> Result<Vec<PageCopy>, EngineError> {
        let settled = found.iter().flatten().map(|found| found.settled).max().unwrap_or(0);
        let all = files.iter().zip(found);
        let all = all.filter_map(|(file, found)| found.as_ref().map(|found| (file, found)));
        let mut batches: Vec<_> = all.filter(|(_, found)| found.sequence >= settled).collect();
        batches.sort_by_key(|(_, found)| Reverse(found.sequence));
        let (mut seen, mut copies) = (BTreeSet::new(), Vec::new());
        let mut bytes = self.data.zeros(1);
        for (file, found) in batches {
            for (slot, entry) in found.entries.iter().enumerate() {
                let page = PageNo(entry.page);
                // When a newer batch has the page too, that newer copy may be in place.
                if !seen.insert(page) {
                    continue;
                }
                repair.examined += 1;
                let copy = match found.kind {
                    BatchKind::Copies => file.copy(found, slot)?,
                    BatchKind::Empty | BatchKind::EntriesOnly => None,
                };
                let place = self.look(page, &mut bytes)?;
                copies.extend(judge(page, place, &bytes, copy, repair));
            }
        }
        Ok(copies)
    }

    fn look(&self, page: PageNo, bytes: &mut Aligned) -> Result<PageState, EngineError> {
        let (file, at) = self.data.place(page);
        match self.data.disk.read(self.data.files[file].id, at, bytes) {
            Err(DiskError::PastEnd { .. }) => return Ok(PageState::Torn),
            read => read?,
        }
        Ok(match check(page, bytes, true) {
            Ok(()) => PageState::Whole,
            Err(ReadError::Zero { .. }) => PageState::Zero,
            Err(_) => PageState::Torn,
        })
    }

    /// Writes pages into their places and syncs every data file, whatever the flush method.
    fn put_back(&self, pages: &mut Vec<PageCopy>) -> Result<(), EngineError> {
        if let Some(end) = pages.iter().map(|copy| copy.page.0 + 1).max()
            && end > self.pages()
        {
            self.grow(end)?;
        }
        pages.sort_unstable_by_key(|copy| self.data.place(copy.page));
        self.data.write_in_place(pages, usize::MAX)?;
        (0..self.data.files.len()).try_for_each(|file| self.data.sync(file))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageState {
    Whole,
    /// Never written, or grown by a repair that did not get further.
    Zero,
    /// Not a page, or beyond the end of the file.
    Torn,
}

fn judge(
    page: PageNo,
    place: PageState,
    bytes: &[u8],
    copy: Option<Aligned>,
    repair: &mut Repair,
) -> Option<PageCopy> {
    match (place, copy) {
        (PageState::Torn | PageState::Zero, Some(bytes)) => {
            repair.restored.push(page);
            Some(PageCopy { page, bytes })
        }
        (PageState::Torn, None) => {
            repair.torn_unrestorable.push(page);
            None
        }
        (PageState::Whole, Some(copy)) => {
            // Newer in place than the newest copy: only where a copy was trusted to a lost cache.
            let passed_by = PageView::new(bytes).lsn() > PageView::new(&copy).lsn();
            (!passed_by).then_some(PageCopy { page, bytes: copy })
        }
        (PageState::Whole | PageState::Zero, None) => None,
    }
}
