//! The cleaner: flushes what the policy decides.
//!
//! Invariant: it is a state machine: `step` does one action and returns when it wants to be called
//! again. Its lock is held while the policy decides, never while pages are written: so the policy
//! can be replaced at any time, also with batches under way, and user threads may flush at the same
//! time. What to do is the policy's business, pages are written in `lanes`, and threads are
//! `background`'s.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use iostrata_innodb::Counter;
use iostrata_innodb::flush::{Action, ActionOutcome, FlushPolicy, FlushSample, FlushSettings};

use crate::admission::Admission;
use crate::error::EngineError;
use crate::flusher::Flusher;
use crate::lanes::Lanes;
use crate::storage::{PolicyState, Storage};
use crate::sync::locked;

struct State {
    policy: Box<dyn FlushPolicy>,
    /// Counts the policies, so that none gets the outcome of another's action.
    number: u64,
    last: ActionOutcome,
    is_furious: bool,
}

impl State {
    fn new(policy: Box<dyn FlushPolicy>, number: u64) -> Self {
        Self { policy, number, last: ActionOutcome::default(), is_furious: false }
    }
}

struct Decision {
    action: Action,
    number: u64,
    /// Whether it does not wait until that is done.
    goes_on: bool,
}

/// Purges a little, for policies that request it; whether there was something to do.
pub(crate) type Purge = Box<dyn Fn() -> Result<bool, EngineError> + Send + Sync>;

pub(crate) struct Cleaner {
    flusher: Arc<Flusher>,
    pub lanes: Lanes,
    admission: Arc<Admission>,
    purge: Purge,
    state: Mutex<State>,
}

impl std::fmt::Debug for Cleaner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Cleaner(last {:?})", locked(&self.state).last)
    }
}

impl Cleaner {
    pub fn new(
        flusher: Arc<Flusher>,
        (admission, purge): (Arc<Admission>, Purge),
        policy: Box<dyn FlushPolicy>,
    ) -> Self {
        let lanes = Lanes::new(Arc::clone(&flusher));
        Self { flusher, lanes, admission, purge, state: Mutex::new(State::new(policy, 0)) }
    }

    /// From the next step on this policy decides. The rule of the last one holds until then.
    pub fn set_policy(&self, policy: Box<dyn FlushPolicy>) {
        let mut state = locked(&self.state);
        *state = State::new(policy, state.number + 1);
        self.lanes.change_policy(state.number);
        drop(state);
        self.flusher.storage.signal.recall();
    }

    /// Does one action of the policy. Returns when the next step is due, in microseconds of the
    /// caller's clock; now if it is in the past. `is_timed` where that clock is the real one:
    /// otherwise no measurement is passed on, so that the same steps decide the same.
    pub fn step(&self, now_us: u64, is_timed: bool) -> Result<u64, EngineError> {
        self.flusher.storage.poison.check()?;
        let Decision { action, number, goes_on } = self.decide(now_us, is_timed);
        if let Action::Sleep { until_us, firm } = action {
            self.flusher.storage.signal.set_firm(firm);
            return Ok(until_us);
        }
        let start = Instant::now();
        let finished = self.act(action, goes_on)?;
        let mut state = locked(&self.state);
        if state.number == number && !goes_on {
            let took_us = if is_timed { start.elapsed().as_micros() as u64 } else { 0 };
            state.last = ActionOutcome { took_us, ..finished };
        }
        Ok(now_us)
    }

    /// What the policy wants, and which policy that was.
    fn decide(&self, now_us: u64, is_timed: bool) -> Decision {
        let storage = &*self.flusher.storage;
        let start = Instant::now();
        let mut state = locked(&self.state);
        let histogram = storage.pool.dirty.histogram();
        let lanes = self.lanes.in_use();
        let mut sample =
            FlushSample { now_us, lanes, age_histogram: &histogram, ..sample(storage) };
        if !is_timed {
            sample.redo_write_us = 0;
        }
        let goes_on = state.policy.goes_on() && self.lanes.writers.load(Ordering::Acquire) > 0;
        let last = match goes_on {
            true => self.lanes.take_finished(false),
            false => std::mem::take(&mut state.last),
        };
        let action = state.policy.next(&sample, last);
        self.lanes.set_pace(state.policy.write_pace());
        self.lanes.wakes_cleaner.store(goes_on, Ordering::Relaxed);
        // Under the lock, so that the rule of a policy that was replaced comes before a new one's.
        let rule = state.policy.admit();
        self.admission.publish(rule);
        storage.redo.gather_commits_for(Duration::from_micros(rule.pace.gather_us()));
        *locked(&storage.signal.policy) = PolicyState {
            users_free_frames: state.policy.users_free_frames(),
            wait_age: Some(rule.first_wait_age()),
            outlook: state.policy.outlook(),
        };
        match action {
            Action::Flush { furious, .. } => {
                if furious && !state.is_furious {
                    storage.counts.add(Counter::BufferFlushSync, 1);
                }
                state.is_furious = furious;
            }
            Action::Sleep { .. } => state.is_furious = false,
            _ => {}
        }
        storage.counts.decided(start.elapsed());
        Decision { action, number: state.number, goes_on }
    }

    fn act(&self, action: Action, goes_on: bool) -> Result<ActionOutcome, EngineError> {
        let storage = &*self.flusher.storage;
        match action {
            Action::Flush { .. } | Action::Lru { .. } => {
                self.lanes.order(action);
                if !goes_on {
                    self.lanes.finish()?;
                    return Ok(self.lanes.take_finished(true));
                }
            }
            Action::SyncRedo => storage.redo.make_durable(storage.redo.lsn())?,
            Action::Checkpoint => self.flusher.checkpoint(false)?,
            Action::Purge => {
                let has_purged = (self.purge)()?;
                return Ok(ActionOutcome { has_purged, ..ActionOutcome::default() });
            }
            Action::Sleep { .. } => {}
        }
        Ok(ActionOutcome::default())
    }
}

/// The engine as it is now; the caller adds its clock and the histogram.
fn sample(storage: &Storage) -> FlushSample<'static> {
    let Storage { redo, pool, counts, settings, .. } = storage;
    let settings = settings.load();
    // The redo's end first: a page that becomes dirty later changes nothing before it.
    let lsn = redo.lsn();
    FlushSample {
        lsn,
        durable: redo.durable(),
        checkpoint: redo.checkpoint_lsn(),
        oldest: pool.dirty.oldest_seen(),
        limits: redo.limits(),
        dirty_pages: pool.dirty.pages() as u64,
        free_frames: pool.queues.free() as u64,
        frames: pool.frames.len() as u64,
        lru_flushed: counts.get(Counter::BufferLruBatchFlushTotalPages),
        list_flushed: counts.flushed_for_age(),
        redo_file_bytes: settings.redo_log_capacity,
        commits: counts.get(Counter::Commits),
        page_ios: counts.get(Counter::PagesRead) + counts.get(Counter::PagesWritten),
        redo_writes: counts.get(Counter::LogFlushes),
        redo_write_us: counts.get(Counter::LogFlushTimeNs) / 1000,
        stalled_redo_writes: counts.get(Counter::LogFlushesStalled),
        pending_reads: counts.get(Counter::DataPendingReads),
        pending_writes: counts.get(Counter::DataPendingWrites),
        settings: FlushSettings::of(&settings),
        ..FlushSample::default()
    }
}
