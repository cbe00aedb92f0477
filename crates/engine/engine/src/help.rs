//! How a thread that cannot go on gets the cleaner's help.
//!
//! Invariant: called without latches. With a cleaner thread it is woken and waited for; without
//! one the caller does a round itself.

use std::sync::{OnceLock, Weak};
use std::time::Duration;

use iostrata_flush::Cause;
use iostrata_page::Lsn;
use iostrata_pool::Supply;

use crate::core::Core;
use crate::error::EngineError;

/// Pages that one round of help writes at most.
const HELP_PAGES: usize = 64;
/// Pause after help that brought no frame: the pool asks a few hundred times before it gives up.
const FRAMES_PAUSE: Duration = Duration::from_millis(1);

impl Core {
    /// Works towards a checkpoint at `upto`.
    pub fn help_checkpoint(&self, upto: Lsn) -> Result<(), EngineError> {
        if self.bell.has_threads() {
            self.bell.wait_round();
            return Ok(());
        }
        self.flush_until(upto)
    }

    /// Writes what is dirty since before `until`, by the caller's own hand.
    pub fn flush_until(&self, until: Lsn) -> Result<(), EngineError> {
        let mut cleaner = self.cleaner();
        let finished = cleaner.flush(self, HELP_PAGES, until, Cause::Sync)?;
        drop(cleaner);
        if finished.flushed == 0 {
            // Everything there is to write is latched by others for a moment.
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Frees some frames.
    fn help_frames(&self) -> Result<(), EngineError> {
        // A stopped engine frees nothing any more: waiting would only delay the error.
        self.poison.check()?;
        if self.bell.has_threads() {
            self.bell.wait_round();
        } else {
            let wanted = (self.pool.frames() / 8).clamp(1, HELP_PAGES);
            self.cleaner().free(self, wanted)?;
        }
        if self.pool.free_frames() == 0 {
            // Those who have the frames for a moment may wait for a processor.
            std::thread::sleep(FRAMES_PAUSE);
        }
        Ok(())
    }
}

/// What the pool asks when it has no free frame.
#[derive(Debug, Default)]
pub(crate) struct FrameSupply {
    core: OnceLock<Weak<Core>>,
}

impl FrameSupply {
    /// Says whose frames these are, once the engine is put together.
    pub fn belongs_to(&self, core: Weak<Core>) {
        assert!(self.core.set(core).is_ok(), "a supply belongs to one engine");
    }
}

impl Supply for FrameSupply {
    fn free_wanted(&self) {
        let Some(core) = self.core.get().and_then(Weak::upgrade) else { return };
        // A failure poisons the engine; who wanted the frame hears of that when it asks.
        let _kept_in_poison = core.help_frames();
    }
}
