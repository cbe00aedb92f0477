//! The cleaner: writes dirty pages, keeps frames free, takes checkpoints.
//!
//! Invariant: a page is written only after the redo up to its newest change is durable; a
//! checkpoint lies at or before every change that is not durable in a data file; after a failure
//! nothing is written. It is a state machine: `step` does one action and says when it wants to be
//! called again. What to do is the policy's business, and threads are `background`'s.

use std::time::Instant;

use iostrata_flush::{Action, Cause, Finished, FlushPolicy, FlushSample};
use iostrata_page::Lsn;
use iostrata_pool::{Flight, Flushing};
use iostrata_store::PageCopy;

use crate::core::Core;
use crate::error::EngineError;
use crate::{neighbours, sample};

/// Pages picked and written in one go.
const BATCH_PAGES: usize = 128;

/// A checkpoint between two batches is worth it when it frees one in so many bytes of the redo.
const WORTH_SHARE: u64 = 256;

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stepped {
    /// When the next step is due, in microseconds of the caller's clock; now if it is in the past.
    pub next_us: u64,
}

/// The cleaner of one engine.
pub(crate) struct Cleaner {
    policy: Box<dyn FlushPolicy>,
    last: Finished,
    list_flushed: u64,
    lru_flushed: u64,
    is_furious: bool,
    taken: Vec<Flushing>,
    copies: Vec<PageCopy>,
    flights: Vec<(Lsn, Flight)>,
}

impl std::fmt::Debug for Cleaner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Cleaner(last {:?})", self.last)
    }
}

impl Cleaner {
    /// A cleaner with this policy.
    pub fn new(policy: Box<dyn FlushPolicy>) -> Self {
        Self {
            policy,
            last: Finished::default(),
            list_flushed: 0,
            lru_flushed: 0,
            is_furious: false,
            taken: Vec::new(),
            copies: Vec::new(),
            flights: Vec::new(),
        }
    }

    /// Asks the policy and does what it says.
    ///
    /// # Errors
    /// A poisoned engine, or the failure that poisons it.
    pub fn step(&mut self, core: &Core, now_us: u64) -> Result<Stepped, EngineError> {
        core.poison.check()?;
        let histogram = core.pool.age_histogram();
        let sample = FlushSample {
            now_us,
            lru_flushed: self.lru_flushed,
            list_flushed: self.list_flushed,
            age_histogram: &histogram,
            ..sample::take(core)
        };
        let action = self.policy.next(&sample, self.last);
        core.admission.publish(self.policy.admit());
        let start = Instant::now();
        let mut next_us = now_us;
        self.last = match action {
            Action::Flush { pages, until, furious, cause } => {
                self.note_furious(core, furious);
                self.flush(core, pages as usize, until, cause)?
            }
            Action::Lru { pages } => self.free(core, pages as usize)?,
            Action::SyncRedo => {
                let end = core.redo.lsn();
                core.redo.make_durable(end).map_err(|error| core.poison.keep(error))?;
                Finished::default()
            }
            Action::Checkpoint => {
                self.checkpoint(core, false)?;
                Finished::default()
            }
            Action::Purge { .. } => Finished::default(),
            Action::Sleep { until_us } => {
                self.note_furious(core, false);
                next_us = until_us;
                Finished::default()
            }
        };
        if !matches!(action, Action::Sleep { .. }) {
            self.last.took_us = start.elapsed().as_micros() as u64;
        }
        Ok(Stepped { next_us })
    }

    fn note_furious(&mut self, core: &Core, furious: bool) {
        if furious && !self.is_furious {
            core.counts.furious();
        }
        self.is_furious = furious;
    }

    /// Writes up to `pages` of the oldest dirty pages, and takes a checkpoint.
    pub fn flush(
        &mut self,
        core: &Core,
        pages: usize,
        until: Lsn,
        cause: Cause,
    ) -> Result<Finished, EngineError> {
        let mut flushed = 0;
        while flushed < pages {
            core.pool.collect_oldest(BATCH_PAGES.min(pages - flushed), until, &mut self.taken);
            if self.taken.is_empty() {
                break;
            }
            neighbours::take(core, &mut self.taken);
            flushed += self.write_taken(core)?;
            self.checkpoint_if_worth(core)?;
        }
        if flushed == 0 {
            self.checkpoint(core, false)?;
        }
        self.list_flushed += flushed as u64;
        core.counts.flushed(cause, flushed as u64);
        Ok(Finished { flushed: flushed as u32, ..Finished::default() })
    }

    /// Frees up to `pages` frames: clean ones at the cold end first, then dirty ones once written.
    pub fn free(&mut self, core: &Core, pages: usize) -> Result<Finished, EngineError> {
        let mut freed = core.pool.evict(pages);
        let mut flushed = 0;
        while freed < pages {
            core.pool.collect_cold(BATCH_PAGES.min(pages - freed), &mut self.taken);
            if self.taken.is_empty() {
                break;
            }
            flushed += self.write_taken(core)?;
            let more = core.pool.evict(pages - freed);
            freed += more;
            if more == 0 {
                break;
            }
        }
        if flushed > 0 {
            self.checkpoint_if_worth(core)?;
        }
        self.lru_flushed += flushed as u64;
        core.counts.flushed_cold(flushed as u64);
        Ok(Finished { flushed: flushed as u32, freed: freed as u32, took_us: 0 })
    }

    /// Writes the pages that were taken: redo first, then the pages, durably.
    fn write_taken(&mut self, core: &Core) -> Result<usize, EngineError> {
        let count = self.taken.len();
        let newest = self.taken.iter().map(|page| page.lsn).max().unwrap_or_default();
        let written = self.write_behind(core, newest);
        let pages = self.taken.drain(..).collect();
        match written {
            Ok(()) => core.pool.flushed(pages),
            Err(_) => core.pool.not_flushed(pages),
        }
        written.map(|()| count)
    }

    fn write_behind(&mut self, core: &Core, newest: Lsn) -> Result<(), EngineError> {
        core.poison.check()?;
        core.redo.make_durable(newest).map_err(|error| core.poison.keep(error))?;
        assert!(core.redo.durable() >= newest, "redo goes before pages");
        // By page, so that copies and flights meet again whatever order the store leaves.
        self.taken.sort_unstable_by_key(|taken| taken.page);
        for taken in self.taken.drain(..) {
            self.flights.push((taken.lsn, taken.flight));
            self.copies.push(PageCopy { page: taken.page, bytes: taken.bytes });
        }
        let written = core.store.write(&mut self.copies);
        self.copies.sort_unstable_by_key(|copy| copy.page);
        assert!(self.copies.len() == self.flights.len(), "the store gives every copy back");
        for (copy, (lsn, flight)) in self.copies.drain(..).zip(self.flights.drain(..)) {
            self.taken.push(Flushing { page: copy.page, lsn, bytes: copy.bytes, flight });
        }
        written.map_err(|error| core.poison.keep(EngineError::Store(error)))
    }

    /// Takes a checkpoint if it is worth its write and sync: redo becomes free by a share of the
    /// capacity, or is short.
    fn checkpoint_if_worth(&mut self, core: &Core) -> Result<(), EngineError> {
        let limits = core.redo.limits();
        let (last, end) = (core.redo.checkpoint_lsn(), core.redo.lsn());
        let at = core.pool.oldest().map_or(end, |oldest| oldest.min(end));
        let is_short = end.since(last) >= limits.async_age;
        if is_short || at.since(last) >= limits.capacity / WORTH_SHARE {
            self.checkpoint(core, false)?;
        }
        Ok(())
    }

    /// Takes a checkpoint where one can be taken.
    pub fn checkpoint(&mut self, core: &Core, clean: bool) -> Result<(), EngineError> {
        if core.holds_checkpoints() {
            return Ok(());
        }
        // In this order: what is changed after the first line has a redo start at or behind `end`.
        let end = core.redo.lsn();
        let oldest = core.pool.oldest();
        let at = oldest.map_or(end, |oldest| oldest.min(end));
        if at <= core.redo.checkpoint_lsn() && !clean {
            return Ok(());
        }
        core.poison.check()?;
        core.redo.make_durable(at).map_err(|error| core.poison.keep(error))?;
        core.redo
            .take_checkpoint(at, clean && at == end)
            .map_err(|error| core.poison.keep(error))?;
        core.counts.checkpoint_taken();
        Ok(())
    }
}
