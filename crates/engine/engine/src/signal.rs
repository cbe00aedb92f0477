//! The signal between the cleaner and those who need it.
//!
//! Invariant: a wake-up is not lost while the cleaner works; whoever waits for progress is woken by
//! the next round or after a short while, whatever happens; once the engine stops nobody waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use iostrata_innodb::flush::Outlook;

use crate::sync::{locked, wait_while};

/// Longest wait for a round, in case it brings nothing.
const ROUND_WAIT: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
struct State {
    woken: bool,
    rounds: u64,
    stopping: bool,
    /// Wakes end no sleep, until someone recalls the cleaner.
    is_firm: bool,
}

/// What the policy last decided for others than the cleaner.
#[derive(Debug, Default)]
pub(crate) struct PolicyState {
    /// Whether threads free frames by themselves, instead of waiting for the cleaner.
    pub users_free_frames: bool,
    /// The checkpoint age at which writers wait; none before the first decision.
    pub wait_age: Option<u64>,
    pub outlook: Outlook,
}

#[derive(Debug, Default)]
pub(crate) struct CleanerSignal {
    /// Whether threads run the cleaner. Otherwise whoever needs it runs it.
    has_threads: AtomicBool,
    pub policy: Mutex<PolicyState>,
    state: Mutex<State>,
    to_cleaner: Condvar,
    from_cleaner: Condvar,
    /// For those who wait for nothing but the end.
    at_end: Condvar,
}

impl CleanerSignal {
    pub fn set_threads(&self, threads: bool) {
        self.has_threads.store(threads, Ordering::Release);
    }

    /// Whether there is a cleaner thread that whoever needs it may wait for.
    pub fn has_threads(&self) -> bool {
        self.has_threads.load(Ordering::Acquire)
    }

    /// The cleaner's side: whether its next sleep goes on when someone wakes it.
    pub fn set_firm(&self, is_firm: bool) {
        locked(&self.state).is_firm = is_firm;
    }

    /// Wakes the cleaner out of a firm sleep, too.
    pub fn recall(&self) {
        let mut state = locked(&self.state);
        (state.is_firm, state.woken) = (false, true);
        self.to_cleaner.notify_one();
    }

    pub fn wake(&self) {
        let mut state = locked(&self.state);
        if !state.woken {
            state.woken = true;
            self.to_cleaner.notify_one();
        }
    }

    /// Wakes the cleaner and waits for its next round, a moment at most.
    pub fn wait_round(&self) {
        let mut state = locked(&self.state);
        state.woken = true;
        self.to_cleaner.notify_one();
        self.wait_next(state, ROUND_WAIT);
    }

    /// Waits for the cleaner's next round and lets it sleep; at most so long, and a moment at most.
    pub fn wait_round_for(&self, longest: Duration) {
        self.wait_next(locked(&self.state), longest.min(ROUND_WAIT));
    }

    fn wait_next(&self, state: MutexGuard<'_, State>, longest: Duration) {
        let seen = state.rounds;
        let must_wait = |state: &mut State| state.rounds == seen && !state.stopping;
        drop(wait_while(&self.from_cleaner, state, longest, must_wait));
    }

    pub fn round_done(&self) {
        locked(&self.state).rounds += 1;
        self.from_cleaner.notify_all();
    }

    /// The cleaner's side: waits to be woken; false when the engine stops.
    pub fn wait_wake(&self, longest: Duration) -> bool {
        let sleeps = |state: &mut State| (state.is_firm || !state.woken) && !state.stopping;
        let mut state = wait_while(&self.to_cleaner, locked(&self.state), longest, sleeps);
        state.woken = false;
        !state.stopping
    }

    pub fn is_stopping(&self) -> bool {
        locked(&self.state).stopping
    }

    /// Waits so long, or until the engine stops: false then.
    pub fn wait_stop(&self, longest: Duration) -> bool {
        let state = locked(&self.state);
        !wait_while(&self.at_end, state, longest, |state| !state.stopping).stopping
    }

    /// Ends the cleaner's loop. From now on whoever needs it does its work: among those are threads
    /// of the engine whose end is waited for.
    pub fn stop(&self) {
        locked(&self.state).stopping = true;
        self.set_threads(false);
        self.to_cleaner.notify_all();
        self.from_cleaner.notify_all();
        self.at_end.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_firm_sleep_is_ended_by_a_recall_and_not_by_a_wake() {
        let signal = CleanerSignal::default();
        signal.wake();
        assert!(signal.wait_wake(LONG), "another sleep is ended by a wake");
        signal.set_firm(true);
        std::thread::scope(|scope| {
            let asleep = scope.spawn(|| signal.wait_wake(LONG));
            for _ in 0..20 {
                signal.wake();
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(!asleep.is_finished());
            signal.recall();
            assert!(asleep.join().unwrap());
            signal.set_firm(true);
            let asleep = scope.spawn(|| signal.wait_wake(LONG));
            signal.stop();
            assert!(!asleep.join().unwrap(), "the engine stops");
        });
    }
}
