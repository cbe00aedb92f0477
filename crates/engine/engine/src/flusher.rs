//! Writes dirty pages and, by `flush_neighbors`, their neighbours, frees frames and takes
//! checkpoints.
//!
//! Invariants: a page is written only after the redo up to its newest change is durable; a
//! checkpoint lies at or before every change that is not durable in a data file; after a failure
//! nothing is written. Any thread may call it, without latches; several at once write different
//! pages. What to write, and when, is the caller's business. A neighbour lies next to its page in
//! the same data file and in the same extent of 64 pages there; each page is taken once. Neighbours
//! count as what is ordered: no more pages are taken than without them, but others. On disks
//! without seeks they only cost: the default is none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError, Weak};
use std::time::{Duration, Instant};

use iostrata_innodb::flush::{ActionOutcome, BATCH_PAGES, Cause, UserWork, frames_of_user};
use iostrata_innodb::{Counter, Lsn, PageNo};

use crate::error::EngineError;
use crate::pool::{Flight, PageFlush, Supply};
use crate::storage::Storage;
use crate::store::PageCopy;
use crate::sync::locked;

/// Pages that a thread which cannot go on writes at most, before it looks again.
const ASSIST_PAGES: usize = 64;
/// Pause after help that brought no frame: the pool tries a few hundred times before it gives up.
const FRAMES_PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct Flusher {
    pub storage: Arc<Storage>,
    /// Set until recovery has applied everything: a checkpoint would forget redo before.
    holds_checkpoints: AtomicBool,
    /// Held by the one user thread that flushes for all.
    user_flush: Mutex<()>,
}

impl Flusher {
    /// One that takes no checkpoint yet.
    pub fn new(storage: Arc<Storage>) -> Self {
        Self { storage, holds_checkpoints: AtomicBool::new(true), user_flush: Mutex::new(()) }
    }

    /// Everything in the redo is in the pool: checkpoints may be taken.
    pub fn allow_checkpoints(&self) {
        self.holds_checkpoints.store(false, Ordering::Release);
    }

    /// Writes up to `pages` of the oldest dirty pages, and takes a checkpoint if `checkpoints` are
    /// taken. Gives the number of pages.
    fn flush(
        &self,
        pages: usize,
        until: Lsn,
        (cause, checkpoints): (Cause, bool),
    ) -> Result<usize, EngineError> {
        let mut flushed = 0;
        while flushed < pages {
            let batch = (BATCH_PAGES as usize).min(pages - flushed);
            match self.flush_batch(batch, until, (cause, checkpoints), usize::MAX)? {
                0 => break,
                written => flushed += written,
            }
        }
        if flushed == 0 && checkpoints {
            self.checkpoint(false)?;
        }
        Ok(flushed)
    }

    /// Writes up to `pages` of the oldest dirty pages, `in_flight` of them at a time, with their
    /// neighbours among them where these are wanted; then takes a checkpoint if it is worth one and
    /// `checkpoints` are taken. Gives the number of pages.
    pub fn flush_batch(
        &self,
        pages: usize,
        until: Lsn,
        (cause, checkpoints): (Cause, bool),
        in_flight: usize,
    ) -> Result<usize, EngineError> {
        let Storage { poison, counts, .. } = &*self.storage;
        let _alarm = poison.alarm("a thread that wrote pages");
        let mut taken = Vec::new();
        take_oldest(&self.storage, pages, until, &mut taken);
        if taken.is_empty() {
            return Ok(0);
        }
        let written = self.write(&mut taken, in_flight)?;
        counts.flushed(cause, written as u64);
        if checkpoints {
            self.checkpoint_if_worth()?;
        }
        Ok(written)
    }

    /// Frees up to `frames` frames: clean ones at the cold end first, then dirty ones once written,
    /// `in_flight` of them at a time.
    pub fn free_batch(
        &self,
        frames: usize,
        in_flight: usize,
    ) -> Result<ActionOutcome, EngineError> {
        let Storage { pool, poison, counts, .. } = &*self.storage;
        let _alarm = poison.alarm("a thread that wrote pages");
        let mut freed = pool.evict(frames);
        let mut taken = Vec::new();
        if freed < frames {
            pool.collect_cold((BATCH_PAGES as usize).min(frames - freed), &mut taken);
        }
        let mut flushed = 0;
        if !taken.is_empty() {
            flushed = self.write(&mut taken, in_flight)?;
            counts.flushed_cold(flushed as u64);
            freed += pool.evict(frames - freed);
            self.checkpoint_if_worth()?;
        }
        let (flushed, freed) = (flushed as u32, freed as u32);
        Ok(ActionOutcome { flushed, freed, ..ActionOutcome::default() })
    }

    /// Writes the pages that were taken: redo first, then the pages, durably. Gives their number.
    fn write(&self, taken: &mut Vec<PageFlush>, in_flight: usize) -> Result<usize, EngineError> {
        let count = taken.len();
        let written = self.write_behind_redo(taken, in_flight);
        let pages = std::mem::take(taken);
        match written {
            Ok(()) => self.storage.pool.flushed(pages),
            Err(_) => self.storage.pool.not_flushed(pages),
        }
        written.map(|()| count)
    }

    fn write_behind_redo(
        &self,
        taken: &mut Vec<PageFlush>,
        in_flight: usize,
    ) -> Result<(), EngineError> {
        let storage = &*self.storage;
        storage.poison.check()?;
        let newest = taken.iter().map(|page| page.lsn).max().unwrap_or_default();
        storage.redo.make_durable(newest)?;
        assert!(storage.redo.durable() >= newest, "redo goes before pages");
        // By page, so that copies and flights meet again whatever order the store leaves.
        taken.sort_unstable_by_key(|taken| taken.page);
        let (mut flights, mut copies): (Vec<(Lsn, Flight)>, Vec<PageCopy>) = taken
            .drain(..)
            .map(|page| ((page.lsn, page.flight), PageCopy { page: page.page, bytes: page.bytes }))
            .unzip();
        let written = storage.store.write_paced(&mut copies, in_flight);
        copies.sort_unstable_by_key(|copy| copy.page);
        assert!(copies.len() == flights.len(), "the store gives every copy back");
        for (copy, (lsn, flight)) in copies.into_iter().zip(flights.drain(..)) {
            taken.push(PageFlush { page: copy.page, lsn, bytes: copy.bytes, flight });
        }
        written
    }

    fn checkpoint_if_worth(&self) -> Result<(), EngineError> {
        let redo = &self.storage.redo;
        let (last, end) = (redo.checkpoint_lsn(), redo.lsn());
        let at = self.storage.pool.dirty.oldest().map_or(end, |oldest| oldest.min(end));
        if redo.limits().are_worth_checkpoint(last, at, end) {
            self.checkpoint(false)?;
        }
        Ok(())
    }

    /// Takes a checkpoint where one can be taken; `clean` when writing has ended.
    pub fn checkpoint(&self, clean: bool) -> Result<(), EngineError> {
        let Storage { redo, pool, poison, counts, .. } = &*self.storage;
        poison.check()?;
        if self.holds_checkpoints.load(Ordering::Acquire) {
            return Ok(());
        }
        // In this order: what is changed after the first line has a redo start at or behind `end`.
        let end = redo.lsn();
        let oldest = pool.dirty.oldest();
        let at = oldest.map_or(end, |oldest| oldest.min(end));
        if at <= redo.checkpoint_lsn() && !clean {
            return Ok(());
        }
        self.storage.redo.make_durable(at)?;
        redo.take_checkpoint(at, clean && at == end)?;
        counts.add(Counter::LogCheckpoints, 1);
        Ok(())
    }

    /// Writes every page that is dirty now and takes a checkpoint; `clean` when writing has ended.
    pub fn sharp_checkpoint(&self, clean: bool) -> Result<(), EngineError> {
        let Storage { redo, pool, poison, signal, .. } = &*self.storage;
        // Read once: under load the end moves on for ever.
        let end = redo.lsn();
        loop {
            // What a thread had on its way when it failed never arrives.
            poison.check()?;
            let flushed = self.flush(pool.dirty.pages().max(1), end, (Cause::Background, true))?;
            if pool.dirty.oldest().is_none_or(|oldest| oldest >= end) {
                return self.checkpoint(clean);
            }
            // What is left is latched, or on its way by the hand of others.
            if flushed == 0 && signal.has_threads() {
                signal.wait_round();
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Writes pages that are dirty now, for so long at most, and takes the checkpoint that is
    /// possible then.
    pub fn checkpoint_within(&self, longest: Duration) -> Result<(), EngineError> {
        let Storage { redo, pool, .. } = &*self.storage;
        let (began, end) = (Instant::now(), redo.lsn());
        while began.elapsed() < longest && pool.dirty.oldest().is_some_and(|oldest| oldest < end) {
            let how = (Cause::Background, false);
            // What is left may be latched by others, which are not waited for.
            if self.flush_batch(BATCH_PAGES as usize, end, how, usize::MAX)? == 0 {
                break;
            }
        }
        self.checkpoint(false)
    }

    /// Works towards a checkpoint at `upto`: the cleaner is woken and waited for a moment; without
    /// a cleaner thread the caller writes pages itself.
    pub fn assist_checkpoint(&self, upto: Lsn) -> Result<(), EngineError> {
        if self.storage.signal.has_threads() {
            self.storage.signal.wait_round();
            return Ok(());
        }
        self.assist(upto)
    }

    /// Writes some of what is dirty since before `until`, by the caller's own hand.
    pub fn assist(&self, until: Lsn) -> Result<(), EngineError> {
        if self.flush(ASSIST_PAGES, until, (Cause::Sync, true))? == 0 {
            // Everything there is to write is latched by others for a moment.
            std::thread::yield_now();
        }
        Ok(())
    }

    /// A user thread writes everything that is dirty since before `until`, besides the cleaner. One
    /// does it at a time: a thread that does not wait leaves it to the one at work.
    pub fn flush_as_user(&self, until: Lsn, wait: bool) -> Result<(), EngineError> {
        let _turn = match self.user_flush.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(broken)) => broken.into_inner(),
            Err(TryLockError::WouldBlock) if !wait => return Ok(()),
            Err(TryLockError::WouldBlock) => locked(&self.user_flush),
        };
        if wait {
            self.storage.counts.add(Counter::AdmitWaits, 1);
        }
        let flushed = self.flush(usize::MAX, until, (Cause::Sync, false))?;
        // A thread that does not wait for others is delayed all the same while it writes.
        if wait || flushed > 0 {
            self.storage.counts.add(Counter::BufferFlushSync, 1);
        }
        Ok(())
    }

    /// Works towards a checkpoint at `lsn` as users of the policy do.
    pub fn work_for_checkpoint(&self, lsn: Lsn, work: UserWork) -> Result<(), EngineError> {
        if work == UserWork::Nothing {
            return self.assist_checkpoint(lsn);
        }
        self.checkpoint(false)?;
        if self.storage.redo.checkpoint_lsn() >= lsn {
            return Ok(());
        }
        if work == UserWork::Checkpoints {
            return self.assist_checkpoint(lsn);
        }
        self.flush_as_user(lsn, true)?;
        self.checkpoint(false)?;
        if self.storage.redo.checkpoint_lsn() < lsn {
            // What is left is latched, or on its way by the hand of others.
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Frees some frames, or waits for the cleaner to do so.
    fn assist_frames(&self) -> Result<(), EngineError> {
        let Storage { pool, poison, signal, .. } = &*self.storage;
        // A stopped engine frees nothing any more: waiting would only delay the error.
        poison.check()?;
        if signal.has_threads() && !locked(&signal.policy).users_free_frames {
            signal.wait_round();
        } else {
            self.free_batch(frames_of_user(pool.frames.len() as u64) as usize, usize::MAX)?;
        }
        if pool.queues.free() == 0 {
            // Threads that have the frames for a moment may wait for a processor.
            std::thread::sleep(FRAMES_PAUSE);
        }
        Ok(())
    }
}

/// What the pool calls when it has no free frame.
#[derive(Debug, Default)]
pub(crate) struct FrameSupply {
    flusher: OnceLock<Weak<Flusher>>,
}

impl FrameSupply {
    /// Sets what frees frames, once the engine is put together.
    pub fn is_met_by(&self, flusher: &Arc<Flusher>) {
        assert!(self.flusher.set(Arc::downgrade(flusher)).is_ok(), "a supply has one engine");
    }
}

impl Supply for FrameSupply {
    fn free_wanted(&self) {
        let Some(flusher) = self.flusher.get().and_then(Weak::upgrade) else { return };
        // A failure poisons the engine; the thread that wanted the frame gets the error when it
        // tries again.
        let _kept_in_poison = flusher.assist_frames();
    }
}

const EXTENT_PAGES: u64 = 64;

/// Takes up to `most` pages into the empty `taken`: the oldest with changes before `until`, each
/// with its neighbours as set by `flush_neighbors`.
fn take_oldest(storage: &Storage, most: usize, until: Lsn, taken: &mut Vec<PageFlush>) {
    let mode = storage.settings.load().flush_neighbors;
    if mode == 0 {
        return storage.pool.collect_oldest(most, until, taken);
    }
    while taken.len() < most {
        let at = taken.len();
        storage.pool.collect_oldest(1, until, taken);
        let Some(page) = taken.get(at).map(|oldest| oldest.page) else { return };
        take_beside(storage, page, (mode, most), taken);
    }
}

/// Takes the neighbours of one page, until `most` are taken in all.
fn take_beside(
    storage: &Storage,
    page: PageNo,
    (mode, most): (u32, usize),
    taken: &mut Vec<PageFlush>,
) {
    for downward in [true, false] {
        for next in beside(page, storage.data_files, downward) {
            if taken.len() >= most {
                return;
            }
            let is_taken = storage.pool.collect_page(next, taken);
            if mode == 1 && !is_taken {
                break;
            }
        }
    }
}

/// The pages of the same extent of the same file, going away from `page`.
fn beside(page: PageNo, data_files: u64, downward: bool) -> impl Iterator<Item = PageNo> {
    let (file, place) = (page.0 % data_files, page.0 / data_files);
    let first = place - place % EXTENT_PAGES;
    let count = if downward { place - first } else { first + EXTENT_PAGES - 1 - place };
    (1..=count).map(move |distance| {
        let place = if downward { place - distance } else { place + distance };
        PageNo(place * data_files + file)
    })
}

/// Checkpoints: how far they wait, and their error in an engine that has failed.
#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use iostrata_innodb::{NO_PAGE, TableId};
    use iostrata_io::disk::MemDisk;
    use iostrata_io::disk::memory::{CallKind, Fault};

    use super::*;
    use crate::layer_tests::{on_disk, on_memory};
    use crate::mtr::Mtr;
    use crate::page::{PageKind, Record};
    use crate::tests::small;

    #[test]
    fn neighbours_lie_in_one_extent_of_one_file() {
        // Page 266 is place 66 of file 2: the third page of the second extent.
        let down: Vec<u64> = beside(PageNo(266), 4, true).map(|page| page.0).collect();
        assert_eq!(down, [262, 258]);
        let up: Vec<u64> = beside(PageNo(266), 4, false).map(|page| page.0).collect();
        assert_eq!((up.len(), up[0], up[60]), (61, 270, 127 * 4 + 2));
        assert_eq!(beside(PageNo(0), 1, true).count(), 0);
        assert_eq!(beside(PageNo(63), 1, false).count(), 0);
    }

    /// Changes a page that is in the pool.
    fn change(flusher: &Flusher, page: PageNo) {
        let storage = &flusher.storage;
        let mut mtr = Mtr::begin(storage);
        let held = mtr.latch(storage.pool.pin(page).unwrap());
        let (left, right) = (NO_PAGE, NO_PAGE);
        let init = Record::Init { kind: PageKind::Leaf, level: 0, table: TableId(7), left, right };
        mtr.change(held, &init).unwrap();
        mtr.commit();
    }

    /// Brings pages into the pool that are not dirty.
    fn make(flusher: &Flusher, pages: u64) {
        flusher.storage.store.ensure(pages).unwrap();
        for page in (0..pages).map(PageNo) {
            drop(flusher.storage.pool.create(page).unwrap());
            change(flusher, page);
        }
        flusher.sharp_checkpoint(false).unwrap();
    }

    /// Takes a page for writing, as another thread does.
    fn take(flusher: &Flusher, page: PageNo) -> Vec<PageFlush> {
        change(flusher, page);
        let mut taken = Vec::new();
        assert!(flusher.storage.pool.collect_page(page, &mut taken));
        taken
    }

    #[test]
    fn a_checkpoint_waits_for_what_was_dirty_when_it_began_and_no_more() {
        const OTHERS: u64 = 4;
        const CALLS: usize = 300;
        let mut settings = small();
        // All changes lie in one bucket of the redo.
        settings.set("redo_log_capacity", "64M").unwrap();
        let disk = MemDisk::new();
        let flusher = on_disk(&disk, &settings);
        make(&flusher, 1 + OTHERS);
        change(&flusher, PageNo(0));
        // Others always have some pages on their way, the oldest of them since before the turn
        // began.
        let flying = (1..=OTHERS).map(|page| take(&flusher, PageNo(page))).collect();
        let flying: Mutex<std::collections::VecDeque<Vec<PageFlush>>> = Mutex::new(flying);
        let calls = Arc::new(AtomicUsize::new(0));
        let (of_hook, seen) = (Arc::clone(&flusher), Arc::clone(&calls));
        disk.before_each(move |call| {
            if call.kind != CallKind::Write || !call.name.starts_with("data-") {
                return Fault::None;
            }
            let mut flying = flying.lock().unwrap();
            let number = seen.fetch_add(1, Ordering::Relaxed);
            if number >= CALLS {
                flying.drain(..).for_each(|taken| of_hook.storage.pool.flushed(taken));
                return Fault::None;
            }
            change(&of_hook, PageNo(0));
            if number % 2 == 0 {
                let oldest = flying.pop_front().unwrap();
                let page = oldest[0].page;
                of_hook.storage.pool.flushed(oldest);
                flying.push_back(take(&of_hook, page));
            }
            Fault::None
        });
        flusher.sharp_checkpoint(false).unwrap();
        let calls = calls.load(Ordering::Relaxed);
        assert!(calls < CALLS, "it ran after the end of the redo");
    }

    fn fails_as_poisoned(result: Result<(), EngineError>) {
        assert!(matches!(result, Err(EngineError::Poisoned { .. })), "{result:?}");
    }

    #[test]
    fn no_checkpoint_of_a_poisoned_engine_succeeds() {
        let flusher = on_memory();
        make(&flusher, 1);
        let _cause = flusher.storage.poison.broken("a test".to_owned());
        fails_as_poisoned(flusher.checkpoint(false));
        fails_as_poisoned(flusher.sharp_checkpoint(false));
    }

    #[test]
    fn a_checkpoint_ends_when_a_page_was_left_on_its_way_by_a_failure() {
        let flusher = on_memory();
        make(&flusher, 1);
        // The oldest change begins at the checkpoint, so that none can be taken.
        let lost = take(&flusher, PageNo(0));
        let _cause = flusher.storage.poison.broken("a test".to_owned());
        fails_as_poisoned(flusher.sharp_checkpoint(true));
        flusher.storage.pool.not_flushed(lost);
    }

    #[test]
    fn a_panic_while_pages_are_written_poisons() {
        let disk = MemDisk::new();
        let flusher = on_disk(&disk, &small());
        make(&flusher, 1);
        change(&flusher, PageNo(0));
        let mut has_panicked = false;
        disk.before_each(move |call| {
            let is_first =
                call.name.starts_with("data-") && !std::mem::replace(&mut has_panicked, true);
            assert!(!is_first, "a broken invariant");
            Fault::None
        });
        let of_thread = Arc::clone(&flusher);
        assert!(std::thread::spawn(move || of_thread.sharp_checkpoint(false)).join().is_err());
        fails_as_poisoned(flusher.sharp_checkpoint(false));
    }

    /// Which of six dirty pages are clean after at most so many were flushed.
    fn flushed(mode: &str, pages: usize) -> Vec<u64> {
        let mut settings = small();
        settings.set("data_files", "1").unwrap();
        settings.set("flush_neighbors", mode).unwrap();
        settings.set("redo_log_capacity", "64M").unwrap();
        let flusher = on_disk(&MemDisk::new(), &settings);
        make(&flusher, 10);
        for page in [7, 1, 2, 5, 6, 8] {
            change(&flusher, PageNo(page));
        }
        let storage = &flusher.storage;
        let count =
            flusher.flush_batch(pages, storage.redo.lsn(), (Cause::Sync, false), 8).unwrap();
        let mut dirty = Vec::new();
        storage.pool.collect_oldest(usize::MAX, storage.redo.lsn(), &mut dirty);
        let is_dirty = |page: u64| dirty.iter().any(|one| one.page == PageNo(page));
        let clean: Vec<u64> =
            [1, 2, 5, 6, 7, 8].into_iter().filter(|page| !is_dirty(*page)).collect();
        assert_eq!(clean.len(), count);
        storage.pool.not_flushed(dirty);
        clean
    }

    #[test]
    fn neighbours_are_among_the_pages_that_were_ordered() {
        // All lie in one bucket of ages, whose pages go in any order: so the last page is not
        // known.
        for mode in ["0", "1", "2"] {
            for pages in [1, 2, 3, 5] {
                assert_eq!(flushed(mode, pages).len(), pages, "mode {mode}");
            }
            assert_eq!(flushed(mode, 6), [1, 2, 5, 6, 7, 8], "mode {mode}");
        }
    }

    #[test]
    fn neighbours_go_with_their_page() {
        // Whichever page is the first, the second and third are of its run.
        let beside = flushed("1", 2);
        assert_eq!(beside[1] - beside[0], 1, "{beside:?}");
        let run = flushed("1", 4);
        assert!(run == [5, 6, 7, 8] || run.starts_with(&[1, 2]), "{run:?}");
    }
}
