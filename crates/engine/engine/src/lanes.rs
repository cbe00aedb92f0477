//! What the policy has ordered to be written, and how it is written.
//!
//! There are two lanes: the list, pages with the oldest changes, and the cold end, frames to be
//! freed. A caller of [`Lanes::work`] writes one batch of one of them; threads of the engine do
//! nothing else. Each batch under way has a doublewrite file of its own.
//!
//! Invariant: what was ordered is begun once or found not to be there; the lock is never held while
//! pages are written. How much is ordered, and how many pages are on their way at once, is the
//! policy's business.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use iostrata_innodb::Lsn;
use iostrata_innodb::flush::{
    Action, ActionOutcome, Cause, LanesUse, WritePace, batch_share, batches_at_once,
};

use crate::error::EngineError;
use crate::flusher::Flusher;
use crate::sync::{locked, wait_while};

/// How long a waiter for a lane sleeps at most.
const WAIT: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
struct Oldest {
    until: Lsn,
    cause: Cause,
    checkpoints: bool,
}

/// One lane: what is left of its orders.
#[derive(Debug, Default)]
struct Lane {
    /// Pages or frames that no batch contains yet.
    left: usize,
    /// Batches under way, and what they were to do.
    running: u32,
    begun: usize,
    /// Pages written since it began to work.
    written: usize,
    /// Since when it has been at work, as far as not yet reported.
    busy_since: Option<Instant>,
    busy: Duration,
}

impl Lane {
    fn is_idle(&self) -> bool {
        self.left == 0 && self.running == 0
    }

    fn order(&mut self, more: usize) {
        if self.is_idle() {
            self.written = 0;
            self.busy_since = Some(Instant::now());
        }
        self.left = self.left.saturating_add(more);
    }

    fn begin(&mut self, most: usize) -> usize {
        let pages = self.left.min(most);
        self.left -= pages;
        self.begun += pages;
        self.running += 1;
        pages
    }

    /// A batch that was to do `asked` did `done`; less means that no more exists.
    fn end(&mut self, asked: usize, done: usize) {
        (self.running, self.begun) = (self.running - 1, self.begun - asked);
        self.written += done;
        if done < asked {
            self.left = 0;
        }
        if self.is_idle() {
            self.take_busy();
            self.busy_since = None;
        }
    }

    fn take_busy(&mut self) {
        if let Some(since) = &mut self.busy_since {
            let now = Instant::now();
            self.busy += now.duration_since(*since);
            *since = now;
        }
    }
}

#[derive(Debug, Default)]
struct State {
    list: Lane,
    cold: Lane,
    oldest: Option<Oldest>,
    policy: u64,
    finished: ActionOutcome,
    /// Pages written at the cold end, as `finished` has those of the list.
    cold_flushed: u32,
    is_stopping: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.list.is_idle() && self.cold.is_idle()
    }

    /// Whether another batch may begin, and there is something to do.
    fn has_turn(&self, batches: u32) -> bool {
        let is_wanted = self.list.left > 0 || self.cold.left > 0;
        is_wanted && self.list.running + self.cold.running < batches
    }
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    what: BatchOf,
    /// Pages to write, or frames to free.
    pages: usize,
    /// How many of its pages are on their way at once.
    in_flight: usize,
    /// Whose order it is.
    policy: u64,
}

#[derive(Clone, Copy, Debug)]
enum BatchOf {
    List(Oldest),
    Cold,
}

#[derive(Debug)]
pub(crate) struct Lanes {
    flusher: Arc<Flusher>,
    state: Mutex<State>,
    to_writers: Condvar,
    to_cleaner: Condvar,
    /// Threads that write.
    pub writers: AtomicU32,
    /// Whether the cleaner is woken when a lane has nothing left to begin with, and does not wait
    /// for it.
    pub wakes_cleaner: AtomicBool,
    /// Pages on their way to their places at once, over all batches.
    in_flight: AtomicU32,
}

impl Lanes {
    pub fn new(flusher: Arc<Flusher>) -> Self {
        Self {
            flusher,
            state: Mutex::default(),
            to_writers: Condvar::new(),
            to_cleaner: Condvar::new(),
            writers: AtomicU32::new(0),
            wakes_cleaner: AtomicBool::new(false),
            in_flight: AtomicU32::new(u32::MAX),
        }
    }

    /// From the next batch on pages are on their way like this.
    pub fn set_pace(&self, pace: WritePace) {
        self.in_flight.store(pace.in_flight.max(1), Ordering::Relaxed);
        self.flusher.storage.store.pace_writes(pace.pages_per_s);
    }

    /// Another policy decides from now on: what was ordered and not begun is forgotten, and what is
    /// under way is not reported.
    pub fn change_policy(&self, number: u64) {
        let mut state = locked(&self.state);
        state.policy = number;
        (state.list.left, state.cold.left) = (0, 0);
        (state.finished, state.cold_flushed) = (ActionOutcome::default(), 0);
        drop(state);
        self.to_cleaner.notify_all();
    }

    /// Adds what an action orders; actions that write nothing add nothing.
    pub fn order(&self, action: Action) {
        let mut state = locked(&self.state);
        match action {
            Action::Flush { pages, until, cause, checkpoints, .. } => {
                state.list.order(pages as usize);
                state.oldest = Some(Oldest { until, cause, checkpoints });
            }
            Action::Lru { pages } => state.cold.order(pages as usize),
            _ => return,
        }
        drop(state);
        self.to_writers.notify_all();
    }

    pub fn in_use(&self) -> LanesUse {
        let state = locked(&self.state);
        let sum = |lane: &Lane| (lane.left + lane.begun).min(u32::MAX as usize) as u32;
        LanesUse { list_pages: sum(&state.list), cold_frames: sum(&state.cold) }
    }

    /// What was done since the last call, and how long the list was at work for it. Pages written
    /// at the cold end count only `with_cold`: they are no measure of what was written of the list.
    pub fn take_finished(&self, with_cold: bool) -> ActionOutcome {
        let mut state = locked(&self.state);
        let cold = std::mem::take(&mut state.cold_flushed);
        state.finished.flushed += if with_cold { cold } else { 0 };
        state.list.take_busy();
        let busy = std::mem::take(&mut state.list.busy);
        ActionOutcome { took_us: busy.as_micros() as u64, ..std::mem::take(&mut state.finished) }
    }

    /// Works until both lanes are done.
    pub fn finish(&self) -> Result<(), EngineError> {
        loop {
            while self.work()? {}
            // Others are at the last batches.
            let wait = |state: &mut State| !state.is_idle() && !state.has_turn(self.batches());
            if wait_while(&self.to_cleaner, locked(&self.state), WAIT, wait).is_idle() {
                return Ok(());
            }
            self.flusher.storage.poison.check()?;
        }
    }

    /// Does one batch, if there is one to do; whether there was.
    pub fn work(&self) -> Result<bool, EngineError> {
        let Some(batch) = self.begin() else { return Ok(false) };
        let Batch { what, pages, in_flight, .. } = batch;
        let done = match what {
            BatchOf::List(Oldest { until, cause, checkpoints }) => {
                self.flusher.flush_batch(pages, until, (cause, checkpoints), in_flight).map(
                    |flushed| ActionOutcome { flushed: flushed as u32, ..ActionOutcome::default() },
                )
            }
            BatchOf::Cold => self.flusher.free_batch(pages, in_flight),
        };
        self.end(batch, done.as_ref().copied().unwrap_or_default())?;
        done.map(|_| true)
    }

    fn begin(&self) -> Option<Batch> {
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        let batches = self.batches();
        let mut state = locked(&self.state);
        if !state.has_turn(batches) {
            return None;
        }
        let State { list, cold, oldest, policy, .. } = &mut *state;
        // Frames come first, but the list has its turn, too.
        let is_cold = cold.left > 0 && (list.left == 0 || cold.running <= list.running);
        let lane = if is_cold { cold } else { list };
        let pages = lane.begin(batch_share(lane.left as f64, batches) as usize);
        let what = match (is_cold, oldest) {
            (false, Some(oldest)) => BatchOf::List(*oldest),
            _ => BatchOf::Cold,
        };
        let in_flight = (in_flight / batches).max(1) as usize;
        Some(Batch { what, pages, in_flight, policy: *policy })
    }

    fn batches(&self) -> u32 {
        let threads = self.writers.load(Ordering::Acquire);
        batches_at_once(self.in_flight.load(Ordering::Relaxed), threads)
    }

    fn end(&self, batch: Batch, done: ActionOutcome) -> Result<(), EngineError> {
        let mut state = locked(&self.state);
        // The outcome of another policy's order is not reported.
        let counts = u32::from(batch.policy == state.policy);
        state.finished.freed += counts * done.freed;
        let (lane, checkpoints) = match batch.what {
            BatchOf::List(oldest) => {
                state.finished.flushed += counts * done.flushed;
                state.list.end(batch.pages, done.flushed as usize);
                (&state.list, oldest.checkpoints)
            }
            BatchOf::Cold => {
                state.cold_flushed += counts * done.flushed;
                state.cold.end(batch.pages, done.freed as usize);
                (&state.cold, false)
            }
        };
        let is_due = lane.left == 0;
        let found_nothing = checkpoints && lane.is_idle() && lane.written == 0;
        let is_wanted = state.list.left > 0 || state.cold.left > 0;
        drop(state);
        self.to_cleaner.notify_all();
        if is_wanted {
            self.to_writers.notify_one();
        }
        let signal = &self.flusher.storage.signal;
        // Frames are free, and redo is: waiters for either look again.
        signal.round_done();
        if is_due && self.wakes_cleaner.load(Ordering::Relaxed) {
            signal.wake();
        }
        if found_nothing { self.flusher.checkpoint(false) } else { Ok(()) }
    }

    /// A writing thread's side: waits for something to do; false when the engine stops.
    pub fn wait_work(&self) -> bool {
        let has_nothing = |state: &mut State| !state.is_stopping && !state.has_turn(self.batches());
        let state = locked(&self.state);
        !wait_while(&self.to_writers, state, WAIT * 10, has_nothing).is_stopping
    }

    /// Ends the writing threads; what was ordered and not begun is forgotten.
    pub fn stop(&self) {
        let mut state = locked(&self.state);
        state.is_stopping = true;
        (state.list.left, state.cold.left) = (0, 0);
        drop(state);
        self.to_writers.notify_all();
    }
}
