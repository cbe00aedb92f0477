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

use crate::core::Core;
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
        let (mut is_delayed, mut is_crowded_out) = (false, false);
        loop {
            let promised = self.promised.fetch_add(bytes, Ordering::SeqCst) + bytes;
            let room = Room { admission: self, bytes };
            if self.is_closed.load(Ordering::SeqCst) {
                return Err(EngineError::Closed);
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
            if has_room && (answer == Admit::Go || (is_delayed && may_pass(answer))) {
                core.redo.wait_room(bytes as usize).map_err(|error| core.poison.keep(error))?;
                return Ok(room);
            }
            drop(room);
            if !has_room {
                // Others' promises may be all that is in the way, and they may end without a byte
                // of redo: then no checkpoint would ever come, so look again after one round.
                if !is_crowded_out {
                    core.counts.admission_waited();
                    is_crowded_out = true;
                }
                core.help_checkpoint(Lsn(checkpoint.0 + 1))?;
                core.poison.check()?;
                continue;
            }
            hold_back(core, answer)?;
            is_delayed = true;
        }
    }
}

/// Whether one who has done what was asked may go on.
fn may_pass(answer: Admit) -> bool {
    matches!(answer, Admit::Delay { .. } | Admit::FlushSelf { .. })
}

#[cold]
fn hold_back(core: &Core, answer: Admit) -> Result<(), EngineError> {
    match answer {
        Admit::Go => Ok(()),
        Admit::Delay { us } => {
            let start = Instant::now();
            core.bell.ring();
            core.relieve_or(|| std::thread::sleep(Duration::from_micros(us)))?;
            core.counts.admission_delayed(start.elapsed());
            Ok(())
        }
        Admit::FlushSelf { until, wait } => {
            core.bell.ring();
            if wait { core.flush_until(until) } else { Ok(()) }
        }
        Admit::WaitCheckpoint(lsn) => wait_for(core, lsn),
    }
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
