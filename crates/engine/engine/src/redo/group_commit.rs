//! Group commit: which of the waiting threads writes and syncs for all; and a thread that serves
//! the requests of committers that do not wait.
//!
//! Invariants: at most one thread leads. A waiter is either covered by what a leader settled, or
//! made leader: without a leader there are no waiters. The thread promises nothing by itself: it is
//! one more possible leader, and gives way to waiters. What was requested before it is stopped is
//! served before it ends. Group commit is independent of files: the caller defines what leading
//! does.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use iostrata_innodb::Lsn;

use crate::error::EngineError;
use crate::redo::Redo;
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
struct WaitQueue {
    queue: Vec<Waiter>,
    /// Kept for its memory.
    covered: Vec<Arc<Slot>>,
}

/// The threads that wait for the log, one of which leads.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    led: AtomicBool,
    waiting: Mutex<WaitQueue>,
    /// Threads that ever came, and those of them that were covered.
    came: AtomicU64,
    went: AtomicU64,
    /// How many waited when the last lead ended.
    population: AtomicU64,
    /// How long a lead takes, in nanoseconds.
    lead_ns: AtomicU64,
    /// Leads still to come that wait for no others, since the processors have enough to do.
    crowded: AtomicU32,
    /// How long others are waited for at least, in microseconds.
    least_us: AtomicU64,
}

/// Longest wait for others, whatever a lead takes.
const LEADER_WAIT_MAX: Duration = Duration::from_millis(2);
/// So many leads wait for no others after one that gave the processor away and got it back too
/// late: then groups form by themselves while leaders wait for a processor.
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
            // A leader that leaves has published before it takes this lock, so nothing is missed.
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

    /// For a caller that does not wait: it leads if no thread does, and then calls `leave`.
    fn try_lead(&self) -> bool {
        !self.led.load(Ordering::Relaxed) && !self.led.swap(true, Ordering::AcqRel)
    }

    fn lead_time(&self) -> Duration {
        Duration::from_nanos(self.lead_ns.load(Ordering::Relaxed))
    }

    /// Waiters now; a leader that came by `enter` is included.
    fn present(&self) -> u64 {
        let went = self.went.load(Ordering::Relaxed);
        self.came.load(Ordering::Relaxed).saturating_sub(went)
    }

    /// For a leader, before it takes what there is to settle: waits for those that were there at
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
        let (start, most) = (Instant::now(), (lead / 2).min(LEADER_WAIT_MAX));
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
    /// waited for a processor, or that found the disk's cache empty, means little.
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
        let WaitQueue { queue, covered } = &mut *waiting;
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

/// Requests gather for as long as a sync takes, at least and at most so long. On two processors
/// half of that cost 4 % more processor time for each commit, twice that made commits durable 9 %
/// later (medians of three runs).
const GATHER_MIN: Duration = Duration::from_micros(20);
const GATHER_MAX: Duration = Duration::from_millis(2);
/// First and longest nap while committers make their commits durable themselves. The longest is
/// rare enough to cost them nothing that could be seen: with 16 ms they lost about a tenth.
const NAP_MIN: Duration = Duration::from_millis(1);
const NAP_MAX: Duration = Duration::from_millis(128);

impl Redo {
    /// Requests that the serving thread make everything before `upto` durable soon. Returns at
    /// once; poll [`Redo::durable`], or wait with [`Redo::make_durable`]. Without such a thread
    /// nothing happens.
    pub fn request_durable(&self, Lsn(upto): Lsn) {
        self.requests.want_durable(upto);
    }

    /// Requests that the serving thread write everything before `upto` to the disk soon; otherwise
    /// as [`Redo::request_durable`].
    pub fn request_written(&self, Lsn(upto): Lsn) {
        self.requests.want_written(upto);
    }

    /// Wakes the serving thread: a caller polls for what was requested instead of waiting.
    pub fn hasten_requests(&self) {
        self.requests.hasten();
    }

    /// Serves requests until it is stopped. For one thread; a log is served once.
    pub fn serve_requests(&self) -> Result<(), EngineError> {
        self.requests.begin();
        let mut nap = Duration::ZERO;
        while !self.requests.is_stopped() {
            self.poison.check()?;
            let wanted = self.requests.wanted();
            self.rest(nap);
            if !self.owes() {
                // A nap without a new request ends in sleep.
                nap = if self.requests.wanted() == wanted { Duration::ZERO } else { nap };
                continue;
            }
            nap = if self.serve_group()? { Duration::ZERO } else { longer(nap) };
        }
        let (durable, written) = self.requests.wanted();
        self.make_durable(Lsn(durable))?;
        self.make_written(Lsn(written))
    }

    /// Ends [`Redo::serve_requests`], once what was requested is served.
    pub fn stop_serving(&self) {
        self.requests.stop();
    }

    fn owes(&self) -> bool {
        let (durable, written) = self.requests.wanted();
        self.owes_before(durable, written)
    }

    fn owes_before(&self, durable: u64, written: u64) -> bool {
        self.durable.load(Ordering::Acquire) < durable
            || self.written.load(Ordering::Acquire) < written
            || self.poison.is_set()
    }

    fn rest(&self, nap: Duration) {
        if nap.is_zero() {
            self.requests.sleep(Sleep::Idle, None, || self.owes());
        } else {
            self.requests.sleep(Sleep::Napping, Some(nap), || false);
        }
    }

    /// Lets a group gather and serves it, unless committers did so meanwhile: false then.
    fn serve_group(&self) -> Result<bool, EngineError> {
        let (durable, written) = self.requests.wanted();
        loop {
            let gather = self.group.lead_time().clamp(GATHER_MIN, GATHER_MAX);
            let gather = gather.max(self.group.least());
            self.requests.sleep(Sleep::Gathering, Some(gather), || self.requests.is_full());
            if !self.owes_before(durable, written) {
                self.requests.take_group();
                return Ok(false);
            }
            if self.requests.is_stopped() || self.serve_now()? {
                return Ok(true);
            }
        }
    }

    /// Serves what was requested until now. False when another thread leads: it may serve it, too.
    fn serve_now(&self) -> Result<bool, EngineError> {
        let (durable, written) = self.requests.wanted();
        if self.durable.load(Ordering::Acquire) >= durable {
            self.requests.take_group();
            return self.make_written(Lsn(written)).map(|()| true);
        }
        if !self.group.try_lead() {
            return Ok(false);
        }
        self.requests.take_group();
        self.lead_and_leave(0).map(|()| true)
    }
}

fn longer(nap: Duration) -> Duration {
    (2 * nap).clamp(NAP_MIN, NAP_MAX)
}

const AWAKE: u32 = 0;

/// How deep the serving thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// It lets a group gather: only a large group or the end wakes it.
    Gathering = 1,
    /// Others served the last requests themselves: it takes a new one for such, too, until a caller
    /// polls a commit without waiting.
    Napping,
    /// Nothing is owed: any request wakes it.
    Idle,
}

/// A group of so many commits is not kept waiting for more.
const GROUP_MAX: u64 = 64;

/// Requests, and the thread that serves them.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Up to where the log is requested to be durable, and to be written.
    durable: AtomicU64,
    written: AtomicU64,
    /// Requests since the thread last began to serve.
    group: AtomicU64,
    sleep: AtomicU32,
    is_stopped: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Requests {
    /// Wanted durable and wanted written up to here.
    pub(crate) fn wanted(&self) -> (u64, u64) {
        (self.durable.load(Ordering::SeqCst), self.written.load(Ordering::SeqCst))
    }

    fn want_durable(&self, upto: u64) {
        self.durable.fetch_max(upto, Ordering::SeqCst);
        self.joined();
    }

    fn want_written(&self, upto: u64) {
        self.written.fetch_max(upto, Ordering::SeqCst);
        self.joined();
    }

    fn joined(&self) {
        let is_full = self.group.fetch_add(1, Ordering::SeqCst) + 1 == GROUP_MAX;
        let gathering = Sleep::Gathering as u32;
        self.wake(|sleep| sleep == Sleep::Idle as u32 || is_full && sleep == gathering);
    }

    /// A caller polls instead of waiting.
    fn hasten(&self) {
        self.wake(|sleep| sleep >= Sleep::Napping as u32);
    }

    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.wake(|sleep| sleep != AWAKE);
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Wakes the thread out of such a sleep.
    fn wake(&self, ends: impl Fn(u32) -> bool) {
        let sleep = self.sleep.load(Ordering::SeqCst);
        if !ends(sleep) {
            return;
        }
        // Only the thread that changes it wakes.
        if self.sleep.compare_exchange(sleep, AWAKE, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            && let Some(thread) = &*locked(&self.thread)
        {
            thread.unpark();
        }
    }

    /// The calling thread serves from now on.
    pub(crate) fn begin(&self) {
        let mut thread = locked(&self.thread);
        *thread = Some(thread::current());
    }

    /// The serving thread takes all that came until now for one group.
    fn take_group(&self) {
        self.group.store(0, Ordering::SeqCst);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.group.load(Ordering::SeqCst) >= GROUP_MAX
    }

    /// The serving thread sleeps, at most so long where a time is given, unless this is `over`.
    pub(crate) fn sleep(&self, how: Sleep, longest: Option<Duration>, over: impl Fn() -> bool) {
        let start = Instant::now();
        // Before the look: a later request sees a sleeper.
        self.sleep.store(how as u32, Ordering::SeqCst);
        while self.sleep.load(Ordering::SeqCst) != AWAKE {
            if over() || self.is_stopped() {
                break;
            }
            match longest.map(|longest| longest.checked_sub(start.elapsed())) {
                None => thread::park(),
                Some(Some(left)) if !left.is_zero() => thread::park_timeout(left),
                Some(_) => break,
            }
        }
        self.sleep.store(AWAKE, Ordering::SeqCst);
    }
}
