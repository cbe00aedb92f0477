//! When a thread may append redo.
//!
//! Invariant: before a frame is appended its bytes are promised room, so that the redo never runs
//! over its checkpoint however many threads write; a thread that waits holds no latch. The rule
//! that slows writers down is the policy's, published as one. Of the threads ahead of the redo's
//! pace only the first evaluates the rule again, so they go on in the order in which they came.
//! Wide batches never hold more leaves together than the limit; while none of them waits, giving
//! leaves back costs no system call. A reader never sees words of two rules, and takes no lock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{Thread, ThreadId};
use std::time::{Duration, Instant};

use iostrata_innodb::flush::{ADMIT_WORDS, Admit, AdmitRule};
use iostrata_innodb::{Counter, Lsn};

use crate::error::{EngineError, RequestError};
use crate::flusher::Flusher;
use crate::reentry::check_outside;
use crate::storage::{FRAME_OVERHEAD_BYTES, Storage};
use crate::sync::locked;

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
        self.admission.held.give_back(self.leaves);
    }
}

#[derive(Debug)]
pub(crate) struct Admission {
    flusher: Arc<Flusher>,
    rule: PublishedRule,
    promised: AtomicU64,
    is_closed: AtomicBool,
    is_paused: AtomicBool,
    /// Held during a pause, so that no thread ends another's.
    pausing: Mutex<()>,
    /// Leaves that wide batches hold now.
    held: HeldLeaves,
    /// Threads that the redo's pace delays.
    paced: PaceQueue,
}

impl Admission {
    /// With a first rule: a wall where the redo ends.
    pub fn new(flusher: Arc<Flusher>) -> Self {
        let rule = AdmitRule::wall(flusher.storage.redo.limits().max_age);
        Self {
            flusher,
            rule: PublishedRule::new(rule),
            promised: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            is_paused: AtomicBool::new(false),
            pausing: Mutex::new(()),
            held: HeldLeaves::default(),
            paced: PaceQueue::default(),
        }
    }

    /// From now on this rule. One thread at a time.
    pub fn publish(&self, rule: AdmitRule) {
        self.rule.replace(rule, || {});
    }

    #[cfg(test)]
    pub fn rule(&self) -> AdmitRule {
        self.rule.read()
    }

    #[cfg(test)]
    pub fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::SeqCst)
    }

    /// Runs `work` while no frame is promised room: every admitted thread has appended, no other is
    /// admitted meanwhile. The pause ends with the work, also where that panics.
    pub fn paused<R>(&self, work: impl FnOnce() -> R) -> R {
        let _alone = locked(&self.pausing);
        self.is_paused.store(true, Ordering::SeqCst);
        let _pause = Pause(&self.is_paused);
        while self.promised.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        work()
    }

    pub fn check_open(&self) -> Result<(), EngineError> {
        if self.is_closed.load(Ordering::SeqCst) {
            Err(EngineError::Request(RequestError::Closed))
        } else {
            Ok(())
        }
    }

    /// Admits no commit from now on; returns once those under way are done.
    pub fn close(&self) -> Result<(), EngineError> {
        if self.is_closed.swap(true, Ordering::SeqCst) {
            return Err(RequestError::Closed.into());
        }
        while self.promised.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Waits until a batch may hold so many leaves: all together hold at most half of the pool, so
    /// that none waits for ever for frames that the others hold. A batch of one is not counted.
    pub fn pins(&self, leaves: usize) -> Option<Pins<'_>> {
        if leaves <= 1 {
            return None;
        }
        self.held.take(leaves, self.leaves_max(leaves));
        Some(Pins { admission: self, leaves })
    }

    /// As [`Admission::pins`], if that needs no waiting.
    pub fn try_pins(&self, leaves: usize) -> Option<Pins<'_>> {
        let is_taken = self.held.try_take(leaves, self.leaves_max(leaves));
        is_taken.then(|| Pins { admission: self, leaves })
    }

    /// What all may hold together; one that wants more may hold it alone.
    fn leaves_max(&self, leaves: usize) -> usize {
        (self.flusher.storage.pool.frames.len() / 2).max(leaves)
    }

    /// Waits until a frame of so many bytes of records may be appended. No latch is held.
    pub fn admit(&self, record_bytes: usize) -> Result<Room<'_>, EngineError> {
        let storage = &*self.flusher.storage;
        let Storage { redo, poison, .. } = storage;
        poison.check()?;
        check_outside(storage)?;
        let (mut wait, mut first) = (Wait::default(), None);
        loop {
            // Read first: a checkpoint that is taken meanwhile is one to look again for.
            let checkpoint = redo.checkpoint_lsn();
            match self.ask(record_bytes, first.is_some())? {
                AdmissionReply::Paused => drop(locked(&self.pausing)),
                AdmissionReply::Crowded => {
                    // Others' promises may be all that is in the way, and they may end without a
                    // byte of redo: then no checkpoint would ever come, so look again after one
                    // round.
                    wait.note_crowding(storage);
                    self.flusher.assist_checkpoint(Lsn(checkpoint.0 + 1))?;
                    poison.check()?;
                }
                AdmissionReply::Answered(room, answer) if wait.may_pass(answer) => {
                    return self.with_buffer(room);
                }
                AdmissionReply::Answered(room, Admit::Paced { .. }) if first.is_none() => {
                    drop(room);
                    let since = Instant::now();
                    first = Some(self.paced.wait_first());
                    storage.counts.admission_delayed(since.elapsed());
                }
                AdmissionReply::Answered(room, answer) => {
                    drop(room);
                    wait.hold_back(self, answer)?;
                }
            }
        }
    }

    /// As [`Admission::admit`] for work that can be left out: none where it would have to wait.
    pub fn try_admit(
        &self,
        record_bytes: usize,
        haste: Haste,
    ) -> Result<Option<Room<'_>>, EngineError> {
        self.flusher.storage.poison.check()?;
        match (self.ask(record_bytes, false)?, haste) {
            (AdmissionReply::Answered(room, Admit::Go), _)
            | (
                AdmissionReply::Answered(room, Admit::Delay { .. } | Admit::Paced { .. }),
                Haste::ThroughDelays,
            ) => self.with_buffer(room).map(Some),
            _ => Ok(None),
        }
    }

    /// Promises room if there is any, and evaluates the rule for what its owner has to do first. A
    /// thread that is not the first one delayed by the pace stays behind the others.
    fn ask(&self, record_bytes: usize, is_first: bool) -> Result<AdmissionReply<'_>, EngineError> {
        let storage = &*self.flusher.storage;
        let Storage { redo, pool, .. } = storage;
        let bytes = (record_bytes + FRAME_OVERHEAD_BYTES) as u64;
        let promised = self.promised.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let room = Room { admission: self, bytes };
        self.check_open()?;
        if self.is_paused.load(Ordering::SeqCst) {
            return Ok(AdmissionReply::Paused);
        }
        // The capacity may have shrunk since the caller looked.
        let limit = storage.frame_bytes_max() + FRAME_OVERHEAD_BYTES;
        if bytes > limit as u64 {
            let bytes = bytes as usize;
            return Err(EngineError::Request(RequestError::BatchTooLarge { bytes, limit }));
        }
        let (checkpoint, lsn) = (redo.checkpoint_lsn(), redo.lsn());
        if lsn.since(checkpoint) + promised > redo.limits().capacity {
            return Ok(AdmissionReply::Crowded);
        }
        let rule = self.rule.read();
        let oldest =
            if rule.looks_at_oldest() { pool.dirty.oldest().unwrap_or(lsn).min(lsn) } else { lsn };
        if !rule.pace.is_free() {
            if self.paced.has_waiting() && !is_first {
                return Ok(AdmissionReply::Answered(room, Admit::Paced { us: 0 }));
            }
            // What others were promised comes before.
            let begin = Lsn(lsn.0 + promised - bytes);
            let us = rule.pace.wait_us(storage.cleaner_clock_us(), begin);
            if us > 0 {
                return Ok(AdmissionReply::Answered(room, Admit::Paced { us }));
            }
        }
        Ok(AdmissionReply::Answered(room, rule.decide(lsn, checkpoint, oldest)))
    }

    /// Waits for the checkpoint that the rule requires. It is read again each time: another policy
    /// or a larger redo moves the wall, and then no cleaner may ever work towards the old one.
    #[cold]
    fn wait_checkpoint(&self) -> Result<(), EngineError> {
        let Storage { redo, poison, counts, .. } = &*self.flusher.storage;
        counts.add(Counter::AdmitWaits, 1);
        let end = redo.lsn();
        while let Admit::WaitCheckpoint { lsn, work } =
            self.rule.read().decide(end, redo.checkpoint_lsn(), end)
        {
            poison.check()?;
            self.flusher.work_for_checkpoint(lsn, work)?;
        }
        Ok(())
    }

    /// Waits until every change before `lsn` is written, as long as the rule wants that.
    #[cold]
    fn wait_oldest(&self, lsn: Lsn) -> Result<(), EngineError> {
        let Storage { pool, poison, counts, .. } = &*self.flusher.storage;
        counts.add(Counter::AdmitWaits, 1);
        let asked = self.rule.read().flush_wait_age;
        while pool.dirty.oldest().is_some_and(|oldest| oldest < lsn)
            && self.rule.read().flush_wait_age == asked
        {
            poison.check()?;
            self.flusher.assist_checkpoint(lsn)?;
        }
        Ok(())
    }

    /// Sees to it that the log buffer takes what was promised.
    fn with_buffer<'c>(&self, room: Room<'c>) -> Result<Room<'c>, EngineError> {
        let redo = &self.flusher.storage.redo;
        redo.wait_room(room.bytes as usize)?;
        Ok(room)
    }
}

struct Pause<'a>(&'a AtomicBool);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// How much work that can be left out wants to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// Only when writers are not slowed down.
    Little,
    /// Also when writers are slowed down, but not when they are stopped.
    ThroughDelays,
}

/// What one question gave.
enum AdmissionReply<'c> {
    Paused,
    /// The redo has no room for what was promised.
    Crowded,
    /// There is room, and this is what the rule returned.
    Answered(Room<'c>, Admit),
}

/// What a thread that was not admitted at once has waited for.
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
            Admit::FlushSelf { .. }
            | Admit::WakeCleaner
            | Admit::WaitOldest(_)
            | Admit::TakeCheckpoint => self.has_helped,
            Admit::Paced { .. } => self.has_helped,
            Admit::WaitCheckpoint { .. } => false,
        }
    }

    fn note_crowding(&mut self, storage: &Storage) {
        if !self.was_crowded_out {
            storage.counts.add(Counter::AdmitWaits, 1);
            self.was_crowded_out = true;
        }
    }

    /// Does what the rule requires. A delay is slept in parts, because the rule requires less as
    /// soon as the cleaner made progress; without a cleaner thread a round of its work takes the
    /// delay's place.
    #[cold]
    fn hold_back(&mut self, admission: &Admission, answer: Admit) -> Result<(), EngineError> {
        let flusher = &*admission.flusher;
        let Storage { redo, poison, counts, signal, .. } = &*flusher.storage;
        match answer {
            Admit::Go => Ok(()),
            Admit::Delay { us } if signal.has_threads() => {
                let (part, since) =
                    (Instant::now(), *self.delayed.get_or_insert_with(Instant::now));
                signal.wait_round_for(micros(us).saturating_sub(since.elapsed()));
                counts.admission_delayed(part.elapsed());
                poison.check()
            }
            Admit::Paced { us } if signal.has_threads() => {
                let start = Instant::now();
                signal.wait_round_for(micros(us));
                counts.admission_delayed(start.elapsed());
                poison.check()
            }
            Admit::Delay { .. } | Admit::Paced { .. } => {
                self.has_helped = true;
                flusher.assist(redo.lsn())
            }
            Admit::FlushSelf { until, wait } => {
                self.has_helped = true;
                flusher.flush_as_user(until, wait)
            }
            Admit::WakeCleaner => {
                self.has_helped = true;
                signal.wake();
                Ok(())
            }
            Admit::WaitOldest(lsn) => {
                self.has_helped = true;
                admission.wait_oldest(lsn)
            }
            Admit::TakeCheckpoint => {
                self.has_helped = true;
                flusher.checkpoint(false)
            }
            Admit::WaitCheckpoint { .. } => admission.wait_checkpoint(),
        }
    }
}

fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// The leaves that wide batches hold, and the batches that wait for some.
#[derive(Debug, Default)]
struct HeldLeaves {
    held: AtomicUsize,
    /// Threads that wait or are about to.
    waiters: AtomicUsize,
    changing: Mutex<()>,
    given_back: Condvar,
}

impl HeldLeaves {
    /// Takes so many, if all together are at most `most` then.
    pub fn try_take(&self, leaves: usize, most: usize) -> bool {
        let step = |held: usize| held.checked_add(leaves).filter(|sum| *sum <= most);
        self.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step).is_ok()
    }

    pub fn take(&self, leaves: usize, most: usize) {
        if !self.try_take(leaves, most) {
            self.wait(leaves, most);
        }
    }

    #[cold]
    fn wait(&self, leaves: usize, most: usize) {
        let changing = locked(&self.changing);
        // Before the look: a thread that gives leaves back after it sees a waiter.
        self.waiters.fetch_add(1, Ordering::SeqCst);
        drop(self.given_back.wait_while(changing, |()| !self.try_take(leaves, most)));
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn give_back(&self, leaves: usize) {
        self.held.fetch_sub(leaves, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            // Under the lock: a waiter that looked in vain sleeps by now.
            let _changing = locked(&self.changing);
            self.given_back.notify_all();
        }
    }
}

/// How long one behind the first sleeps at most before it looks again.
const LOOK: Duration = Duration::from_millis(100);

/// Threads ahead of the redo's pace, in the order in which they came.
#[derive(Debug, Default)]
struct PaceQueue {
    waiting: Mutex<VecDeque<Thread>>,
    has_waiting: AtomicBool,
}

/// The first place in the queue, until it is dropped.
#[derive(Debug)]
pub(crate) struct FirstPlace<'q> {
    queue: &'q PaceQueue,
    of: ThreadId,
}

impl PaceQueue {
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.has_waiting.load(Ordering::Relaxed)
    }

    /// Joins at the end and waits to be the first.
    pub fn wait_first(&self) -> FirstPlace<'_> {
        let me = std::thread::current();
        let of = me.id();
        let mut waiting = locked(&self.waiting);
        waiting.push_back(me);
        self.has_waiting.store(true, Ordering::Relaxed);
        while waiting.front().is_some_and(|first| first.id() != of) {
            drop(waiting);
            std::thread::park_timeout(LOOK);
            waiting = locked(&self.waiting);
        }
        FirstPlace { queue: self, of }
    }
}

impl Drop for FirstPlace<'_> {
    fn drop(&mut self) {
        let mut waiting = locked(&self.queue.waiting);
        let first = waiting.pop_front();
        assert!(first.is_some_and(|first| first.id() == self.of), "the first leaves first");
        self.queue.has_waiting.store(!waiting.is_empty(), Ordering::Relaxed);
        if let Some(next) = waiting.front() {
            next.unpark();
        }
    }
}

#[derive(Debug)]
struct PublishedRule {
    /// Odd while the words are being replaced.
    version: AtomicU64,
    words: [AtomicU64; ADMIT_WORDS],
}

impl PublishedRule {
    pub fn new(rule: AdmitRule) -> Self {
        Self { version: AtomicU64::new(0), words: rule.to_words().map(AtomicU64::new) }
    }

    /// The caller keeps other writers out. `stored` is called after each word.
    pub fn replace(&self, rule: AdmitRule, mut stored: impl FnMut()) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(rule.to_words()) {
            word.store(value, Ordering::Relaxed);
            stored();
        }
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// The rule; none while it is being replaced.
    #[inline]
    fn try_read(&self) -> Option<AdmitRule> {
        let version = self.version.load(Ordering::Acquire);
        let words = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let is_whole = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        is_whole.then(|| AdmitRule::from_words(words))
    }

    #[inline]
    pub fn read(&self) -> AdmitRule {
        loop {
            if let Some(rule) = self.try_read() {
                return rule;
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_leaves_than_the_limit_are_held_and_every_wait_ends() {
        let (held, inside) = (HeldLeaves::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (held, inside) = (&held, &inside);
                scope.spawn(move || {
                    for round in 0..2_000 {
                        let leaves = 2 + (thread + round) % 4;
                        held.take(leaves, 7);
                        let now = inside.fetch_add(leaves, Ordering::SeqCst) + leaves;
                        assert!(now <= 7, "{now} leaves are held");
                        inside.fetch_sub(leaves, Ordering::SeqCst);
                        held.give_back(leaves);
                    }
                });
            }
        });
        assert!(held.try_take(7, 7) && !held.try_take(1, 7));
    }

    #[test]
    fn threads_go_in_the_order_in_which_they_came() {
        let (queue, went) = (PaceQueue::default(), Mutex::new(Vec::new()));
        let first = queue.wait_first();
        std::thread::scope(|scope| {
            for number in 0..8_usize {
                let (queue, went) = (&queue, &went);
                scope.spawn(move || {
                    let _first = queue.wait_first();
                    went.lock().unwrap().push(number);
                });
                while locked(&queue.waiting).len() < number + 2 {
                    std::thread::yield_now();
                }
            }
            assert!(queue.has_waiting() && went.lock().unwrap().is_empty());
            drop(first);
        });
        assert_eq!(*went.lock().unwrap(), (0..8).collect::<Vec<_>>());
        assert!(!queue.has_waiting());
    }

    #[test]
    fn no_rule_is_read_between_two() {
        let rule = PublishedRule::new(AdmitRule::wall(1));
        let mut words = 0;
        rule.replace(AdmitRule::wall(2), || {
            assert_eq!(rule.try_read(), None);
            words += 1;
        });
        assert_eq!((rule.try_read(), words), (Some(AdmitRule::wall(2)), ADMIT_WORDS));
    }
}
