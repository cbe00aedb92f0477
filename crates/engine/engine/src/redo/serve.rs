//! Durability for those who do not wait: a thread that serves their requests.
//!
//! Invariant: it promises nothing by itself: it is one more possible leader of the group commit,
//! and gives way to those who wait. What was requested before it is stopped is served before it
//! ends.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use iostrata_innodb::Lsn;

use crate::error::EngineError;
use crate::redo::Redo;
use crate::sync::locked;

/// Requests gather for as long as a sync takes, at least and at most so long. On two processors
/// half of that cost 4 % more processor time for each commit, twice that made commits durable 9 %
/// later (medians of three runs).
const GATHER_MIN: Duration = Duration::from_micros(20);
const GATHER_MAX: Duration = Duration::from_millis(2);
/// First and longest nap while those who commit make their commits durable themselves. The longest
/// is rare enough to cost them nothing that could be seen: with 16 ms they lost about a tenth.
const NAP_MIN: Duration = Duration::from_millis(1);
const NAP_MAX: Duration = Duration::from_millis(128);

impl Redo {
    /// Asks the serving thread to make everything before `upto` durable soon. Returns at once; look
    /// at [`Redo::durable`], or wait by [`Redo::make_durable`]. Without such a thread nothing
    /// happens.
    pub fn request_durable(&self, Lsn(upto): Lsn) {
        self.requests.want_durable(upto);
    }

    /// Asks the serving thread to give everything before `upto` to the disk soon; otherwise as
    /// [`Redo::request_durable`].
    pub fn request_written(&self, Lsn(upto): Lsn) {
        self.requests.want_written(upto);
    }

    /// Says that somebody goes on asking for what was requested and will not wait for it.
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
                // A nap during which nobody came ends in sleep.
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

    /// Lets a group gather and serves it, unless those who committed did so meanwhile: false then.
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
    /// Others served the last requests themselves: it takes a new one for such, too, until somebody
    /// looks after a commit without waiting.
    Napping,
    /// Nothing is owed: any request wakes it.
    Idle,
}

/// A group of so many commits is not kept waiting for more.
const GROUP_MAX: u64 = 64;

/// Requests, and the thread that serves them.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Up to where somebody wants the log to be durable, and to be written.
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

    pub(crate) fn want_durable(&self, upto: u64) {
        self.durable.fetch_max(upto, Ordering::SeqCst);
        self.joined();
    }

    pub(crate) fn want_written(&self, upto: u64) {
        self.written.fetch_max(upto, Ordering::SeqCst);
        self.joined();
    }

    fn joined(&self) {
        let is_full = self.group.fetch_add(1, Ordering::SeqCst) + 1 == GROUP_MAX;
        let gathering = Sleep::Gathering as u32;
        self.wake(|sleep| sleep == Sleep::Idle as u32 || is_full && sleep == gathering);
    }

    /// Somebody asks again instead of waiting.
    pub(crate) fn hasten(&self) {
        self.wake(|sleep| sleep >= Sleep::Napping as u32);
    }

    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.wake(|sleep| sleep != AWAKE);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Wakes the thread out of such a sleep.
    fn wake(&self, ends: impl Fn(u32) -> bool) {
        let sleep = self.sleep.load(Ordering::SeqCst);
        if !ends(sleep) {
            return;
        }
        // Who changes it is the only one who wakes.
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
    pub(crate) fn take_group(&self) {
        self.group.store(0, Ordering::SeqCst);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.group.load(Ordering::SeqCst) >= GROUP_MAX
    }

    /// The serving thread sleeps, at most so long where a time is given, unless this is `over`.
    pub(crate) fn sleep(&self, how: Sleep, longest: Option<Duration>, over: impl Fn() -> bool) {
        let start = Instant::now();
        // Before the look: whoever comes after it sees a sleeper.
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
