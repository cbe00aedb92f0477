//! Who may append redo, and when.
//!
//! Invariant: before a frame is appended its bytes are promised room, so that the redo never runs
//! over its checkpoint however many threads write; whoever has to wait holds no latch. The rule
//! that slows writers down is the policy's, published as plain words.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use iostrata_flush::{ADMIT_WORDS, Admit, AdmitRule};
use iostrata_page::Lsn;

use crate::core::{Core, FRAME_OVERHEAD_BYTES};
use crate::error::EngineError;

/// Room in the redo for one frame, until it is dropped.
pub(crate) struct Room<'c> {
    admission: &'c Admission,
    bytes: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.admission.promised.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

/// Leaves that a batch may hold, until it is dropped.
pub(crate) struct Pins<'c> {
    admission: &'c Admission,
    leaves: usize,
}

impl Drop for Pins<'_> {
    fn drop(&mut self) {
        *self.admission.pins.lock().unwrap_or_else(PoisonError::into_inner) -= self.leaves;
        self.admission.unpinned.notify_all();
    }
}

/// The rule and the promises.
#[derive(Debug)]
pub(crate) struct Admission {
    rule: [AtomicU64; ADMIT_WORDS],
    promised: AtomicU64,
    is_closed: AtomicBool,
    /// Nobody is admitted for a moment.
    is_paused: AtomicBool,
    /// Held by whoever paused, so that nobody ends another's pause.
    pausing: Mutex<()>,
    /// Leaves that wide batches may hold now.
    pins: Mutex<usize>,
    unpinned: Condvar,
}

impl Admission {
    /// With a first rule.
    pub fn new(rule: AdmitRule) -> Self {
        Self {
            rule: rule.to_words().map(AtomicU64::new),
            promised: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            is_paused: AtomicBool::new(false),
            pausing: Mutex::new(()),
            pins: Mutex::new(0),
            unpinned: Condvar::new(),
        }
    }

    /// From now on this rule.
    pub fn publish(&self, rule: AdmitRule) {
        for (word, value) in self.rule.iter().zip(rule.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Runs `work` while no frame is promised room: everyone admitted has appended, nobody else is
    /// admitted meanwhile.
    pub fn paused<R>(&self, work: impl FnOnce() -> R) -> R {
        let _alone = self.pausing.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_paused.store(true, Ordering::SeqCst);
        while self.promised.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        let result = work();
        self.is_paused.store(false, Ordering::SeqCst);
        result
    }

    /// Whether the engine was closed.
    ///
    /// # Errors
    /// [`EngineError::Closed`].
    pub fn check_open(&self) -> Result<(), EngineError> {
        if self.is_closed.load(Ordering::SeqCst) { Err(EngineError::Closed) } else { Ok(()) }
    }

    /// From now on nobody is admitted; returns once those that were are done.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        while self.promised.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }

    /// Waits until a batch may hold so many leaves: all together hold at most half of the pool, so
    /// that none waits for ever for frames that the others hold. A batch of one is not counted.
    pub fn pins<'c>(&'c self, leaves: usize, core: &Core) -> Option<Pins<'c>> {
        if leaves <= 1 {
            return None;
        }
        let most = (core.pool.frames() / 2).max(leaves);
        let mut held = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        while *held + leaves > most {
            held = self.unpinned.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        *held += leaves;
        Some(Pins { admission: self, leaves })
    }

    fn rule(&self) -> AdmitRule {
        let mut words = [0; ADMIT_WORDS];
        for (word, value) in words.iter_mut().zip(&self.rule) {
            *word = value.load(Ordering::Relaxed);
        }
        AdmitRule::from_words(words)
    }

    /// Waits until `bytes` may be appended.
    pub fn admit<'c>(&'c self, core: &'c Core, bytes: u64) -> Result<Room<'c>, EngineError> {
        core.poison.check()?;
        let mut wait = Wait::default();
        loop {
            let promised = self.promised.fetch_add(bytes, Ordering::SeqCst) + bytes;
            let room = Room { admission: self, bytes };
            self.check_open()?;
            if self.is_paused.load(Ordering::SeqCst) {
                drop(room);
                std::thread::yield_now();
                continue;
            }
            // The capacity may have shrunk since the caller looked.
            let limit = core.frame_bytes_max() + FRAME_OVERHEAD_BYTES;
            if bytes > limit as u64 {
                return Err(EngineError::BatchTooLarge { bytes: bytes as usize, limit });
            }
            let (checkpoint, lsn) = (core.redo.checkpoint_lsn(), core.redo.lsn());
            let rule = self.rule();
            let oldest = if rule.flush_self_age == u64::MAX {
                lsn
            } else {
                core.pool.oldest().unwrap_or(lsn).min(lsn)
            };
            let has_room = lsn.since(checkpoint) + promised <= core.redo.limits().capacity;
            let answer = rule.decide(lsn, checkpoint, oldest);
            if has_room && wait.may_pass(answer) {
                core.redo.wait_room(bytes as usize).map_err(|error| core.poison.keep(error))?;
                return Ok(room);
            }
            drop(room);
            if !has_room {
                // Others' promises may be all that is in the way, and they may end without a byte
                // of redo: then no checkpoint would ever come, so look again after one round.
                wait.note_crowding(core);
                core.help_checkpoint(Lsn(checkpoint.0 + 1))?;
                core.poison.check()?;
                continue;
            }
            wait.hold_back(core, answer)?;
        }
    }
}

/// What one who was not admitted at once has waited for.
#[derive(Default)]
struct Wait {
    /// Since when the rule delays it.
    delayed: Option<Instant>,
    has_helped: bool,
    was_crowded_out: bool,
}

impl Wait {
    /// Whether the answer lets it go on, after what it has waited already.
    fn may_pass(&self, answer: Admit) -> bool {
        match answer {
            Admit::Go => true,
            Admit::Delay { us } => {
                self.has_helped || self.delayed.is_some_and(|since| since.elapsed() >= micros(us))
            }
            Admit::FlushSelf { .. } => self.has_helped,
            Admit::WaitCheckpoint(_) => false,
        }
    }

    fn note_crowding(&mut self, core: &Core) {
        if !self.was_crowded_out {
            core.counts.admission_waited();
            self.was_crowded_out = true;
        }
    }

    /// Does what is asked. A delay is slept in parts, because the rule asks for less as soon as
    /// the cleaner got on; without a cleaner thread a round of its work takes the delay's place.
    #[cold]
    fn hold_back(&mut self, core: &Core, answer: Admit) -> Result<(), EngineError> {
        match answer {
            Admit::Go => Ok(()),
            Admit::Delay { us } if core.bell.has_threads() => {
                let (part, since) =
                    (Instant::now(), *self.delayed.get_or_insert_with(Instant::now));
                core.bell.wait_round_for(micros(us).saturating_sub(since.elapsed()));
                core.counts.admission_delayed(part.elapsed());
                core.poison.check()
            }
            Admit::Delay { .. } => {
                self.has_helped = true;
                core.flush_until(core.redo.lsn())
            }
            Admit::FlushSelf { until, wait } => {
                self.has_helped = true;
                core.bell.ring();
                if wait { core.flush_until(until) } else { Ok(()) }
            }
            Admit::WaitCheckpoint(lsn) => wait_for(core, lsn),
        }
    }
}

fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

#[cold]
fn wait_for(core: &Core, checkpoint: Lsn) -> Result<(), EngineError> {
    core.counts.admission_waited();
    while core.redo.checkpoint_lsn() < checkpoint {
        core.poison.check()?;
        core.help_checkpoint(checkpoint)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn one_pause_does_not_end_another() {
        let admission = Admission::new(AdmitRule::wall(1 << 20));
        let (begun, over) = (Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (admission, begun, over) = (&admission, &begun, &over);
            scope.spawn(move || {
                begun.wait();
                admission.paused(|| assert!(over.load(Ordering::SeqCst), "two at once"));
            });
            admission.paused(|| {
                begun.wait();
                for _ in 0..1000 {
                    assert!(admission.is_paused.load(Ordering::SeqCst), "ended by the other");
                    std::thread::yield_now();
                }
                over.store(true, Ordering::SeqCst);
            });
        });
        assert!(!admission.is_paused.load(Ordering::SeqCst));
    }
}
