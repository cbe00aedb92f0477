//! What was asked of the thread that serves requests, and how deep that thread sleeps.
//!
//! Invariant: a request that comes while the thread is idle wakes it, and one that comes before it
//! falls asleep is seen before it sleeps. Nobody makes a system call for a thread that is awake.
//! It knows no log: what is owed is the caller's to say.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::sync::locked;

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
