//! Group commit: which of the waiting threads writes and syncs for all.
//!
//! Invariant: at most one thread leads. Who waits is either covered by what a leader settled, or
//! is told to lead: when nobody leads, nobody waits.
//! It knows no file: what leading means is the caller's.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::sync::locked;

const WAITING: u32 = 0;
const SETTLED: u32 = 1;
const LEADING: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Settled,
    /// The caller leads, and calls `leave` when it has settled something.
    Lead,
}

#[derive(Debug)]
struct Slot {
    state: AtomicU32,
    thread: Thread,
}

impl Slot {
    fn wake(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        self.thread.unpark();
    }
}

thread_local! {
    /// One thread waits for one thing at a time, so it needs one slot for its life.
    static SLOT: RefCell<Arc<Slot>> = RefCell::new(Arc::new(Slot {
        state: AtomicU32::new(WAITING),
        thread: thread::current(),
    }));
}

#[derive(Debug)]
struct Waiter {
    upto: u64,
    slot: Arc<Slot>,
}

#[derive(Debug, Default)]
struct Waiting {
    queue: Vec<Waiter>,
    /// Kept for its memory.
    covered: Vec<Arc<Slot>>,
}

/// The threads that wait for the log, one of which leads.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    led: AtomicBool,
    waiting: Mutex<Waiting>,
    /// Who ever came, and who of them was covered.
    came: AtomicU64,
    went: AtomicU64,
    /// How many waited when the last lead ended.
    population: AtomicU64,
    /// How long a lead takes, in nanoseconds.
    lead_ns: AtomicU64,
    /// Leads for which nobody is waited, since the processors have enough to do.
    crowded: AtomicU32,
    /// How long others are waited for at least, in microseconds.
    least_us: AtomicU64,
}

/// Longest wait for others, whatever a lead takes.
const GATHER_MAX: Duration = Duration::from_millis(2);
/// So many leads wait for nobody after one that gave the processor away and got it back too late:
/// then groups form by themselves while leaders wait for a processor.
const CROWDED_LEADS: u32 = 32;
/// A longer lead is worth a group even when the processors have enough to do: it gives them time.
const SHORT_LEAD: Duration = Duration::from_micros(250);
/// Looks before sleeping, with a pause between. Giving the processor away instead costs each waiter
/// more than the sleep that it saves.
const SPINS: u32 = 64;

impl GroupCommit {
    /// Waits until `settled`, or until it is the caller's turn to lead.
    pub(crate) fn enter(&self, upto: u64, settled: impl Fn() -> bool) -> Outcome {
        self.came.fetch_add(1, Ordering::Relaxed);
        for _ in 0..SPINS {
            if settled() {
                self.went.fetch_add(1, Ordering::Relaxed);
                return Outcome::Settled;
            }
            if self.try_lead() {
                return Outcome::Lead;
            }
            std::hint::spin_loop();
        }
        SLOT.with_borrow(|slot| self.sleep(upto, slot, settled))
    }

    fn sleep(&self, upto: u64, slot: &Arc<Slot>, settled: impl Fn() -> bool) -> Outcome {
        {
            let mut waiting = locked(&self.waiting);
            // Who leaves has published before it takes this lock, so nothing is missed.
            if settled() {
                self.went.fetch_add(1, Ordering::Relaxed);
                return Outcome::Settled;
            }
            if !self.led.swap(true, Ordering::AcqRel) {
                return Outcome::Lead;
            }
            slot.state.store(WAITING, Ordering::Relaxed);
            waiting.queue.push(Waiter { upto, slot: Arc::clone(slot) });
        }
        loop {
            match slot.state.load(Ordering::Acquire) {
                WAITING => thread::park(),
                LEADING => return Outcome::Lead,
                _ => return Outcome::Settled,
            }
        }
    }

    /// For who does not wait itself: leads if nobody does, and then calls `leave`.
    pub(crate) fn try_lead(&self) -> bool {
        !self.led.load(Ordering::Relaxed) && !self.led.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn lead_time(&self) -> Duration {
        Duration::from_nanos(self.lead_ns.load(Ordering::Relaxed))
    }

    /// Who waits now; a leader that came by `enter` is included.
    fn present(&self) -> u64 {
        let went = self.went.load(Ordering::Relaxed);
        self.came.load(Ordering::Relaxed).saturating_sub(went)
    }

    /// For a leader, before it takes what there is to settle: waits for those who were there at
    /// the last lead and may be back in a moment. Otherwise two groups of half the size would
    /// alternate.
    ///
    /// With n here and a lead that takes T, throughput is n / (T + waited): one more is worth
    /// waiting for while it comes within T / n. The whole wait is at most half of T.
    pub(crate) fn gather(&self) {
        let least = self.least();
        if !least.is_zero() {
            return thread::sleep(least);
        }
        let wanted = self.population.load(Ordering::Relaxed);
        let mut here = self.present();
        let crowded = self.crowded.load(Ordering::Relaxed);
        if here >= wanted || crowded > 0 {
            self.crowded.store(crowded.saturating_sub(1), Ordering::Relaxed);
            return;
        }
        let lead = self.lead_time();
        let (start, most) = (Instant::now(), (lead / 2).min(GATHER_MAX));
        let (mut last, mut before) = (start, start);
        loop {
            thread::yield_now();
            let (now, now_here) = (Instant::now(), self.present());
            let worth = lead / here.clamp(2, 64) as u32;
            if lead < SHORT_LEAD && now - before > lead / 4 {
                self.crowded.store(CROWDED_LEADS, Ordering::Relaxed);
            }
            // A late arrival is late all the same: the next one will be, too.
            if now_here >= wanted || now - last > worth || now - start > most {
                return;
            }
            before = now;
            if now_here > here {
                (here, last) = (now_here, now);
            }
        }
    }

    /// Learns how long a lead takes: at most doubles or halves what was thought, since one that
    /// waited for a processor, or that found the disk's cache empty, says little.
    pub(crate) fn learn(&self, lead: Duration) {
        let thought = self.lead_ns.load(Ordering::Relaxed);
        let lead = lead.as_nanos() as u64;
        let least = thought / 2;
        let next = if thought == 0 { lead } else { lead.clamp(least, 2 * thought + 1) };
        self.lead_ns.store(next, Ordering::Relaxed);
    }

    /// From now on a leader waits so long for others at least.
    pub(crate) fn set_least(&self, least: Duration) {
        self.least_us.store(least.as_micros() as u64, Ordering::Relaxed);
    }

    pub(crate) fn least(&self) -> Duration {
        Duration::from_micros(self.least_us.load(Ordering::Relaxed))
    }

    /// Ends the caller's lead: everything before `upto` is settled. The longest waiting of the
    /// others leads next and is woken first. `entered` is 1 for a leader that came by `enter`, else
    /// 0.
    pub(crate) fn leave(&self, upto: u64, entered: u64) {
        let mut waiting = locked(&self.waiting);
        self.population.store(self.present(), Ordering::Relaxed);
        let Waiting { queue, covered } = &mut *waiting;
        let mut covered = std::mem::take(covered);
        queue.retain(|waiter| {
            let is_covered = waiter.upto <= upto;
            if is_covered {
                covered.push(Arc::clone(&waiter.slot));
            }
            !is_covered
        });
        let heir = if queue.is_empty() { None } else { Some(queue.remove(0).slot) };
        if heir.is_none() {
            self.led.store(false, Ordering::Release);
        }
        drop(waiting);
        self.went.fetch_add(entered + covered.len() as u64, Ordering::Relaxed);
        if let Some(heir) = heir {
            heir.wake(LEADING);
        }
        for slot in covered.drain(..) {
            slot.wake(SETTLED);
        }
        locked(&self.waiting).covered = covered;
    }
}
