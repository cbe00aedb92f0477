//! What is due next, for all workers together: arrivals of an open loop, or terminals.
//!
//! Invariants: the schedule never waits for a transaction; a worker gets what has been due the
//! longest. One short lock per transaction, and nothing is allocated under it. Of idle workers, one
//! waits for the clock and the others for that one, so that the processor is spun on by one thread
//! at most. Moments are ticks of the window's clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iostrata_plan::{Overload, Pacing, RateProcess};

use crate::arrivals::Arrivals;
use crate::clock::{Clock, Ticks};
use crate::transactions::source::Turn;

/// The longest wait before a worker looks whether the window has ended.
pub(crate) const WAIT_NS_MAX: u64 = 5_000_000;
/// The same for those who wait for another one.
const FOLLOW_MAX: Duration = Duration::from_millis(50);

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A transaction that has been due since then; of this terminal's turn, if any.
    Due { since: Ticks, turn: Option<Turn> },
    /// Nothing before then.
    At(Ticks),
    /// The queue is full, and no arrival may be turned away.
    Overloaded,
}

/// Arrivals that were turned away or are waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArrivalBacklog {
    /// Turned away since the last call.
    pub dropped: u64,
    /// Waiting.
    pub waiting: u64,
}

/// How arrivals of an open loop come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenLoop {
    pub rate_per_s: f64,
    pub process: RateProcess,
    pub queue_max: u32,
    pub overload: Overload,
    pub seed: u64,
}

/// An open loop: arrivals, and the waiting ones.
struct Queue {
    arrivals: Arrivals,
    /// Absent where any number may wait: then those wait that the schedule has not given yet.
    bounded: Option<BoundedQueue>,
    dropped: u64,
}

struct BoundedQueue {
    waiting: VecDeque<Ticks>,
    most: usize,
    aborts: bool,
}

enum Work {
    Queue(Queue),
    /// Terminals by the moment at which they are due.
    Terminals(BinaryHeap<Reverse<(Ticks, Turn)>>),
}

struct Planning {
    work: Work,
    /// The moment that one worker is waiting for with the clock.
    waited_for: Option<Ticks>,
    /// Those who wait for that one.
    followers: u32,
}

/// What is due next.
pub(crate) struct Agenda {
    planning: Mutex<Planning>,
    changed: Condvar,
}

impl Agenda {
    /// An open loop.
    pub(crate) fn open(open: OpenLoop) -> Option<Self> {
        let pacing = Pacing::Open { rate_iops: open.rate_per_s, process: open.process };
        let arrivals = Arrivals::new(pacing, open.seed, 0, 1)?;
        let most = open.queue_max.max(1) as usize;
        let bounded = (open.overload != Overload::Queue).then(|| BoundedQueue {
            waiting: VecDeque::with_capacity(most),
            most,
            aborts: open.overload == Overload::Abort,
        });
        Some(Self::of(Work::Queue(Queue { arrivals, bounded, dropped: 0 })))
    }

    /// Terminals, none of which is there yet.
    pub(crate) fn terminals(homes: u32) -> Self {
        // A deferred transaction has its terminal here a second time.
        Self::of(Work::Terminals(BinaryHeap::with_capacity(2 * homes as usize)))
    }

    fn of(work: Work) -> Self {
        let planning = Planning { work, waited_for: None, followers: 0 };
        Self { planning: Mutex::new(planning), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Planning> {
        // What is guarded is whole between any two statements.
        self.planning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets when terminals are due; those of an open loop have no moment of their own.
    pub(crate) fn add(&self, due: Ticks, turn: Turn) {
        if let Work::Terminals(heap) = &mut self.lock().work {
            heap.push(Reverse((due, turn)));
        }
    }

    /// Takes what has been due the longest at `now`, after adding what is given back, in a window
    /// that began at `start`.
    pub(crate) fn take<C: Clock>(
        &self,
        clock: &C,
        start: Ticks,
        now: Ticks,
        back: Option<(Ticks, Turn)>,
    ) -> Next {
        let mut planning = self.lock();
        let next = match &mut planning.work {
            Work::Queue(queue) => queue.take(clock, start, now),
            Work::Terminals(heap) => {
                heap.extend(back.map(Reverse));
                match heap.peek() {
                    Some(Reverse((due, turn))) if *due <= now => {
                        let next = Next::Due { since: *due, turn: Some(*turn) };
                        heap.pop();
                        next
                    }
                    Some(Reverse((due, _))) => Next::At(*due),
                    None => Next::At(Ticks::MAX),
                }
            }
        };
        // Who has something to do leaves the clock to one of the others.
        let leaves_clock = planning.waited_for.is_none() && planning.followers > 0;
        drop(planning);
        if leaves_clock && matches!(next, Next::Due { .. }) {
            self.changed.notify_one();
        }
        next
    }

    /// Waits for the next moment, or for the worker that already does. Returns the nanoseconds that
    /// were spent spinning.
    pub(crate) fn wait<C: Clock>(&self, clock: &C, now: Ticks, due: Ticks) -> u64 {
        let until = due.min(now + clock.ticks_in(WAIT_NS_MAX));
        let mut planning = self.lock();
        if planning.waited_for.is_some_and(|other| other <= until) {
            planning.followers += 1;
            let waited = self.changed.wait_timeout(planning, FOLLOW_MAX);
            waited.unwrap_or_else(PoisonError::into_inner).0.followers -= 1;
            return 0;
        }
        planning.waited_for = Some(until);
        drop(planning);
        let spun_ns = clock.wait(until);
        let mut planning = self.lock();
        if planning.waited_for == Some(until) {
            planning.waited_for = None;
        }
        spun_ns
    }

    /// Arrivals that were turned away since the last call.
    pub(crate) fn dropped(&self) -> u64 {
        match &mut self.lock().work {
            Work::Queue(queue) => std::mem::take(&mut queue.dropped),
            Work::Terminals(_) => 0,
        }
    }

    /// What was turned away, and what waits at `now`.
    pub(crate) fn unserved<C: Clock>(&self, clock: &C, start: Ticks, now: Ticks) -> ArrivalBacklog {
        match &mut self.lock().work {
            Work::Queue(queue) => {
                let waiting = queue.waiting(clock, start, now);
                ArrivalBacklog { dropped: std::mem::take(&mut queue.dropped), waiting }
            }
            Work::Terminals(heap) => {
                let waiting = heap.iter().filter(|Reverse((due, _))| *due <= now).count() as u64;
                ArrivalBacklog { dropped: 0, waiting }
            }
        }
    }
}

impl Queue {
    fn due<C: Clock>(&self, clock: &C, start: Ticks) -> Ticks {
        start + clock.ticks_in(self.arrivals.due_ns())
    }

    fn take<C: Clock>(&mut self, clock: &C, start: Ticks, now: Ticks) -> Next {
        let is_overloaded = self.enqueue(clock, start, now);
        if is_overloaded {
            return Next::Overloaded;
        }
        let first = self.bounded.as_mut().and_then(|bounded| bounded.waiting.pop_front());
        if let Some(since) = first {
            return Next::Due { since, turn: None };
        }
        let due = self.due(clock, start);
        if due > now {
            return Next::At(due);
        }
        self.arrivals.advance();
        Next::Due { since: due, turn: None }
    }

    /// Queues all arrivals that are due; true when one found the queue full and may not be turned
    /// away. None was served since the last call, so that the queue is as full as each found it.
    fn enqueue<C: Clock>(&mut self, clock: &C, start: Ticks, now: Ticks) -> bool {
        let mut due = self.due(clock, start);
        let Some(bounded) = &mut self.bounded else { return false };
        while due <= now {
            if bounded.waiting.len() >= bounded.most {
                if bounded.aborts {
                    return true;
                }
                self.dropped += 1;
            } else {
                bounded.waiting.push_back(due);
            }
            self.arrivals.advance();
            due = start + clock.ticks_in(self.arrivals.due_ns());
        }
        false
    }

    fn waiting<C: Clock>(&mut self, clock: &C, start: Ticks, now: Ticks) -> u64 {
        self.enqueue(clock, start, now);
        if let Some(bounded) = &self.bounded {
            return bounded.waiting.len() as u64;
        }
        let mut ahead = self.arrivals.clone();
        let mut waiting = 0;
        while start + clock.ticks_in(ahead.due_ns()) <= now {
            ahead.advance();
            waiting += 1;
        }
        waiting
    }
}
