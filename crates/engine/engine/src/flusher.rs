//! Writes dirty pages, frees frames and takes checkpoints.
//!
//! Invariant: a page is written only after the redo up to its newest change is durable; a
//! checkpoint lies at or before every change that is not durable in a data file; after a failure
//! nothing is written. Any thread may call it, without latches; several at once write different
//! pages. What to write, and when, is the caller's business.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError, Weak};
use std::time::{Duration, Instant};

use iostrata_innodb::flush::{BATCH_PAGES, Cause, Finished, UserWork, frames_of_user};
use iostrata_innodb::{Counter, Lsn};

use crate::error::EngineError;
use crate::neighbours;
use crate::pool::{Flight, Flushing, Supply};
use crate::storage::Storage;
use crate::store::PageCopy;
use crate::sync::locked;

/// Pages that a thread which cannot go on writes at most, before it looks again.
const ASSIST_PAGES: usize = 64;
/// Pause after help that brought no frame: the pool asks a few hundred times before it gives up.
const FRAMES_PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct Flusher {
    pub storage: Arc<Storage>,
    /// Set until recovery has applied everything: a checkpoint would forget redo before.
    holds_checkpoints: AtomicBool,
    /// Held by the one user who flushes for all.
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
        neighbours::take_oldest(&self.storage, pages, until, &mut taken);
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
    pub fn free_batch(&self, frames: usize, in_flight: usize) -> Result<Finished, EngineError> {
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
        Ok(Finished { flushed, freed, ..Finished::default() })
    }

    /// Writes the pages that were taken: redo first, then the pages, durably. Gives their number.
    fn write(&self, taken: &mut Vec<Flushing>, in_flight: usize) -> Result<usize, EngineError> {
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
        taken: &mut Vec<Flushing>,
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
            taken.push(Flushing { page: copy.page, lsn, bytes: copy.bytes, flight });
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

    /// Takes a checkpoint where one can be taken; `clean` when nobody writes any more.
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

    /// Writes every page that is dirty now and takes a checkpoint; `clean` when nobody writes any
    /// more.
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
            // What is left may be latched by others, who are not waited for.
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

    /// A user writes everything that is dirty since before `until`, beside the cleaner. One does it
    /// at a time: who does not wait leaves it to another who is at it.
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
        // Whoever does not wait for others stands still all the same while it writes.
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
            // Those who have the frames for a moment may wait for a processor.
            std::thread::sleep(FRAMES_PAUSE);
        }
        Ok(())
    }
}

/// What the pool asks when it has no free frame.
#[derive(Debug, Default)]
pub(crate) struct FrameSupply {
    flusher: OnceLock<Weak<Flusher>>,
}

impl FrameSupply {
    /// Says who frees frames, once the engine is put together.
    pub fn is_met_by(&self, flusher: &Arc<Flusher>) {
        assert!(self.flusher.set(Arc::downgrade(flusher)).is_ok(), "a supply has one engine");
    }
}

impl Supply for FrameSupply {
    fn free_wanted(&self) {
        let Some(flusher) = self.flusher.get().and_then(Weak::upgrade) else { return };
        // A failure poisons the engine; who wanted the frame hears of that when it asks.
        let _kept_in_poison = flusher.assist_frames();
    }
}
